"""The ledger by itself: lines that stay, labels that are new, and several processes at once."""

import multiprocessing

import pytest

import armslength as al
from armslength.ledger.ledger import Entry

ENTRY = Entry(
    "visits", "north", "one patient", "add_remove", "1", "laplace", "0x1.0p+0", "1", "0", "f" * 64, "0.1"
)


def charge(arguments):
    path, label = arguments
    try:
        al.Ledger(path).charge(ENTRY, [label])
    except al.BudgetError:
        return "refused"
    return "charged"


def test_lines_stay_in_their_order(tmp_path):
    path = tmp_path / "ledger.sqlite"
    for label in ("a", "b", "c"):
        al.Ledger(path).charge(ENTRY, [label])
    entries = al.Ledger(path).entries("visits")
    assert len(entries) == 3
    assert entries[0].epsilon == "1"
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
    assert al.Ledger(path).entries("others") == []
    assert repr(al.Ledger(path)) == f"Ledger({str(path)!r})"


def test_a_refusal_writes_nothing(tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite")
    ledger.charge(ENTRY, ["a"])
    with pytest.raises(al.BudgetError, match="'a' again"):
        ledger.charge(ENTRY, ["b", "a"])
    assert len(ledger.entries()) == 1
    ledger.charge(ENTRY, ["b"])  # the refused line has not taken its label
    ledger.charge(ENTRY, ["a"], repeat=True)
    assert len(ledger.entries()) == 3


def test_of_several_processes_with_one_label_one_is_charged(tmp_path):
    path = str(tmp_path / "ledger.sqlite")
    al.Ledger(path)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        same = pool.map(charge, [(path, "north")] * 8)
        different = pool.map(charge, [(path, f"label {i}") for i in range(8)])
    assert sorted(same) == ["charged"] + ["refused"] * 7
    assert different == ["charged"] * 8
    assert len(al.Ledger(path).entries()) == 9


def test_the_choice_to_go_without_is_visible():
    assert repr(al.NO_LEDGER) == "al.NO_LEDGER"
