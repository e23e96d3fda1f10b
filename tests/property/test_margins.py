"""Margins of event tables: the integers of the specification, and no person moves them by more than the noise covers.

The expected integers are those of tests/reference/votes.py, an implementation of its own.
"""

from collections import defaultdict
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
from armslength.protocol.neighbors import VOTE
from reference.votes import Projection, Rule, group_of_prefixes, group_of_table, votes

KEY = bytes(range(32))
K = 16
ITEMS = {"S06": "Injuries", "S1": "Injuries", "I1": "Heart", "Åland": "Places"}
PREFIXES = {"S": "Injuries", "S0": "Heads", "I": "Heart", "Å": "Places"}
NO_PROJECTION = Projection(1, lambda _: [0])


class Case(NamedTuple):
    """A table, and what is counted of it."""

    events: list[tuple[Any, ...]]  # person, row, item
    rows: list[str]
    rule: str
    most: int
    relation: str

    @property
    def protocol(self):
        lists = {"table": ITEMS, "prefix": {"prefix": list(PREFIXES), "group": list(PREFIXES.values())}}
        return al.Protocol(
            al.SparseJL(sketch_dim=K, seed="margins"),
            al.Votes(
                total_share="0.1", item_groups=al.ItemGroups(lists[self.rule], share="0.25", limit=self.most)
            ),
            epsilon=1,
            relation=self.relation,
            unit="one person",
        )

    def group_of(self, item):
        return group_of_table(item, ITEMS) if self.rule == "table" else group_of_prefixes(item, PREFIXES)

    def expected(self):
        rule = Rule(self.protocol.margins.names, self.group_of, self.most)
        counted = votes(self.events, self.rows, NO_PROJECTION, KEY, rule=rule)
        return np.array([row.margins for row in counted], dtype=np.int64)

    def integers(self, events=None, **options):
        columns = list(zip(*(self.events if events is None else events), strict=True)) or [[]] * 3
        named = zip(("who", "where", "what"), columns, strict=True)
        table = pa.table({name: pa.array(column, pa.string()) for name, column in named})
        job = TableJob.of(
            table,
            self.protocol,
            EventColumns("who", "what", "where"),
            PublicGroups(tuple(self.rows), "where"),
            item_groups=ITEMS if self.rule == "table" else None,
            **options,
        )
        return job.sums(KEY).margins


ITEM = st.sampled_from(
    ["S06", "S1", "S06.1", "I1", "I2", "A\u030aland", "Åland", "x", "", "(other)"]
) | st.text("SI0", max_size=3)


@st.composite
def cases(draw, most_people=6):
    rows = [f"r{number}" for number in range(draw(st.sampled_from([1, 2, 3, 20])))]
    event = st.tuples(
        st.sampled_from([f"p{number}" for number in range(most_people)]),
        st.sampled_from([*rows, *rows, "unlisted"]),
        ITEM,
    )
    return Case(
        draw(st.lists(event, max_size=40)),
        rows,
        draw(st.sampled_from(["table", "prefix"])),
        draw(st.integers(1, 5)),
        draw(st.sampled_from(["add_remove", "replace"])),
    )


def of_one_person(case):
    """The case with all events of one person."""
    return case._replace(events=[("me", *event[1:]) for event in case.events])


@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_one_person_is_in_one_row_with_equal_weights_within_the_sensitivity(case):
    mine = of_one_person(case).expected()
    assert np.count_nonzero(mine.any(axis=1)) <= 1
    counted, left_out = mine[:, :-1], mine[:, -1].sum()
    weights = counted[counted > 0]
    assert len(set(weights.tolist())) <= 1
    assert weights.sum() <= case.most * VOTE
    assert left_out == (4 * (VOTE - weights[0]) if len(weights) else 0)
    assert mine.sum() <= case._replace(relation="add_remove").protocol.margin_sensitivity


@settings(max_examples=200, deadline=None)
@given(case=cases(), other=cases())
def test_neighbors_differ_by_no_more_than_the_noise_covers(case, other):
    """Others, me; others; others, somebody else instead."""
    mine = [("me", *event[1:]) for event in other.events]
    rest = case.expected()
    with_me = case._replace(events=case.events + mine).expected()
    instead = [("me", row, item[::-1]) for _, row, item in mine]
    with_other = case._replace(events=case.events + instead).expected()
    covered = case.protocol.margin_sensitivity
    pairs = [(with_me, rest)] if case.relation == "add_remove" else [(with_me, rest), (with_me, with_other)]
    for a, b in pairs:
        assert np.abs(a - b).sum() <= covered
    assert case.protocol.margin_law.scale * float(case.protocol.margins_epsilon) >= covered * (1 - 1e-12)


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_the_bound_is_attained(most):
    """The calibration wastes nothing: somebody with an item of every group moves the margins by all that the noise covers."""
    case = Case(
        [("me", "r0", item) for item in ("S1", "I1", "Åland", "S06", "x")],
        ["r0", "r1"],
        "prefix",
        most,
        "replace",
    )
    moved = case.expected()
    groups = len(case.protocol.margins.names)
    assert np.count_nonzero(moved[:, :-1]) == groups == 5
    once = case._replace(relation="add_remove").protocol.margin_sensitivity
    # but for the floor of five weights
    assert once - groups < moved.sum() <= once
    elsewhere = case._replace(events=[("me", "r1", item) for _, _, item in case.events]).expected()
    assert np.abs(moved - elsewhere).sum() == 2 * moved.sum() <= case.protocol.margin_sensitivity == 2 * once


@given(st.lists(ITEM, max_size=30), st.sampled_from(["table", "prefix"]))
def test_codes_are_those_of_the_specification(items, rule):
    case = Case([], ["r"], rule, 2, "add_remove")
    margins = case.protocol.margins
    composed = [item.replace("A\u030a", "Å") for item in items]
    codes = margins.codes(composed, margin_table(ITEMS if rule == "table" else None, margins))
    assert [margins.names[code] for code in codes] == [case.group_of(item) for item in composed]


@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_the_integers_are_those_of_the_specification(case, data):
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
        al.Votes(
            record={"age": [18, 65], "sex": ["F", "M"], "town": "category"},
            record_pairs=[("age", "sex")],
            total_share="0.1",
            item_groups=al.ItemGroups(["sex", "age"], share="0.25"),
        ),
        epsilon=1,
        unit="one person",
    )
    assert protocol.margin_contribution == 2
    job = TableJob.of(table, protocol, EventColumns("who"), PublicGroups(("all",), None))
    ages, sexes = (np.bincount(chosen[name], minlength=4).tolist() for name in ("age", "sex"))
    expected = {"age=..18": ages[0], "age=18..65": ages[1], "age=65..": ages[2], "age=(missing)": ages[3]}
    expected |= {"sex=F": sexes[0], "sex=M": sexes[1], "sex=(other)": sexes[2], "sex=(missing)": sexes[3]}
    assert protocol.margins.names == tuple(expected)
    assert job.sums(KEY).margins.tolist() == [[VOTE * count for count in expected.values()] + [0]]


@pytest.mark.parametrize("most_events", [10, 64, 65, 300])
def test_cells_of_people_with_few_and_many_events_are_those_of_the_specification(most_events):
    generator, names = np.random.default_rng(most_events), 5
    for _ in range(50):
        sizes = generator.integers(0, most_events + 1, 4)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        margins = generator.integers(0, names + 1, starts[-1]).astype(np.int32)
        groups = np.repeat(generator.integers(0, 7, 4), sizes).astype(np.int32)
        most = int(generator.integers(1, names + 1))
        expected = defaultdict(int)
        for number, (first, last) in enumerate(pairwise(starts.tolist())):
            theirs = set(margins[first:last].tolist()) - {names}
            weight = VOTE if len(theirs) <= most else VOTE * most // len(theirs)
            row = groups[first] if first < last else number
            for margin in theirs:
                expected[row, margin] += weight
            if weight < VOTE:
                expected[row, names] += 4 * (VOTE - weight)
        found = defaultdict(int)
        for row, column, units in zip(*margin_cells(starts, groups, margins, names, most), strict=True):
            found[row, column] += units
        assert found == expected
