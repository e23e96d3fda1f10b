"""A full disk, permissions, and a disk that fails: one line of ours, nothing half written, and what was spent is said."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from audit.faults.forks import POWERLESS, at_call, with_file_bytes
from audit.faults.party import LEDGER, TARGET
from audit.faults.system_calls import CallFault, can_trace

import armslength as al
from armslength._numba import kernel

traced = pytest.mark.skipif(not can_trace(), reason="ptrace of x86-64 Linux is not to be had here")

UNWRITABLE_LEDGER = "cannot write the ledger"
UNWRITABLE_NEW_LEDGER = f"{LEDGER}: "
# its file is larger than its ledger
WIDE = al.Protocol(al.SparseJL(sketch_dim=65_536, seed="wide"), al.Counts(3), epsilon=1, unit="one patient")
LOST = "ε was charged, and nothing was written: releasing again, with --repeat, spends once more"


@traced
@pytest.mark.parametrize(
    ("party", "fault", "charged", "says"),
    [
        (
            "first",
            CallFault("fail", 0, errno.ENOSPC, name="openat"),
            False,
            "cannot write sketches.parquet",
        ),
        ("first", CallFault("fail", 1, errno.ENOSPC, name="write"), False, UNWRITABLE_NEW_LEDGER),
        ("first", CallFault("fail", 0, errno.EIO, name="fsync"), False, UNWRITABLE_NEW_LEDGER),
        ("again", CallFault("fail", 0, errno.ENOSPC, name="pwrite64"), False, UNWRITABLE_LEDGER),
        ("again", CallFault("fail", 12, errno.EIO, name="pwrite64"), False, UNWRITABLE_LEDGER),
        # The journal is gone, and then its folder cannot be synced: the line stands, and nobody can know whether it lasts.
        ("again", CallFault("fail", 4, errno.EIO, name="fdatasync"), True, LOST),
        ("first", CallFault("fail", 2, errno.ENOSPC, lasting=True, name="write"), True, LOST),
        ("first", CallFault("fail", 2, errno.EIO, lasting=True, name="fsync"), True, LOST),
    ],
    indirect=["party"],
)
def test_a_call_that_fails(party, fault, charged, says):
    ended = party.run(at_call(fault))
    assert ended.code == 2
    assert ended.err.startswith("armslength: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    found = party.found()
    assert (found.charged, found.released, found.leftovers, found.wrong) == (charged, False, (), ())
    assert party.retried(found) == ()


@traced
@pytest.mark.parametrize("number", [1, 3])  # for the ledger, for the sketches
def test_a_folder_that_cannot_be_synced_has_the_file_all_the_same(party, number):
    ended = party.run(at_call(CallFault("fail", number, errno.EIO, name="fsync")))
    assert (ended.code, ended.err) == (0, "")
    assert (party.found().charged, party.found().released, party.found().wrong) == (True, True, ())


@traced
@pytest.mark.parametrize(
    ("party", "fault"),
    [
        ("first", CallFault("shorten", 1, name="write")),
        ("first", CallFault("shorten", 2, name="write")),
        ("again", CallFault("shorten", 2, name="pwrite64")),
        ("first", CallFault("fail", 1, errno.EINTR, name="write")),
        ("again", CallFault("fail", 2, errno.EINTR, name="pwrite64")),
    ],
    indirect=["party"],
)
def test_short_and_interrupted_writes_are_gone_on_with(party, fault):
    assert party.run(at_call(fault)).code == 0
    assert (party.found().released, party.found().wrong) == (True, ())


@pytest.mark.parametrize(("most", "charged"), [(1000, False), (50_000, True)])
def test_files_that_may_not_grow(party, temporary, most, charged):
    WIDE.save(party.folder / "protocol.json")
    before = set(temporary.iterdir())
    ended = party.run(with_file_bytes(most))
    assert ended.code == 2
    assert (LOST in ended.err, UNWRITABLE_NEW_LEDGER in ended.err) == (charged, not charged)
    assert ended.err.count("\n") == 1
    assert party.found().charged == charged
    assert not (party.folder / TARGET).exists()
    assert list(party.folder.glob(".*.part")) == []
    assert set(temporary.iterdir()) == before


@pytest.mark.parametrize(
    ("party", "unwritable", "says"),
    [
        ("first", ["."], "cannot write sketches.parquet: Permission denied"),
        ("again", [LEDGER], UNWRITABLE_LEDGER),
    ],
    indirect=["party"],
)
def test_permissions_that_say_no(party, unwritable, says):
    before = {path.name: path.read_bytes() for path in party.folder.iterdir()}
    for name in unwritable:
        path = party.folder / name
        path.chmod(0o555)
    ended = party.run(POWERLESS)
    party.folder.chmod(0o755)
    assert ended.code == 2
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in party.folder.iterdir()} == before


def test_an_earlier_output_that_may_not_be_written_to_is_replaced_whole(parties):
    # its folder decides: a rename asks the folder alone
    party = parties["again"]
    party.restore()
    (party.folder / TARGET).chmod(0o444)
    assert party.run(POWERLESS).code == 0
    assert (party.found().released, party.found().wrong) == (True, ())


def _one_more(number):
    return number + 1


def test_a_kernel_that_cannot_be_cached_still_runs(monkeypatch):
    tried = []

    def full(*_):
        tried.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_data", full)
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.load", lambda *_: None)
    assert kernel(_one_more)(1) == 2
    assert tried == [1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_standard_output_that_is_full(party):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "armslength", *party.arguments],
            cwd=party.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert ended.stderr.endswith(f"{TARGET}\n")  # where the release is
    assert ended.stderr.count("\n") == 1
    assert (party.found().released, party.found().wrong) == (True, ())


ROOM = 40_960  # for a ledger and its journal, and no sketches
IN_A_SMALL_DISK = """
mount -t tmpfs -o size={size} none {place} || exit 77
cd {place} && cp {source}/visits.parquet {source}/protocol.json . && dd if=/dev/zero of=padding 2>/dev/null
truncate -s -{room} padding
{python} -m armslength {arguments}
code=$?
{python} -c "import sqlite3; print(*sqlite3.connect('{ledger}').execute('SELECT count(*) FROM entries').fetchone(), end=' ')"
ls -A | grep -v -e visits -e protocol -e padding | tr '\\n' ' '
exit $code
"""


def test_a_disk_that_is_really_full(party, tmp_path):
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    WIDE.save(party.folder / "protocol.json")
    script = IN_A_SMALL_DISK.format(
        size="256k",
        place=tmp_path,
        source=party.folder,
        room=ROOM,
        python=sys.executable,
        arguments=" ".join(party.arguments),
        ledger=LEDGER,
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],  # noqa: S607  # whichever the system has
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if ended.returncode in {1, 77} and "mount" in ended.stderr + ended.stdout and "permitted" in ended.stderr:
        pytest.skip("this system does not let root mount a small disk")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert ended.stderr.startswith("armslength: cannot write sketches.parquet: No space left")
    assert ended.stderr.endswith(f"{LOST}\n")
    assert ended.stdout == f"1 {LEDGER} "  # a line, and no file but the ledger
