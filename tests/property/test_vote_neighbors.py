"""The heart of the guarantee for event tables: one person's vote moves a release by no more than its noise covers.

Every number is an exact integer or fraction. A person who is added, removed or replaced costs a privacy loss: how far each
released number moves, over the scale of its noise. Values, scalars and margins each stay within their own part of ε.
"""

import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.ingest.sums import Bins, Norms, margin_cells
from armslength.ingest.sums import vote_sums as sums_of_votes
from armslength.protocol.neighbors import VOTE, margin_sensitivity, scalar_laws
from flat_protocol import flat_protocol

KEY = bytes(range(32))
ROWS = "a", "b", "c"
PREFIXES = "A", "B", "C"  # with (other), four item groups
Cells = Sequence[tuple[str, str | int]]  # a person's events: row, item
EXACT = "0.25"  # a share of ε = 1 whose scales are exact floats

TRANSFORMS = {
    "one entry": al.SparseJL(sketch_dim=4, seed="votes"),
    "two entries": al.SparseJL(sketch_dim=4, seed="votes", sparsity=2),
    "graph": al.SparseJL(sketch_dim=5, seed="votes", sparsity=3, construction="graph"),
}


@functools.cache
def protocol_of(transform="one entry", relation="add_remove", *, bound=1, sample=1, text=True):
    """Everything that votes can release, at ε = 1."""
    lists = {"prefix": PREFIXES, "group": PREFIXES}
    margins = {"margins": lists, "margin_share": EXACT, "margin_contribution": bound} if text else {}
    return flat_protocol(
        TRANSFORMS[transform],
        epsilon=1,
        contribution="vote",
        relation=relation,
        total_share=EXACT,
        spread_sample=sample,
        items="string" if text else "int64",
        unit="one person",
        **margins,
    )


def sums_of(protocol, people: Mapping[str, Cells]):
    """The exact integers of a table of these people."""
    events = [(person, *cell) for person, cells in people.items() for cell in cells]
    columns = list(zip(*events, strict=True)) or [[]] * 3
    kinds = pa.string(), pa.string(), pa.string() if protocol.items == "string" else pa.int64()
    named = zip(("who", "where", "what"), columns, kinds, strict=True)
    table = pa.table({name: pa.array(column, kind) for name, column, kind in named})
    columns = EventColumns("who", "what", "where", None)
    return TableJob.of(table, protocol, columns, PublicGroups(ROWS, "where"), threads=1).sums(KEY)


class Moved(NamedTuple):
    """How far neighbors are apart in ℓ1 norm over all rows, in grid units."""

    values: int
    alone: int  # T − Q
    squares: int  # Q
    norms: int  # F
    margins: int

    @classmethod
    def between(cls, first, second):
        def distance(a, b):
            return int(np.abs(a - b).sum())

        pairs = zip(first.spread.T, second.spread.T, strict=True)
        squares, norms = (distance(a, b) for a, b in pairs)
        alone = distance(first.totals - first.spread[:, 0], second.totals - second.spread[:, 0])
        margins = 0 if first.margins is None else distance(first.margins, second.margins)
        return cls(distance(first.values, second.values), alone, squares, norms, margins)

    def losses(self, protocol):
        """The privacy loss of values, scalars and margins, in parts of ε."""
        values = self.values / Fraction(protocol.law.scale)
        spread = (self.squares + self.norms) / Fraction(protocol.spread_law.scale)
        scalars = self.alone / Fraction(protocol.total_law.scale) + spread
        margins = Fraction(self.margins)
        if protocol.margin_law is not None:
            margins /= Fraction(protocol.margin_law.scale)
        return values, scalars, margins


def check(protocol, first: Mapping[str, Cells], second: Mapping[str, Cells]):
    """How far these neighbors are apart, if that is within each part of ε."""
    moved = Moved.between(sums_of(protocol, first), sums_of(protocol, second))
    parts = protocol.sketch_epsilon, protocol.totals_epsilon, protocol.margins_epsilon
    assert all(loss <= part for loss, part in zip(moved.losses(protocol), parts, strict=True)), moved
    return moved


CELL = st.tuples(
    st.sampled_from([*ROWS, "unlisted"]),
    st.sampled_from([*"ABCD", "A1", "A2", "B1", "B2", "C1", "", *map(str, range(20))]),
)
CELLS = st.lists(CELL, max_size=12)
OTHERS = st.dictionaries(st.sampled_from(["p1", "p2", "p3", "p4"]), CELLS)


@settings(max_examples=60, deadline=None)
@given(OTHERS, CELLS, st.sampled_from([*TRANSFORMS]), st.integers(1, 5), st.sampled_from([1, "0.5", "0.01"]))
def test_adding_or_removing_a_person(others, cells, transform, bound, sample):
    check(protocol_of(transform, bound=bound, sample=sample), others, {**others, "me": cells})


@settings(max_examples=60, deadline=None)
@given(OTHERS, CELLS, CELLS, st.sampled_from([*TRANSFORMS]), st.integers(1, 5), st.sampled_from([1, "0.5"]))
def test_replacing_a_person(others, before, after, transform, bound, sample):
    protocol = protocol_of(transform, "replace", bound=bound, sample=sample)
    check(protocol, {**others, "me": before}, {**others, "me": after})


def bin_and_sign(item: str) -> tuple[int, int]:
    """Where the transform with one entry puts an item."""
    column = TRANSFORMS["one entry"].columns([item]).toarray()[:, 0]
    place = int(np.flatnonzero(column)[0])
    return place, int(column[place])


def items_of(fits, count: int) -> list[str]:
    """So many items whose bin and sign fit."""
    numbered = (f"B{number}" for number in range(100_000))
    return [
        item for item, _ in zip((i for i in numbered if fits(*bin_and_sign(i))), range(count), strict=False)
    ]


def extreme_people() -> dict[str, Cells]:
    """People who come near a bound, each in another way."""
    same = items_of(lambda place, sign: (place, sign) == (0, 1), 64)
    opposite = items_of(lambda place, sign: (place, sign) == (0, -1), 64)
    return {
        "nothing": [],
        "one item": [("a", "A1")],
        "one item, often": [("a", "A1")] * 1000,
        "three items": [("a", f"A{number}") for number in range(3)],
        "all in one bin": [("a", item) for item in same],
        "all cancel": [("a", item) for item in same + opposite],
        "all but one cancel": [("a", item) for item in same + opposite[1:]],
        "300 items": [("b", f"A{number}") for number in range(300)],
        "5,000 items": [("a", f"A{number}") for number in range(5000)],
        "more items than F has weights for": [("a", f"A{number}") for number in range(2**16 + 1)],
        "every item group": [("a", name) for name in (*PREFIXES, "other")],
        "several groups": [(row, f"{name}{row}") for row in ROWS for name in (*PREFIXES, "other")],
    }


EXTREME = extreme_people()


@pytest.mark.parametrize("bound", [1, 3, 4])
@pytest.mark.parametrize("others", [{}, {"p1": EXTREME["one item"], "p2": EXTREME["all in one bin"]}])
def test_extreme_people_alone_and_among_others(bound, others):
    protocol, replace = (protocol_of(relation=name, bound=bound) for name in ("add_remove", "replace"))
    sums = {name: sums_of(protocol, {**others, "me": cells}) for name, cells in EXTREME.items()}
    for first in sums.values():
        moved = Moved.between(sums["nothing"], first)
        parts = protocol.sketch_epsilon, protocol.totals_epsilon, protocol.margins_epsilon
        assert all(loss <= part for loss, part in zip(moved.losses(protocol), parts, strict=True))
        for second in sums.values():
            losses = Moved.between(first, second).losses(replace)
            assert all(loss <= part for loss, part in zip(losses, parts, strict=True))


def test_as_many_items_as_a_vote_has_units():
    protocol, items = protocol_of(text=False), range(VOTE)
    moved = check(protocol, {}, {"me": [("a", item) for item in items]})
    assert moved.values == np.abs(sum_of_columns(items)).sum()
    assert moved.alone + moved.squares == VOTE


def test_with_one_item_more_there_is_no_vote():
    people = {"me": [("a", f"A{number}") for number in range(VOTE + 1)]}
    assert check(protocol_of(), {}, people) == (0, 0, 0, 0, 0)


def sum_of_columns(items):
    return np.asarray(TRANSFORMS["one entry"].columns(items).sum(axis=1)).ravel()


@pytest.mark.parametrize("transform", [*TRANSFORMS])
@pytest.mark.parametrize("count", [1, 64])
def test_values_reach_their_bound(transform, count):
    # Whoever has one item, or items whose columns do not cancel, moves the values by all that their noise covers.
    matrix, items = TRANSFORMS[transform], []
    signs = np.zeros(matrix.sketch_dim, dtype=int)
    candidates = [f"A{number}" for number in range(5000)]
    for item, column in zip(candidates, matrix.columns(candidates).toarray().T, strict=True):
        if len(items) < count and (column * signs >= 0).all():
            items.append(item)
            signs += column
    cells, elsewhere = ([(row, item) for item in items] for row in ("a", "b"))
    protocol, replaced = protocol_of(transform), protocol_of(transform, "replace")
    moved = check(protocol, {}, {"me": cells})
    assert moved.values == VOTE * matrix.l1_sensitivity
    assert moved.losses(protocol)[0] == protocol.sketch_epsilon
    moved = check(replaced, {"me": cells}, {"me": elsewhere})
    assert moved.losses(replaced)[0] == replaced.sketch_epsilon


def test_scalars_reach_their_bound():
    # q of both people has a half that its floor takes away: so F moves by q and a whole unit more.
    items = next(
        candidate
        for number in range(100)
        if (
            int((sum_of_columns(candidate := [f"{number}/{place}" for place in range(2048)]) ** 2).sum()) % 4
            == 2
        )
    )
    cells, protocol = [("a", item) for item in items], protocol_of()
    moved = check(protocol, {"p1": cells}, {"p1": cells, "me": cells})
    assert moved.norms == moved.squares + 1
    assert moved.alone + moved.squares == VOTE
    assert moved.losses(protocol)[1] == protocol.totals_epsilon


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("bound", [1, 2, 4, 5])
def test_margins_reach_their_bound(relation, bound):
    protocol = protocol_of(relation=relation, bound=bound)
    everything = [("a", name) for name in (*PREFIXES, "other")]
    first = {} if relation == "add_remove" else {"me": [("b", name) for _, name in everything]}
    moved = check(protocol, first, {"me": everything})
    assert moved.margins == protocol.margin_sensitivity
    assert moved.losses(protocol)[2] == protocol.margins_epsilon


def test_one_group_and_the_sample_depend_on_nobody_else():
    protocol = protocol_of(sample="0.5")
    people = {f"p{number}": EXTREME["several groups"] for number in range(40)}
    alone = [sums_of(protocol, {person: cells}) for person, cells in people.items()]
    together = sums_of(protocol, people)
    assert np.array_equal(together.values, sum(one.values for one in alone))
    assert np.array_equal(together.totals, sum(one.totals for one in alone))
    assert np.array_equal(together.spread[:, 0], sum(one.spread[:, 0] for one in alone))
    assert np.array_equal(together.margins, sum(one.margins for one in alone))
    assert all(np.count_nonzero(one.totals) == 1 for one in alone)
    sampled = sum(one.spread[:, 1].any() for one in alone)
    assert 0 < sampled < len(alone)


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_squares_and_norms_of_any_number_of_items(entries):
    # The two steps of the proof, for items that share their bins and items that do not: q ≤ m, and F moves by less than q + 1.
    width, most = 6, 800
    sizes = np.concatenate([np.arange(1, most), np.arange(1, most), [2**16, 2**16 + 1]])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    random = np.random.default_rng(1)
    bins = np.array([random.permutation(width)[:entries] for _ in range(1000)], dtype=np.int32)
    signs = random.random((1000, entries)) < 0.5
    columns = np.where(signs, bins, -1 - bins)[random.integers(0, 1000, starts[-1])]
    columns[: starts[most - 1]] = bins[0]  # all of the first people's items are in the same bins
    everybody = np.ones(len(sizes), dtype=bool)
    _, squares, _, first, _, values = sums_of_votes(
        starts, np.zeros(starts[-1], np.int32), columns.astype(np.int32), everybody, width
    )
    weights, sampled = VOTE // sizes, sizes <= 2**16
    assert (squares <= weights * sizes).all()
    assert (squares >= 0).all()
    norms = [int((values[start:end].astype(np.int64) ** 2).sum()) for start, end in pairwise(first)]
    assert len(norms) == sampled.sum()
    pairs = zip(norms, squares[sampled].tolist(), strict=True)
    assert all(norm < (square + 1) * entries * 2**12 for norm, square in pairs)
    # whose items do not cancel and have a weight without a remainder
    whole = [place for place, size in enumerate(sizes[: most - 1]) if VOTE % int(size) == 0]
    assert len(whole) == 10
    assert all(squares[place] == VOTE for place in whole)


def test_the_norm_moves_by_no_more_than_one_person_has():
    # All tables of at most three people whose items are any of four, in two bins; everybody in turn is one more.
    columns = np.array([[0], [0], [-1], [1]], dtype=np.int32)
    people = [[item for item in range(4) if kind >> item & 1] for kind in range(1, 16)]
    tables = [(), *((a,) for a in range(15)), *((a, b) for a in range(15) for b in range(a, 15))]

    def norm_of(table):
        starts = np.cumsum([0, *(len(people[kind]) for kind in table)])
        items = np.array([item for kind in table for item in people[kind]], dtype=np.int64)
        _, squares, *bins = sums_of_votes(
            starts, np.zeros(len(items), np.int32), columns[items], np.ones(len(table), dtype=bool), 2
        )
        norms = Norms(2, 1)
        norms.add(Bins(*bins))
        return int(norms.norms(1)[0]), squares

    found = {table: norm_of(table) for table in [*tables, *((*table, 14) for table in tables)]}
    moves = []
    for table in tables:
        for kind in range(15):
            more = tuple(sorted((*table, kind)))
            if more not in found:
                found[more] = norm_of(more)
            square = int(norm_of((kind,))[1][0])
            moves.append(abs(found[more][0] - found[table][0]) - square)
    assert max(moves) <= 1


def test_the_bound_of_margins_is_that_of_somebody_in_all_item_groups():
    for names in range(1, 25):
        for bound in range(1, 27):
            sizes = np.arange(1, names + 1)  # one person for each number of item groups
            starts = np.concatenate([[0], np.cumsum(sizes)])
            codes = np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)
            persons = np.repeat(np.arange(names), sizes).astype(np.int32)  # each in a row of their own
            rows, _, units = margin_cells(starts, persons, codes, names, bound)
            largest = int(np.bincount(rows, units, names).max())
            limit = margin_sensitivity(bound, names, "add_remove")
            assert limit - names < largest <= limit
            if bound >= names or bound * VOTE % names == 0:
                assert largest == limit


@pytest.mark.parametrize(("relation", "people"), [("add_remove", 1), ("replace", 2)])
def test_scalars_are_covered_with_nothing_to_spare(relation, people):
    # With a slack of one unit for the floor of F, and no other: q is all of a vote, or nothing.
    alone, spread = (Fraction(law.scale) for law in scalar_laws(Fraction(1, 4), relation))
    for square in (0, 1, VOTE // 2, VOTE):
        loss = people * ((VOTE - square) / alone + square / spread + (square + 1) / spread)
        assert loss == Fraction(1, 4)
