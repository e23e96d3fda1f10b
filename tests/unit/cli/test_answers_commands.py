"""`armslength drift`, `outliers` and `alike`: the questions as they are typed."""

import csv
import io
import json
import re

import numpy as np
import pytest

import armslength as al
from report_parties import with_margins
from unit.cli.commands import run

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=200, sketch_dim=64, seed="answers"),
    al.Counts(1, total_share="0.5"),
    epsilon=4,
    unit="u",
)
SURELY = ("--level", "0.999999")  # noise that is drawn anew: a false alarm in a million
LABELS = ["north", "south", "east", "west", "island"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two months of five parties: the island is far from all, and west has moved."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    march = np.tile(rng.poisson(20, 200), (5, 1))
    march[4] = rng.permutation(march[4]) * 3
    april = march.copy()
    april[3, :100] += 30
    for name, rows in (("march", march), ("april", april)):
        al.release(PROTOCOL, rows, labels=LABELS, ledger=al.NO_LEDGER).save(f"{name}.parquet")
    al.load("april.parquet")[[0, 1]].save("two.parquet")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_drift_names_who_moved_in_three_forms():
    done = run("drift", "march.parquet", "april.parquet", *SURELY)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[1].startswith("west")
    assert "not resolved" not in lines[1]
    assert all("not resolved" in line for line in lines[2:6])
    assert "1 of 5 parties surely changed" in lines[6]
    rows = json.loads(run("drift", "march.parquet", "april.parquet", *SURELY, "--format", "json").output)
    assert [row["label"] for row in rows if row["resolved"]] == ["west"]
    (west,) = [row for row in rows if row["label"] == "west"]
    assert west["lower"] < 300 < west["upper"]
    header, *_ = run("drift", "march.parquet", "april.parquet", "--format", "csv").output.splitlines()
    assert header == "label,value,lower,upper,resolved,in_clear"


@pytest.mark.usefixtures("folder")
def test_drift_says_who_is_missing():
    refused = run("drift", "march.parquet", "two.parquet")
    assert refused.exit_code == 2
    assert "3 labels are only in before" in refused.output
    done = run("drift", "march.parquet", "two.parquet", "--partial")
    assert "only before: east, west, island" in done.output


@pytest.mark.usefixtures("folder")
def test_outliers_are_named_with_their_error_rate():
    done = run("outliers", "march.parquet", "--level", "0.99")
    assert done.exit_code == 0, done.output
    first, _, _, island, *_ = done.output.splitlines()
    assert first == "1 of 5 parties is unlike the others (99% confidence, all parties together)"
    assert re.match(r"island +outlier +at least [\d.]+$", island)
    rows = json.loads(run("outliers", "march.parquet", "--format", "json", "--factor", 1000).output)
    assert not any(row["outlier"] for row in rows)
    assert len(run("outliers", "march.parquet", "--format", "csv").output.splitlines()) == 6


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("right", "within", "verdict"),
    [("south", 50, "alike"), ("island", 50, "different"), ("south", 0, "undecided")],
)
def test_two_are_alike_different_or_undecided(right, within, verdict):
    arguments = ("alike", "march.parquet", "--left", "north", "--right", right, "--within", within, *SURELY)
    assert json.loads(run(*arguments, "--format", "json").output)[0]["verdict"] == verdict
    assert verdict in run(*arguments, "--format", "csv").output
    words = run(*arguments)
    assert words.exit_code == 0
    assert "north" in words.output


@pytest.mark.usefixtures("folder")
def test_two_releases_of_one_party_are_for_drift():
    done = run("compare", "march.parquet", "april.parquet")
    assert done.exit_code == 2
    assert "armslength drift" in done.output


@pytest.mark.parametrize(
    "command",
    [
        ("compare",),
        ("compare", "--against", "query", "--top", "3"),
        ("nearest",),
        ("outliers",),
        ("cluster",),
        ("cluster", "--cut", "2"),
        ("alike", "--left", "query", "--right", "north", "--within", "5"),
        ("drift", "clear.parquet"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("folder")
def test_scripts_read_that_data_in_the_clear_is_part_of_an_answer(command):
    query = al.sketch_in_clear(PROTOCOL, np.ones((1, 200), int), labels=["query"])
    al.concat([query, al.load("march.parquet")]).save("clear.parquet")
    verb, *rest = command
    for form in ("csv", "json"):
        done = run(verb, "clear.parquet", *rest, "--format", form)
        assert done.exit_code == 0, done.output
        if form == "json":
            assert '"in_clear":true' in done.stdout.replace(" ", "")
        else:
            assert "True" in {row["in_clear"] for row in csv.DictReader(io.StringIO(done.stdout))}
        assert "not private" in done.stderr
    private = [each.replace("clear.parquet", "march.parquet").replace("query", "south") for each in rest]
    done = run(verb, "march.parquet", *private, "--format", "json")
    assert '"in_clear":true' not in done.stdout.replace(" ", "")
    assert '"in_clear":false' in done.stdout.replace(" ", "")


def test_outliers_and_groups_come_with_reasons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    low, high = [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]
    with_margins([low] * 6 + [high]).save("one.parquet")
    *_, last = run("outliers", "one.parquet", "--by", "shape", "--beyond-chance").output.splitlines()
    assert re.match(
        r"ward 7: more with Injuries \(\+[\d.]+ points\).*: armslength explain one.parquet 'ward 7'$", last
    )
    with_margins([low] * 3 + [high] * 3).save("two.parquet")
    *_, first, second = run("cluster", "two.parquet", "--by", "shape", "--beyond-chance").output.splitlines()
    assert re.match(r"ward 1, ward 2 and ward 3: fewer with Injuries \(−[\d.]+ points\)", first)
    assert re.match(r"ward 4, ward 5 and ward 6: more with Injuries \(\+[\d.]+ points\)", second)
    for form in ("csv", "json"):
        assert "Injuries" not in run("outliers", "one.parquet", "--by", "shape", "--format", form).output
