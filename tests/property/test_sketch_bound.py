"""The bound in the sketch: the kernel equals its naive reference, and neighbors are no farther apart than the noise covers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.sketch_bound import longest_prefix
from reference import sketch_bound as reference

ITEMS = 12
# Small sketches: most items collide, many of them with opposite signs.
TRANSFORMS = {
    "identity": al.Identity(input_dim=ITEMS),
    "open, s=1": al.SparseJL(sketch_dim=3, seed="x"),
    "open, s=2": al.SparseJL(sketch_dim=4, sparsity=2, seed="x"),
    "graph, s=2": al.SparseJL(input_dim=ITEMS, sketch_dim=5, sparsity=2, seed="x", construction="graph"),
    "graph, s=4": al.SparseJL(sketch_dim=7, sparsity=4, seed="x", construction="graph"),
    "block, s=4": al.SparseJL(input_dim=ITEMS, sketch_dim=8, sparsity=4, seed="x"),
    "balanced, s=1": al.SparseJL(input_dim=ITEMS, sketch_dim=4, seed="x", construction="balanced"),
    "balanced, s=2": al.SparseJL(
        input_dim=ITEMS, sketch_dim=4, sparsity=2, seed="x", construction="balanced"
    ),
}
EVENT = st.tuples(
    st.integers(0, 2), st.integers(0, ITEMS - 1), st.integers(-9, 9) | st.sampled_from([1, 1, -1])
)
EVENTS = st.lists(EVENT, max_size=25)


def in_kernel(transform, events, bound, table=None):
    """What the kernel keeps of each amount, and its table."""
    groups, items, amounts = np.array(events, dtype=np.int64).reshape(-1, 3).T.copy()
    table = np.empty((0, 2), dtype=np.int64) if table is None else table
    table = longest_prefix(groups.astype(np.int32), transform.signed_rows(items), amounts, bound, table)
    return amounts.tolist(), table


def with_columns(transform, events):
    """The events as the reference wants them."""
    columns = transform.columns([item for _, item, _ in events]) if events else None
    return [
        (group, {int(row): int(columns[row, j]) for row in columns[:, [j]].nonzero()[0]}, amount)
        for j, (group, _, amount) in enumerate(events)
    ]


def cut(events, amounts):
    """The events with these amounts."""
    return [(group, column, part) for (group, column, _), part in zip(events, amounts, strict=True)]


@settings(deadline=None)
@given(persons=st.lists(st.tuples(EVENTS, st.integers(0, 400)), min_size=1, max_size=4))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_kernel_is_its_reference(name, persons):
    transform = TRANSFORMS[name]
    table = None  # the memory that one person leaves behind does not matter to the next
    for events, bound in persons:
        amounts, table = in_kernel(transform, events, bound, table)
        assert amounts == reference.longest_prefix(with_columns(transform, events), bound)


@settings(deadline=None)
@given(mine=EVENTS, instead=EVENTS, others=EVENTS, bound=st.integers(0, 200))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_neighbors_are_within_the_bound(name, mine, instead, others, bound):
    """For a person beside others, whatever their events are: added by at most √bound, replaced by at most 2·√bound."""
    transform = TRANSFORMS[name]

    def kept(events):
        full = with_columns(transform, events)
        return cut(full, in_kernel(transform, events, bound)[0])

    def distance_squared(events, others):
        opposite = [(group, column, -amount) for group, column, amount in others]
        return reference.squared_norm([*events, *opposite])

    everybody, without, replaced = kept(others) + kept(mine), kept(others), kept(others) + kept(instead)
    assert distance_squared(everybody, without) <= bound
    assert distance_squared(everybody, replaced) <= 4 * bound


@settings(deadline=None)
@given(events=EVENTS, bound=st.integers(0, 200))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_longer_prefix_is_within_the_bound(name, events, bound):
    transform = TRANSFORMS[name]
    full, amounts = with_columns(transform, events), in_kernel(transform, events, bound)[0]
    assert reference.squared_norm(cut(full, amounts)) <= bound
    cuts = [j for j, (event, part) in enumerate(zip(events, amounts, strict=True)) if event[2] != part]
    if cuts:
        first = cuts[0]
        assert not any(amounts[first + 1 :])
        longer = [*amounts[:first], amounts[first] + int(np.sign(events[first][2])), *amounts[first + 1 :]]
        assert reference.squared_norm(cut(full, longer)) > bound


def items_of_one_bin(transform):
    """Two items with the same row, with opposite signs."""
    encoded = transform.signed_rows(range(1000))[:, 0].tolist()
    first = encoded[0]
    return 0, encoded.index(-1 - first)


def test_items_that_cancel_are_free_and_the_norm_is_not_monotone():
    """One event on each of two such items adds up to nothing, so any number of such pairs fits."""
    transform = al.SparseJL(sketch_dim=3, seed="x")
    a, b = items_of_one_bin(transform)
    pairs = [(0, a, 1), (0, b, 1)] * 25
    assert in_kernel(transform, pairs, 1)[0] == [1] * 50
    # The same events in another order are cut: what is kept must be decided with all of a person's events at hand.
    assert in_kernel(transform, sorted(pairs), 1)[0] == [1] + [0] * 49
    # In two groups nothing cancels.
    assert in_kernel(transform, [(0, a, 1), (1, b, 1)], 1)[0] == [1, 0]


def test_replacing_a_person_can_move_the_sketches_by_twice_the_bound():
    transform = al.Identity(input_dim=ITEMS)
    mine, instead = ([(0, 3, sign * 100)] for sign in (1, -1))
    (up,), (down,) = (in_kernel(transform, events, 49)[0] for events in (mine, instead))
    assert (up, down) == (7, -7)
    assert (up - down) ** 2 == 4 * 49


@pytest.mark.parametrize("sparsity", [1, 2, 4])
def test_the_largest_amounts_do_not_overflow(sparsity):
    """s·B² just below 2^63, with all of B in one event, in two that add up, and in two that cancel."""
    transform = al.SparseJL(sketch_dim=64, sparsity=sparsity, seed="x")
    most = math.isqrt((2**63 - 1) // sparsity)
    half = most // 2
    for events in ([(0, 5, most)], [(0, 5, half), (0, 5, half)], [(0, 5, half), (0, 5, -half)]):
        full = with_columns(transform, events)
        exact = reference.squared_norm(full)
        for bound in (2**63 - 1, exact, 2**62, 2**40 + 1, 0):
            amounts = in_kernel(transform, events, bound)[0]
            squared = reference.squared_norm(cut(full, amounts))
            assert squared <= bound
            if amounts == [amount for *_, amount in events]:
                continue
            first = next(
                j for j, (event, part) in enumerate(zip(events, amounts, strict=True)) if event[2] != part
            )
            longer = [*amounts]
            longer[first] += int(np.sign(events[first][2]))
            assert reference.squared_norm(cut(full, longer)) > bound


def test_a_person_with_many_events_takes_time_in_proportion():
    """A million events on distinct items fill a table of two million places, none of them twice."""
    count = 10**6
    transform = al.Identity(input_dim=count)
    amounts = np.ones(count, dtype=np.int64)
    groups = np.zeros(count, dtype=np.int32)
    table = longest_prefix(
        groups, transform.signed_rows(np.arange(count)), amounts, 700_000, np.empty((0, 2), dtype=np.int64)
    )
    assert amounts.sum() == 700_000 == amounts[:700_000].sum()
    assert table.shape == (2**21, 2)
