"""The bound in the sketch through the whole path: the sums of the naive reference, however the table is cut, and neighbors within the bound."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from reference.contributions import persons_events
from reference.sketch_bound import in_keyed_order, longest_prefix
from unit.ingest.tables_of_events import GROUPS, ITEMS, KEY, as_table, random_events

# Small sketches: most items share a bin with others, many of them with opposite signs.
TRANSFORMS = {
    "identity": al.Identity(input_dim=ITEMS),
    "block": al.SparseJL(input_dim=ITEMS, sketch_dim=3, seed="x"),
    "graph": al.SparseJL(input_dim=ITEMS, sketch_dim=5, sparsity=4, seed="x", construction="graph"),
    "balanced": al.SparseJL(input_dim=ITEMS, sketch_dim=4, sparsity=2, seed="x", construction="balanced"),
    "open": al.SparseJL(sketch_dim=4, sparsity=2, seed="x"),
}
COUNTS = [{"count": "events"}, {"count": "events", "one_group": True}, {}, {"one_group": True}]


def bounded_protocol(name, contribution=9, max_norm=3, **fields):
    fields = {"epsilon": 1, "delta": "1e-6", "total_share": "0.1", "unit": "one person", **fields}
    return al.Protocol(
        TRANSFORMS[name], contribution=contribution, max_norm=max_norm, items="int64", **fields
    )


def sums_of(source, protocol, *, key=KEY, **known):
    weight = "amount" if protocol.count == "events" else None
    columns = EventColumns("who", "what", "where", weight)
    return TableJob.of(source, protocol, columns, PublicGroups(tuple(GROUPS), "where"), **known).sums(key)


def expected_sums(events, protocol, key=KEY):
    """(values, totals) by the references."""
    values = np.zeros((len(GROUPS), protocol.transform.sketch_dim), dtype=np.int64)
    totals = np.zeros(len(GROUPS), dtype=np.int64)
    matrix = protocol.transform.columns(range(ITEMS)).toarray().tolist()
    columns = [{row: line[j] for row, line in enumerate(matrix) if line[j]} for j in range(ITEMS)]
    rules = {"each_once": protocol.count == "people", "one_group": protocol.one_group}
    for person, theirs in persons_events(events, GROUPS).items():
        ordered = in_keyed_order(person, theirs, GROUPS, protocol.contribution, key, **rules)
        whole = [(GROUPS.index(group), columns[item], amount) for group, item, amount in ordered]
        for (group, column, _), part in zip(whole, longest_prefix(whole, protocol.sketch_bound), strict=True):
            totals[group] += part
            for row, entry in column.items():
                values[group, row] += entry * part
    return values, totals


@pytest.mark.parametrize("fields", COUNTS, ids=str)
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(("contribution", "max_norm"), [(9, 2), (40, 2), (10_000, 2)])
def test_sums_are_those_of_the_reference(name, fields, contribution, max_norm):
    protocol = bounded_protocol(name, contribution, max_norm, **fields)
    events = random_events(contribution, weighted=protocol.count == "events")
    found = sums_of(as_table(events), protocol)
    values, totals = expected_sums(events, protocol)
    assert np.array_equal(found.values, values)
    assert np.array_equal(found.totals, totals)
    unbounded = al.Protocol(
        TRANSFORMS[name], epsilon=1, contribution=contribution, unit="u", items="int64", **fields
    )
    assert not np.array_equal(sums_of(as_table(events), unbounded).values, values)  # the bound matters here


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_how_a_table_is_cut_does_not_matter(data):
    """Batches, the order of rows, threads and the memory limit: a person's run is decided with all of their events at hand."""
    name = data.draw(st.sampled_from(list(TRANSFORMS)))
    protocol = bounded_protocol(name, **data.draw(st.sampled_from(COUNTS)))
    events = random_events(data.draw(st.integers(0, 5)), weighted=protocol.count == "events")
    random.Random(data.draw(st.integers(0, 99))).shuffle(events)  # noqa: S311  # generated events
    reader = as_table(events).to_reader(max_chunksize=data.draw(st.sampled_from([1, 7, 100, 10_000])))
    known = {
        "threads": data.draw(st.sampled_from([1, 2, 5])),
        "memory": data.draw(st.sampled_from(["64MB", "1GB"])),
    }
    found = sums_of(reader, protocol, **known)
    values, totals = expected_sums(events, protocol)
    assert np.array_equal(found.values, values)
    assert np.array_equal(found.totals, totals)


EVENT = st.tuples(st.sampled_from([*GROUPS[:2], "east"]), st.integers(0, ITEMS - 1), st.integers(-6, 6))
PERSONS = st.lists(st.lists(EVENT, min_size=1, max_size=12), min_size=2, max_size=3)


@settings(max_examples=25, deadline=None)
@given(persons=PERSONS, instead=st.lists(EVENT, min_size=1, max_size=12), fields=st.sampled_from(COUNTS))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_neighbors_are_within_what_the_noise_covers(name, persons, instead, fields):
    protocol = bounded_protocol(name, **fields)
    replacing = bounded_protocol(name, relation="replace", **fields)
    events = [(f"p{n}", *event) for n, theirs in enumerate(persons) for event in theirs]
    without = [event for event in events if event[0] != "p0"]
    others = without + [("p0", *event) for event in instead]
    x, removed, y = (sums_of(as_table(rows), protocol) for rows in (events, without, others))
    assert int(((x.values - removed.values) ** 2).sum()) <= protocol.neighbors.sketch_radius_squared
    assert int(((x.values - y.values) ** 2).sum()) <= replacing.neighbors.sketch_radius_squared
    assert np.abs(x.totals - removed.totals).sum() <= protocol.neighbors.radius
    assert np.abs(x.totals - y.totals).sum() <= replacing.neighbors.radius


def test_a_release_with_a_bound_in_the_sketch(tmp_path):
    """From a table to a file that verifies; text items, people counted."""
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=64, seed="x"),
        epsilon=1,
        delta="1e-6",
        contribution=20,
        max_norm="4.9",
        unit="one person",
    )
    table = as_table(random_events(1, weighted=False), text_items=True)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    arguments = {"person": "who", "item": "what", "group": "where", "public_groups": GROUPS}
    sketches = protocol.release_table(table, **arguments, ledger=ledger, population="visits")
    sketches.save(tmp_path / "s.parquet")
    assert np.array_equal(al.load(tmp_path / "s.parquet").values, sketches.values)
    assert al.verify(tmp_path / "s.parquet", protocol=protocol, ledger=ledger).holds
    (entry,) = ledger.entries()
    assert (entry.sensitivity_squared, entry.delta) == ("24", "0.000001")
