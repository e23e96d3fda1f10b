"""Contribution bounds: the specification's choice, whatever the files look like, and nobody beyond the bound."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.ingest import contributions, engine
from armslength.ingest.contributions import KeyedOrder, cap_contributions, mark_persons_over
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from reference.contributions import bounded_counts, event_hash
from statistical.limits import LIMIT, WRONG
from unit.ingest.tables_of_events import (
    GROUPS,
    ITEMS,
    KEY,
    as_table,
    counting_protocol,
    dense_counts,
    in_every_form,
    random_events,
)


def sums(source, protocol, *, weighted, key=KEY, threads=None):
    columns = EventColumns("who", "what", "where", "amount" if weighted else None)
    job = TableJob.of(source, protocol, columns, PublicGroups(tuple(GROUPS), "where"), threads=threads)
    return job.sums(key).values


# What a protocol may count, and the same for the specification. Weights are there with events alone.
COUNTS = pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"count": "events"}, {}),
        ({"count": "events", "one_group": True}, {"one_group": True}),
        ({"count": "people"}, {"each_once": True}),
        ({"count": "people", "one_group": True}, {"each_once": True, "one_group": True}),
    ],
    ids=["events", "events in one group", "people", "people in one group"],
)


@COUNTS
@pytest.mark.parametrize("contribution", [1, 5, 40, 10_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_taken_is_what_the_specification_says(weighted, contribution, fields, rule):
    if weighted and rule.get("each_once"):
        weighted = False  # refused
    events = random_events(contribution, weighted=weighted)
    expected = dense_counts(bounded_counts(events, GROUPS, contribution, KEY, **rule))
    protocol = counting_protocol(contribution, **fields)
    assert np.array_equal(sums(as_table(events), protocol, weighted=weighted), expected)
    assert expected.any()


def test_each_person_counts_once_for_each_group_and_item():
    events = [("p", "north", 3, 1)] * 9 + [("p", "south", 3, 1), ("p", "north", 4, 1), ("q", "north", 3, 1)]
    counts = sums(as_table(events), counting_protocol(100, count="people"), weighted=False)
    assert {
        (GROUPS[row], int(item)): int(counts[row, item]) for row, item in zip(*counts.nonzero(), strict=True)
    } == {
        ("north", 3): 2,
        ("north", 4): 1,
        ("south", 3): 1,
    }


def test_everybody_is_in_one_group_and_every_group_of_theirs_as_often():
    # everybody has three items in the north and one elsewhere, which must not decide
    count, items = 30_000, (3, 1, 1)
    places = [(group, item) for group in range(3) for item in range(items[group])]
    rows = [(f"p{number:05}", *place) for number in range(count) for place in places]
    person, group, item = zip(*rows, strict=True)
    order = KeyedOrder(KEY, ["north", "south", "east"], each_once=True, one_group=True)
    events = batch(person, [1] * len(rows), group, item)
    groups = np.concatenate([part.groups for part in contributions.bounded([events], order, 3)])
    # all items of the group that was chosen, and none of others
    persons = np.bincount(groups, minlength=3) / items
    assert persons.sum() == count
    # each is binomial with 1/3: the shares of the groups are means of zeros and ones
    error = math.sqrt(2 / 9 / count)
    assert np.abs(persons / count - 1 / 3).max() < LIMIT * error
    for factor in WRONG:
        assert np.abs(persons / count - factor / 3).min() > LIMIT * error, "too few persons to tell"


@COUNTS
def test_every_form_and_order_gives_the_same_integers(tmp_path, fields, rule):
    weighted = "each_once" not in rule
    events = random_events(2, weighted=weighted)
    protocol = counting_protocol(**fields)
    expected = dense_counts(bounded_counts(events, GROUPS, 5, KEY, **rule))
    for name, source in in_every_form(as_table(events), tmp_path).items():
        assert np.array_equal(sums(source, protocol, weighted=weighted), expected), name
    for seed in range(3):
        random.Random(seed).shuffle(events)  # noqa: S311  # another order
        again = sums(as_table(events), protocol, weighted=weighted, threads=seed + 1)
        assert np.array_equal(again, expected)
    assert not np.array_equal(sums(as_table(events), protocol, weighted=weighted, key=bytes(32)), expected)


def test_several_files_are_one_table(tmp_path):
    events = random_events(2, weighted=False)
    for number in range(3):
        in_folder = tmp_path / str(number)
        in_folder.mkdir()
        in_every_form(as_table(events[number::3]), in_folder)
    # of different kinds, and one with a name that is a pattern
    odd = tmp_path / "*[a]'{b}.csv"
    (tmp_path / "1" / "e.csv").rename(odd)
    paths = [tmp_path / "0" / "e.parquet", odd, tmp_path / "2" / "e.jsonl"]
    expected = dense_counts(bounded_counts(events, GROUPS, 5, KEY))
    assert np.array_equal(sums(paths, counting_protocol(), weighted=False), expected)
    folder = tmp_path / "all"
    folder.mkdir()
    for number, path in enumerate(paths):
        path.rename(folder / f"{number}{path.suffix}")
    (folder / "README.txt").write_text("not events")
    assert np.array_equal(sums(folder, counting_protocol(), weighted=False), expected)


@pytest.mark.parametrize("rows_at_once", [1, 7, 100])
@pytest.mark.parametrize("most_waiting", [3, 50])
@COUNTS
def test_chunks_change_nothing(rows_at_once, most_waiting, fields, rule, monkeypatch):
    weighted = "each_once" not in rule
    events = random_events(3, weighted=weighted)
    expected = dense_counts(bounded_counts(events, GROUPS, 5, KEY, **rule))
    table = as_table(events)
    monkeypatch.setattr(contributions, "_MOST_WAITING", most_waiting)
    in_order = engine.EventTable.in_order

    def small(self, events):
        for batch in in_order(self, events):
            yield from (batch.slice(first, rows_at_once) for first in range(0, len(batch), rows_at_once))
            yield batch.slice(0, 0)

    monkeypatch.setattr(engine.EventTable, "in_order", small)
    assert np.array_equal(sums(table, counting_protocol(**fields), weighted=weighted), expected)


def test_a_boundary_between_groups_starts_new_occurrences(monkeypatch):
    # one item in every group, cut into single rows: only the group tells where a new run begins
    events = [("p", group, 3, 1) for group in ("north", "south", "east") for _ in range(4)]
    in_order = engine.EventTable.in_order

    def single(self, events):
        for batch in in_order(self, events):
            yield from (batch.slice(row, 1) for row in range(len(batch)))

    monkeypatch.setattr(engine.EventTable, "in_order", single)
    for key in (bytes([number]) * 32 for number in range(20)):
        expected = dense_counts(bounded_counts(events, GROUPS, 5, key))
        assert np.array_equal(sums(as_table(events), counting_protocol(), weighted=False, key=key), expected)


def batch(person, amount=(1,), group=(0,), item=("x",)):
    return pa.record_batch(
        [pa.array(person), pa.array(group, pa.int32()), pa.array(item), pa.array(amount, pa.int64())],
        names=["person", "group", "item", "amount"],
    )


@pytest.mark.parametrize(
    "batches",
    [
        [batch(["b"]), batch(["a"])],
        [batch(["b", "a"], (1, 1), (0, 0), ("x", "x"))],
        [batch([None])],
        [batch(["a"], (None,))],
        [batch(["a"], (-(2**63),))],
        [batch(["a"], (2**62 + 1,))],
        [batch(["a"], (1,), (1,))],
        [batch(["a"], (1,), (-1,))],
        [batch(["a"], item=(None,))],
    ],
)
def test_the_guarantee_does_not_rest_on_the_engine(batches):
    with pytest.raises(al.InputError, match="sorted by person, complete"):
        list(contributions.bounded(batches, KeyedOrder(KEY, ["g"]), 5))


def test_text_that_is_no_text_is_refused():
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xff\xff")]
    )
    bad = pa.record_batch(
        [broken, pa.array([0], pa.int32()), pa.array(["x"]), pa.array([1])],
        names=["person", "group", "item", "amount"],
    )
    with pytest.raises(al.InputError, match="valid text"):
        list(contributions.bounded([bad], KeyedOrder(KEY, ["g"]), 5))


@pytest.mark.parametrize("smallest", [-(2**63), -(2**63) + 1])
def test_kernels_know_that_the_smallest_integer_has_no_magnitude(smallest):
    amounts, starts = np.array([smallest, 1]), np.array([0, 2])
    is_over, taken = np.zeros(1, dtype=bool), np.zeros(2, dtype=np.int64)
    mark_persons_over(starts, amounts, 5, is_over)
    cap_contributions(starts, np.array([0, 1]), amounts, 5, taken)
    assert is_over[0]
    assert taken.tolist() == [-5, 0]


def test_a_person_with_very_many_rows_is_cut_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(contributions, "_MOST_WAITING", 1000)
    held = []
    monkeypatch.setattr(
        contributions,
        "_in_order",
        lambda rows, *rest, original=contributions._in_order: held.append(len(rows)) or original(rows, *rest),
    )
    order = KeyedOrder(KEY, ["g"])
    count = 50_000

    def batches():
        for first in range(0, count, 500):
            yield pa.record_batch(
                {
                    "person": pa.array(["heavy"] * 500),
                    "group": pa.array([0] * 500, pa.int32()),
                    "item": pa.array(np.arange(first, first + 500)),
                    "amount": pa.array([1] * 500, pa.int64()),
                }
            )

    taken = list(contributions.bounded(batches(), order, 20))
    items = np.concatenate([part.items.to_numpy() for part in taken])
    expected = sorted(range(count), key=lambda item: event_hash(KEY, "heavy", "g", item, 0))[:20]
    assert sorted(items.tolist()) == sorted(expected)
    assert max(held) <= 2000


def test_a_large_bound_is_not_hashed_again_with_every_batch(monkeypatch):
    monkeypatch.setattr(contributions, "_MOST_WAITING", 100)
    cuts = []
    real = contributions._still_possible
    monkeypatch.setattr(contributions, "_still_possible", lambda *given: cuts.append(1) or real(*given))
    batches = (
        batch(["heavy"] * 50, [1] * 50, [0] * 50, [f"{first}-{i}" for i in range(50)]) for first in range(400)
    )
    taken = list(contributions.bounded(batches, KeyedOrder(KEY, ["g"]), 10**9))
    assert sum(len(part.amounts) for part in taken) == 20_000
    assert len(cuts) <= 8  # 20,000 rows, twice as many each time


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("contribution", [1, 5, 40])
@COUNTS
def test_a_person_in_several_parts_is_cut_as_in_one(parts, contribution, fields, rule):
    weighted = fields["count"] == "events"
    events = random_events(contribution, weighted=weighted)
    events = [each for each in events if None not in each and "" not in each]
    events = [each for each in events if each[1] in GROUPS and each[3]]
    order = KeyedOrder(KEY, GROUPS, **rule)

    def sorted_batches(some):
        ordered = sorted((who, GROUPS.index(where), what, amount) for who, where, what, amount in some)
        who, where, what, amount = map(list, zip(*ordered, strict=True))
        return [batch(who, amount, where, pa.array(what, pa.int64()))]

    shared = [[each for each in events if hash(each[:3]) % parts == part] for part in range(parts)]
    streams = [sorted_batches(some) for some in shared if some]
    found = np.zeros((len(GROUPS), ITEMS), dtype=np.int64)
    for taken in contributions.bounded_in_parts(streams, order, contribution):
        np.add.at(found, (taken.groups, taken.items.to_numpy()), taken.amounts)
    assert np.array_equal(found, dense_counts(bounded_counts(events, GROUPS, contribution, KEY, **rule)))


@pytest.mark.parametrize(("amount", "taken"), [(1000, 5), (-1000, -5), (2**62, 5), (-(2**62), -5)])
def test_one_event_heavier_than_the_bound_is_truncated(amount, taken):
    product = sums(as_table([("p", "south", 7, amount)]), counting_protocol(5), weighted=True)
    assert product[1, 7] == taken
    assert np.abs(product).sum() == 5


PERSONS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(GROUPS), st.integers(0, ITEMS - 1), st.integers(-9, 9)),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=4,
)


@given(persons=PERSONS, other=PERSONS, contribution=st.integers(1, 20))
def test_neighbors_are_within_the_radius(persons, other, contribution):
    events = [(f"p{n}", *event) for n, theirs in enumerate(persons) for event in theirs]
    without = [event for event in events if event[0] != "p0"]
    replaced = without + [("p0", *event) for event in other[0]]
    protocol = counting_protocol(contribution)
    x, removed, y = (
        sums(as_table(rows), protocol, weighted=True) if rows else np.zeros((len(GROUPS), ITEMS), dtype=int)
        for rows in (events, without, replaced)
    )
    assert np.abs(x - removed).sum() <= contribution == protocol.neighbors.radius
    assert np.abs(x - y).sum() <= counting_protocol(contribution, relation="replace").neighbors.radius
    # and the bound is not smaller than it need be
    theirs = sum(abs(event[3]) for event in events if event[0] == "p0")
    if len({(event[1], event[2]) for event in events if event[0] == "p0"}) == len(persons[0]):
        assert np.abs(x - removed).sum() == min(theirs, contribution)


@given(persons=PERSONS, other=PERSONS, contribution=st.integers(1, 20), one_group=st.booleans())
def test_neighbors_are_within_the_radius_where_people_are_counted(persons, other, contribution, one_group):
    events = [(f"p{n}", *event) for n, theirs in enumerate(persons) for event in theirs]
    without = [event for event in events if event[0] != "p0"]
    replaced = without + [("p0", *event) for event in other[0]]
    fields = {"count": "people", "one_group": one_group}
    protocol = counting_protocol(contribution, **fields)
    x, removed, y = (
        sums(as_table(rows), protocol, weighted=False) if rows else np.zeros((len(GROUPS), ITEMS), dtype=int)
        for rows in (events, without, replaced)
    )
    added = x - removed
    assert added.sum() <= contribution == protocol.neighbors.radius
    replacing = counting_protocol(contribution, relation="replace", **fields)
    assert np.abs(x - y).sum() <= replacing.neighbors.radius == 2 * contribution
    # a person is there once or not at all, and the bound is not smaller than it need be
    assert set(added.ravel().tolist()) <= {0, 1}
    theirs = {(event[1], event[2]) for event in events if event[0] == "p0"}
    rows = np.flatnonzero(added.any(axis=1))
    if one_group:
        assert len(rows) == 1
        theirs = {place for place in theirs if place[0] == GROUPS[rows[0]]}
    assert added.sum() == min(len(theirs), contribution)


def test_a_bound_that_is_no_multiple_of_the_resolution_is_rounded_down():
    protocol = counting_protocol(5, resolution=2)
    assert contributions.contribution_in_grid_units(protocol) == 2 == protocol.neighbors.radius
    table = as_table([("p", "north", 1, 100)])
    assert sums(table, protocol, weighted=True)[0, 1] == 2


def test_a_bound_on_a_fine_grid_counts_grid_units():
    protocol = counting_protocol(2, resolution=0.25, on_grid=True)
    table = as_table([("p", "north", 1, 1)]).set_column(3, "amount", pa.array([100.25]))
    assert sums(table, protocol, weighted=True)[0, 1] == 8
    off_grid = counting_protocol(2, resolution=0.25, on_grid=False, changed_entries=3)
    table = table.set_column(3, "amount", pa.array([-0.3]))
    assert sums(table, off_grid, weighted=True)[0, 1] == -2  # floor(-1.2)


def test_the_hash_of_version_1_is_frozen():
    assert event_hash(KEY, "p1", "north", "flu", 0) == 0x3B6ACA99B5A1CBA2BED4395767BC21D3
    assert event_hash(KEY, "p1", "north", -3, 2) == 0xAB2C8EDA1BB63C5B86A33D7441395E60
