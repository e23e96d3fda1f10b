"""Private rows that the engine wrote to the temporary folder: a signal removes them, and kill -9 leaves them to their owner alone."""

import shutil
import signal
import stat

import pytest
from audit.faults.forks import Ended, when_spilled
from audit.faults.party import Found, Party, bytes_spilled
from audit.kills import _badly_ended

pytestmark = pytest.mark.xdist_group("faults")  # one server for all


@pytest.fixture(scope="module")
def large(forks, tmp_path_factory):
    return Party(tmp_path_factory.mktemp("large") / "party", forks, released_before=False, spills=True)


def test_a_signal_removes_them(large, temporary):
    before = set(temporary.glob("armslength-*"))
    ended = large.run(when_spilled(signal.SIGTERM))
    assert (ended.code, ended.spilled > 0) == (128 + signal.SIGTERM, True)
    assert set(temporary.glob("armslength-*")) == before
    assert large.found() == Found(False, False, (), ())


def test_a_kill_leaves_them_to_their_owner(large, temporary):
    large.restore()
    before = set(temporary.glob("armslength-*"))
    ended = large.run(when_spilled(signal.SIGKILL))
    assert (ended.code, ended.spilled > 0) == (-signal.SIGKILL, True)
    (folder,) = set(temporary.glob("armslength-*")) - before
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert bytes_spilled(temporary) > 0
    assert large.found() == Found(False, False, (), ())
    shutil.rmtree(folder)
    assert bytes_spilled(temporary) == 0


def test_the_judge_sees_what_is_left(tmp_path):
    nothing = Found(False, False, (), ())
    message = "armslength: interrupted; nothing was charged, and nothing was written\n"
    killed, interrupted = Ended(-signal.SIGKILL), Ended(128 + signal.SIGINT, err=message)
    assert _badly_ended(interrupted, nothing, tmp_path) == ()
    folder = tmp_path / "armslength-abc"
    folder.mkdir(mode=0o700)
    assert _badly_ended(interrupted, nothing, tmp_path) == ("the folder for private rows was left",)
    assert _badly_ended(killed, nothing, tmp_path) == ()
    folder.chmod(0o750)
    assert _badly_ended(killed, nothing, tmp_path) == ("others may read the private rows that a kill left",)


def test_links_are_not_counted(tmp_path):
    folder = tmp_path / "armslength-abc"
    folder.mkdir()
    (tmp_path / "events.parquet").write_bytes(b"rows")
    (folder / "link.parquet").symlink_to(tmp_path / "events.parquet")
    assert bytes_spilled(tmp_path) == 0
    (folder / "inner").mkdir()
    (folder / "inner" / "spilled.tmp").write_bytes(b"rows")
    assert bytes_spilled(tmp_path) == 4
