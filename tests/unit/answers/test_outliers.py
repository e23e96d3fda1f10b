"""Outliers: each party against the average of the others, what is called, and what is said."""

import os

import numpy as np
import pytest

import armslength as al
from armslength.answers.outliers import Outliers
from armslength.estimates.intervals import Level
from armslength.estimates.typical import TypicalParties, large_enough, weights_of
from armslength.sketches.noises import Noises
from report_parties import released, votes, with_margins

TRANSFORM = al.SparseJL(input_dim=400, sketch_dim=64, sparsity=1, seed="outliers")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1)
SURELY = 1 - 1e-6
POPULATIONS = {"about": "populations"}
USUAL = [0.2, 0.2, 0.5]


def rows_of(data, labels=None, protocol=PROTOCOL):
    return al.release(protocol, np.atleast_2d(data), labels=labels, ledger=al.NO_LEDGER)


def steps(*heights):
    """Rows that differ on 100 coordinates each."""
    x = np.zeros((len(heights), 400), dtype=int)
    for row, height in enumerate(heights):
        x[row, 100 * (row % 4) : 100 * (row % 4) + 100] = height
    return x


def like(generator, count):
    """Parties that differ a little from each other, as parties do."""
    return [(np.array(USUAL) * generator.uniform(0.6, 1.4, 3)).tolist() for _ in range(count)]


def test_by_size_each_row_is_compared_with_the_mean_of_the_others():
    sketches = rows_of(np.vstack([steps(20, 20, 20, 20), steps(0, 0, 0, 2000)[3:]]), list("abcde"))
    found = al.outliers(sketches, factor=2, level=0.9)
    for row, label in enumerate("abcde"):
        others = sum(sketches[[other for other in "abcde" if other != label]]) / 4
        pair = al.distances(sketches[label], others)
        ends = [end[0, 0] for end in (pair.value, *pair.interval(1 - 0.1 / 5))]
        assert found.distance[row] == pytest.approx(ends)
    # Of an error of 0.1: 0.075 for the five lower ends of calls, and 0.025 for four upper ends.
    rows = [sum(sketches[[other for other in "abcde" if other != label]]) / 4 for label in "abcde"]
    pairs = [al.distances(sketches[label], others) for label, others in zip("abcde", rows, strict=True)]
    least = [pair.interval(1 - 2 * 0.075 / 5)[0][0, 0] for pair in pairs]
    highest = [pair.interval(1 - 2 * 0.025 / 4)[1][0, 0] for pair in pairs]
    assert found.least == pytest.approx(least)
    assert found.usual == pytest.approx([np.median(np.delete(highest, row)) for row in range(5)])
    assert found.is_outlier.tolist() == (found.least > 2 * found.usual).tolist()
    assert found.is_outlier.tolist() == [False] * 4 + [True]
    assert found.ranking.tolist()[0] == 4
    lower, upper = found.distance[:, 1:].T
    assert found.verdict == tuple(np.where(lower > 0, "differ", "inconclusive"))
    alike = al.outliers(sketches, factor=2, level=0.9, alike=upper[2])
    assert alike.verdict[2] == "alike"
    assert al.outliers(sketches, factor=2, level=0.9, alike=np.nextafter(upper[2], 0)).verdict[2] != "alike"
    assert alike.is_outlier.tolist() == found.is_outlier.tolist()
    assert found.to_arrow()["outlier"].to_pylist() == found.is_outlier.tolist()
    assert (found.about, found.similarity, found.people) == ("counts", None, None)
    assert found.reasons == ("",) * 5
    assert str(found).splitlines()[4].startswith("e ")


def test_a_party_at_the_limit_is_not_called():
    found = al.outliers(rows_of(np.vstack([steps(20, 20, 20, 20), steps(0, 0, 0, 2000)[3:]]), list("abcde")))
    ratio = found.times_usual(4)
    assert found.least[4] == pytest.approx(ratio * found.usual[4])
    for factor, called in ((ratio * (1 - 1e-9), True), (ratio * (1 + 1e-9), False)):
        known = {name: getattr(found, name) for name in found.__dataclass_fields__} | {"factor": factor}
        assert Outliers(**known).is_outlier[4] == called


def test_no_party_weighs_more_than_the_median():
    weights = weights_of(np.array([100.0, 200.0, 300.0, 400.0, 1e9]))
    assert (np.diag(weights) == 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights[0] * 1100, [0, 200, 300, 300, 300])
    np.testing.assert_allclose(weights[4] * 900, [100, 200, 300, 300, 0])


def test_the_typical_party_is_the_weighted_mean_of_the_other_mixes():
    """With hardly any noise and nobody left out, the estimate is the distance of the exact mixes."""
    sketches = with_margins(
        [[0.1, 0.1, 0.3], [0.1, 0.5, 0.3], [0.4, 0.1, 0.3]], [500, 3000, 800], epsilon=1e6
    )
    totals = sketches.totals.astype(float)
    mixes = np.asarray(sketches).astype(float) / totals[:, None]
    parties = TypicalParties.of(sketches, beyond_chance=False)
    expected = [
        ((mix - line @ mixes) ** 2).sum() for mix, line in zip(mixes, weights_of(totals), strict=True)
    ]
    value, lower, upper = parties.squared_distances(0.01)
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    assert ((lower <= expected) & (expected <= upper)).all()
    cosines, *_ = parties.similarities(Level.of(0.95, "asymptotic", 1))
    means = weights_of(totals) @ mixes
    norms = np.linalg.norm(mixes, axis=1) * np.linalg.norm(means, axis=1)
    np.testing.assert_allclose(cosines, (mixes * means).sum(axis=1) / norms, rtol=1e-4)


def test_one_odd_party_with_most_of_the_people_hides_nobody():
    generator = np.random.default_rng(1)
    lines = [*like(generator, 9), [0.95, 0.02, 0.05], [0.02, 0.95, 0.05]]
    people = [1000] * 9 + [20_000, 1500]  # the first odd one has 66 % of all
    found = al.outliers(with_margins(lines, people), **POPULATIONS)
    assert np.flatnonzero(found.is_outlier).tolist() == [9, 10]


def test_equal_parties_have_no_outlier_and_are_one_group():
    sketches = with_margins([USUAL] * 8, [500, 700, 1000, 1500, 2000, 3000, 4000, 30_000], epsilon=2)
    found = al.outliers(sketches, level=SURELY, **POPULATIONS)
    assert not found.is_outlier.any()
    assert found.verdict.count("differ") == 0
    assert "alike" in found.verdict
    assert len(al.cluster(sketches, level=SURELY, **POPULATIONS).groups()) == 1
    assert not any(found.reasons)


def test_parties_that_are_too_small_are_left_out_and_named():
    sketches = with_margins([USUAL] * 5, [2000, 2000, 2000, 2000, 3], epsilon=1)
    assert large_enough(sketches, beyond_chance=True).tolist() == [True] * 4 + [False]
    found = al.outliers(sketches, **POPULATIONS)
    assert found.labels == sketches.labels[:4]
    assert found.note.count("ward 5") == 1
    small = with_margins([USUAL] * 4, [2000, 2000, 3, 3], epsilon=1)
    with pytest.raises(al.NotResolvableError, match=r"too few people .*ward 3.*ward 4.* 2 parties"):
        al.outliers(small, **POPULATIONS)


def test_whoever_is_large_enough_can_differ():
    """A party is left out if even one that shares no item with the others could not be found to differ."""
    generator = np.random.default_rng(2)
    sizes = [20, 60, 120, 250, 500, 1000]
    parties = [[[f"B{generator.integers(10)}"] for _ in range(5000)] for _ in range(3)]
    parties += [[[f"X{size} {generator.integers(10)}"] for _ in range(size)] for size in sizes]
    sketches = released(votes(epsilon=1, margins=None, total_share="0.3"), parties)
    is_large = large_enough(sketches, beyond_chance=True)
    assert is_large[:3].all()
    assert not is_large[3]
    assert is_large[-3:].all()
    assert (np.diff(is_large[3:].astype(int)) >= 0).all()
    lower = TypicalParties.of(sketches[is_large], beyond_chance=True).squared_distances(0.025)[1]
    assert (lower[-3:] > 0).all()


def test_about_the_people_counted_and_for_rows():
    counts = np.random.default_rng(3).multinomial(20_000, np.full(400, 1 / 400), 6)
    counts[5, :50] += 500
    rows = rows_of(counts, protocol=al.Protocol(TRANSFORM, al.Arrays(total_share="0.1"), epsilon=1))
    found = al.outliers(rows, about="people")
    assert found.is_outlier.tolist() == [False] * 5 + [True]
    assert (found.about, found.reasons) == ("people", ("",) * 6)  # there are no item groups
    for refused, about in ((rows, "populations"), (rows_of(counts), "people"), (rows, "size")):
        with pytest.raises(al.ParameterError) as caught:
            al.outliers(refused, about=about)
        assert "about" in caught.value.arguments


def test_rows_that_share_a_release_are_refused_by_shape():
    sketches = with_margins([USUAL] * 3, 500)
    both = al.concat([sketches, sketches[0] + sketches[1]])
    for about in ("populations", "people", None):
        with pytest.raises(al.ParameterError, match="share a release"):
            al.outliers(both, about=about)
    assert al.outliers(both, about="counts").labels == both.labels


@pytest.mark.parametrize("count", [3, 4, 5, 8, 9])
def test_no_false_call_needs_more_upper_ends_than_get_a_part_of_the_error(count):
    """The upper ends that must hold, so that no median of them is below that of the distances: the largest distances'."""
    generator = np.random.default_rng(count)
    most = (count + 1) // 2 + 1
    for _ in range(200):
        distances = np.sort(generator.exponential(size=count))[::-1]
        upper = distances * 1.01
        upper[most:] = 0.0  # these do not hold
        for row in range(count):
            assert np.median(np.delete(upper, row)) >= np.median(np.delete(distances, row))
    upper[most - 1] = 0.0
    assert np.median(upper[1:]) < np.median(distances[1:])


def test_upper_ends_subtract_chance_where_nobody_is_in_two_rows():
    one = with_margins([USUAL] * 6, 3000)
    noises = Noises.fresh(os.urandom(6 * 16), one.protocols[0], "events")  # each row is a release
    several = al.Sketches(one.values, one.labels, noises, one.protocols, one.totals, one.margins, one.spread)
    for rows, share_nobody in ((one, True), (several, False)):
        found = al.outliers(rows, **POPULATIONS)
        parties = TypicalParties.of(rows, beyond_chance=True)
        law = parties.shapes.law(parties.rows, parties.typical, is_paired=True)
        tail = 0.0125 / 4
        upper, other = (
            np.sqrt(law.interval(tail, share_nobody=is_so)[1][:, 0])
            for is_so in (share_nobody, not share_nobody)
        )
        assert ((upper < other) == share_nobody).all()
        usual = [np.median(np.delete(upper, row)) for row in range(6)]
        assert found.usual == pytest.approx(usual)
        assert found.least == pytest.approx(np.sqrt(parties.squared_distances(0.0375 / 6)[1]))


def test_two_outliers_do_not_hide_each_other():
    far = np.vstack([steps(20, 20, 20, 20), steps(20, 20), steps(0, 2000)[1:], steps(0, 0, 2000)[2:]])
    found = al.outliers(rows_of(far, list("abcdefgh")))
    assert np.flatnonzero(found.is_outlier).tolist() == [6, 7]


@pytest.fixture(scope="module")
def one_odd():
    return with_margins([USUAL] * 8 + [[0.02, 0.95, 0.05]])


def test_numbers_are_those_against_the_typical_party(one_odd):
    found = al.outliers(one_odd, level=0.9)
    parties, level = TypicalParties.of(one_odd, beyond_chance=True), Level.of(0.9, "asymptotic", 9)
    np.testing.assert_allclose(found.similarity, np.stack(parties.similarities(level), axis=1))
    squares = np.stack(parties.squared_distances(level.tail), axis=1)
    np.testing.assert_allclose(found.distance, np.sqrt(np.maximum(squares, 0)))
    np.testing.assert_allclose(found.people, one_odd.totals * float(one_odd.protocol.resolution))


@pytest.mark.parametrize("alike", [None, 0.5, 0.999])
def test_alike_wins_over_differ(one_odd, alike):
    found = al.outliers(one_odd, alike=alike)
    expected = np.where(found.distance[:, 1] > 0, "differ", "inconclusive")
    expected = np.where(found.similarity[:, 1] >= (alike or 0.95), "alike", expected)
    assert found.verdict == tuple(expected)
    assert found.verdict[8] == ("alike" if found.similarity[8, 1] >= 0.5 and alike == 0.5 else "differ")


def test_reasons_are_those_of_explain_against_the_typical_party():
    """The level is for all parties that could have been asked about; of few people it decides what is found."""
    parties = with_margins([USUAL] * 8 + [[0.15, 0.45, 0.4]], 300)
    is_split = False
    for level in (0.05, 0.3, 0.9):
        found = al.outliers(parties, level=level, alike=1)
        assert found.verdict.count("differ") == 1
        assert found.reasons[:8] == ("",) * 8
        known, alone = (
            al.explain(parties, "ward 9", level=each).reasons() for each in (1 - (1 - level) / 9, level)
        )
        assert found.reasons[8] == ", ".join(known)
        is_split |= known != alone
    assert is_split


def test_what_is_printed(one_odd):
    found = al.outliers(one_odd)
    lines = str(found).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("ward"))
    order = [found.labels[row] for row in found.ranking]
    assert [line[: len(label)] for line, label in zip(lines[first:], order, strict=False)] == order
    assert order[0] == "ward 9"
    assert ["outlier" in line for line in lines[first : first + 9]] == [True] + [False] * 8
    assert f"{found.similarity[8, 0]:.2f}"[:3] in lines[first]
    assert f"{found.people[8]:,.0f}" in lines[first]
    assert found.reasons[8] in str(found)
    clear = al.sketch_in_clear(PROTOCOL, steps(5, 5, 5, 5), labels=list("abcd"))
    assert "not private" in al.outliers(clear).note


@pytest.mark.parametrize(
    "known", [{"factor": 0.9}, {"factor": float("nan")}, {"level": 1}, {"about": "color"}]
)
def test_wrong_rules_are_refused(known):
    with pytest.raises(al.ParameterError, match="must"):
        al.outliers(rows_of(steps(1, 2, 3)), **known)


def test_two_parties_have_no_outlier():
    with pytest.raises(al.ParameterError, match="at least 3 rows, got 2"):
        al.outliers(rows_of(steps(1, 2)))
