"""Many processes on one ledger, killed in the middle of their work: no charge that was reported is lost, no budget exceeded.

The processes import the ledger alone, so that they are quick to start and spend their short lives charging.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import armslength as al

# Charges until it is refused, and says so on a line of its own each time a charge is done.
WORKER = """
import sys
from armslength.errors import BudgetError, ParameterError
from armslength.ledger.ledger import Entry, Ledger

path, name, epsilon, most, create = sys.argv[1:]
fields = "visits north one_patient add_remove 1 l1 laplace 0x1.0p+0 - 1 0 0 f 0.1".split()
fields[8], fields[9] = "", epsilon
ledger = Ledger(path, create=bool(create))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(most)):
    label = f"{name}-{number}"
    try:
        ledger.charge(Entry(*fields), [label])
    except ParameterError as problem:
        print("not mine", flush=True)
        break
    except BudgetError as problem:
        print("over budget" if "must fit the budget" in str(problem) else "known label", flush=True)
        break
    print(label, flush=True)
"""


def worker(path, name, *, epsilon="0.001", most=10**6, create=False, waits=False):
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), name, epsilon, str(most), "yes" if create else ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    if not waits:
        process.stdin.close()
    return process


def reported(process):
    """What it said it had done; a line that was cut off by the kill says nothing."""
    lines = process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    process.wait()
    return [line.rstrip("\n") for line in lines if line.endswith("\n")]


def labels_in(path):
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in connection.execute("SELECT label FROM labels")]
    finally:
        connection.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_processes_killed_in_the_middle_of_many_charges(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).set_budget("visits", 1000, unit="one_patient")
    chance = random.Random(1)  # noqa: S311  # when to kill, not what to draw
    done = []
    for round_ in range(8):
        processes = [worker(path, f"{round_}-{i}") for i in range(3)]
        # The first one reports some charges; then all die at once, wherever they are in theirs.
        done += [processes[0].stdout.readline().rstrip("\n") for _ in range(chance.randint(3, 12))]
        time.sleep(0.01 * chance.random())
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            done += reported(process)
            assert process.returncode == -signal.SIGKILL
        # The file opens, and every line has its label.
        entries = al.Ledger(path, read_only=True).entries()
        written = labels_in(path)
        assert set(done) <= set(written)
        assert len(written) == len(entries)
    assert len(done) >= 8 * 3
    # What was written and not reported is over-counted: at most one charge for each process.
    assert 0 <= len(entries) - len(done) <= 24
    al.Ledger(path).charge(replace(entries[0], label="after"), ["after"])
    assert len(al.Ledger(path).entries()) == len(entries) + 1


def test_racing_processes_spend_a_budget_to_its_last_part_and_no_more(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = al.Ledger(path, create=True)
    ledger.set_budget("visits", 1, unit="one_patient")
    processes = [worker(path, str(i), epsilon="0.02") for i in range(4)]
    said = [reported(process) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert all(lines[-1] == "over budget" for lines in said)
    assert len(ledger.entries()) == 50
    assert sorted(line for lines in said for line in lines[:-1]) == sorted(labels_in(path))
    (spent,) = ledger.spent()
    assert (spent.epsilon, spent.left) == (1, 0)


def test_of_processes_that_ask_for_a_new_ledger_at_once_one_makes_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    for _ in range(5):
        processes = [worker(path, str(i), most=3, create=True, waits=True) for i in range(2)]
        for process in processes:  # both have seen that there is no file yet
            process.stdin.close()
        said = sorted(map(reported, processes), key=len)
        assert said[0] == ["not mine"]
        assert sorted(labels_in(path)) == said[1]
        assert len(said[1]) == len(al.Ledger(path).entries()) == 3
        assert [each.name for each in tmp_path.iterdir()] == ["ledger.sqlite"]
        path.unlink()


def test_of_several_processes_with_one_label_one_is_charged(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).set_budget("visits", 1000, unit="one_patient")
    processes = [worker(path, "same", most=1) for _ in range(2)]
    assert sorted(reported(process) for process in processes) == [["known label"], ["same-0"]]
    assert len(al.Ledger(path).entries()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
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
            connection.execute("INSERT INTO labels VALUES ('visits', ?)", (f"lost {number}" * 10,))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert Path(f"{path}-journal").exists()
    assert path.stat().st_size > 100_000  # half of it is in the file
    assert len(al.Ledger(path, read_only=read_only).entries()) == 1
    assert labels_in(path) == ["a"]
    ledger.charge(entry, ["b"])
    assert len(ledger.entries()) == 2
