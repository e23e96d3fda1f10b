"""Private rows that do not fit memory: no signal leaves any behind, kill -9 included, and nobody can read them meanwhile."""

import os
import signal
import subprocess
import sys
import tempfile

import pyarrow as pa
import pytest
from audit.faults.forks import Ended, when_spilled, with_file_bytes
from audit.faults.party import READABLE, Found, Party, bytes_spilled
from audit.kills import _badly_ended

from armslength.cli.exit_codes import ending_signals
from armslength.ingest.spill import _TemporaryFile

pytestmark = pytest.mark.xdist_group("faults")  # one server for all
NOTHING = Found(False, False, (), ())


@pytest.fixture(scope="module")
def large(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    forks.run(folder, ("--version",))  # the server has its own temporary folder from now on
    return Party(folder / "party", forks, released_before=False, spills=True)


@pytest.mark.parametrize("sent", [*ending_signals(), signal.SIGKILL], ids=lambda sent: sent.name)
def test_no_signal_leaves_any(large, temporary, sent):
    large.restore()
    before = set(temporary.iterdir())
    ended = large.run(when_spilled(sent))
    assert ended.code == (-sent if sent == signal.SIGKILL else 128 + sent)
    assert ended.spilled > 0
    assert not ended.readable
    assert set(temporary.iterdir()) == before
    assert large.found() == NOTHING


def test_the_temporary_file_holds_nothing_to_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    events = pa.record_batch({"person": ["p1234"] * 1000, "group": ["north"] * 1000})
    with _TemporaryFile() as file:
        _, _, length = file.write([events, events])
        written = bytes_spilled(os.getpid())
        assert len(written) == length
        assert not any(text in written for text in READABLE)
        plain = pa.BufferOutputStream()
        with pa.ipc.new_stream(plain, events.schema) as writer:
            writer.write_batch(events)
        assert all(
            text in plain.getvalue().to_pybytes() for text in READABLE
        )  # the search finds what is not encrypted
    assert bytes_spilled(os.getpid()) == b""


def test_a_full_temporary_folder_gets_one_line_and_costs_nothing(large):
    large.restore()
    ended = large.run(with_file_bytes(100_000))
    assert ended.code == 2
    assert ended.err.startswith("armslength: the temporary folder must have room")
    assert ended.err.count("\n") == 1
    assert large.found() == NOTHING


def test_a_file_that_somebody_changed_is_noticed():
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # for this alone

    from armslength.ingest.spill import _Part  # noqa: PLC0415  # the same

    with _TemporaryFile() as file:
        segment = file.write([pa.record_batch({"person": ["p1234"]})])
        assert [batch.num_rows for batch in file.read(_Part([segment], 1))] == [1]
        file._file.seek(0)
        file._file.write(b"x")
        with pytest.raises(InvalidTag):
            list(file.read(_Part([segment], 1)))


def test_the_judge_sees_what_is_left(tmp_path):
    message = "armslength: interrupted; nothing was charged, and nothing was written\n"
    killed, interrupted = Ended(-signal.SIGKILL), Ended(128 + signal.SIGINT, err=message)
    for ended in (killed, interrupted):
        assert _badly_ended(ended, NOTHING, tmp_path) == ()
    (tmp_path / "armslength-abc").write_bytes(b"rows")
    for ended in (killed, interrupted):
        assert _badly_ended(ended, NOTHING, tmp_path) == ("something was left in the temporary folder",)


def test_the_signals_that_once_left_rows_behind_are_caught():
    once = {signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM}
    assert once | {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= set(ending_signals())


@pytest.mark.parametrize("sent", ending_signals(), ids=lambda sent: sent.name)
def test_every_signal_of_the_list_would_end_a_process(sent):
    code = f"import os, signal; signal.signal({int(sent)}, signal.SIG_DFL); os.kill(os.getpid(), {int(sent)})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -sent
