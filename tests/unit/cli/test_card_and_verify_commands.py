"""`armslength card`, `armslength verify`, and what `armslength inspect` flags."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=50, sketch_dim=64, sparsity=1, seed="agreed"),
    epsilon=1,
    unit="one patient",
    contribution=5,
)
X = np.arange(100).reshape(2, 50) % 7


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PROTOCOL.save("protocol.json")
    ledger = al.Ledger("ledger.sqlite", create=True)
    honest = PROTOCOL.release(X, labels=["north", "south"], population="visits", ledger=ledger)
    honest.save("s.parquet")
    zeros = np.zeros((2, 64), np.int64)
    al.Sketches(zeros, honest.labels, honest.noises, [PROTOCOL]).save("zeros.parquet")
    al.sketch_in_clear(PROTOCOL, X).save("clear.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.mark.usefixtures("folder")
def test_a_card_in_words():
    for file in ("s.parquet", "protocol.json"):
        done = run("card", file)
        assert done.exit_code == 0
        assert done.output.startswith(
            "RELEASE CARD\n\nWho is protected\n  Protected is adding or removing one patient"
        )
        assert max(map(len, done.output.splitlines())) <= 102
    # of a protocol nobody knows yet what will be released
    assert run("card", "s.parquet").output != run("card", "protocol.json").output


@pytest.mark.usefixtures("folder")
def test_a_card_as_markdown_and_json(folder):
    done = run("card", "s.parquet", "--format", "markdown")
    assert done.output.startswith("# Release card\n\n## Who is protected\n\n")
    assert run("card", "s.parquet", "--format", "json", "-o", "card.json").exit_code == 0
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert card["releases"][0]["protocol"] == PROTOCOL.fingerprint
    assert card["releases"][0]["page"]["Who is protected"]
    again = run("card", "s.parquet", "-o", "card.json")
    assert again.exit_code == 2
    assert "new file" in again.output
    assert run("card", "s.parquet", "-o", "s.parquet", "--overwrite").exit_code == 2


@pytest.mark.usefixtures("folder")
def test_a_card_of_several_protocols_and_one_in_the_clear():
    other = al.Protocol(PROTOCOL.transform, epsilon="0.5", unit="one patient", contribution=5)
    al.concat([al.load("s.parquet"), other.release(X, labels=["a", "b"], ledger=al.NO_LEDGER)]).save(
        "both.parquet"
    )
    done = run("card", "both.parquet")
    assert "RELEASE 1 OF 2" in done.output
    assert "RELEASE 2 OF 2" in done.output
    assert "NOT PRIVATE" in run("card", "clear.parquet").output


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
    assert done.stderr == "armslength: files must be what they say, got 1 of 2 that fail\n"
    done = run("verify", "s.parquet", "zeros.parquet", "--format", "json")
    assert done.exit_code == 5
    listed = json.loads(done.stdout)
    assert [each["holds"] for each in listed] == [True, False]
    assert run("verify", "clear.parquet").exit_code == 5
    assert run("verify", "protocol.json").exit_code == 5


@pytest.mark.usefixtures("folder")
def test_inspect_flags_what_is_implausible():
    assert "IMPLAUSIBLE" not in run("inspect", "s.parquet").output
    done = run("inspect", "zeros.parquet")
    assert done.exit_code == 0
    assert "IMPLAUSIBLE: north: less noise than declared" in done.output
    assert "those between the others are not affected" in done.output.replace("\n", " ")
    (listed,) = json.loads(run("inspect", "zeros.parquet", "--format", "json").stdout)
    assert all(row["implausible"].startswith("less noise") for row in listed["rows"])
    (listed,) = json.loads(run("inspect", "s.parquet", "--format", "json").stdout)
    assert [row["implausible"] for row in listed["rows"]] == ["", ""]
