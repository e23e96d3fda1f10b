"""Margins of event tables: the counts of the specification, and no person moves them by more than the noise covers.

The expected counts are those of tests/reference/margins.py, an implementation of its own.
"""

import math
import time
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.ingest.sums import margin_cells
from armslength.protocol.margins import margin_table
from reference.margins import all_margins, group_of_prefixes, group_of_table, margins_of

KEY = bytes(range(32))
WORDS = np.frombuffer(KEY[:16], dtype=np.uint64)
K = 16
ITEMS = {"S06": "Injuries", "S1": "Injuries", "I1": "Heart", "Åland": "Places"}
PREFIXES = {"S": "Injuries", "S0": "Heads", "I": "Heart", "Å": "Places"}


class Case(NamedTuple):
    """A table, and what is counted of it."""

    events: list[tuple[Any, ...]]  # person, row, item, amount in data units
    rows: list[str]
    rule: str
    contribution: int
    most: int
    resolution: float
    count: str
    one_group: bool
    relation: str

    @property
    def protocol(self):
        lists = {"table": ITEMS, "prefix": {"prefix": list(PREFIXES), "group": list(PREFIXES.values())}}
        return al.Protocol(
            al.SparseJL(sketch_dim=K, seed="margins"),
            epsilon=1,
            contribution=self.contribution,
            resolution=self.resolution,
            count=self.count,
            one_group=self.one_group,
            relation=self.relation,
            margins=lists[self.rule],
            margin_share="0.25",
            margin_contribution=self.most,
            unit="one person",
        )

    def group_of(self, item):
        return group_of_table(item, ITEMS) if self.rule == "table" else group_of_prefixes(item, PREFIXES)

    def expected(self):
        protocol = self.protocol

        steps = [event[3] / self.resolution for event in self.events]
        whole = [
            int(step) if step.is_integer() else 0 for step in steps
        ]  # others are off the grid, and left out
        events = [(*event[:3], amount) for event, amount in zip(self.events, whole, strict=True)]
        if self.count == "people":
            events = [(*event[:3], 1) for event in self.events]
        return np.array(
            all_margins(
                events,
                self.rows,
                protocol.margins.names,
                self.group_of,
                bound=math.floor(self.contribution / self.resolution),
                most=self.most,
                key=KEY,
                each_once=self.count == "people",
                one_group=self.one_group,
            ),
            dtype=np.int64,
        )

    def integers(self, events=None, **options):
        columns = list(zip(*(self.events if events is None else events), strict=True)) or [[]] * 4
        kinds = (pa.string(), pa.string(), pa.string(), pa.float64())
        named = zip(("who", "where", "what", "amount"), columns, kinds, strict=True)
        table = pa.table({name: pa.array(column, kind) for name, column, kind in named})
        job = TableJob.of(
            table,
            self.protocol,
            EventColumns("who", "what", "where", None if self.count == "people" else "amount"),
            PublicGroups(tuple(self.rows), "where"),
            margins=ITEMS if self.rule == "table" else None,
            **options,
        )
        return job.sums(KEY).margins


ITEM = st.sampled_from(
    ["S06", "S1", "S06.1", "I1", "I2", "A\u030aland", "Åland", "x", "", "(other)"]
) | st.text("SI0", max_size=3)


@st.composite
def cases(draw, most_people=6):
    rows = [f"r{number}" for number in range(draw(st.sampled_from([1, 2, 3, 20])))]
    count = draw(st.sampled_from(["people", "events"]))
    event = st.tuples(
        st.sampled_from([f"p{number}" for number in range(most_people)]),
        st.sampled_from([*rows, *rows, "unlisted"]),
        ITEM,
        st.sampled_from([1, 1, 2, -1, 0, 0.5, -0.25, 7]),
    )
    contribution = draw(st.sampled_from([1, 2, 5, 40]))
    return Case(
        draw(st.lists(event, max_size=40)),
        rows,
        draw(st.sampled_from(["table", "prefix"])),
        contribution,
        draw(st.integers(1, contribution)),
        1.0 if count == "people" else draw(st.sampled_from([1.0, 0.25])),
        count,
        draw(st.booleans()),
        draw(st.sampled_from(["add_remove", "replace"])),
    )


def of_one_person(case):
    """The case with all events of one person."""
    return case._replace(events=[("me", *event[1:]) for event in case.events])


@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_one_person_is_zeros_and_ones_within_the_sensitivity(case):
    case = of_one_person(case)
    mine = case.expected()
    assert set(mine.ravel().tolist()) <= {0, 1}
    assert mine[:, :-1].sum() <= case.most
    once = case._replace(relation="add_remove").protocol.margin_sensitivity
    assert np.abs(mine).sum() == (mine**2).sum() <= once
    if case.one_group:
        assert mine[:, -1].sum() <= 1


@settings(max_examples=200, deadline=None)
@given(case=cases(), other=cases())
def test_neighbors_differ_by_no_more_than_the_noise_covers(case, other):
    """Others, me; others; others, somebody else instead: in l1 norm and in squared l2 norm."""
    mine = [("me", *event[1:]) for event in other.events]
    rest = case.expected()
    with_me = case._replace(events=case.events + mine).expected()
    instead = [("me", row, item[::-1], amount) for _, row, item, amount in mine]
    with_other = case._replace(events=case.events + instead).expected()
    covered = case.protocol.margin_sensitivity
    pairs = [(with_me, rest)] if case.relation == "add_remove" else [(with_me, rest), (with_me, with_other)]
    for a, b in pairs:
        assert np.abs(a - b).sum() <= covered
        assert ((a - b) ** 2).sum() <= covered
    law = case.protocol.margin_law
    assert law.name == "gaussian" or law.scale * float(case.protocol.margins_epsilon) >= covered * (1 - 1e-12)


@pytest.mark.parametrize("one_group", [False, True])
def test_the_bound_is_attained(one_group):
    """The calibration wastes nothing: G cells and R rows, and as many others instead."""
    rows = [f"r{number}" for number in range(10)]
    case = Case([], rows, "prefix", 5, 3, 1.0, "people", one_group, "replace")
    if one_group:  # four item groups in one row
        places = [[(row, item) for item in ("S1", "I1", "Åland", "S06")] for row in rows[:2]]
    else:  # one item in each of five rows
        places = [[(row, "S1") for row in part] for part in (rows[:5], rows[5:])]
    a, b = (case._replace(events=[("me", *place, 1) for place in each]).expected() for each in places)
    once = case._replace(relation="add_remove").protocol.margin_sensitivity
    assert np.abs(a).sum() == once == 3 + (1 if one_group else 5)
    assert np.abs(a - b).sum() == ((a - b) ** 2).sum() == case.protocol.margin_sensitivity == 2 * once


@given(st.lists(ITEM, max_size=30), st.sampled_from(["table", "prefix"]))
def test_codes_are_those_of_the_specification(items, rule):
    case = Case([], ["r"], rule, 3, 2, 1.0, "people", False, "add_remove")
    margins = case.protocol.margins
    composed = [item.replace("A\u030a", "Å") for item in items]
    codes = margins.codes(composed, margin_table(ITEMS if rule == "table" else None, margins))
    assert [margins.names[code] for code in codes] == [case.group_of(item) for item in composed]


@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_the_counts_are_those_of_the_specification(case, data):
    expected = case.expected()
    assert np.array_equal(case.integers(), expected)
    rows = data.draw(st.permutations(case.events))
    assert np.array_equal(case.integers(rows, threads=data.draw(st.sampled_from([1, 3]))), expected)


@settings(max_examples=60, deadline=None)
@given(case=cases(), other=cases())
def test_one_more_person_moves_nobody_else(case, other):
    mine = [("me", *event[1:]) for event in other.events]
    both = case._replace(events=case.events + mine)
    alone = case._replace(events=mine)
    assert np.array_equal(both.integers() - case.integers(), alone.expected())


def test_values_of_a_record_are_counted_and_nothing_else():
    generator = np.random.default_rng(4)
    people, columns = 500, {"age": [17, 30, 70, None], "sex": ["F", "M", "x", None], "town": ["a", "b"]}
    chosen = {name: generator.integers(0, len(values), people) for name, values in columns.items()}
    table = pa.table(
        {"who": [f"p{number}" for number in range(people)]}
        | {name: [values[place] for place in chosen[name]] for name, values in columns.items()}
    )
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=K, seed="margins"),
        epsilon=1,
        unit="one person",
        record={"age": [18, 65], "sex": ["F", "M"], "town": "category"},
        record_pairs=[("age", "sex")],
        margins=["sex", "age"],
        margin_share="0.25",
        one_group=True,
    )
    assert protocol.margin_contribution == 2
    job = TableJob.of(table, protocol, EventColumns("who"), PublicGroups(("all",), None))
    ages, sexes = (np.bincount(chosen[name], minlength=4).tolist() for name in ("age", "sex"))
    expected = {"age=..18": ages[0], "age=18..65": ages[1], "age=65..": ages[2], "age=(missing)": ages[3]}
    expected |= {"sex=F": sexes[0], "sex=M": sexes[1], "sex=(other)": sexes[2], "sex=(missing)": sexes[3]}
    assert protocol.margins.names == tuple(expected)
    assert job.sums(KEY).margins.tolist() == [[*expected.values(), people]]


@pytest.mark.parametrize("most_events", [10, 64, 65, 300])
def test_cells_of_people_with_few_and_many_events_are_those_of_the_specification(most_events):
    generator, names = np.random.default_rng(most_events), 5
    for _ in range(50):
        sizes = generator.integers(0, most_events + 1, 4)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        groups, margins = (generator.integers(0, n, starts[-1]).astype(np.int32) for n in (7, names + 1))
        most = int(generator.integers(1, 12))
        expected = []
        for first, last in pairwise(starts.tolist()):
            theirs = zip(groups[first:last].tolist(), margins[first:last].tolist(), strict=True)
            listed = [(*each, 1) for each in theirs]
            cells, _ = margins_of([each for each in listed if each[1] < names], lambda item: item, most)
            _, rows = margins_of(listed, lambda item: item, most)
            expected += [*cells, *((row, names) for row in rows)]
        found = margin_cells(starts, groups, margins, names, most, WORDS)
        assert Counter(zip(*(each.tolist() for each in found), strict=True)) == Counter(expected)


def test_nobody_can_choose_events_that_take_long():
    """Cells that would share one slot, were they hashed by the usual constant: every search would pass all of them."""
    count, names, golden = 32_000, 8_000, 0x9E3779B97F4A7C15
    size, inverse = 1 << (4 * count - 1).bit_length(), pow(golden, -1, 2**64)
    margins = np.arange(count) % names
    first_rows = np.array([-((column * golden) >> 32) * inverse % size for column in range(names)])
    chosen = first_rows[margins] + np.arange(count) // names * size
    usual = np.random.default_rng(1).integers(0, chosen.max(), count)

    def seconds(rows):
        cells = rows.astype(np.int32), margins.astype(np.int32)
        begin = time.perf_counter()
        margin_cells(np.array([0, count]), *cells, names, count, WORDS)
        return time.perf_counter() - begin

    seconds(usual)  # compiles
    assert min(seconds(chosen) for _ in range(3)) < 30 * min(seconds(usual) for _ in range(3))
