"""`al.contribution_quantiles` and `armslength contribution`: what they count, what they cost, and when they say no."""

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.estimates.contribution_quantiles import EDGES, QUANTILES, bucket_counts
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.laws import DiscreteLaplace
from armslength.release.contribution import histogram_protocol
from unit.ingest.tables_of_events import GROUPS, KEY, as_table, counting_protocol, random_events

COLUMNS = {"person": "who", "item": "what", "group": "where", "public_groups": GROUPS, "items": "int64"}
EXACT = {"epsilon": 1000, "unit": "one person", "ledger": al.NO_LEDGER}  # noise that is 0 almost surely


def table_of(numbers):
    """A person with each of these numbers of items, each of them twice."""
    events = [(f"p{n}", "north", item, 1) for n, items in enumerate(numbers) for item in range(items)] * 2
    return as_table(events)


def test_buckets():
    totals = np.array([0, 1, 2, 3, 4, 5, 8, 9, 1024, 1025, 10**7], dtype=np.float64)
    counts = bucket_counts(totals)
    assert EDGES == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    assert counts.tolist() == [1, 1, 2, 2, 1, 0, 0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize(("count", "expected"), [("people", [1, 2, 4, 8]), ("events", [2, 4, 8, 16])])
def test_it_counts_pairs_or_events(count, expected):
    source = table_of([1] * 10 + [2] * 10 + [4] * 10 + [8] * 10)
    result = al.contribution_quantiles(source, count=count, **COLUMNS, **EXACT)
    assert result.people == 40
    assert [edge for edge, number in zip(EDGES, result.counts, strict=False) if number] == expected
    rows = result.to_arrow().to_pylist()
    assert [row["items"] for row in rows] == [expected[1], expected[2], *[expected[3]] * 3]
    assert all(row["lower"] <= row["items"] <= row["upper"] for row in rows)


def test_groups_that_are_not_listed_do_not_count():
    events = [("p", "north", 1, 1), ("p", "elsewhere", 2, 1), ("q", "elsewhere", 1, 1), (None, "north", 1, 1)]
    assert al.contribution_quantiles(as_table(events), **COLUMNS, **EXACT).counts.tolist() == [1] + [0] * 11


@pytest.mark.parametrize("known", [{}, {"count": "events"}, {"one_group": True}], ids=str)
@pytest.mark.parametrize(("relation", "sensitivity"), [("add_remove", 1), ("replace", 2)])
def test_neighbors_move_the_histogram_by_no_more_than_the_noise_covers(known, relation, sensitivity):
    protocol = histogram_protocol(1, relation, "one person")
    assert protocol.neighbors.l1_sensitivity(protocol.transform) == sensitivity
    assert protocol.law == DiscreteLaplace(float(sensitivity))
    draw = random.Random(4)  # noqa: S311  # generated events
    events = [event for event in random_events(8, weighted=False) if event[0]]
    moved = set()

    def histogram(rows):
        groups = public_groups_of("where", GROUPS, None)
        job = TableJob.of(
            as_table(rows), counting_protocol(**known), EventColumns("who", "what", "where"), groups
        )
        return sum(bucket_counts(part.totals) for part in job.person_totals(KEY, LeftOut()))

    whole = histogram(events)
    for person in ("p0", "p1", *draw.sample(sorted({event[0] for event in events}), 6)):
        rest = [event for event in events if event[0] != person]
        if relation == "replace":
            items = draw.choice([1, 3, 500])
            rest += [(person, draw.choice(GROUPS), draw.randrange(12), 1) for _ in range(items)]
        draw.shuffle(rest)
        moved.add(int(np.abs(histogram(rest) - whole).sum()))
    assert max(moved) == sensitivity


def test_the_ledger_is_charged_like_a_release(tmp_path):
    ledger = al.Ledger(tmp_path / "l.sqlite", create=True)
    ledger.set_budget("v", "0.5", unit="one person", relation="replace")
    known = {**COLUMNS, "unit": "one person", "ledger": ledger, "population": "v", "relation": "replace"}
    source = table_of([1, 2])
    al.contribution_quantiles(source, epsilon="0.2", **known)
    (entry,) = ledger.entries("v")
    assert (entry.epsilon, entry.delta, entry.law, entry.radius) == ("0.2", "0", "laplace", "2")
    assert entry.scale == (10.0).hex()
    with pytest.raises(al.BudgetError, match="released before"):
        al.contribution_quantiles(source, epsilon="0.2", **known)
    with pytest.raises(al.BudgetError):
        al.contribution_quantiles(source, epsilon="0.4", repeat=True, **known)
    assert len(ledger.entries("v")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"unit": ""},
        {"relation": "other"},
        {"count": "other"},
        {"level": 2},
        {"level": float("nan")},
        {"item": "nothing"},
        {"public_groups": None},
        {"source": pa.table({"who": [[1]], "what": [1], "where": ["north"]})},
    ],
    ids=str,
)
def test_what_is_wrong_costs_nothing(wrong, tmp_path):
    ledger = al.Ledger(tmp_path / "l.sqlite", create=True)
    known = {"epsilon": 1, "unit": "one person", "ledger": ledger, "population": "v", **COLUMNS}
    with pytest.raises(al.ArmslengthError):
        al.contribution_quantiles(**{"source": table_of([1]), **known, **wrong})
    assert not (tmp_path / "l.sqlite").exists()


def test_only_the_noisy_number_of_people_decides_what_can_be_trusted():
    law = DiscreteLaplace(10.0)
    counts = np.zeros(12, dtype=np.int64)
    needed = dict(zip(QUANTILES, (200, 400, 1000, 2000, 10_000), strict=True))
    for quantile, people in needed.items():
        counts[3] = people + 1
        assert al.ContributionQuantiles(counts, law).is_resolved(quantile)
        counts[3] = people - 1
        assert not al.ContributionQuantiles(counts, law).is_resolved(quantile)


def test_hopeless_counts_have_intervals_all_the_same():
    for counts in (np.zeros(12), np.full(12, -50), np.array([-10_000] + [0] * 10 + [10_000])):
        result = al.ContributionQuantiles(counts.astype(np.int64), DiscreteLaplace(10.0))
        for row in result.to_arrow().to_pylist():
            assert row["lower"] <= row["items"] <= row["upper"]
        for row in result.shares().to_pylist():
            assert 0 <= row["lower"] <= row["upper"] <= 1
        assert not result.is_resolved(0.5)
        assert "Items per person" in repr(result)


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


COMMAND = ("contribution", "visits.parquet", "--person", "who", "--item", "what", "--label", "north")
COMMAND = (*COMMAND, "--items", "int64", "--unit", "one patient", "--population", "v")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table_of([1] * 30 + [4] * 60 + [20] * 30), "visits.parquet")
    return tmp_path


def test_the_command_says_what_c_would_do(folder):
    done = run(*COMMAND, "--epsilon", 100, "--new-ledger")
    assert done.exit_code == 0, done.output
    assert "about 120 people" in done.output
    assert "weak promise" in done.stderr
    assert "charged to 'v'" in done.output
    assert (folder / "ledger.sqlite").exists()
    again = run(*COMMAND, "--epsilon", 100)
    assert again.exit_code == 4


def test_the_command_refuses_what_cannot_be_trusted(folder):
    done = run(*COMMAND, "--epsilon", "0.1", "--new-ledger")
    assert done.exit_code == 3, done.output
    assert done.output.count("not resolved") >= 3
    assert "weak promise" not in done.output
    assert "counted in full" not in done.output
    assert len(al.Ledger(folder / "ledger.sqlite", read_only=True).entries("v")) == 1


def test_the_command_in_json(folder):
    done = run(*COMMAND, "--epsilon", 100, "--no-ledger", "--format", "json")
    document = json.loads(done.stdout)
    assert document["counts"] == [30, 0, 60, 0, 0, 30, 0, 0, 0, 0, 0, 0]
    assert [row["items"] for row in document["quantiles"]] == [4, 4, 32, 32, 32]
    assert list(folder.iterdir()) == [folder / "visits.parquet"]
