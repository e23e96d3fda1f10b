"""`kill -9` in the middle of a release: hundreds in `make audit`, some of every kind here."""

import signal

import pytest
from audit.faults.forks import at_call, at_line
from audit.faults.party import LEDGER, TARGET
from audit.faults.system_calls import CallFault, can_trace

traced = pytest.mark.skipif(not can_trace(), reason="ptrace of x86-64 Linux is not to be had here")


@traced
@pytest.mark.parametrize(
    ("party", "deed", "name", "number", "charged", "released"),
    [
        ("again", "tear", "pwrite64", 0, False, False),  # the journal
        ("again", "tear", "pwrite64", 12, False, False),  # the ledger itself
        ("again", "kill", "fdatasync", 4, True, False),  # the journal is gone: the line stands
        ("first", "tear", "write", 1, False, False),  # the new ledger
        ("first", "kill", "link", 1, False, False),  # before it has its name
        ("first", "kill", "unlink", 3, True, False),  # just after
        ("first", "kill", "fsync", 1, True, False),
        ("first", "tear", "write", 2, True, False),
        ("again", "tear", "write", 3, True, False),
        ("first", "kill", "rename", 0, True, False),
        ("again", "kill", "rename", 0, True, False),
        ("first", "kill", "fsync", 3, True, True),  # of the folder, after the rename
        ("again", "kill", "fsync", 1, True, True),
    ],
    indirect=["party"],
)
def test_a_kill_at_a_system_call(party, deed, name, number, charged, released):
    killed = party.run(at_call(CallFault(deed, number, name=name)))
    assert (killed.code, killed.calls) == (-signal.SIGKILL, [name] * (number + 1))
    found = party.found()
    assert (found.charged, found.released, found.wrong) == (charged, released, ())
    assert party.retried(found) == ()


@pytest.mark.parametrize(
    ("party", "part"),
    [("first", 0.85), ("first", 0.9), ("again", 0.5), ("again", 0.95)],
    indirect=["party"],
)
def test_a_kill_at_a_line(party, part, line_counts):
    assert party.run(at_line(int(part * line_counts[party.folder]), signal.SIGKILL)).code == -signal.SIGKILL
    found = party.found()
    assert found.wrong == ()
    assert party.retried(found) == ()


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda folder: (folder / TARGET).write_bytes(b"PAR1"), "the file does not load"),
        (lambda folder: (folder / LEDGER).unlink(), "a release is missing from the ledger"),
        (lambda folder: (folder / LEDGER).write_bytes(b"no ledger"), "the ledger does not open"),
        (lambda folder: (folder / "other").touch(), "a file of an unknown kind: other"),
    ],
)
def test_the_judge_sees_what_is_wrong(party, broken, says):
    assert party.run().code == 0
    assert party.found().wrong == ()
    broken(party.folder)
    assert party.found().wrong[0].startswith(says)


def test_the_judge_sees_noisy_values_without_a_line(party):
    (party.folder / f".{TARGET}.abc.part").write_bytes(b"values")
    assert party.found().wrong == ("noisy values are on the disk, and the ledger does not know",)
