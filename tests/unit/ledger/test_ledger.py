"""The ledger by itself: lines that stay, labels that are new, files of every kind, and nothing private in it."""

import sqlite3
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest

import armslength as al
from armslength.errors import CorruptFileError, UnsupportedVersionError
from armslength.ledger.entry import Entry
from armslength.ledger.ledger_file import LedgerFile
from flat_protocol import flat_protocol


def test_lines_stay_in_their_order(tmp_path, entry):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).charge(entry, ["a"])
    for label in ("b", "c"):
        al.Ledger(path).charge(entry, [label])
    entries = al.Ledger(path).entries("visits")
    assert len(entries) == 3
    assert replace(entries[0], time="", number=0, labels=()) == entry
    assert [(line.number, line.labels) for line in entries] == [(1, ("a",)), (2, ("b",)), (3, ("c",))]
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
    assert al.Ledger(path).entries("others") == []
    assert repr(al.Ledger(path)) == f"Ledger({str(path)!r})"


def test_a_change_of_folder_does_not_change_the_ledger(tmp_path, monkeypatch, entry):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = al.Ledger("ledger.sqlite", create=True)
    monkeypatch.chdir(tmp_path / "other")
    ledger.charge(entry, ["a"])
    assert len(al.Ledger(tmp_path / "ledger.sqlite", read_only=True).entries()) == 1
    assert list((tmp_path / "other").iterdir()) == []


def test_every_label_of_a_release_is_remembered(tmp_path, entry):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    ledger.charge(entry, ["a", "b", "c"])
    for label in ("a", "b", "c"):
        with pytest.raises(al.BudgetError, match=f"'{label}' was released before"):
            ledger.charge(entry, ["new", label])


def test_a_ledger_without_its_tables_is_damaged(tmp_path, entry):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).charge(entry, ["a"])
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE labels")
    connection.close()
    with pytest.raises(CorruptFileError):
        al.Ledger(path).charge(entry, ["b"])


@pytest.mark.parametrize("per", ["day", "week", "month", "quarter", "year"])
def test_the_last_year_of_the_calendar_still_has_an_end(per, tmp_path, entry, set_clock):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    ledger.set_budget("visits", 1, unit="one patient", per=per)
    set_clock("9999-12-30T12:00:00")
    ledger.charge(entry, ["a"])
    with pytest.raises(al.BudgetError):
        ledger.charge(entry, ["b"])


def test_a_time_that_is_no_text_is_damage(tmp_path, entry):
    path = tmp_path / "ledger.sqlite"
    ledger = al.Ledger(path, create=True)
    ledger.set_budget("visits", 9, unit="one patient", per="month")
    ledger.charge(entry, ["a"])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET time = x'ff00'")
    connection.close()
    with pytest.raises(CorruptFileError):
        ledger.charge(entry, ["b"])


@pytest.mark.parametrize("spelled", ["visits ", " visits", "e\u0301tude"])
def test_spellings_that_look_alike_are_refused(spelled, tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.ParameterError, match="population must have"):
        ledger.set_budget(spelled, 1, unit="one patient")
    protocol = al.Protocol(al.SparseJL(input_dim=4, sketch_dim=2, seed="x"), epsilon=1)
    with pytest.raises(al.ParameterError, match="population must have"):
        al.release(protocol, [[1, 2, 3, 4]], labels=["a"], population=spelled, ledger=ledger)


def test_the_ledger_itself_knows_one_spelling(tmp_path, entry):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    ledger.charge(entry, ["e\u0301"])
    with pytest.raises(al.BudgetError):
        ledger.preview(entry, ["\u00e9"])
    with pytest.raises(al.ParameterError, match="population must have"):
        ledger.charge(replace(entry, population="visits "), ["b"])
    assert len(ledger.entries()) == 1


def test_one_label_in_two_spellings_is_one_label(tmp_path):
    protocol = al.Protocol(al.SparseJL(input_dim=4, sketch_dim=2, seed="x"), epsilon=1)
    path = tmp_path / "ledger.sqlite"
    ledger = al.Ledger(path, create=True)
    al.release(protocol, [[1, 2, 3, 4]], labels=["\u00e9"], population="p", ledger=ledger)
    with pytest.raises(al.BudgetError):
        al.release(protocol, [[1, 2, 3, 4]], labels=["e\u0301"], population="p", ledger=path)


def test_a_refusal_writes_nothing(tmp_path, entry):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    ledger.charge(entry, ["a"])
    with pytest.raises(al.BudgetError, match="'a' was released before"):
        ledger.charge(entry, ["b", "a"])
    assert len(ledger.entries()) == 1
    ledger.charge(entry, ["b"])  # the refused line has not taken its label
    ledger.charge(entry, ["a"], repeat=True)
    assert len(ledger.entries()) == 3


def test_a_preview_says_the_same_and_writes_nothing(tmp_path, entry):
    path = tmp_path / "ledger.sqlite"
    ledger = al.Ledger(path, create=True)
    assert replace(ledger.preview(entry, ["a"]), time="", labels=()) == entry
    assert ledger.entries() == ledger.spent() == ledger.budgets() == []
    assert not path.exists()
    ledger.charge(entry, ["a"])
    before = path.read_bytes()
    with pytest.raises(al.BudgetError, match="'a' was released before"):
        ledger.preview(entry, ["a"])
    assert ledger.preview(entry, ["a"], repeat=True).epsilon == "1"
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_a_ledger_to_read_must_be_there_and_stays_as_it_is(tmp_path, entry):
    path = tmp_path / "ledger.sqlite"
    with pytest.raises(FileNotFoundError, match="no such ledger"):
        al.Ledger(path, read_only=True)
    assert not path.exists()
    al.Ledger(path, create=True).charge(entry, ["a"])
    path.chmod(0o444)
    ledger = al.Ledger(path, read_only=True)
    assert len(ledger.entries()) == 1
    assert repr(ledger).endswith("read_only=True)")
    for refused in (
        lambda: ledger.charge(entry, ["b"]),
        lambda: ledger.set_budget("visits", 1, unit="one patient"),
    ):
        with pytest.raises(al.ParameterError, match="read_only=True"):
            refused()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"epsilon": "0"}, "epsilon must be above 0"),
        ({"epsilon": "nan"}, "epsilon must"),
        ({"epsilon": 1.0}, "text in every field"),
        ({"delta": "1"}, "delta must"),
        ({"delta": "0.1"}, "law must be 'laplace' with delta 0"),
        ({"law": "gaussian"}, "law must be"),
        ({"law": "cauchy"}, "law must be"),
        ({"relation": "swap"}, "relation must be one of"),
        ({"totals_epsilon": "1"}, "totals_epsilon must be from 0"),
        ({"totals_epsilon": "-0.1"}, "totals_epsilon must be from 0"),
        (
            {"law": "gaussian", "delta": "0.1", "sensitivity_squared": "1.5"},
            "sensitivity_squared must be an integer",
        ),
        (
            {"law": "gaussian", "delta": "0.1", "sensitivity_squared": "0"},
            "sensitivity_squared must be an integer",
        ),
        ({"law": "gaussian", "delta": "0.1", "sensitivity_squared": "1", "scale": "nan"}, "scale must be"),
        ({"law": "gaussian", "delta": "0.1", "sensitivity_squared": "1", "scale": "-0x1p0"}, "scale must be"),
    ],
)
def test_a_bad_entry_is_refused_before_any_file(tmp_path, change, match, entry):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    for ask in (ledger.charge, ledger.preview):
        with pytest.raises(al.ParameterError, match=match):
            ask(replace(entry, **change), ["a"])
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_goes_back_does_not_move_the_ledger_back(tmp_path, entry, set_clock):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    set_clock("2026-03-01 00:00:10")
    ledger.charge(entry, ["a"])
    set_clock("2026-02-27 12:00:00")
    ledger.charge(entry, ["b"])
    set_clock("2026-03-01 00:00:11")
    ledger.charge(entry, ["c"])
    assert [entry.time[:19] for entry in ledger.entries()] == [
        "2026-03-01T00:00:10",
        "2026-03-01T00:00:10",
        "2026-03-01T00:00:11",
    ]


def changed(path, statement):
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_lines_outlast_a_power_failure_and_readers_cannot_write(tmp_path, entry):
    path = str(tmp_path / "ledger.sqlite")
    al.Ledger(path, create=True).charge(entry, ["a"])
    with LedgerFile(path).writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    with pytest.raises(al.ParameterError, match="readonly"), LedgerFile(path).reading() as connection:
        connection.execute("DELETE FROM entries")


@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_a_file_of_another_version_is_refused(tmp_path, entry, version):
    path = tmp_path / "ledger.sqlite"
    al.Ledger(path, create=True).charge(entry, ["a"])
    changed(path, f"PRAGMA user_version = {version}")
    with pytest.raises(UnsupportedVersionError, match=f"version {version}"):
        al.Ledger(path)


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE entries SET epsilon = 'much'", "a line that is not valid"),
        ("UPDATE entries SET epsilon = x'00'", "a line that is not valid"),
        ("UPDATE entries SET time = 'noon'", "must have a time"),
        ("UPDATE entries SET time = '2090-01-01T00:00:00'", "a time in UTC"),
        ("UPDATE budgets SET epsilon = '-1'", "a budget that is not valid"),
        ("UPDATE budgets SET per = 'moon'", "a budget that is not valid"),
    ],
)
def test_edited_lines_are_refused(tmp_path, statement, match, entry):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    ledger.set_budget("visits", 5, unit="one patient", per="month")
    ledger.charge(entry, ["a"])
    changed(ledger.path, statement)
    for ask in (lambda: ledger.charge(entry, ["b"]), lambda: ledger.spent("visits")):
        with pytest.raises(CorruptFileError, match=match):
            ask()


def test_a_line_says_nothing_about_the_data(tmp_path):
    # Two populations of very different size, with the same labels: the lines are the same.
    public = "population period file release unit relation radius law scale sensitivity_squared epsilon delta"
    assert [field.name for field in fields(Entry)] == [
        *public.split(),
        "totals_epsilon",
        "protocol",
        "version",
        "time",
        "number",
        "labels",
    ]
    protocol = al.Protocol(
        al.Identity(input_dim=4), epsilon=1, delta=1e-6, noise="gaussian", unit="one patient"
    )
    lines = []
    for name, data in (("few", np.ones((1, 4), int)), ("many", np.full((1, 4), 10**9))):
        ledger = al.Ledger(tmp_path / f"{name}.sqlite", create=True)
        al.release(protocol, data, labels=["north"], population="visits", ledger=ledger)
        lines += ledger.entries()
    assert lines[0].release != lines[1].release  # drawn at random
    assert replace(lines[0], time="", release="") == replace(lines[1], time="", release="")


@pytest.mark.parametrize(
    ("protocol", "squared"),
    [
        (al.Protocol(al.Identity(input_dim=8), epsilon=1), ""),
        (
            al.Protocol(
                al.Identity(input_dim=8), al.Arrays(radius=3), epsilon=1, delta=1e-6, noise="gaussian"
            ),
            "9",
        ),
        (
            al.Protocol(
                al.SparseJL(input_dim=8, sketch_dim=4, seed="x", sparsity=2),
                al.Arrays(radius=3),
                epsilon=1,
                delta=1e-6,
                noise="gaussian",
            ),
            "18",
        ),
        (
            al.Protocol(
                al.FastJL(input_dim=5, sketch_dim=4, seed="x", density=0.5),
                al.Arrays(radius=3),
                epsilon=1,
                delta=1e-6,
                noise_site="input",
            ),
            "72",
        ),
    ],
)
def test_a_release_writes_the_sensitivity_that_its_noise_covers(tmp_path, protocol, squared):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    width = protocol.transform.input_dim
    al.release(protocol, np.ones((1, width), int), population="p", ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.sensitivity_squared == squared
    (spent,) = ledger.spent("p")
    assert 0.999999 <= spent.epsilon <= 1  # the noise is that of ε = 1, and no more than that is claimed


def test_the_choice_to_go_without_is_visible():
    assert repr(al.NO_LEDGER) == "al.NO_LEDGER"


@pytest.mark.parametrize(("epsilon", "delta"), [("10.5", 0), (1, "0.002")])
def test_a_weak_promise_is_warned_of_before_it_is_charged(epsilon, delta, tmp_path):
    transform = al.SparseJL(input_dim=5, sketch_dim=4, seed="weak")
    noise = {"noise": "gaussian"} if delta else {}
    weak = flat_protocol(transform, epsilon=epsilon, delta=delta, radius=1, unit="one person", **noise)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="weak promise"):
            al.release(weak, np.ones((1, 5)), ledger=ledger, population="all")
        assert not ledger.entries()
        strong = al.Protocol(transform, al.Counts(1), epsilon=10, unit="one person")
        al.release(strong, np.ones((1, 5)), ledger=ledger, population="all")
    with pytest.warns(UserWarning, match="weak promise") as caught:
        al.release(weak, np.ones((1, 5)), ledger=ledger, population="all", labels=["b"])
    assert caught[0].filename == __file__
