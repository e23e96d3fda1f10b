"""What releases cost together: against dp-accounting, 60-digit decimals and exact worst cases, never below any of them."""

import math
from fractions import Fraction

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from armslength.privacy import calibration
from armslength.privacy.calibration import gaussian_epsilon, gaussian_scale, is_private_enough
from armslength.privacy.composition import (
    compose,
    gaussian_loss,
    largest_pure_epsilon,
    proved_epsilon,
    pure_loss,
    renyi_epsilon,
)

DELTA = Fraction(1, 10**6)


def gaussian(epsilon, delta=DELTA, totals=0, squared=1):
    """The loss of a release as a protocol would make it."""
    epsilon, totals = Fraction(epsilon), Fraction(totals)
    sigma = gaussian_scale(squared, epsilon - totals, delta)
    return gaussian_loss(epsilon, Fraction(delta), squared, Fraction(sigma), totals)


def pure(epsilon):
    return pure_loss(Fraction(epsilon))


def decimal(number):
    return mpmath.mpf(number.numerator) / number.denominator


def peer_epsilon(gaussians, sigma, laplaces, epsilon):
    """The ε of privacy loss distributions at DELTA, rounded down."""
    steps = {
        "pessimistic_estimate": False,
        "value_discretization_interval": 1e-3,
        "use_connect_dots": False,
    }
    parts = []
    if gaussians:
        parts.append(pld.from_gaussian_mechanism(sigma / math.sqrt(gaussians), **steps))
    parts += [pld.from_laplace_mechanism(1 / epsilon, **steps).self_compose(laplaces)] if laplaces else []
    together = parts[0] if len(parts) == 1 else parts[0].compose(parts[1])
    return together.get_epsilon_for_delta(float(DELTA))


# (Gaussian releases of ε = 1, Laplace releases, their ε, how much larger than the peer's ε ours may be)
MIXES = [
    (1, 0, "1", 1.001),
    (30, 0, "1", 1.001),
    (0, 1, "1", 1.001),
    (0, 3, "1", 1.001),
    (0, 100, "0.1", 1.09),
    (0, 30, "1", 1.09),
    (5, 20, "0.1", 1.08),
    (2, 2, "0.5", 1.05),
    (1, 1, "1", 1.02),
    (10, 1, "2", 1.02),
]


@pytest.mark.parametrize(("gaussians", "laplaces", "epsilon", "factor"), MIXES)
def test_never_below_privacy_loss_distributions_and_hardly_above(gaussians, laplaces, epsilon, factor):
    ours = compose([gaussian(1)] * gaussians + [pure(epsilon)] * laplaces, DELTA)
    peer = peer_epsilon(gaussians, gaussian_scale(1, 1, DELTA), laplaces, float(epsilon))
    assert peer <= ours.epsilon <= factor * peer
    assert ours.delta <= DELTA


@pytest.mark.parametrize("mu_squared", ["1e-12", "0.0001", "0.05", "1", "7.3", "400", "1e6"])
@pytest.mark.parametrize("delta", ["1e-200", "1e-9", "0.001", "0.3"])
def test_the_gaussian_curve_in_60_digits(mu_squared, delta):
    found = gaussian_epsilon(Fraction(mu_squared), Fraction(delta))
    with mpmath.workdps(400):
        mu = mpmath.sqrt(decimal(Fraction(mu_squared)))

        def exact_delta(epsilon):
            return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mu / 2 - epsilon / mu
            )

        assert exact_delta(decimal(found)) <= mpmath.mpf(delta)
        if found:
            assert exact_delta(decimal(found) * (1 - mpmath.mpf(2) ** -43)) > mpmath.mpf(delta)


@pytest.mark.parametrize("mu_squared", ["1e-12", "0.0001", "0.05", "1", "7.3", "400", "1e6"])
@pytest.mark.parametrize("delta", ["1e-400", "1e-9", "0.3"])
def test_floats_save_comparisons_and_change_no_answer(mu_squared, delta, monkeypatch):
    known = Fraction(mu_squared), Fraction(delta)
    asked = []
    exact = calibration.is_private_enough
    monkeypatch.setattr(calibration, "is_private_enough", lambda *given: asked.append(given) or exact(*given))
    found = gaussian_epsilon(*known)
    fewer = len(asked)
    monkeypatch.setattr(calibration, "_seems_enough", lambda *_: False)  # a guess at the wrong end
    assert gaussian_epsilon(*known) == found
    asked.clear()
    monkeypatch.setattr(calibration, "_LARGEST_GUESSED", -1000)
    assert gaussian_epsilon(*known) == found
    if found and known[1] > Fraction(1, 10**300):
        assert fewer <= len(asked) - 10


def test_a_delta_that_is_missed_by_its_60th_digit_is_missed():
    with mpmath.workdps(100):
        exact = mpmath.ncdf(mpmath.mpf("-0.5")) - mpmath.e * mpmath.ncdf(mpmath.mpf("-1.5"))  # μ = ε = 1
        digits = int(mpmath.floor(exact * mpmath.mpf(10) ** 60))
    assert not is_private_enough(Fraction(1), Fraction(1), Fraction(digits, 10**60))
    assert is_private_enough(Fraction(1), Fraction(1), Fraction(digits + 1, 10**60))


def test_a_gaussian_beyond_every_epsilon_has_no_curve():
    assert gaussian_epsilon(Fraction(2**70), DELTA) is None
    assert gaussian_epsilon(Fraction(0), DELTA) == 0


def renyi_in_decimals(losses, mu_squared, delta, order):
    """The bound at one order, with the divergence of randomized response from its definition."""
    total = order * decimal(mu_squared) / 2
    for exact, count in losses.items():
        epsilon = decimal(exact)
        p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
        total += count * mpmath.log(moment) / (order - 1)
    spread = mpmath.log(1 / decimal(delta)) + (order - 1) * mpmath.log(1 - 1 / order) - mpmath.log(order)
    return total + spread / (order - 1)


@pytest.mark.parametrize(
    ("losses", "mu_squared"),
    [({Fraction(1, 10): 100}, 0), ({Fraction(1, 10): 20, Fraction(3): 1}, Fraction(1, 2)), ({}, 5)],
)
def test_the_renyi_bound_in_60_digits(losses, mu_squared):
    def bound(log_above_one):
        return renyi_in_decimals(losses, Fraction(mu_squared), DELTA, 1 + mpmath.exp(log_above_one))

    found = renyi_epsilon(losses, Fraction(mu_squared), DELTA)
    with mpmath.workdps(60):
        low, high = mpmath.mpf(-6), mpmath.mpf(11)
        for _ in range(120):  # a search of its own for the best order
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if bound(left) < bound(right) else (left, high)
        assert bound(low) <= decimal(found) <= bound(low) * (1 + mpmath.mpf("1e-4"))


@pytest.mark.parametrize("order", ["9/8", "2", "7/3", "1000"])
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "5"])
def test_the_bound_at_one_order_is_rounded_up_by_little(order, epsilon):
    losses, mu_squared = {Fraction(epsilon): 7, Fraction(1, 3): 2}, Fraction(1, 7)
    found = proved_epsilon(losses, mu_squared, DELTA, Fraction(order))
    with mpmath.workdps(60):
        exact = renyi_in_decimals(losses, mu_squared, DELTA, decimal(Fraction(order)))
        assert exact <= decimal(found) <= exact * (1 + mpmath.mpf(2) ** -43)


def worst_case_epsilon(count, epsilon, delta):
    """The exact ε of `count` randomized responses together, which no pure mechanisms exceed (Kairouz et al. 2015)."""
    with mpmath.workdps(60):
        p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))

        def exact_delta(total):
            terms = (
                mpmath.binomial(count, i)
                * p ** (count - i)
                * (1 - p) ** i
                * (1 - mpmath.exp(total - (count - 2 * i) * epsilon))
                for i in range(count + 1)
                if (count - 2 * i) * epsilon > total
            )
            return mpmath.fsum(terms)

        low, high = mpmath.mpf(0), count * epsilon
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if exact_delta(middle) <= delta else (middle, high)
        return high


@pytest.mark.parametrize(
    ("count", "epsilon"), [(2, "1"), (30, "0.3"), (100, "0.1"), (200, "0.05"), (20, "2")]
)
@pytest.mark.parametrize(("delta", "factor"), [("1e-9", 1.1), ("1e-6", 1.12), ("0.01", 1.21)])
def test_never_below_the_worst_case_of_pure_releases(count, epsilon, delta, factor):
    ours = compose([pure(epsilon)] * count, Fraction(delta)).epsilon
    worst = worst_case_epsilon(count, mpmath.mpf(epsilon), mpmath.mpf(delta))
    assert worst <= decimal(ours) <= worst * factor


def test_zcdp_is_never_smaller():
    # ρ = Σε²/2 + Σμ²/2 at its textbook conversion, ρ + 2√(ρ·log(1/δ)).
    for count in (10, 100, 1000):
        rho = count * 0.01 / 2 + 0.25
        textbook = rho + 2 * math.sqrt(rho * math.log(10**6))
        found = renyi_epsilon({Fraction(1, 10): count}, Fraction(1, 2), DELTA)
        assert 0.8 * textbook < found < textbook


def test_totals_are_pure_and_stand_beside_the_gaussian_part():
    alone, with_totals = gaussian("0.9"), gaussian("2.4", totals="1.5")
    assert with_totals.mu_squared == alone.mu_squared
    together = compose([with_totals] * 2, DELTA)
    assert (together.epsilon, together.method) == (compose([alone] * 2, DELTA).epsilon + 3, "gaussian")
    assert compose([with_totals], DELTA).epsilon == Fraction("2.4")


def test_the_sensitivity_counts_in_units_of_the_noise():
    assert gaussian_loss(Fraction(1), DELTA, 50, Fraction(10), Fraction(0)).mu_squared == Fraction(1, 2)
    tenth = gaussian_loss(Fraction(1), DELTA, 1, Fraction(10) / 3, Fraction(0)).mu_squared
    assert 0 <= tenth - Fraction(9, 100) < Fraction(1, 2**70)


def test_without_a_delta_gaussians_have_no_proof():
    assert compose([gaussian(1)], Fraction(0)) is None
    assert compose([pure(1), gaussian(1)], Fraction(0)) is None
    nothing = compose([], Fraction(0))
    assert (nothing.epsilon, nothing.delta) == (0, 0)


@pytest.mark.parametrize(
    ("losses", "budget"), [([], 2), ([pure(1)], 2), ([gaussian(1)] * 2, 3), ([pure("0.1")] * 60, 5)]
)
def test_what_is_left_fits_and_little_more_would(losses, budget):
    left = largest_pure_epsilon(losses, Fraction(budget), DELTA)
    assert compose([*losses, pure(left)], DELTA).epsilon <= budget
    more = compose([*losses, pure(left * Fraction(1001, 1000))], DELTA)
    assert more.epsilon > budget


def test_nothing_is_left_beyond_the_budget():
    assert largest_pure_epsilon([pure(2)], Fraction(2), DELTA) == 0
    assert largest_pure_epsilon([pure(3)], Fraction(2), DELTA) == 0
    assert largest_pure_epsilon([gaussian(1)], Fraction(2), Fraction(0)) == 0
    assert largest_pure_epsilon([], Fraction(2), Fraction(0)) == 2


EPSILONS = st.fractions("1/100", 4, max_denominator=1000)
PURE = EPSILONS.map(pure_loss)
GAUSSIAN = st.builds(
    lambda squared, sigma, totals: gaussian_loss(Fraction(50) + totals, DELTA, squared, sigma, totals),
    st.integers(1, 100),
    st.fractions(1, 100, max_denominator=100),
    st.sampled_from([Fraction(0), Fraction(1, 4)]),
)
LOSSES = st.lists(st.one_of(PURE, GAUSSIAN), max_size=8)
DELTAS = st.sampled_from([Fraction(1, 10**5), DELTA, Fraction(1, 100)])


@settings(max_examples=60, deadline=None)
@given(LOSSES, DELTAS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(losses, delta, shuffler):
    shuffled = losses.copy()
    shuffler.shuffle(shuffled)
    assert compose(losses, delta) == compose(shuffled, delta)


@settings(max_examples=60, deadline=None)
@given(LOSSES, st.one_of(PURE, GAUSSIAN), DELTAS)
def test_more_releases_never_cost_less(losses, another, delta):
    before, after = compose(losses, delta), compose([*losses, another], delta)
    if before is None or after is None:
        assert after is None
    else:
        assert after.epsilon >= before.epsilon


@settings(max_examples=60, deadline=None)
@given(LOSSES, DELTAS)
def test_a_smaller_delta_never_costs_less(losses, delta):
    loose, strict = compose(losses, delta), compose(losses, delta / 10)
    assert loose is not None or strict is None
    if strict is not None:
        assert strict.epsilon >= loose.epsilon


@settings(max_examples=60, deadline=None)
@given(EPSILONS)
def test_one_laplace_release_costs_its_epsilon(epsilon):
    assert compose([pure_loss(epsilon)], Fraction(0)).epsilon == epsilon
    assert compose([pure_loss(epsilon)], DELTA).epsilon == epsilon


@settings(max_examples=25, deadline=None)
@given(EPSILONS, st.sampled_from([Fraction(1, 10**9), DELTA, Fraction(1, 100)]))
def test_one_gaussian_release_costs_its_epsilon(epsilon, delta):
    loss = gaussian(epsilon, delta, squared=3)
    exact = gaussian_epsilon(loss.mu_squared, delta)
    assert epsilon * (1 - Fraction(1, 10**9)) <= exact <= epsilon * (1 + Fraction(1, 10**9))
    assert exact * (1 - Fraction(1, 10**9)) <= compose([loss], delta).epsilon <= epsilon
