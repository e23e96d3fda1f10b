"""`armslength show`, its cards, and `armslength verify`."""

import json

import numpy as np
import pytest

import armslength as al
from armslength.protocol.neighbors import VOTE
from margin_rows import margin_protocol, rows_with_margins
from unit.cli.commands import run

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=50, sketch_dim=64, sparsity=1, seed="agreed"),
    al.Counts(5),
    epsilon=1,
    unit="one patient",
)
X = np.arange(100).reshape(2, 50) % 7


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PROTOCOL.save("protocol.json")
    ledger = al.Ledger("ledger.sqlite", create=True)
    honest = al.release(PROTOCOL, X, labels=["north", "south"], population="visits", ledger=ledger)
    honest.save("s.parquet")
    zeros = np.zeros((2, 64), np.int64)
    al.Sketches(zeros, honest.labels, honest.noises, [PROTOCOL]).save("zeros.parquet")
    al.sketch_in_clear(PROTOCOL, X).save("clear.parquet")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_card_in_words():
    for file in ("s.parquet", "protocol.json"):
        done = run("show", "--card", file)
        assert done.exit_code == 0
        assert done.output.startswith(
            "RELEASE CARD\n\nWho is protected\n  The guarantee is about adding or removing one patient"
        )
        assert max(map(len, done.output.splitlines())) <= 102
    # of a protocol nobody knows yet what will be released
    assert run("show", "--card", "s.parquet").output != run("show", "--card", "protocol.json").output


@pytest.mark.usefixtures("folder")
def test_a_card_as_markdown_and_json(folder):
    done = run("show", "--card", "s.parquet", "--format", "markdown")
    assert done.output.startswith("# Release card\n\n## Who is protected\n\n")
    assert run("show", "--card", "s.parquet", "--format", "json", "-o", "card.json").exit_code == 0
    (card,) = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert card["releases"][0]["protocol"] == PROTOCOL.fingerprint
    assert card["releases"][0]["page"]["Who is protected"]
    again = run("show", "--card", "s.parquet", "-o", "card.json")
    assert again.exit_code == 2
    assert "card.json" in again.output
    assert "--overwrite" in again.output
    assert run("show", "--card", "s.parquet", "-o", "s.parquet", "--overwrite").exit_code == 2


@pytest.mark.usefixtures("folder")
def test_a_card_of_several_protocols_and_one_in_the_clear():
    other = al.Protocol(PROTOCOL.transform, al.Counts(5), epsilon="0.5", unit="one patient")
    al.concat([al.load("s.parquet"), al.release(other, X, labels=["a", "b"], ledger=al.NO_LEDGER)]).save(
        "both.parquet"
    )
    done = run("show", "--card", "both.parquet")
    assert "RELEASE 1 OF 2" in done.output
    assert "RELEASE 2 OF 2" in done.output
    assert "NOT PRIVATE" in run("show", "--card", "clear.parquet").output


@pytest.mark.usefixtures("folder")
def test_verify_says_what_holds():
    done = run("verify", "s.parquet", "--protocol", "protocol.json", "--ledger", "ledger.sqlite")
    assert done.exit_code == 0
    assert done.output.count("holds") == 7
    assert done.output.startswith("s.parquet\n  holds        file:")


@pytest.mark.usefixtures("folder")
def test_verify_ends_with_5_if_anything_fails():
    done = run("verify", "s.parquet", "zeros.parquet")
    assert done.exit_code == 5
    assert "FAILS        noise:" in done.output
    assert done.stdout.splitlines()[-1] == "1 of 2 hold"
    done = run("verify", "s.parquet", "zeros.parquet", "--format", "json")
    assert done.exit_code == 5
    listed = json.loads(done.stdout)
    assert [each["holds"] for each in listed] == [True, False]
    assert run("verify", "clear.parquet").exit_code == 5
    assert run("verify", "protocol.json").exit_code == 5


@pytest.mark.usefixtures("folder")
def test_inspect_flags_what_is_implausible():
    assert "IMPLAUSIBLE" not in run("show", "s.parquet").output
    done = run("show", "zeros.parquet")
    assert done.exit_code == 0
    assert "IMPLAUSIBLE: north: less noise than declared" in done.output
    (listed,) = json.loads(run("show", "zeros.parquet", "--format", "json").stdout)
    assert all(row["implausible"].startswith("less noise") for row in listed["rows"])
    (listed,) = json.loads(run("show", "s.parquet", "--format", "json").stdout)
    assert [row["implausible"] for row in listed["rows"]] == ["", ""]


def test_margins_in_every_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    protocol = margin_protocol()
    rows = rows_with_margins(protocol, [[10, 20, 30, 4], [0, 5, 900, 100]], ["north", "south"])
    rows.save("s.parquet")
    people, margins = np.round(rows.totals / VOTE, 3).tolist(), rows.margins / VOTE
    shown = run("show", "s.parquet").output
    assert "with people, with margins" in shown
    for label, number in zip(rows.labels, people, strict=True):
        (counted,) = [each.split()[1:3] for each in shown.splitlines() if each.startswith(f"{label} ")]
        assert counted == ["1", f"{number:,.0f}"]
    (injuries,) = [each.split()[1:] for each in shown.splitlines() if each.startswith("Injuries")]
    assert injuries == [f"{number:,.0f}" for number in margins[:, 1]]
    (missing,) = [each.split()[-2:] for each in shown.splitlines() if each.startswith("missing")]
    assert missing == [f"{number:,.0f}" for number in margins[:, 3] / 4]
    assert f"±{2 * protocol.margin_law.second_moment**0.5 / VOTE:.0f}" in shown
    (listed,) = json.loads(run("show", "s.parquet", "--format", "json").output)
    assert [row["people"] for row in listed["rows"]] == people
    assert list(listed["margins"]) == list(rows.margin_names)
    assert np.allclose(list(listed["margins"].values()), margins[:, :-1].T, atol=0.001)
    assert np.allclose(listed["missing"], margins[:, 3] / 4, atol=0.001)
    assert "with margins" in run("show", ".").output
    protocol.save("protocol.json")
    for file in ("s.parquet", "protocol.json"):
        assert "What the margins tell" in run("show", "--card", file).output
    done = run("verify", "s.parquet", "--protocol", "protocol.json")
    assert done.exit_code == 0
    assert "margins:" in done.output


@pytest.mark.usefixtures("folder")
def test_files_without_margins_do_not_speak_of_them():
    for command in (("show", "s.parquet"), ("show", "--card", "s.parquet"), ("verify", "s.parquet")):
        assert "margins" not in run(*command).output
