"""Many processes on one ledger, killed in the middle of their work: no charge that was reported is lost, no budget exceeded.

The processes are forks, so that they are quick to start and spend their short lives charging.
"""

import os
import random
import signal
import sqlite3
import time
from pathlib import Path

import pytest

import armslength as al
from armslength.ledger.ledger import Entry

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
FIELDS = (
    "visits",
    "",
    "north.parquet",
    "00",
    "one_patient",
    "add_remove",
    "1",
    "laplace",
    "0x1.0p+0",
    "",
)


def charge_until_refused(path, name, epsilon, most, create, gate, said):
    """Charges once a byte has come, and says so on a line of its own each time a charge is done."""

    def report(line):
        os.write(said, f"{line}\n".encode())

    ledger = al.Ledger(path, create=create)
    report("ready")
    os.read(gate, 1)
    for number in range(most):
        label = f"{name}-{number}"
        try:
            ledger.charge(Entry(*FIELDS, epsilon, "0", "0", "f", "0.1"), [label])
        except al.ParameterError:
            return report("not mine")
        except al.BudgetError as problem:
            return report("over budget" if "does not fit the budget" in str(problem) else "known label")
        report(label)
    return None


class Worker:
    """A process that charges, and what it says of that."""

    def __init__(self, path, name, *, epsilon="0.001", most=10**6, create=False, waits=False):
        gate, self.gate = os.pipe()
        reports, said = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            code = 1
            try:
                charge_until_refused(path, name, epsilon, most, create, gate, said)
                code = 0
            finally:
                os._exit(code)
        os.close(gate)
        os.close(said)
        self.reports = os.fdopen(reports)
        assert self.reports.readline() == "ready\n"
        if not waits:
            self.start()

    def start(self):
        os.write(self.gate, b"x")
        os.close(self.gate)

    def reported(self):
        """What it said it had done, to its end; a line that was cut off by the kill says nothing."""
        with self.reports as lines:
            done = [
                line.rstrip("\n") for line in lines.read().splitlines(keepends=True) if line.endswith("\n")
            ]
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return done


def labels_in(path):
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in connection.execute("SELECT label FROM labels")]
    finally:
        connection.close()


def test_processes_killed_in_the_middle_of_many_charges(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).set_budget("visits", 1000, unit="one_patient")
    chance = random.Random(1)  # noqa: S311  # when to kill, not what to draw
    done = []
    for round_ in range(8):
        processes = [Worker(path, f"{round_}-{i}") for i in range(3)]
        # The first one reports some charges; then all die at once, wherever they are in theirs.
        done += [processes[0].reports.readline().rstrip("\n") for _ in range(chance.randint(3, 12))]
        time.sleep(0.01 * chance.random())
        for process in processes:
            os.kill(process.process, signal.SIGKILL)
        for process in processes:
            done += process.reported()
            assert process.code == -signal.SIGKILL
        # The file opens, and every line has its label.
        entries = al.Ledger(path, read_only=True).entries()
        written = labels_in(path)
        assert set(done) <= set(written)
        assert len(written) == len(entries)
    assert len(done) >= 8 * 3
    # What was written and not reported is over-counted: at most one charge for each process.
    assert 0 <= len(entries) - len(done) <= 24
    al.Ledger(path).charge(entries[0], ["after"])
    assert len(al.Ledger(path).entries()) == len(entries) + 1


def test_racing_processes_spend_a_budget_to_its_last_part_and_no_more(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = al.Ledger(path, create=True)
    ledger.set_budget("visits", 1, unit="one_patient")
    processes = [Worker(path, str(i), epsilon="0.02") for i in range(4)]
    said = [process.reported() for process in processes]
    assert [process.code for process in processes] == [0] * 4
    assert all(lines[-1] == "over budget" for lines in said)
    assert len(ledger.entries()) == 50
    assert sorted(line for lines in said for line in lines[:-1]) == sorted(labels_in(path))
    (spent,) = ledger.spent()
    assert (spent.epsilon, spent.left) == (1, 0)


def test_of_processes_that_ask_for_a_new_ledger_at_once_one_makes_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    for _ in range(5):
        processes = [Worker(path, str(i), most=3, create=True, waits=True) for i in range(2)]
        for process in processes:  # both have seen that there is no file yet
            process.start()
        said = sorted((process.reported() for process in processes), key=len)
        assert said[0] == ["not mine"]
        assert sorted(labels_in(path)) == said[1]
        assert len(said[1]) == len(al.Ledger(path).entries()) == 3
        assert [each.name for each in tmp_path.iterdir()] == ["ledger.sqlite"]
        path.unlink()


def test_of_several_processes_with_one_label_one_is_charged(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).set_budget("visits", 1000, unit="one_patient")
    processes = [Worker(path, "same", most=1) for _ in range(2)]
    assert sorted(process.reported() for process in processes) == [["known label"], ["same-0"]]
    assert len(al.Ledger(path).entries()) == 1


@pytest.mark.parametrize("read_only", [True, False])
def test_a_journal_left_by_a_dead_process_is_undone(tmp_path, entry, read_only):
    path = tmp_path / "ledger.sqlite"
    ledger = al.Ledger(path, create=True)
    ledger.charge(entry, ["a"])
    child = os.fork()
    if child == 0:  # pages go into the file before the transaction ends, and then the process dies
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("BEGIN IMMEDIATE")
        for number in range(3000):
            connection.execute("INSERT INTO labels VALUES (1, ?, ?)", (number + 1, f"lost {number}" * 10))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert Path(f"{path}-journal").exists()
    assert path.stat().st_size > 100_000  # half of it is in the file
    assert len(al.Ledger(path, read_only=read_only).entries()) == 1
    assert labels_in(path) == ["a"]
    ledger.charge(entry, ["b"])
    assert len(ledger.entries()) == 2
