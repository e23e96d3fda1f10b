"""Membership: the best test between two neighbors stays below (ε, δ), and would see noise that is too weak.

The size of a test follows from the exact shares p and q of the event {ratio ≥ ε} in both worlds under 0.8 of the noise: all
Clopper-Pearson bounds together fail with probability 1e-6, and a weak release is missed with no more.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from attacks.membership import (
    attacked,
    error_of_true_alarms,
    log_likelihoods,
    log_probabilities,
    log_ratios,
    main,
    right_guesses,
    true_alarms,
)
from audit.membership import case_trade_off, input_noise_statistic, promise_of
from audit.membership_cases import all_cases
from audit.membership_dependence import DEPENDENCE_CASES, release_with_shared_noise
from audit.membership_faults import FAULTS, WEAK, release_weakly, weakened
from scipy.special import ndtr

import armslength as al
from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.protocol.neighbors import gaussian_sensitivity_squared
from exact_laws import pmf
from statistical.limits import FALSE_ALARM, LIMIT

CASES = {case.name: case for case in all_cases()}
CHOSEN = [
    "SparseJL block, s=1, Laplace",
    "SparseJL graph, s=3, Laplace",
    "GaussianJL, Laplace",
    "SparseJL block, s=1, Laplace, replace",
    "Identity, Laplace, radius 3",
    "Identity, Laplace, real numbers off the grid",
    "HadamardJL, Gaussian",
    "SparseJL open vocabulary, s=2, Gaussian",
    "FastJL, noise on the input, P can be inverted",
]
ALARM = FALSE_ALARM / len(CHOSEN)


def shares(case, factor, threshold):
    """P(ratio ≥ threshold) with the other neighbor and without, when the noise has this factor of its scale."""
    protocol = case.protocol
    if protocol.noise == "gaussian":
        # the ratio is normal along the line between the neighbors
        distance = math.sqrt(
            gaussian_sensitivity_squared(protocol.transform, protocol.grid_radius, protocol.noise_site)
        )
        sigma = protocol.law.scale
        place = threshold * sigma**2 / distance
        return tuple(ndtr((sign * distance / 2 - place) / (factor * sigma)) for sign in (1, -1))
    # the ratio is ε where every coordinate that moves lies beyond both of its places
    law = DiscreteLaplace(factor * protocol.law.scale)
    a, b = (al.sketch_in_clear(protocol, x[None], items=case.items).values[0] for x in (case.x, case.other))
    moved = np.abs(a - b)[a != b].astype(np.float64)
    return tuple(float(np.prod(1 - law.cdf(beyond - 1))) for beyond in (0 * moved, moved))


def releases_for(case):
    """How many releases of each neighbor see weakened noise all but surely, at the threshold that needs fewest."""
    promise = promise_of(case.protocol)
    factor = math.exp(promise.epsilon)
    alarm = NormalDist().inv_cdf(1 - ALARM / (4 * len(promise.thresholds)))
    needed = []
    for threshold in promise.thresholds[promise.thresholds > 0]:
        p, q = shares(case, WEAK, threshold)
        beyond = p - factor * q - promise.delta
        deviations = alarm * (math.sqrt(p) + factor * math.sqrt(q)) + LIMIT * math.sqrt(p + factor**2 * q)
        needed += [(deviations / beyond) ** 2] if beyond > 0 else []
    return math.ceil(1.2 * min(needed))  # a fifth more: bounds of small shares are wider than normal ones


@pytest.mark.parametrize("name", CHOSEN)
def test_no_curve_crosses_its_bound_and_weakened_noise_does(name):
    case = CASES[name]
    rows = releases_for(case)
    assert rows < 400_000
    honest = case_trade_off(case, rows, ALARM)
    assert not honest.crosses
    assert honest.epsilon_low < float(case.protocol.epsilon)
    # the promise is nearly reached: the measured ε is within its own error of the promised one
    p, q = shares(case, 1, float(case.protocol.epsilon))
    error = math.sqrt((1 / (p - promise_of(case.protocol).delta) + 1 / q) / rows)
    assert abs(honest.epsilon - float(case.protocol.epsilon)) < LIMIT * error + 0.02
    faulty = case_trade_off(case, rows, ALARM, release_weakly)
    assert faulty.crosses
    assert faulty.epsilon_low > float(case.protocol.epsilon)


@pytest.mark.parametrize("fault", list(FAULTS))
def test_other_faults_are_seen(fault):
    name, releaser = FAULTS[fault]
    assert case_trade_off(CASES[name], 30_000, ALARM, releaser).crosses


@pytest.mark.parametrize("name", DEPENDENCE_CASES)
def test_noise_that_coordinates_share_is_seen_by_the_linear_test_alone(name):
    case, rows = CASES[name], 50_000
    assert not case_trade_off(case, rows, FALSE_ALARM, linear=True).crosses
    assert not case_trade_off(case, rows, FALSE_ALARM, release_with_shared_noise).crosses
    assert case_trade_off(case, rows, FALSE_ALARM, release_with_shared_noise, linear=True).crosses


def test_every_transform_meets_every_law():
    met = {(case.protocol.transform.name, case.protocol.noise) for case in all_cases()}
    for transform in ("SparseJL", "HadamardJL", "FastJL", "GaussianJL", "SignJL", "Identity"):
        assert {(transform, "laplace"), (transform, "gaussian")} <= met
    constructions = {getattr(case.protocol.transform, "construction", None) for case in all_cases()}
    assert constructions >= {"block", "graph", "balanced", "dense", "sparse"}
    assert {case.protocol.relation for case in all_cases()} == {"add_remove", "replace"}


def test_neighbors_are_neighbors():
    for case in all_cases():
        length = np.abs(np.asarray(case.other) - case.x).sum()
        assert length <= float(case.protocol.radius) * (1 + 1e-12), case.name
        assert length > 0.98 * float(case.protocol.radius), case.name


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(0.3), DiscreteLaplace(7.5), RoundedNormal(0.4), RoundedNormal(25)]
)
def test_log_probabilities_are_those_of_the_law(law):
    n = np.arange(-int(12 * law.scale) - 3, int(12 * law.scale) + 4)
    np.testing.assert_allclose(log_probabilities(law, n), np.log(pmf(law, n)), rtol=1e-11)


def test_a_long_list_is_looked_up_in_a_table():
    law, center, generator = RoundedNormal(9), 5, np.random.default_rng(0)
    for size in (6, 600):
        values = generator.integers(-40, 50, size)
        expected = np.log(pmf(law, values - center))
        np.testing.assert_allclose(log_likelihoods(law, values, center), expected, rtol=1e-10)


def test_totals_count_too():
    protocol = al.Protocol(al.Identity(input_dim=1), al.Arrays(total_share="0.5"), epsilon=1)
    without, with_her = (al.sketch_in_clear(protocol, np.array([[count]])) for count in (0, 1))
    released = al.Sketches(
        np.array([[9], [9]]),
        None,
        al.release(protocol, np.zeros((2, 1), dtype=np.int64), ledger=al.NO_LEDGER).noises,
        [protocol],
        np.array([9, -9]),
    )
    np.testing.assert_allclose(log_ratios(released, without, with_her), [1, 0], atol=1e-12)


def test_noise_on_the_input_is_tested_along_the_best_direction():
    # the statistic of a normal law has means ±μ²/2 and the variance μ², whatever P is
    case = CASES["FastJL, noise on the input, P cannot be inverted"]
    rows = np.broadcast_to(case.other, (100_000, 4)).copy()
    statistic = input_noise_statistic(case, al.release(case.protocol, rows, ledger=al.NO_LEDGER).values)
    squared = statistic.var()
    assert squared > 0.1
    assert abs(statistic.mean() - squared / 2) < LIMIT * math.sqrt(1.1 * squared / len(rows))


def test_a_weakened_protocol_leaves_the_honest_one_alone():
    protocol = al.Protocol(al.Identity(input_dim=1), al.Arrays(total_share="0.5"), epsilon=1)
    weak = weakened(protocol)
    assert weak.law.scale == WEAK * protocol.law.scale
    assert weak.total_law.scale == WEAK * protocol.total_law.scale
    assert protocol.law == al.Protocol(al.Identity(input_dim=1), al.Arrays(total_share="0.5"), epsilon=1).law


def test_guesses():
    without, with_her = np.array([-1.0, -1.0, -1.0, 1.0]), np.array([1.0, 1.0, 1.0, -1.0])
    assert right_guesses(without, with_her) == 0.75
    assert true_alarms(without, with_her, 0.25) == pytest.approx(0.75)
    assert true_alarms(without, with_her, 0.125) == pytest.approx(0.375)
    assert true_alarms(without, with_her, 1.0) == pytest.approx(1.0)


def test_the_error_of_true_alarms_is_that_of_repeated_measurements():
    # normal statistics at 0 and at 2, whose shares and ratio at the threshold are known; 500 repeats know an error to 3.2%
    generator, releases, repeats = np.random.default_rng(1), 1000, 500
    found = [
        true_alarms(generator.normal(0, 1, releases), generator.normal(2, 1, releases), 0.1)
        for _ in range(repeats)
    ]
    threshold = NormalDist().inv_cdf(0.9)
    expected = error_of_true_alarms(ndtr(2 - threshold), 0.1, math.exp(2 * threshold - 2), releases)
    assert np.std(found) == pytest.approx(expected, rel=0.15)


def test_both_worlds_are_told_apart_as_far_as_promised():
    protocol = al.Protocol(al.Identity(input_dim=1), epsilon=1)
    without, with_her = attacked(protocol, np.array([7]), np.array([1]), 100_000)
    best = math.e / (1 + math.e)
    assert abs(right_guesses(without, with_her) - best) < LIMIT * math.sqrt(best * (1 - best) / 200_000)


def test_the_script_tells_what_it_found(capsys, monkeypatch):
    monkeypatch.setattr("attacks.membership.RELEASES", 10_000)
    main()
    printed = capsys.readouterr().out
    assert "none     100.00% ± 0.00%" in printed
    assert all(f"ε = {epsilon}" in printed for epsilon in (3, 1, 0.1))
