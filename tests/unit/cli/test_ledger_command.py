"""`armslength ledger` as it is typed."""

import csv
import io
import json
import sqlite3
from functools import partial

import numpy as np
import pytest

import armslength as al
from unit.cli import commands

run = partial(commands.run, "ledger")

BUDGET = ["budget", "--population", "visits", "--unit", "one patient"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def charged(folder):
    """A ledger with two budgets, one of them raised, and two lines."""
    for epsilon, flags in ((1, ["--new-ledger"]), (4, [])):
        assert run(*BUDGET, "--epsilon", epsilon, "--delta", "1e-6", *flags).exit_code == 0
    assert run(*BUDGET, "--epsilon", 2, "--delta", "1e-6", "--per", "month").exit_code == 0
    data = np.ones((1, 8), dtype=int)
    for label, noise in (("north", "laplace"), ("south", "gaussian")):
        protocol = al.Protocol(
            al.Identity(input_dim=8), epsilon="0.5", delta="1e-6", noise=noise, unit="one patient"
        )
        al.release(protocol, data, labels=[label], population="visits", ledger="ledger.sqlite")
    return folder / "ledger.sqlite"


def test_show_says_what_is_spent_and_left(charged):
    result = run("show")
    assert result.exit_code == 0
    assert result.stderr == ""
    spent, budgets, lines = result.output.split("\n\n")
    assert spent.splitlines()[2].split()[-9:] == ["all", "2", "1", "1e-06", "4", "at", "1e-06", "3", "sum"]
    assert " month from 20" in spent.splitlines()[3]
    assert spent.splitlines()[3].split()[-6:] == ["1e-06", "2", "at", "1e-06", "1", "sum"]
    assert [line.split("  ")[-1] for line in budgets.splitlines()[2:]] == ["replaced", "in force", "in force"]
    rows = [line.split() for line in lines.splitlines()[2:]]
    assert [[row[0], *row[2:]][:8] for row in rows] == [
        ["1", "visits", "-", "north", "-", "laplace", "0.5", "0"],
        ["2", "visits", "-", "south", "-", "gaussian", "0.5", "1e-06"],
    ]
    assert run("show", charged, "--population", "others").output == (
        "nothing was spent, and no budget was set\n"
    )


def test_show_as_json(charged):
    told = json.loads(run("show", charged, "--format", "json").output)
    assert [line["left"] for line in told["spent"]] == [3, 1]
    assert told["spent"][0]["budget"]["epsilon"] == "4"
    assert [(line["epsilon"], line["in_force"]) for line in told["budgets"]] == [
        ("1", False),
        ("4", True),
        ("2", True),
    ]
    assert [line["sensitivity_squared"] for line in told["entries"]] == ["", "1"]


def test_show_as_csv(charged):
    rows = list(csv.DictReader(io.StringIO(run("show", charged, "--format", "csv").output)))
    assert [(row["labels"], row["epsilon"]) for row in rows] == [
        ("north", "0.5"),
        ("south", "0.5"),
    ]
    nothing = run("show", "--format", "csv", "--population", "others").output
    assert nothing.startswith("number,labels,population,period,file,release,unit")
    assert nothing.count("\n") == 1


def test_a_file_from_elsewhere_cannot_write_to_the_terminal(charged):
    connection = sqlite3.connect(charged)
    connection.execute("UPDATE labels SET label = ?", ("red \x1b[31m " + "x" * 60,))
    connection.commit()
    connection.close()
    output = run("show").output
    assert "\x1b" not in output
    assert "red \\x1b[31m" in output
    assert "x" * 60 not in output


def test_show_makes_no_file(folder):
    result = run("show", "missing.sqlite")
    assert result.exit_code == 2
    assert "no such ledger: " in result.stderr
    assert list(folder.iterdir()) == []


def test_a_file_that_is_no_ledger(folder):
    (folder / "ledger.sqlite").write_text("something else " * 100, encoding="utf-8")
    for command in (["show"], [*BUDGET, "--epsilon", "1"]):
        result = run(*command)
        assert result.exit_code == 5
        assert "is not a ledger" in result.stderr


def test_a_ledger_must_exist_or_be_asked_for(folder):
    missing = run(*BUDGET, "--epsilon", "1")
    assert missing.exit_code == 2
    assert "--new-ledger" in missing.stderr
    assert list(folder.iterdir()) == []
    assert run(*BUDGET, "--epsilon", "1", "--new-ledger").exit_code == 0
    again = run(*BUDGET, "--epsilon", "2", "--new-ledger")
    assert again.exit_code == 2
    assert "leave out --new-ledger" in again.stderr
    assert [budget.epsilon for budget in al.Ledger("ledger.sqlite").budgets(past=True)] == ["1"]


def test_a_budget_is_lowered(charged):
    result = run(*BUDGET, "--epsilon", "0.25", "--delta", "1e-6")
    assert "spent: epsilon 1 at delta 1e-06; left: 0" in result.output
    assert "is epsilon 0.25 at delta 0.000001 in all" in result.output
    assert "before: epsilon 4 at delta 0.000001 in all, since 20" in result.output
    assert [budget.epsilon for budget in al.Ledger(charged).budgets()] == ["0.25", "2"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--epsilon", "nan"], 2, "epsilon must be"),
        (["--epsilon", "1", "--relation", "replace"], 4, "relation must be 'add_remove'"),
        ([], 2, "--epsilon"),
    ],
)
def test_bad_budgets(charged, arguments, code, message):
    result = run(*BUDGET, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert len(al.Ledger(charged).budgets(past=True)) == 3
