"""Measured trade-off curves: bounds that are exact, and an alarm for each way in which a promise can be broken."""

import math

import numpy as np
import pytest
from audit.trade_off import Counts, Promise, trade_off
from scipy.stats import binom

PROMISE = Promise(1.0, 0.01)
TOTAL = 1_000_000


def counts(share, events=97):
    """The same share at every threshold."""
    return Counts(np.full(events, round(share * TOTAL), dtype=np.int64), TOTAL)


def test_bounds_are_clopper_and_pearson():
    above = np.array([0, 3, 500, 997, 1000])
    lower, upper = Counts(above, 1000).bounds(1e-8)
    assert lower[0] == 0
    assert upper[-1] == 1
    np.testing.assert_allclose(binom.sf(above[1:] - 1, 1000, lower[1:]), 1e-8, rtol=1e-6)
    np.testing.assert_allclose(binom.cdf(above[:-1], 1000, upper[:-1]), 1e-8, rtol=1e-6)


def test_thresholds_hold_both_events_of_epsilon():
    thresholds = PROMISE.thresholds
    assert len(thresholds) == 97
    low, high = PROMISE.tight_events
    # a ratio of ε is above its threshold, and one of −ε below
    assert thresholds[high] < 1 < thresholds[high + 1]
    assert thresholds[low - 1] < -1 < thresholds[low]
    assert thresholds[high] == pytest.approx(1)
    assert thresholds[low] == pytest.approx(-1)


def test_counts_are_of_values_at_least_the_threshold_and_add_up():
    promise = Promise(32.0, 0.0)  # thresholds near the whole numbers from −48 to 48
    one, other = Counts.of(np.array([-100.0, 0.5, 0.5, 47.5]), promise), Counts.of(np.array([100.0]), promise)
    both = one + other
    assert both.total == 5
    middle = 48
    assert both.above[0] == 4
    assert both.above[middle] == 4
    assert both.above[middle + 1] == 2
    assert both.above[middle + 48] == 1
    np.testing.assert_array_equal(Counts.of(promise.thresholds, promise).above, np.arange(97, 0, -1))


@pytest.mark.parametrize(
    ("without", "with_one"),
    [(0.01, 0.06), (0.06, 0.01), (0.94, 0.99), (0.99, 0.94)],
    ids=["found", "mirrored", "missed", "missed, mirrored"],
)
def test_each_of_the_four_inequalities_sounds_the_alarm(without, with_one):
    found = trade_off(counts(without), counts(with_one), PROMISE, 1e-6)
    assert found.crosses
    assert found.epsilon_low > 1
    assert found.delta_low > 0.01


@pytest.mark.parametrize("without", [0.001, 0.1, 0.25])
def test_what_is_promised_sounds_none(without):
    with_one = math.e * without + 0.01
    found = trade_off(counts(without), counts(with_one), PROMISE, 1e-6)
    assert not found.crosses
    assert found.epsilon_low < 1
    assert found.delta_low < 0.01
    # but a tenth more does
    assert trade_off(counts(without), counts(1.1 * with_one), PROMISE, 1e-6).crosses


def test_measured_values_are_of_both_directions():
    low, high = PROMISE.tight_events
    above0, above1 = np.full(97, 500_000), np.full(97, 500_000)
    above1[high], above0[high] = 60_000, 10_000  # p = 0.06, q = 0.01
    above0[low], above1[low] = 920_000, 980_000  # p = 0.08, q = 0.02
    found = trade_off(Counts(above0, TOTAL), Counts(above1, TOTAL), PROMISE, 1e-6)
    assert found.delta == pytest.approx((0.06 - 0.01 * math.e + 0.08 - 0.02 * math.e) / 2)
    assert found.epsilon == pytest.approx(math.log((0.05 + 0.07) / (0.01 + 0.02)))
    variances = (0.06 * 0.94 + math.e**2 * 0.01 * 0.99) + (0.08 * 0.92 + math.e**2 * 0.02 * 0.98)
    assert found.delta_error == pytest.approx(math.sqrt(variances / TOTAL) / 2)


def test_nothing_seen_is_nothing_known():
    nothing = Counts(np.where(PROMISE.thresholds < 0, TOTAL, 0), TOTAL)  # all ratios are 0
    found = trade_off(nothing, nothing, PROMISE, 1e-6)
    assert not found.crosses
    assert found.epsilon == -math.inf
    assert found.delta_low == 0


def test_the_alarm_is_shared_by_all_bounds():
    without, with_one = counts(0.1), counts(0.2)
    found = trade_off(without, with_one, PROMISE, 1e-6)
    each = 1e-6 / (4 * 97)
    (low, _), (_, high) = with_one.bounds(each), without.bounds(each)
    assert found.epsilon_low == pytest.approx(math.log((low[0] - 0.01) / high[0]), rel=1e-12)
