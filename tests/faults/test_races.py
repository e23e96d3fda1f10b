"""Several releases at once on one ledger, a clock that goes back, and a fork in the middle."""

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from audit.faults.party import LEDGER, NEW_LEDGER, POPULATION, RELEASE, TARGET
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.ledger import ledger_file

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=4, sketch_dim=8, sparsity=2, seed="x"), epsilon=1, unit="one patient"
)


def named(number, *more):
    return (*RELEASE, "-o", f"{number}.parquet", *more)


def new_ledger(folder, epsilon=100, **known):
    ledger = al.Ledger(folder / LEDGER, create=True)
    ledger.set_budget(POPULATION, epsilon, unit="one patient", **known)
    return ledger


def test_of_releases_at_once_that_ask_for_a_new_ledger_one_is_charged_and_written(party, forks):
    commands = [named(number, NEW_LEDGER, "--public-groups", f"group {number}") for number in range(4)]
    ended = forks.run_together(party.folder, commands)
    assert sorted(each.code for each in ended) == [0, 2, 2, 2]
    (written,) = party.folder.glob("[0-9].parquet")
    assert ended[int(written.stem)].code == 0
    assert [entry.labels for entry in al.Ledger(party.folder / LEDGER).entries()] == [
        (f"group {written.stem}",)
    ]
    assert list(party.folder.glob(".*.part")) == []


def test_of_releases_at_once_with_the_same_labels_one_is_charged_and_written(party, forks):
    new_ledger(party.folder)
    ended = forks.run_together(party.folder, [named(number) for number in range(4)])
    assert sorted(each.code for each in ended) == [0, 4, 4, 4]
    assert len(al.Ledger(party.folder / LEDGER).entries()) == 1
    (written,) = party.folder.glob("[0-9].parquet")
    assert ended[int(written.stem)].code == 0
    assert al.load(written).labels == ("north", "south")


def test_releases_at_once_with_other_labels_never_exceed_a_budget(party, forks):
    new_ledger(party.folder, 2)
    commands = [named(number, "--public-groups", f"group {number}") for number in range(5)]
    ended = forks.run_together(party.folder, commands)
    assert sorted(each.code for each in ended) == [0, 0, 4, 4, 4]
    assert {int(path.stem) for path in party.folder.glob("[0-9].parquet")} == {
        number for number, each in enumerate(ended) if each.code == 0
    }
    (spent,) = al.Ledger(party.folder / LEDGER).spent()
    assert (spent.epsilon, spent.left) == (2, 0)


def test_releases_at_once_to_one_file_leave_one_of_them_whole(party, forks):
    new_ledger(party.folder)
    commands = [(*RELEASE, "--repeat", "--overwrite") for _ in range(4)]
    assert [each.code for each in forks.run_together(party.folder, commands)] == [0] * 4
    assert len(al.Ledger(party.folder / LEDGER).entries()) == 4
    assert al.load(party.folder / TARGET).labels == ("north", "south")
    assert list(party.folder.glob(".*.part")) == []


def test_a_clock_that_goes_back_opens_no_period_again(party, monkeypatch):
    monkeypatch.chdir(party.folder)

    def released_on(day, label):
        class Clock(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.fromisoformat(day).replace(tzinfo=UTC).astimezone(tz)

        monkeypatch.setattr(ledger_file, "datetime", Clock)
        return CliRunner().invoke(main, named(label, "--public-groups", label)).exit_code

    ledger = new_ledger(party.folder, 1, per="month")
    codes = [
        released_on(day, f"r{number}")
        for number, day in enumerate(["2030-02-10", "2030-03-01", "2030-02-27", "2030-03-31", "2030-04-01"])
    ]
    assert codes == [0, 0, 4, 4, 0]
    assert [entry.time[:10] for entry in ledger.entries()] == [
        "2030-02-10",
        "2030-03-01",
        "2030-04-01",
    ]
    assert not Path("r2.parquet").exists()


def forked_in(monkeypatch, place, work, call=1):
    """What the child says of work that is forked, by a signal handler, before a call of the function at this place; and what the parent gets."""
    module, name = place.rsplit(".", 1)
    function = getattr(__import__(module, fromlist=[name]), name)
    read, write = os.pipe()
    children, calls = [], []

    def forking(*arguments, **known):
        calls.append(place)
        if len(calls) == call:  # once: a child of the child would go on with the tests
            signal.raise_signal(signal.SIGUSR1)
        return function(*arguments, **known)

    usual = signal.signal(signal.SIGUSR1, lambda *_: children.append(os.fork()))
    monkeypatch.setattr(place, forking)
    try:
        done = work()
    except BaseException as problem:
        if children == [0]:
            os.write(write, f"{type(problem).__name__}: {problem}".encode())
        raise
    finally:
        if children == [0]:
            os._exit(0)
        signal.signal(signal.SIGUSR1, usual)
    os.close(write)
    with open(read, "rb") as said:  # noqa: PTH123  # a pipe
        text = said.read().decode()
    os.waitpid(children[0], 0)
    return done, text


@pytest.mark.parametrize(
    ("place", "call"),
    [("armslength.releasing.release.noised", 1), ("armslength.releasing.release.add_noise", 2)],
    ids=["before any noise", "before that of the totals"],
)
def test_a_release_that_is_forked_after_its_charge_is_one_release(tmp_path, monkeypatch, place, call):
    totals = al.Protocol(
        al.SparseJL(input_dim=4, sketch_dim=8, sparsity=2, seed="x"),
        al.Arrays(total_share="0.1"),
        epsilon=1,
        unit="one patient",
    )
    ledger = al.Ledger(tmp_path / LEDGER, create=True)

    def work():
        return al.release(totals, np.zeros((1, 4), int), ledger=ledger, population="p", threads=1)

    done, child = forked_in(monkeypatch, place, work, call)
    assert done.values.shape == (1, 8)
    assert child.startswith("RuntimeError: the release was forked in the middle")
    assert len(al.Ledger(tmp_path / LEDGER).entries()) == 1


def test_a_stream_that_is_forked_after_its_charge_is_one_stream(tmp_path, monkeypatch):
    ledger = al.Ledger(tmp_path / LEDGER, create=True)

    def work():
        stream = al.stream(PROTOCOL, label="a", ledger=ledger, population="p")
        stream.update([1])
        return stream.release()

    done, child = forked_in(monkeypatch, "armslength.releasing.stream.noised", work)
    assert done.labels == ("a",)
    assert child.startswith("ParameterError: a stream must stay in the process that made it")
