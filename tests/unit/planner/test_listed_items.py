"""Plans for lists of items: what the sketch must be, and what that costs for distances."""

import numpy as np
import pytest

import armslength as al
from armslength.estimates.item_intervals import measures_items, typical_reach

PEOPLE = {"epsilon": 1, "people": 2000, "seed": "x"}
COUNTS = {"epsilon": 1, "distance": 110, "contribution": 3, "seed": "x"}


@pytest.mark.parametrize("known", [COUNTS, PEOPLE], ids=str)
@pytest.mark.parametrize("count", [1, 50, 300])
def test_the_planned_sketch_explains_the_list(known, count):
    plan = al.plan(**known, listed_items=count, unit="one person")
    protocol = plan.protocol
    assert measures_items(protocol.transform, count, 0.049)
    fixed = al.SparseJL(**{**protocol.transform.parameters(), "input_dim": 5000})
    rows = al.release(
        al.Protocol(fixed, al.Counts(1), epsilon=1), np.ones((2, 5000), dtype=int), ledger=al.NO_LEDGER
    )
    answer = al.explain(rows, "0", "1", items=range(count))
    assert np.isfinite(answer.upper).any()
    assert count == len(answer.items)


def test_twenty_numbers_for_each_item():
    transform = al.plan(**COUNTS, listed_items=300).protocol.transform
    assert (transform.sparsity, transform.construction) == (1, "block")
    assert 20 * 300 <= transform.sketch_dim <= 21 * 300


def test_what_is_seen_is_stated():
    counts = " ".join(str(al.plan(**COUNTS, listed_items=300)).split())
    assert "differences of 300 listed items: most that differ by" in counts
    plan = al.plan(**PEOPLE, listed_items=300)
    assert plan.seen < al.plan(**PEOPLE).seen
    words = " ".join(str(plan).split())
    assert "differences of 300 listed items: most whose share of all votes differs by" in words


def test_a_long_list_takes_more_entries_or_no_projection():
    assert al.plan(**COUNTS | {"distance": 1100}, listed_items=50_000).protocol.transform.sparsity >= 3
    assert isinstance(al.plan(8000, **COUNTS, listed_items=8000).protocol.transform, al.Identity)


def test_three_entries_have_the_noise_that_was_planned_for():
    plan = al.plan(**PEOPLE | {"people": 20_000}, listed_items=50_000)
    assert plan.protocol.transform.sparsity == 3
    assert plan.protocol.law == plan.recommended.votes.law


def test_a_limit_that_is_too_small_is_refused_with_what_it_takes():
    for known in (COUNTS, PEOPLE):
        with pytest.raises(al.NotResolvableError, match="larger sketch"):
            al.plan(**known, listed_items=300, max_sketch_dim=500)
        assert al.plan(**known, listed_items=20, max_sketch_dim=500).protocol.transform.sketch_dim <= 500
        with pytest.raises(al.NotResolvableError, match="larger sketch"):  # the histogram alone would do
            al.plan(5000, **known, listed_items=500, max_sketch_dim=1000)


@pytest.mark.parametrize("count", [0, -1, 1.5, "300", True, 2**30])
def test_hostile_counts(count):
    with pytest.raises(al.ParameterError, match="listed_items"):
        al.plan(**COUNTS, listed_items=count)


def test_without_a_list_nothing_changes():
    plan = al.plan(**COUNTS)
    assert plan.situation.max_sketch_dim == 4096


@pytest.mark.parametrize(
    ("transform", "count", "distance"),
    [
        (al.SparseJL(input_dim=20_000, sketch_dim=416, seed="x"), 20, 110.0),
        (al.SparseJL(input_dim=20_000, sketch_dim=4096, sparsity=1, seed="x"), 100, 1.0),
        (al.SparseJL(input_dim=20_000, sketch_dim=3000, sparsity=3, seed="x"), 50, 300.0),
        (al.SparseJL(input_dim=20_000, sketch_dim=3000, sparsity=3, seed="x"), 2000, 100.0),
        (al.Identity(input_dim=300), 300, 1000.0),
    ],
    ids=str,
)
def test_items_are_seen_from_where_the_plan_says(transform, count, distance):
    protocol = al.Protocol(transform, al.Counts(3), epsilon=1, unit="one person")
    reach = typical_reach(transform, count, protocol.law, distance, 0.049)
    rng = np.random.default_rng(1)

    def share_seen(difference, pairs=300):
        rows = np.zeros((2 * pairs, transform.input_dim), dtype=int)
        if transform.input_dim > count:  # what else differs
            rest = rng.normal(size=(pairs, transform.input_dim - count))
            rest *= distance / np.sqrt((rest**2).sum(axis=1, keepdims=True))
            rows[::2, count:] = np.rint(rest)
        rows[::2, 0] = round(difference)
        made = al.release(protocol, rows, ledger=al.NO_LEDGER)
        answers = (
            al.explain(made, str(2 * pair + 1), str(2 * pair), items=range(count), level=0.951)
            for pair in range(pairs)
        )
        return np.mean([answer.verdict[answer.items.index("0")] == "more" for answer in answers])

    # with 300 pairs five standard deviations are 0.14: it was 0.61 to 0.97, and 0.02 to 0.16
    assert share_seen(reach) > 0.45
    assert share_seen(reach / 2) < 0.3
