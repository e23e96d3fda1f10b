"""`check_table` and the totals of persons under it: what a naive count of the same events says."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.ingest.check_table import check_table
from armslength.ingest.contributions import KeyedOrder
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from unit.ingest.tables_of_events import (
    GROUPS,
    KEY,
    as_table,
    counting_protocol,
    in_every_form,
    random_events,
)


def job_of(source, protocol, *, groups=GROUPS, weighted=False, **known):
    columns = EventColumns("who", "what", "where", "amount" if weighted else None)
    return TableJob.of(source, protocol, columns, public_groups_of("where", groups, None), **known)


def naive_totals(events, count):
    """Σ|amount| of each person, each (group, item) once where people count."""
    totals, seen = defaultdict(int), set()
    for person, group, item, amount in events:
        if not person or item is None or group not in GROUPS or not amount:
            continue
        if count == "people":
            totals[person] += (person, group, item) not in seen
            seen.add((person, group, item))
        else:
            totals[person] += abs(amount)
    return dict(totals)


def totals_of(job):
    totals = {}
    for part in job.person_totals(KEY, LeftOut()):
        found = dict(zip(part.ids.to_pylist(), part.totals.tolist(), strict=True))
        assert len(found) == len(part.ids)
        assert not totals.keys() & found.keys()
        totals |= found
    return totals


@pytest.mark.parametrize(
    ("count", "weighted"), [("people", False), ("events", False), ("events", True)], ids=str
)
def test_totals_and_shares_are_those_of_a_naive_count(count, weighted):
    events = random_events(3, weighted=weighted)
    naive = naive_totals(events, count)
    for contribution in (1, 5, 400):
        job = job_of(as_table(events), counting_protocol(contribution, count=count), weighted=weighted)
        assert totals_of(job) == naive
        result = check_table(job)
        assert result.people == len(naive)
        assert result.people_over == sum(total > contribution for total in naive.values())
        kept = sum(min(total, contribution) for total in naive.values())
        assert result.share == pytest.approx(kept / sum(naive.values()), rel=1e-12)


def test_every_form_of_a_table_gives_the_same(tmp_path):
    events = random_events(5, weighted=False)
    forms = in_every_form(as_table(events), tmp_path)
    results = {name: check_table(job_of(source, counting_protocol())) for name, source in forms.items()}
    first = next(iter(results.values()))
    assert all(result == first for result in results.values())
    with_person = [event for event in events if event[0]]
    assert first.groups == {group: sum(event[1] == group for event in with_person) for group in GROUPS}
    assert first.unlisted == {"unlisted": sum(event[1] == "unlisted" for event in with_person)}
    assert first.without_group == 3
    assert first.left_out.person == 6
    assert first.empty_groups == ["empty"]


def test_one_group_counts_the_items_of_one_group():
    events = [("p", group, item, 1) for group, items in (("north", 2), ("south", 5)) for item in range(items)]
    events += [("q", "east", 0, 1)] * 3
    job = job_of(as_table(events), counting_protocol(count="people", one_group=True))
    seen = set()
    for number in range(40):
        parts = list(job.person_totals(bytes([number]) * 32, LeftOut()))
        totals = {p: t for part in parts for p, t in zip(part.ids.to_pylist(), part.totals, strict=True)}
        assert totals["q"] == 1
        seen.add(totals["p"])
    assert seen == {2, 5}


def heavy_persons():
    rng = np.random.default_rng(0)
    many = pa.table({"who": rng.integers(0, 9_000, 30_000).astype(str), "what": rng.integers(0, 99, 30_000)})
    bot = pa.table({"who": ["bot"] * 150_000, "what": np.arange(150_000)})
    same = pa.table({"who": ["other bot"] * 200_000, "what": np.zeros(200_000, dtype=np.int64)})
    return pa.concat_tables([many, bot, same])


@pytest.mark.parametrize("one_group", [False, True])
def test_a_small_memory_spills_and_gives_the_same(one_group, monkeypatch):
    events = heavy_persons()
    events = events.append_column("where", pa.array(np.resize(["north", "south", "east"], len(events))))
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"),
        epsilon=1,
        contribution=7,
        unit="u",
        items="int64",
        one_group=one_group,
    )
    compacted = []
    real = KeyedOrder.compact
    monkeypatch.setattr(KeyedOrder, "compact", lambda *a, **k: compacted.append(1) or real(*a, **k))
    in_memory = totals_of(job_of(events, protocol))
    assert not compacted
    assert totals_of(job_of(events, protocol, memory="70MB")) == in_memory  # 182,000 events for each thread
    assert compacted
    if not one_group:
        assert in_memory["bot"] == 150_000
        assert in_memory["other bot"] == 3


@pytest.mark.parametrize(
    ("ids", "differs"),
    [
        (["ann", "Ann", "bob"], ["capital"]),
        (["ANN", "Ann"], ["capital"]),
        (["5", "5.0", "5.00", "6", "7.5", "7.50"], []),  # a whole number with decimals of zero is that number
        (["7", "007", "70", "0", "000"], ["zeros"]),
        (["7", "007.0"], ["zeros"]),
        (["a-1", "a-10", "1-23", "12-3", "5.01", "0.5", ".5", " ann ", "ann"], []),
    ],
)
def test_ids_that_would_count_one_person_twice(ids, differs):
    events = [(person, "north", 1, 1) for person in ids]
    spellings = check_table(job_of(as_table(events), counting_protocol())).spellings
    assert [next(part for part in differs if part in name) for name in spellings] == differs
    if len(ids) == 5 and differs == ["zeros"]:
        assert list(spellings.values()) == [2]


@pytest.mark.parametrize("listed", ["Soth", "south ", "SOUTH"])
def test_a_misspelled_group_is_found(listed):
    events = [("p", "south", 1, 1), ("q", "north", 1, 1), ("r", "somewhere else", 1, 1)]
    result = check_table(job_of(as_table(events), counting_protocol(), groups=["north", listed]))
    assert result.empty_groups == [listed]
    assert result.likely == {listed: "south"}
    assert set(result.unlisted) == {"south", "somewhere else"}
    assert result.needs_a_look


def test_a_table_without_a_finding_needs_no_look():
    events = [("p", "north", 1, 1), ("q", "south", 1, 1)]
    result = check_table(job_of(as_table(events), counting_protocol(), groups=["north", "south"]))
    assert not result.needs_a_look
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    result = check_table(TableJob.of(as_table(events), counting_protocol(), columns, one))
    assert not result.needs_a_look
    assert result.groups == {"all": 2}


def test_a_table_without_events_needs_a_look():
    result = check_table(job_of(as_table([(None, "north", 1, 1)]), counting_protocol(), groups=["north"]))
    assert result.share is None
    assert result.people == 0
    assert result.needs_a_look


def test_a_column_of_a_million_groups_is_bounded():
    count = 50_000
    events = pa.table({"who": ["p"] * count, "what": [1] * count, "where": np.arange(count).astype(str)})
    result = check_table(job_of(events, counting_protocol()))
    assert len(result.unlisted) == 10_000
    assert result.left_out.group == count
    assert result.without_group == 0


def test_a_column_of_a_record_is_flagged_from_nine_tenths_on():
    """Of rows that have a person and a listed group; a category called (other) is no other."""
    record = {"sex": ["F", "M"], "100%=age": [18], "text": "category"}
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"), epsilon=1, unit="one patient", record=record,
        record_pairs=[("sex", "text")],
    )  # fmt: skip
    lost = ["x"] * 6 + [None] * 3
    rows = {
        "who": [*range(1, 11), None, 12],
        "where": ["a"] * 11 + ["elsewhere"],
        "sex": [*lost, "F", "x", "x"],
        "100%=age": [None] * 8 + [17, 18, None, None],
        "text": ["(other)"] * 12,
    }
    columns, groups = EventColumns("who", None, "where"), public_groups_of("where", ["a"], None)
    result = check_table(TableJob.of(pa.table(rows), protocol, columns, groups))
    assert result.columns == {"sex": (10, 3, 6), "100%=age": (10, 8, 0), "text": (10, 0, 0)}
    assert [name for name, column in result.columns.items() if column.needs_a_look] == ["sex"]


@pytest.mark.parametrize("rule", ["item", "prefix"])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_margins_are_those_of_a_naive_count(rule, bound):
    events = random_events(7, weighted=False)
    groups = {"i1": "A", "i2": "B", "i3": "B", "i44": "nobody"}
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"),
        epsilon=1,
        contribution=3,
        unit="one person",
        margins={rule: list(groups), "group": list(groups.values())},
        margin_share="0.2",
        margin_contribution=bound,
    )
    table = None if rule == "prefix" else groups
    result = check_table(job_of(as_table(events, text_items=True), protocol, margins=table))

    def group_of(item):
        text = f"i{item}"
        fitting = [each for each in groups if (text.startswith(each) if rule == "prefix" else text == each)]
        return groups[fitting[0]] if fitting else "(other)"

    pairs = {event[:3] for event in events if event[0] and event[1] in GROUPS and event[2] is not None}
    cells = {(person, group, group_of(item)) for person, group, item in pairs}
    numbers = defaultdict(int)
    for person, _, _ in cells:
        numbers[person] += 1
    others = sum(group_of(item) == "(other)" for _, _, item in pairs)
    assert result.margins.in_none == pytest.approx(others / len(pairs), rel=1e-12)
    assert result.margins.empty == ["nobody"]
    assert result.margins.people_over == sum(number > bound for number in numbers.values())
    assert result.margins.needs_a_look
