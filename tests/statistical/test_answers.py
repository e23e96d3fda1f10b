"""How often answers are wrong, with fresh seeds and fresh noise in every trial.

Most answers promise a rate that is *at most* nominal, so these tests are one-sided: a count of wrong answers among n trials
is binomial, and above r·n + LIMIT·√(r(1−r)n) with probability below 1e-6. Where a rate is meant to be near its nominal value
(one-sided ends, exact laws), it must also not be far below. Each bound is shown to be needed by the same rule without
it, which is wrong far more often. The laws themselves are tested to a tenth in test_coverage.py.
"""

import numpy as np
import pytest

import armslength as al
from armslength.estimates import shapes
from flat_protocol import flat_protocol
from statistical.limits import LIMIT

K, D = 64, 1200
ERROR = 0.2  # of every answer here: large, so that few trials show it


def at_most(count, total, rate):
    return count <= rate * total + LIMIT * np.sqrt(rate * (1 - rate) * total)


def at_least(count, total, rate):
    return count >= rate * total - LIMIT * np.sqrt(rate * (1 - rate) * total)


def blocks(*amplitudes):
    """Rows that share no coordinate: row i has its amplitude on 150 coordinates of its own."""
    x = np.zeros((len(amplitudes), D), dtype=int)
    for row, amplitude in enumerate(amplitudes):
        x[row, 150 * row : 150 * row + 150] = amplitude
    return x


def protocols(count, k=K, epsilon=1, **known):
    for number in range(count):
        yield flat_protocol(
            al.SparseJL(input_dim=D, sketch_dim=k, sparsity=1, seed=f"answers {number}"),
            epsilon=epsilon,
            **known,
        )


@pytest.mark.parametrize("amplitude", [1, 10], ids=["noise", "projection"])
def test_alike_is_wrong_as_seldom_as_it_says_and_no_seldomer(amplitude):
    x, total = blocks(amplitude, amplitude), 500
    truth = amplitude * np.sqrt(300)
    different = alike = 0
    for protocol in protocols(total):
        a, b = al.release(protocol, x, ledger=al.NO_LEDGER)
        (pair,) = al.compare(a, b, alike=truth, level=1 - ERROR).to_arrow().to_pylist()
        different += pair["lower"] > truth
        alike += pair["upper"] < truth  # "alike" would be said of a limit just below the truth
        assert (pair["verdict"] == "alike") == (pair["upper"] <= truth)
    for wrong in (different, alike):
        assert at_most(wrong, total, ERROR / 2)
        assert at_least(wrong, total, 0.75 * ERROR / 2), wrong / total


def typical_distances(amplitudes):
    """How far each of these rows of `blocks` is from the mean of the others."""
    squares = 150 * np.array(amplitudes, dtype=float) ** 2
    return np.sqrt(squares + (squares.sum() - squares) / (len(squares) - 1) ** 2)


def test_no_party_is_falsely_called_an_outlier_and_a_clear_one_is():
    # The first party is nearly 1.5 times as far from the typical one as the median of the others: it is no outlier, though only just.
    ordinary, edge, total = [43] * 6, 68, 80
    distances = typical_distances([edge, *ordinary])
    assert 1.48 < distances[0] / np.median(distances[1:]) <= 1.5
    false, naive, found = 0, 0, 0
    for protocol in protocols(total):
        sketches = al.release(protocol, blocks(edge, *ordinary), ledger=al.NO_LEDGER)
        result = al.outliers(sketches, level=1 - ERROR)
        false += result.is_outlier.any()
        naive += result.distance[0, 0] > 1.5 * np.median(result.distance[1:, 0])
        far = al.release(protocol, blocks(8 * 43, *ordinary), ledger=al.NO_LEDGER)
        found += al.outliers(far, level=1 - ERROR).is_outlier.tolist() == [True] + [False] * 6
    assert at_most(false, total, ERROR)
    assert not at_most(naive, total, ERROR)  # without intervals it would be called about every other time
    assert found == total


@pytest.mark.parametrize("amplitudes", [(1, 1, 1, 1), (10, 10, 20, 30)], ids=["noise", "projection"])
def test_distances_from_the_typical_party_lie_in_their_intervals(amplitudes):
    total, truth = 400, typical_distances(amplitudes)
    together = alone = 0
    for protocol in protocols(total):
        rows = al.release(protocol, blocks(*amplitudes), ledger=al.NO_LEDGER)
        ends = [al.outliers(rows, level=1 - error).distance for error in (ERROR, len(amplitudes) * ERROR)]
        missed, more = (((each[:, 1] > truth) | (truth > each[:, 2])).any() for each in ends)
        together, alone = together + missed, alone + more
    assert at_most(together, total, ERROR)
    assert at_least(together, total, 0.75 * ERROR), together / total
    assert not at_most(alone, total, ERROR), alone / total  # of intervals for each party by itself


def test_an_unchanged_party_is_said_to_have_changed_as_seldom_as_stated():
    x, total, parties = blocks(3, 3, 3, 3), 700, 4
    wrong = 0
    for protocol in protocols(total):
        before, after = (al.release(protocol, x, ledger=al.NO_LEDGER) for _ in range(2))
        wrong += "differ" in al.drift(before, after, level=1 - ERROR).verdict
    # Half of the error is for upper ends; four exact tails of a quarter each, of independent noises.
    rate = 1 - (1 - ERROR / 2 / parties) ** parties
    assert at_most(wrong, total, rate)
    assert at_least(wrong, total, 0.9 * rate), wrong / total


def test_the_true_nearest_is_a_candidate():
    x, total = blocks(6, 5, 6, 6, 6, 6), 120
    missing, first = 0, 0
    for protocol in protocols(total):
        sketches = al.release(protocol, x, ledger=al.NO_LEDGER)
        found = al.nearest(sketches[0], sketches[1:], count=5, level=1 - ERROR)
        assert found.candidates[0] == found.possible[0].sum()
        missing += not found.possible[0, found.indices[0].tolist().index(0)]
        first += found.indices[0, 0] == 0
    assert at_most(missing, total, ERROR)
    assert first < 0.8 * total  # the smallest estimate alone would be wrong more often than that


@pytest.mark.parametrize(
    ("k", "epsilon", "share"), [(64, 1, "0.5"), (1024, 8, "0.0025")], ids=["precise totals", "coarse totals"]
)
def test_shapes_lie_in_their_intervals(k, epsilon, share, monkeypatch):
    # The third row has the first's shape with another total; the second is another shape, and twenty times as large.
    x = np.zeros((3, D), dtype=int)
    x[0, :300], x[1, 150:450], x[2, :300] = 3, 60, 2
    p = x / x.sum(axis=1, keepdims=True)
    truth = np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=2))
    total, level = 100, 1 - ERROR
    pairs = np.triu_indices(3, 1)
    missed = np.zeros(3, dtype=int)
    naive = np.zeros(3, dtype=int)
    widths = []
    for protocol in protocols(total, k, epsilon, total_share=share):
        sketches = al.release(protocol, x, ledger=al.NO_LEDGER)
        lower, upper = (end[pairs] for end in al.distances(sketches, about="people").interval(level))
        with monkeypatch.context() as patched:
            patched.setattr(shapes.Total, "variance", np.zeros(3))
            narrow = [end[pairs] for end in al.distances(sketches, about="people").interval(level)]
        missed += (lower > truth[pairs]) | (truth[pairs] > upper)
        naive += (narrow[0] > truth[pairs]) | (truth[pairs] > narrow[1])
        widths.append((upper - lower, narrow[1] - narrow[0]))
    assert np.isfinite(widths).mean() > 0.8  # of a total that may be 0 nothing is said
    assert at_most(missed.max(), total, ERROR), missed
    if k == 64:
        ours, without = np.mean(widths, axis=0)
        assert (ours / without).max() < 1.5, ours / without  # honest, and not absurdly wide
    else:
        assert not at_most(naive.max(), total, ERROR), naive  # the totals' error is needed


def test_of_the_pairs_told_apart_few_are_not():
    """38 rows equal to the one that all share, and 2 that differ: without the rule most discoveries are false."""
    total, equal = 300, 38
    x = np.vstack([np.zeros((equal + 1, D), dtype=int), blocks(12, 12)])
    shares, discovered = {True: [], False: []}, 0
    for protocol in protocols(total):
        rows = al.release(protocol, x, ledger=al.NO_LEDGER)
        for fdr, each in shares.items():
            found = al.compare(rows[1:], rows[0], level=1 - ERROR, each=not fdr, fdr=fdr).to_arrow()
            told = np.array(found["verdict"].to_pylist()) == "differ"
            each.append(told[:equal].sum() / max(1, told.sum()))
            discovered += fdr and told[equal:].sum()
    limits = {fdr: ERROR + LIMIT * np.std(each) / np.sqrt(total) for fdr, each in shares.items()}
    assert np.mean(shares[True]) <= limits[True]
    assert np.mean(shares[False]) > limits[False]
    assert discovered > 0.8 * 2 * total
