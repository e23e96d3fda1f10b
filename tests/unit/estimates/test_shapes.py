"""Distances of shapes: against rows that were divided one by one, bounds against a search, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.estimates import shapes
from armslength.estimates.intervals import Level
from flat_protocol import flat_protocol
from report_parties import with_margins

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="shapes"),
    al.Arrays(total_share="0.25"),
    epsilon=1,
)
RNG = np.random.default_rng(4)
SHAPES = RNG.gamma(1, 1, (3, 300))
SIZES = (20_000, 20_000, 700_000, 50_000, 300_000)


def data(sizes=SIZES):
    shares = SHAPES[np.arange(len(sizes)) % 3]
    return RNG.poisson(shares / shares.sum(axis=1, keepdims=True) * np.array(sizes)[:, None])


def released(sizes=SIZES, protocol=PROTOCOL, labels=None):
    return al.release(protocol, data(sizes), labels=labels, ledger=al.NO_LEDGER)


def divided(sketches):
    """Each row divided by its total, as anybody could do it, with a noise of its own."""
    return al.concat([sketches[row] / float(sketches.totals[row]) for row in range(len(sketches))])


def test_values_are_those_of_rows_divided_one_by_one():
    a, b = released(), released()
    expected = al.squared_distances(divided(a), divided(b)).value
    # but for a correction of second order in the totals' errors, which are below 3e-4 here
    np.testing.assert_allclose(shapes.squared_shape_distances(a, b).value, expected, rtol=1e-4, atol=1e-18)
    within = al.squared_distances(divided(a)).value
    np.testing.assert_allclose(shapes.squared_shape_distances(a).value, within, rtol=1e-4, atol=1e-18)


def test_rows_that_share_noise():
    a = released((20_000, 40_000))
    mixed = al.concat([a[0] + a[1], a[0], 2 * a[1]])
    both = shapes.squared_shape_distances(mixed, a)
    expected = al.squared_distances(divided(mixed), divided(a)).value
    np.testing.assert_allclose(both.value, expected, rtol=1e-4, atol=1e-16)
    lower, upper = both.interval()
    # The same release has the same shape, also when it is doubled; a sum with it does not.
    assert (both.value[1, 0], lower[1, 0], upper[1, 0]) == (0, 0, 0)
    assert (both.value[2, 1], lower[2, 1], upper[2, 1]) == (0, 0, 0)
    assert upper[0, 0] > 0


def test_the_noise_of_a_rule_is_never_smaller_and_hardly_larger(monkeypatch):
    a, b = (
        released(),
        released(protocol=al.Protocol(PROTOCOL.transform, al.Arrays(total_share="0.9"), epsilon="0.1")),
    )
    grid = _distance_ends(a, b, monkeypatch)
    exact = al.squared_distances(divided(a), divided(b)).interval(1 - 0.05 * 0.8)
    # Both round the ratio in the quantiles' law, not always to the same one.
    assert (grid[0] <= exact[0] * 1.01).all()
    assert (grid[1] >= exact[1] * 0.99).all()
    width = (grid[1] - grid[0]) / (exact[1] - exact[0])
    assert width.max() < 1.04


def _distance_ends(a, b, monkeypatch):
    """The interval of ‖x/T̂x − y/T̂y‖² alone, as if the totals were exact."""
    with monkeypatch.context() as patched:
        patched.setattr(shapes._Side, "total_ratios", lambda side, _: (np.ones(len(side.total)),) * 2)
        return shapes.squared_shape_distances(a, b).rule.box(Level.of(0.95, "asymptotic", 1))


def test_bounds_are_those_of_a_search():
    for _ in range(40):
        p, q = RNG.normal(size=(2, 3))
        squares = [np.sort(RNG.uniform(0.7, 1.4, 2)) * (v @ v) for v in (p, q)]
        m = np.sort(RNG.uniform(0.7, 1.4, 2)) * ((p - q) @ (p - q))
        rho, sigma = (np.sort(RNG.uniform(0.8, 1.25, 2)) for _ in range(2))
        norms, ratios = (
            shapes._ranges(*(np.array(ends)[:, None] for ends in pair)) for pair in (squares, (rho, sigma))
        )
        least = shapes._smallest_square(np.array([[m[0]]]), norms, ratios)[0, 0]
        most = shapes._largest_square(np.array([[m[1]]]), norms, ratios)[0, 0]
        grid_r, grid_s = np.meshgrid(np.linspace(*rho, 121), np.linspace(*sigma, 121))
        forms = [
            grid_r * grid_s * distance + (grid_r - grid_s) * (grid_r * x - grid_s * y)
            for distance in m
            for x in squares[0]
            for y in squares[1]
        ]
        assert np.max(forms) <= most * (1 + 1e-12)
        assert np.max(forms) >= most * 0.999
        assert max(np.min(forms), 0) >= least * (1 - 1e-12)
        assert max(np.min(forms), 0) <= least + 2e-3 * most


def test_exact_totals_and_norms_leave_the_distance_alone():
    exact = np.ones((1, 1)), np.ones((1, 1))
    unknown = np.zeros((1, 1)), np.full((1, 1), np.inf)
    value = np.array([[0.3]])
    both = exact, exact
    for norms in (both, (unknown, unknown)):
        assert shapes._largest_square(value, norms, both) == 0.3
    assert shapes._smallest_square(value, both, both) == 0.3
    assert shapes._smallest_square(value, (unknown, exact), both) == 0


def test_the_error_is_split_and_not_exceeded(monkeypatch):
    assert pytest.approx(1) == shapes._TO_DISTANCE + 2 * shapes._TO_NORM + 2 * shapes._TO_TOTAL
    sketches = released()
    error = 0.3
    asked = []
    with monkeypatch.context() as patched:
        for name in ("squared_norms", "total_ratios"):
            part = getattr(shapes._Side, name)
            patched.setattr(
                shapes._Side,
                name,
                lambda side, level, part=part: asked.append(level.tail) or part(side, level),
            )
        rule = shapes.squared_shape_distances(sketches).rule
        rule.box(Level.of(1 - error, "asymptotic", 1))
    assert asked == pytest.approx([0.05 * error / 2] * 4)
    left, level = shapes._Side.of(sketches), Level.of(1 - 0.05 * error, "asymptotic", 7)
    lower, upper = al.totals(sketches).rule.interval(level)
    np.testing.assert_allclose(left.total_ratios(level), (left.total / upper, left.total / lower))
    lower, upper = al.squared_norms(sketches).rule.interval(level)
    np.testing.assert_allclose(left.squared_norms(level), (lower / left.total**2, upper / left.total**2))
    rule = shapes.squared_shape_distances(sketches).rule
    narrow, wide = (rule.interval(Level.of(1 - error, "asymptotic", pairs)) for pairs in (1, 7))
    off = ~np.eye(len(sketches), dtype=bool)
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] > narrow[1])[off].all()


def test_a_coarse_sketch_has_no_upper_end():
    coarse = al.Protocol(
        al.SparseJL(input_dim=300, sketch_dim=8, sparsity=1, seed="coarse"),
        al.Arrays(total_share="0.25"),
        epsilon=1,
    )
    for method in ("asymptotic", "guaranteed"):
        lower, upper = al.distances(released(protocol=coarse), about="people").interval(0.9999, method=method)
        off = ~np.eye(len(SIZES), dtype=bool)
        assert np.isinf(upper[off]).all()
        assert (lower[off] >= 0).all()
        assert not np.diag(upper).any()


def test_a_row_in_the_clear_has_an_exact_total():
    clear = al.sketch_in_clear(PROTOCOL, data((20_000,)), labels=["query"])
    found = al.distances(clear, released(), about="people")
    lower, upper = found.interval()
    assert ((lower <= found.value) & (found.value <= upper)).all()
    assert "data in the clear" in found.note
    assert found.quantity == "distances of profiles"


def test_it_is_about_shapes_not_sizes():
    sketches = released((20_000, 20_000, 20_000, 2_000_000))
    by_size, by_shape = (al.distances(sketches, about=about).value for about in ("counts", "people"))
    assert by_size[0].argmax() == 3
    assert by_shape[0, 3] < by_shape[0, 1] / 2
    assert al.nearest(sketches, count=1, about="people").labels[0] == ("3",)
    assert al.nearest(sketches, count=1, about="counts").labels[0] != ("3",)
    groups = {about: al.cluster(sketches, about=about, alike=0.8).groups() for about in ("people", "counts")}
    assert groups == {"people": (("0", "3"),), "counts": ()}


def test_blocks_are_what_all_at_once_is(monkeypatch):
    sketches = released()
    whole = al.compare(sketches, about="people").to_arrow().to_pylist()
    monkeypatch.setattr("armslength.answers.pairs.ROWS", 2)
    monkeypatch.setattr("armslength.answers.pairs.SMALL", 1)
    lines = al.compare(sketches, about="people").to_arrow().to_pylist()
    lines.sort(key=lambda row: (row["left"], row["right"]))
    for ours, theirs in zip(lines, whole, strict=True):
        assert ours == {
            name: value if isinstance(value, str | bool) else pytest.approx(value, rel=1e-9, abs=1e-9)
            for name, value in theirs.items()
        }


def test_without_totals_shapes_are_refused():
    plain = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="shapes"), epsilon=1)
    with pytest.raises(al.ParameterError, match="about='people'"):
        al.distances(al.release(plain, data(), ledger=al.NO_LEDGER), about="people")


@pytest.mark.parametrize("level", [0.5, 0.999999])
@pytest.mark.parametrize("method", ["asymptotic", "guaranteed"])
def test_a_total_that_may_be_0_is_named_and_leaves_the_others_alone(method, level):
    small = released((20_000, 0, 50_000), labels=["big", "tiny", "other"])
    while not small.totals[1] < 20:  # noise of scale 4
        small = released((20_000, 0, 50_000), labels=["big", "tiny", "other"])
    estimate = al.distances(small, about="people")
    lower, upper = estimate.interval(level, method=method)
    assert "tiny" in estimate.note
    assert "big" not in estimate.note
    if (method, level) != ("guaranteed", 0.5):  # the box asks about totals at its own level
        assert (lower[0, 1], upper[0, 1]) == (0, np.inf)
    assert lower[0, 2] > 0 or method == "guaranteed"
    alone = al.distances(small[["big", "other"]], about="people").interval(level, method=method)
    assert (lower[0, 2], upper[0, 2]) == pytest.approx((alone[0][0, 1], alone[1][0, 1]))


def test_a_total_below_0_has_no_shape():
    change = released((20_000,)) - released((90_000,))
    estimate = al.distances(change, released(), about="people")
    assert np.isnan(estimate.value).all()
    for method in ("asymptotic", "guaranteed"):
        lower, upper = estimate.interval(method=method)
        assert not lower.any()
        assert np.isinf(upper).all()


def test_coarse_totals_fall_back_to_the_box():
    coarse = al.Protocol(PROTOCOL.transform, al.Arrays(total_share="0.0005"), epsilon=1)
    estimate = shapes.squared_shape_distances(released(protocol=coarse))
    level = Level.of(0.999, "asymptotic", 1)
    box = estimate.rule.box(level)
    ours = estimate.rule.interval(level)
    # 20,000 has an error of about 10 percent at one standard error, 700,000 and 300,000 of less than one
    for end in (0, 1):
        assert ours[end][0, 1] == box[end][0, 1]
        assert ours[end][2, 4] != box[end][2, 4]


def test_an_empty_party_is_unknown_also_where_totals_have_little_noise():
    protocol = al.Protocol(PROTOCOL.transform, al.Arrays(total_share="0.9"), epsilon=1)
    sketches = released((20_000, 0), protocol=protocol)
    while not 0 < sketches.totals[1] < 4:  # noise of scale 1.1
        sketches = released((20_000, 0), protocol=protocol)
    lower, upper = al.distances(sketches, about="people").interval(0.95)
    assert (lower[0, 1], upper[0, 1]) == (0, np.inf)
    lower, upper = al.similarities(sketches, about="people").interval(0.95)
    assert (lower[0, 1], upper[0, 1]) == (-1, 1)


@pytest.fixture(scope="module")
def many_pairs():
    """Pairs from equal profiles to very different ones, of large and of small parties."""
    generator = np.random.default_rng(6)
    prevalences = np.array([0.1, 0.2, 0.3]) * generator.uniform(0.5, 2, (24, 3)) ** 1.2
    return with_margins(np.minimum(prevalences, 0.95).tolist(), people=[3000, 800, 200, 30] * 6)


@pytest.mark.parametrize("about", ["populations", "people"])
def test_is_at_least_is_what_the_interval_says(many_pairs, about):
    """But for the last of the halvings, by which an interval is found: a millionth."""
    shared = al.concat([many_pairs[:12], many_pairs[4:8]])
    pairs = [
        al.similarities(many_pairs, about=about),
        al.similarities(many_pairs[:9], many_pairs[9:], about=about),
    ]
    if about == "people":
        pairs += [
            al.similarities(shared, many_pairs[:6], about=about),
            al.similarities(released(), about=about),
        ]
    decided = set()
    for rule in (estimate.rule for estimate in pairs):
        for level in (Level.of(0.95, "asymptotic", count) for count in (1, 276)):
            lower, _ = rule.interval(level)
            for limit in (0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0):
                is_clear = np.abs(lower - limit) > 2e-6
                is_clear |= lower == 1  # a row against itself
                expected = lower >= limit
                assert (rule.is_at_least(limit, level) == expected)[is_clear].all()
                decided.update(expected[is_clear].tolist())
    assert decided == {True, False}


def test_no_vote_is_negative_and_neither_is_a_cosine():
    transform = al.SparseJL(sketch_dim=64, seed="votes")  # of signs
    fields = {"contribution": "vote", "total_share": "0.1", "spread_sample": "1", "unit": "one person"}
    votes = flat_protocol(transform, epsilon=1, **fields)
    people = np.arange(3000)
    parties = [f"party {number}" for number in range(6)]
    of_people = pa.array(parties).take(pa.array(people % 6))
    events = pa.table({"person": people, "item": (people % 12).astype(str), "party": of_people})
    names = {"person": "person", "item": "item", "group": "party", "public_groups": parties}
    rows = al.release(votes, events, **names, ledger=al.NO_LEDGER)
    for beyond_chance in (False, True):
        cosines = al.similarities(rows, about="populations" if beyond_chance else "people")
        assert cosines.value.min() == cosines.interval(0.95)[0].min() == 0
    assert al.similarities(released(), released(), about="people").rule.least == -1
