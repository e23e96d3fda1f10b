"""The file of a ledger: it exists or is asked for, is made whole or not at all, and stays the same file."""

import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import armslength as al
from armslength import files
from armslength.errors import CorruptFileError
from armslength.ledger import ledger_file as module
from armslength.ledger.ledger_file import write_entry

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=4, sketch_dim=8, sparsity=2, seed="x"), al.Counts(2), epsilon=1, unit="one patient"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Unread:
    """Data that must not be looked at."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize(
    "ask",
    [
        al.Ledger,
        lambda path: al.Ledger(path, read_only=True),
        lambda path: al.release(PROTOCOL, Unread(), ledger=path, population="p"),
        lambda path: al.release(PROTOCOL, Unread(), ledger=str(path), population="p"),
        lambda path: al.stream(PROTOCOL, label="a", ledger=path, population="p"),
        lambda path: al.release(
            PROTOCOL, Unread(), person="who", item="what", label="a", ledger=path, population="p"
        ),
        lambda path: al.verify("no file", ledger=path),
    ],
)
def test_a_ledger_must_exist_before_anything_is_read(ask, path, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such ledger"):
        ask(path)
    assert names(tmp_path) == []


def test_a_new_ledger_is_asked_for_and_made_by_its_first_line(path, tmp_path, entry):
    ledger = al.Ledger(path, create=True)
    assert ledger.entries() == ledger.budgets() == ledger.spent() == []
    assert names(tmp_path) == []
    ledger.charge(entry, ["a"])
    ledger.charge(entry, ["b"])
    assert names(tmp_path) == ["ledger.sqlite"]
    assert len(ledger.entries()) == len(al.Ledger(path).entries()) == 2
    with pytest.raises(al.BudgetError):
        al.Ledger(path).charge(entry, ["a"])


def test_a_new_ledger_is_never_an_old_one(path, entry):
    first, second = (al.Ledger(path, create=True) for _ in range(2))
    first.set_budget("visits", 1, unit="one patient")
    for ask in (
        lambda: al.Ledger(path, create=True),
        lambda: second.charge(entry, ["a"]),
        lambda: second.preview(entry, ["a"]),
        second.entries,
    ):
        with pytest.raises(al.ParameterError, match="exists"):
            ask()
    assert first.entries() == []
    with pytest.raises(al.ParameterError, match="read_only"):
        al.Ledger(path.with_name("other.sqlite"), create=True, read_only=True)


def test_a_first_line_that_is_refused_or_cannot_be_written_leaves_no_file(path, tmp_path, entry, monkeypatch):
    ledger = al.Ledger(path, create=True)
    with pytest.raises(al.ParameterError):
        ledger.set_budget("visits", -1, unit="one patient")
    with monkeypatch.context() as full:
        full.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(al.ParameterError, match="No space left"):
            ledger.charge(entry, ["a"])
    assert names(tmp_path) == []
    ledger.charge(entry, ["a"])
    assert names(tmp_path) == ["ledger.sqlite"]


@pytest.mark.parametrize("taken", [False, True])
def test_file_systems_without_links(taken, path, tmp_path, entry, monkeypatch):
    def link(_, target):
        if taken:  # somebody is quicker
            target.write_bytes(b"theirs")
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", link)
    ledger = al.Ledger(path, create=True)
    if taken:
        with pytest.raises(al.ParameterError, match="somebody else"):
            ledger.charge(entry, ["a"])
        assert path.read_bytes() == b"theirs"
    else:
        ledger.charge(entry, ["a"])
        assert len(ledger.entries()) == 1
    assert names(tmp_path) == ["ledger.sqlite"]


def test_an_interruption_when_the_file_was_just_made_does_not_hide_its_line(path, entry, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    ledger = al.Ledger(path, create=True)
    with monkeypatch.context() as late:
        late.setattr(files, "_sync_folder", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(entry, ["a"])
    assert len(ledger.entries()) == 1
    ledger.charge(entry, ["b"])


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_a_new_ledger_does_not_lie_beside_the_journal_of_another(suffix, path, entry):
    ledger = al.Ledger(path, create=True)
    journal = path.with_name(path.name + suffix)
    journal.write_bytes(b"lines")
    for ask in (lambda: al.Ledger(path, create=True), lambda: ledger.charge(entry, ["a"])):
        with pytest.raises(al.ParameterError, match="journal"):
            ask()
    assert not path.exists()


def write_empty_database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("DROP TABLE t")
    assert path.stat().st_size > 0


@pytest.mark.parametrize("empty", [lambda path: path.write_bytes(b""), write_empty_database])
def test_an_empty_file_is_no_ledger(empty, path, entry):
    empty(path)
    before = path.read_bytes()
    for ask in (al.Ledger, lambda path: al.Ledger(path, read_only=True)):
        with pytest.raises(CorruptFileError, match="not a ledger"):
            ask(path)
    with pytest.raises(al.ParameterError, match="exists"):
        al.Ledger(path, create=True)
    with pytest.raises(CorruptFileError, match="not a ledger"):
        al.release(PROTOCOL, np.zeros((1, 4), int), ledger=path, population="p")
    assert path.read_bytes() == before
    path.unlink()
    ledger = al.Ledger(path, create=True)
    ledger.charge(entry, ["a"])
    os.truncate(path, 0)  # the same file, cut short under an open ledger
    with pytest.raises(CorruptFileError, match="not a ledger"):
        ledger.charge(entry, ["b"])
    assert path.stat().st_size == 0


def removed(path):
    path.unlink()


def made_anew(path):
    path.rename(path.with_name("moved.sqlite"))
    al.Ledger(path, create=True).set_budget("visits", 100, unit="one patient")


def put_back(path):
    shutil.copyfile(path.with_name("older.sqlite"), path)  # the same file, with fewer lines


@pytest.mark.parametrize("change", [removed, made_anew, put_back])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_ledger_that_is_no_longer_the_same_is_noticed(change, is_new, path, entry):
    ledger = al.Ledger(path, create=True)
    ledger.charge(entry, ["a"])
    shutil.copyfile(path, path.with_name("older.sqlite"))
    ledger.charge(entry, ["b"])
    if not is_new:
        ledger = al.Ledger(path)
    change(path)
    before = path.read_bytes() if path.exists() else None
    for ask in (
        lambda: ledger.charge(entry, ["b"]),
        lambda: ledger.set_budget("visits", 9, unit="one patient"),
        lambda: ledger.preview(entry, ["b"]),
        lambda: al.release(PROTOCOL, np.zeros((1, 4), int), ledger=ledger, population="p"),
        ledger.entries,
        ledger.budgets,
        ledger.spent,
    ):
        with pytest.raises(al.ArmslengthError, match="was opened"):
            ask()
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_new_ledger_is_made_once(path, entry):
    ledger = al.Ledger(path, create=True)
    ledger.charge(entry, ["a"])
    path.unlink()
    with pytest.raises(FileNotFoundError, match="is gone"):
        ledger.charge(entry, ["a"])
    assert not path.exists()


@pytest.mark.parametrize("moment", ["before it is opened", "when it is locked"])
def test_a_ledger_that_is_replaced_in_the_middle_is_noticed(moment, path, entry, monkeypatch):
    ledger = al.Ledger(path, create=True)
    ledger.charge(entry, ["a"])
    connected = module._connected

    def opened(place):
        if moment == "before it is opened":
            made_anew(path)
            return connected(place)
        connection = connected(place)
        made_anew(path)
        return connection

    with monkeypatch.context() as swapped:
        swapped.setattr(module, "_connected", lambda place: (swapped.undo(), opened(place))[1])
        with pytest.raises(al.ParameterError, match="another file"):
            ledger.charge(entry, ["b"])
    for each in (path, path.with_name("moved.sqlite")):
        assert len(al.Ledger(each).entries()) == (each != path)


def test_a_line_in_a_file_that_was_just_removed_is_no_charge(path, entry, monkeypatch):
    ledger = al.Ledger(path, create=True)
    ledger.charge(entry, ["a"])

    def late(*arguments):
        write_entry(*arguments)
        path.unlink()

    monkeypatch.setattr("armslength.ledger.ledger.write_entry", late)
    with pytest.raises(FileNotFoundError, match="is gone"):
        ledger.charge(entry, ["b"])
