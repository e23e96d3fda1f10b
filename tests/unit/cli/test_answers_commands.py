"""`armslength drift` and `outliers`, and what all answers have in common, as they are typed."""

import csv
import io
import json
import re

import numpy as np
import pytest

import armslength as al
from report_parties import chapters, counted, with_margins
from unit.cli.commands import run

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=200, sketch_dim=64, seed="answers"),
    al.Counts(1, total_share="0.5"),
    epsilon=4,
    unit="u",
)
COUNTS = ("--about", "counts")
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
    asked = ("drift", "march.parquet", "april.parquet", *COUNTS, *SURELY)
    done = run(*asked)
    assert done.exit_code == 0, done.output
    question, summary, _, _, west, *others = done.output.splitlines()
    assert "all parties together" in question
    assert summary.startswith("1 of 5 parties")
    assert west.split()[:2] == ["west", "differ"]
    assert [line.split()[1] for line in others if line] == ["inconclusive"] * 4
    rows = json.loads(run(*asked, "--format", "json").output)
    assert [row["party"] for row in rows if row["verdict"] == "differ"] == ["west"]
    (west,) = [row for row in rows if row["party"] == "west"]
    assert west["lower"] < 300 < west["upper"]
    found = list(csv.DictReader(io.StringIO(run(*asked, "--format", "csv").output)))
    assert [float(row["distance"]) for row in found] == [row["distance"] for row in rows]


@pytest.mark.usefixtures("folder")
def test_drift_by_itself_and_of_chosen_parties():
    asked = ("drift", "march.parquet", "april.parquet", *COUNTS, "--format", "json")
    together, each = (json.loads(run(*asked, *flags).output) for flags in ((), ("--each",)))
    assert all(one["upper"] < all_of["upper"] for one, all_of in zip(each, together, strict=True))
    alike = json.loads(run(*asked, *SURELY, "--alike", 200).output)
    assert [row["party"] for row in alike if row["verdict"] == "alike"] == [
        "north",
        "south",
        "east",
        "island",
    ]
    chosen = json.loads(run(*asked, "--only", "west,south").output)
    assert [row["party"] for row in chosen] == ["south", "west"]


@pytest.mark.usefixtures("folder")
def test_drift_says_who_is_missing():
    only = "only before: east, west, island"
    for form in ("table", "json", "csv"):
        done = run("drift", "march.parquet", "two.parquet", "--format", form)
        assert done.exit_code == 0, done.output
        assert only in (done.stdout if form == "table" else done.stderr)
    rows = json.loads(run("drift", "march.parquet", "two.parquet", "--format", "json").stdout)
    assert [row["party"] for row in rows] == ["north", "south"]
    al.load("march.parquet")["east"].save("east.parquet")
    assert run("drift", "east.parquet", "two.parquet").exit_code == 2


@pytest.mark.usefixtures("folder")
def test_outliers_are_named_with_their_verdicts():
    done = run("outliers", "march.parquet", *COUNTS, "--level", "0.99")
    assert done.exit_code == 0, done.output
    question, summary, _, _, island, *_ = done.output.splitlines()
    assert "all parties together" in question
    assert summary.startswith("1 of 5 parties")
    assert island.split()[:2] == ["island", "differ"]
    assert island.endswith("(outlier)")
    rows = json.loads(run("outliers", "march.parquet", *COUNTS, "--format", "json").output)
    assert [row["party"] for row in rows if row["outlier"]] == ["island"]
    rows = json.loads(run("outliers", "march.parquet", *COUNTS, "--format", "json", "--factor", 1000).output)
    assert not any(row["outlier"] for row in rows)
    assert len(run("outliers", "march.parquet", "--format", "csv").stdout.splitlines()) == 6


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
        ("outliers",),
        ("cluster",),
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


def test_outliers_come_with_reasons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    low, high = [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]
    with_margins([low] * 6 + [high]).save("one.parquet")
    (reason,) = [line for line in run("outliers", "one.parquet").output.splitlines() if "points" in line]
    assert re.match(r" *ward 7: more with Injuries \(\+[\d.]+ points\)", reason)
    rows = json.loads(run("outliers", "one.parquet", "--format", "json").stdout)
    assert [row["party"] for row in rows if row["reasons"]] == ["ward 7"]


def test_small_parties_are_named_once_and_kept_if_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    people = [100, *[20_000] * 3]
    names = ["tiny", "north", "south", "bay"]
    counts = rng.binomial(np.array(people)[:, None], [0.02, 0.3, 0.05, 0.1, 0.2])
    # half of ε says that there are 100 people, and a tenth is not enough for their profile
    counted(chapters(total_share="0.5"), names, people, counts, rng).save("s.parquet")
    for verb in ("compare", "outliers", "cluster"):
        done = run(verb, "s.parquet")
        assert done.exit_code == 0, done.output
        assert done.output.count("tiny (about") == 1
        assert '"tiny"' not in run(verb, "s.parquet", "--format", "json").stdout
        assert '"tiny"' in run(verb, "s.parquet", "--keep", "--format", "json").stdout
    done = run("compare", "s.parquet", "--only", "tiny,north")
    assert done.exit_code == 3
    assert "--keep" in done.output
