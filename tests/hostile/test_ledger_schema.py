"""Ledgers that bring more than their tables, or lines that nobody wrote: refused before a release can leave without a line."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.ledger.entry import COLUMNS
from armslength.ledger.ledger_file import LedgerFile

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), al.Counts(2), epsilon=1, unit="one patient"
)
LINES_OF_ENTRIES = ", ".join(f"{name} TEXT NOT NULL" for name in COLUMNS)


def released(path, label):
    return al.release(PROTOCOL, np.zeros((1, 6), int), ledger=path, labels=[label], population="visits")


def edited(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).set_budget("visits", 10, unit="one patient", per="month")
    released(path, "first")
    return path


def test_what_sqlite_notes_down_for_itself_does_no_harm(path):
    edited(path, "ANALYZE", "VACUUM", "PRAGMA optimize")
    released(path, "second")
    assert len(al.Ledger(path).entries()) == 2
    edited(
        path,
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET name = 'sqlite_stat1' WHERE type = 'trigger'",
    )
    with pytest.raises(CorruptFileError):
        released(path, "third")


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",),
        ("CREATE TRIGGER t BEFORE INSERT ON labels BEGIN SELECT RAISE(IGNORE); END",),
        (
            "ALTER TABLE entries RENAME TO kept",
            "CREATE VIEW entries AS SELECT * FROM kept WHERE 0",
            "CREATE TRIGGER t INSTEAD OF INSERT ON entries BEGIN SELECT 1; END",
        ),
        (
            "DROP TABLE labels",
            "CREATE VIEW labels AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS label FROM r",  # never ends
        ),
        (
            "DROP TABLE entries",  # each line replaces the one before it
            f"CREATE TABLE entries (number INTEGER PRIMARY KEY, {LINES_OF_ENTRIES}, UNIQUE (population) ON CONFLICT REPLACE)",
            "CREATE INDEX entries_of_population ON entries (population)",
        ),
        ("CREATE TABLE more (anything)",),
        ("CREATE INDEX more ON labels (length(label))",),
        ("DROP INDEX entries_of_population",),
    ],
)
def test_a_ledger_with_anything_but_its_tables_is_refused(path, statements):
    edited(path, *statements)
    for ask in (lambda: al.Ledger(path), lambda: released(path, "second")):
        with pytest.raises(CorruptFileError, match="its tables are not those of a ledger"):
            ask()


def test_what_a_file_brings_along_may_call_nothing(path):
    with LedgerFile(str(path)).writing() as connection:
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET law = 'gaussian', delta = '0.1', scale = x'00', sensitivity_squared = '9'",
        "UPDATE entries SET law = 'gaussian', delta = '0.1', sensitivity_squared = x'39'",
        "UPDATE entries SET law = 'gaussian', delta = '0.1', sensitivity_squared = ''",
        "UPDATE entries SET population = x'00ff' WHERE number = 1",
        "UPDATE entries SET time = '9999-12-31T23:59:59-23:59'",  # a day that UTC does not have
        "UPDATE labels SET label = CAST(x'1b5b330aff' AS TEXT)",
        "UPDATE budgets SET unit = x'00'",
    ],
)
def test_lines_of_another_kind_are_damage_in_one_line(path, statement):
    edited(path, statement)
    with pytest.raises(CorruptFileError) as caught:
        al.Ledger(path).spent()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("label", ["x'00ff'", "CAST(x'ff' AS TEXT)"])
def test_labels_of_another_kind_are_damage(path, label):
    edited(path, f"UPDATE labels SET label = {label}")
    before = path.read_bytes()
    with pytest.raises(CorruptFileError):
        released(path, "second")
    assert path.read_bytes() == before
