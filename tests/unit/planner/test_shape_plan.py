"""Plans by shape: what they choose, what they say, and what they refuse. How well they predict: tests/statistical/test_plan_quality.py."""

import math
from dataclasses import replace

import numpy as np
import pytest

import armslength as al
from armslength.planner.shape_plan import SHARES
from armslength.planner.typical_pair import Mix
from armslength.sketches.sketches import Sketches

HOSPITALS = {"epsilon": 1, "people": 3000, "contribution": 5, "parties": 9}
NOISY = {"epsilon": "0.2", "people": 3000, "contribution": 5, "parties": 9}
EICU = {"input_dim": 3557, "epsilon": 1, "people": 500, "contribution": 20, "parties": 4}
RETAIL = {"input_dim": 3659, "epsilon": 3, "people": 100, "contribution": 20, "parties": 37}


def shape_plan(**known):
    return al.plan(**{"by": "shape", "beyond_chance": True, "seed": "x", **known})


def as_events(sketches):
    releases = tuple((protocol, "events") for protocol, _ in sketches.noises.releases)
    noises = replace(sketches.noises, releases=releases)
    return Sketches(sketches.values, sketches.labels, noises, sketches.protocols, sketches.totals)


def test_a_plan_says_what_will_be_seen_and_what_will_be_missed():
    plan = shape_plan(**HOSPITALS, unit="one patient")
    text = str(plan).replace("\n", " ")
    for words in (
        "you will see",
        "in 9 of 10 cases",
        "you will miss",
        "Chance alone hides",
        "Recommended:",
        "no person is in two",
    ):
        assert words in text
    assert 0.9 < plan.seen <= plan.chance < 1
    protocol = plan.protocol
    assert protocol.transform.sketch_dim == plan.recommended.sketch_dim
    assert protocol.total_share == plan.recommended.total_share in SHARES
    assert protocol.unit == "one patient"
    assert protocol.count == "people"
    assert protocol.transform.seed == "x"
    assert protocol == plan.protocol


def test_a_plan_takes_a_larger_sketch_for_narrower_intervals():
    plan = shape_plan(epsilon=1, delta="1e-6", people=2000, contribution=68, parties=3)
    best = plan.recommended
    smaller = [each for each in plan.settings if each.sketch_dim < best.sketch_dim and each.gap <= best.gap]
    assert smaller
    widths = [1 - each.pair.likeness(best.seen)[0] for each in (best, *smaller)]
    assert widths[0] < min(widths[1:])


@pytest.mark.parametrize("known", [EICU, RETAIL, HOSPITALS], ids=["eicu", "retail", "hospitals"])
def test_the_recommended_sketch_has_upper_ends(known):
    # On these data 8 and 11 coordinates were recommended, whose intervals said nothing.
    plan = shape_plan(**known)
    assert plan.resolvable
    parties, items = known["parties"], 2000
    mix = 1 / np.arange(1, items + 1)
    counts = np.random.default_rng(1).multinomial(
        known["people"] * known["contribution"], mix / mix.sum(), parties
    )
    if known.get("input_dim"):
        counts, named = np.pad(counts, ((0, 0), (0, known["input_dim"] - items))), {}
    else:
        named = {"items": [f"item {number}" for number in range(items)]}
    rows = as_events(plan.protocol.release(counts, ledger=al.NO_LEDGER, **named))
    _, upper = al.shape_distances(rows, beyond_chance=True).interval(0.95, simultaneous=True)
    assert np.isfinite(upper).all()


@pytest.mark.parametrize("pairs", [1, 6, 666])
def test_plans_by_size_have_upper_ends_too(pairs):
    plan = al.plan(epsilon=1, people=800, contribution=20, pairs=pairs, seed="x")
    rows = np.random.default_rng(2).poisson(2000, (2, 3000))  # so far apart that noise hardly matters
    rows[1] = 0
    items = [f"item {number}" for number in range(3000)]
    distances = al.distances(plan.protocol.release(rows, items=items, ledger=al.NO_LEDGER))
    upper = distances.interval(1 - 0.05 / pairs)[1]
    assert upper[0, 1] < 2.1 * distances.value[0, 1]


def test_what_was_needed_is_enough_and_a_fifth_less_is_not():
    plan = shape_plan(**NOISY)
    needs = plan.needs
    assert needs.cosine > plan.seen
    best = lambda **changes: max(each.seen or 0 for each in shape_plan(**{**NOISY, **changes}).settings)  # noqa: E731
    assert best(epsilon=needs.epsilon) >= needs.cosine > best(epsilon=0.8 * needs.epsilon)
    assert best(people=needs.people) >= needs.cosine > best(people=int(0.8 * needs.people))


def test_more_people_and_a_larger_epsilon_see_more_and_more_pairs_less():
    seen = shape_plan(**NOISY).seen
    assert shape_plan(**{**NOISY, "people": 6000}).seen > seen
    assert shape_plan(**{**NOISY, "epsilon": 1}).seen > seen
    assert shape_plan(**{**NOISY, "parties": 100}).seen < seen
    assert shape_plan(**{**NOISY, "parties": None, "pairs": 36}).seen == seen


def test_where_chance_hides_it_no_epsilon_is_enough():
    plan = shape_plan(**{**HOSPITALS, "epsilon": 5})
    assert plan.needs.epsilon is None
    assert plan.needs.people > 3000
    assert "no larger ε is enough" in str(plan)
    assert "next to nothing" in str(plan).replace("\n", " ")


def test_the_counts_themselves_have_no_chance():
    counts, populations = (shape_plan(**HOSPITALS, beyond_chance=beyond) for beyond in (False, True))
    assert counts.chance == 1
    assert counts.seen > populations.seen
    assert "--beyond-chance" in str(counts)


def test_a_given_share_is_kept_and_others_are_shown_otherwise():
    plan = shape_plan(**HOSPITALS, total_share="0.25")
    assert {float(each.total_share) for each in plan.settings} == {0.25}
    table = shape_plan(**HOSPITALS).to_pandas()
    assert set(table.total_share) == {float(share) for share in SHARES}
    assert len(set(table.sketch_dim)) > 5
    assert table.is_recommended.sum() == 1


def test_one_group_makes_upper_ends_sharper():
    shared, disjoint = (shape_plan(**EICU, one_group=one).recommended.pair for one in (False, True))
    assert disjoint.likeness(1.0)[0] >= shared.likeness(1.0)[0]
    assert "counts in one party" in shape_plan(**EICU, one_group=True).assumption


def test_too_few_people_are_refused_with_what_would_be_enough():
    plan = shape_plan(epsilon=1, people=14, contribution=5, parties=186)
    assert not plan.resolvable
    assert plan.seen is None
    with pytest.raises(al.NotResolvableError, match=f"{plan.needs.people:,} people in each party"):
        _ = plan.protocol
    assert "cannot be resolved" in str(plan).replace("\n", " ")
    assert "nothing would be seen" in repr(plan)


def test_gaussian_noise_only_where_it_is_allowed():
    assert {each.noise for each in shape_plan(**HOSPITALS, delta="1e-6").settings} == {"laplace", "gaussian"}
    assert {each.noise for each in shape_plan(**HOSPITALS).settings} == {"laplace"}


def test_results_print():
    plan = shape_plan(**HOSPITALS)
    assert "sees mixes less than" in repr(plan)
    assert "<table>" in plan._repr_html_()
    assert plan.summary in str(plan)
    weak = shape_plan(**{**HOSPITALS, "epsilon": 11})
    assert "WARNING" in str(weak)


@pytest.mark.parametrize(("items", "contribution"), [(1, 1), (3, 5), (10, 3), (1000, 1), (1000, 20)])
def test_zipf_mixes_add_up_and_nobody_counts_twice(items, contribution):
    mix = Mix.zipf(items, contribution)
    assert mix.items == items
    assert mix.top <= max(1 / contribution, 1 / items) * (1 + 1e-9)
    assert 1 / items - 1e-12 <= mix.concentration <= mix.top + 1e-12
    # by hand: what is above the cap goes to the others, in proportion
    cap = max(1 / contribution, 1 / items)
    shares = 1 / np.arange(1, items + 1)
    shares /= shares.sum()
    for _ in range(items):
        full = shares >= cap
        shares[full] = cap
        if full.all():
            break
        shares[~full] *= (1 - cap * full.sum()) / shares[~full].sum()
    assert mix.concentration == pytest.approx(shares @ shares)


@pytest.mark.parametrize("concentration", [0.001, 0.0024, 0.02, 0.03, 0.1, 0.5, 1.0])
def test_mixes_of_a_concentration(concentration):
    mix = Mix.of_concentration(concentration, 1000, 3)
    assert mix.concentration == pytest.approx(concentration, rel=0.25)
    plan = shape_plan(**HOSPITALS, concentration=concentration)
    assert plan.situation.mix.concentration == pytest.approx(concentration, rel=0.25)
    assert "nan" not in str(plan)


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"by": "form"}, "by must be one of"),
        ({"contribution": None}, "contribution must be given"),
        ({"distance": 30}, "distance must be left out"),
        ({"count": "events"}, 'count must be "people"'),
        ({"concentration": math.nan}, "concentration must be"),
        ({"input_dim": 10, "concentration": 0.05}, "one over the number of items"),
        ({"pairs": 36}, "not both"),
        ({"by": "size"}, 'by must be "shape"'),
    ],
)
def test_bad_arguments_give_one_clear_line(known, says):
    with pytest.raises(al.ParameterError) as caught:
        shape_plan(**{**HOSPITALS, **known})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "known",
    [
        {"epsilon": "1e-6"},
        {"epsilon": 1000},
        {"people": 1},
        {"people": 2**40},
        {"contribution": 1000},
        {"input_dim": 1, "contribution": 1},
        {"input_dim": 3},
        {"input_dim": 2**40},
        {"max_sketch_dim": 1},
        {"parties": 100_000},
        {"relation": "replace"},
    ],
    ids=str,
)
def test_unusual_situations_are_planned_or_refused(known):
    try:
        plan = shape_plan(**{**HOSPITALS, **known})
    except al.NotResolvableError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either is right
        return
    assert "nan" not in str(plan)
    assert plan.resolvable is (plan.refusal is None)
    if plan.resolvable:
        assert plan.protocol.transform.sketch_dim == plan.recommended.sketch_dim
