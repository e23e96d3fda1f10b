"""Private rows that do not fit memory: no signal leaves any behind, kill -9 included, and nobody can read them meanwhile."""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from audit.faults.forks import Ended, at_line, when_spilled, with_file_bytes
from audit.faults.party import READABLE, Found, Party, bytes_spilled
from audit.kills import _badly_ended
from cryptography.exceptions import InvalidTag

from armslength.cli.exit_codes import ending_signals
from armslength.ingest.contributions import ItemList, PackedEvents
from armslength.ingest.partitions import PARTS, Block, _TemporaryFile

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


STAGES = {
    "reading": "ParquetTexts._batches",
    "partitioning": "EventEncoder.block",
    "keeping": "EventStore.add",
    "writing the temporary file": "_TemporaryFile.write",
    "planning": "EventStore.jobs",
    "reading it back": "_TemporaryFile.read",
    "joining": "Events.joined",
    "bounding": "Votes.bounded",
    "adding": "GroupSums.add",
}


@pytest.mark.parametrize("line", [0, 3])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda sent: sent.name)
@pytest.mark.parametrize("stage", STAGES)
def test_a_signal_at_every_stage(large, temporary, stage, sent, line):
    large.restore()
    before = set(temporary.iterdir())
    ended = large.run(at_line(line if stage != "adding" else min(line, 1), sent, STAGES[stage]))
    assert ended.code == (-sent if sent == signal.SIGKILL else 128 + sent), ended.err
    assert set(temporary.iterdir()) == before
    assert large.found() == NOTHING
    assert _badly_ended(ended, NOTHING, temporary) == ()


def block_of(count, person=b"p1234"):
    """Events of one person, in the first part."""
    halves = person[:8].ljust(8, b"\0") + person[8:].ljust(7, b"\0") + bytes([len(person)])
    words = np.frombuffer(halves * count, dtype="<u8").astype(np.uint64).reshape(-1, 2)
    rows = np.hstack([words, np.arange(count, dtype=np.uint64)[:, None]])
    starts = np.array([0] + [count] * PARTS)
    events = PackedEvents(
        rows, np.empty(0, dtype=np.uint8), has_second=True, has_words=False, items=ItemList()
    )
    return Block(events, starts, np.zeros(PARTS + 1, dtype=np.int64))


def test_the_temporary_file_holds_nothing_to_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    block = block_of(1000)
    file = _TemporaryFile()
    place = file.write(block)
    assert not list(tmp_path.iterdir())  # it has no name
    written = bytes_spilled(os.getpid())
    assert len(written) >= place.places[-1] > 1000 * 24
    assert not any(text in written for text in READABLE)
    # the search finds what is not encrypted
    assert all(text in block.events.rows.tobytes() for text in READABLE)
    file.close()
    assert bytes_spilled(os.getpid()) == b""


def test_what_was_written_is_read_and_equal_blocks_look_different():
    file = _TemporaryFile()
    blocks = [block_of(1000), block_of(1000), block_of(3, b"somebody else")]
    places = [file.write(block) for block in blocks]
    for block, place in zip(blocks, places, strict=True):
        for part in (0, 1, PARTS - 1):
            expected, found = block.part(part, part + 1), file.read(place, part)
            assert np.array_equal(expected.rows, found.rows)
            assert np.array_equal(expected.long_ids, found.long_ids)
            assert expected[2:] == found[2:]
            assert (expected.rows.dtype, expected.long_ids.dtype) == (found.rows.dtype, found.long_ids.dtype)
    texts = [os.pread(file._file.fileno(), 1000, int(place.places[0])) for place in places[:2]]
    assert texts[0] != texts[1]
    file.close()


def test_a_full_temporary_folder_gets_one_line_and_costs_nothing(large):
    large.restore()
    ended = large.run(with_file_bytes(100_000))
    assert ended.code == 2
    assert ended.err.startswith("armslength: cannot write a copy of the events to the temporary folder")
    assert ended.err.count("\n") == 1
    assert large.found() == NOTHING


@pytest.mark.parametrize("what", ["changed", "swapped", "cut off"])
def test_a_file_that_somebody_changed_is_noticed(what):
    file = _TemporaryFile()
    first, second = file.write(block_of(5)), file.write(block_of(5))
    assert len(file.read(first, 0).rows) == 5
    descriptor, length = file._file.fileno(), int(first.places[-1])
    if what == "changed":
        os.pwrite(descriptor, b"x", 0)
    elif what == "swapped":
        os.pwrite(descriptor, os.pread(descriptor, length, int(second.places[0])), 0)
    else:
        os.ftruncate(descriptor, 10)
    with pytest.raises(InvalidTag):
        file.read(first, 0)
    file.close()


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
