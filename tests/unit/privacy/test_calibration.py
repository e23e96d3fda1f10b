"""How much noise: against dp-accounting and 60-digit decimals, never below either."""

import math
from decimal import Decimal
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armslength.errors import ParameterError
from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, exact_number

EPSILONS = ["0.01", "0.03", "0.1", "0.3", "1", "2", "4.5", "8", "16", "20"]
DELTAS = ["1e-12", "1e-9", "1e-6", "1e-3", "0.1", "0.5"]


def exact_delta(sigma, sensitivity_squared, epsilon):
    """Balle & Wang's δ of the Gaussian mechanism, in 80-digit decimals."""
    with mpmath.workdps(80):
        ratio = mpmath.sqrt(sensitivity_squared) / mpmath.mpf(sigma)
        e = mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
        return mpmath.ncdf(ratio / 2 - e / ratio) - mpmath.exp(e) * mpmath.ncdf(-ratio / 2 - e / ratio)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("squared", [1, 3, 10**12])
def test_gaussian_is_enough_and_hardly_more(epsilon, delta, squared):
    sigma = gaussian_scale(squared, epsilon, delta)
    wanted = mpmath.mpf(delta)
    assert exact_delta(sigma, squared, epsilon) <= wanted
    assert exact_delta(sigma * (1 - 1e-12), squared, epsilon) > wanted


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_against_dp_accounting(epsilon, delta):
    peer = dp_accounting.get_sigma_gaussian(float(epsilon), float(delta))
    # The peer searches in floats to its own tolerance.
    assert gaussian_scale(1, epsilon, delta) == pytest.approx(peer, rel=1e-6)


def test_the_printed_gaussian_lemma_is_not_followed():
    # Erratum 8: at ε = 16 the printed σ gives δ = 3.2e-5 instead of 1e-6; at ε = 1 it wastes a quarter.
    printed = math.sqrt(2 * math.log(1.25e6)) / 16
    assert exact_delta(printed, 1, 16) > 3e-5
    assert gaussian_scale(1, 16, 1e-6) > printed
    assert gaussian_scale(1, 1, 1e-6) == pytest.approx(4.22, abs=0.005)
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.30, abs=0.005)


@given(st.integers(1, 2**30), st.fractions(min_value="1/1000", max_value=20))
def test_laplace_is_the_next_float_above(sensitivity, epsilon):
    scale = laplace_scale(sensitivity, epsilon)
    exact = sensitivity / epsilon
    if exact >= Fraction(0.01):
        assert Fraction(scale) >= exact
        assert Fraction(math.nextafter(scale, 0)) < exact
    else:
        assert scale == 0.01


def test_laplace_rounds_toward_more_noise():
    # 1/0.3 is not a float; the nearest one lies below it.
    assert Fraction(laplace_scale(1, "0.3")) > Fraction(10, 3)
    assert Fraction(10 / 3) < Fraction(laplace_scale(1, "0.3")) or Fraction(10 / 3) >= Fraction(10, 3)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (1, Fraction(1)),
        ("1e-6", Fraction(1, 10**6)),
        (1e-6, Fraction(1, 10**6)),
    ],
)
def test_a_number_is_what_was_written(value, exact):
    assert exact_number("epsilon", value) == exact


class Boastful(float):
    def __repr__(self):
        return "100.0"


def test_nothing_but_the_number_itself_says_what_it_is():
    assert exact_number("epsilon", Boastful(0.1)) == Fraction(1, 10)
    with np.printoptions(legacy="1.13"):
        assert exact_number("epsilon", np.float64(0.1234567890126)) == Fraction("0.1234567890126")
    assert exact_number("epsilon", np.int32(3)) == 3
    assert exact_number("epsilon", "1/3") == Fraction(1, 3)


BAD = [np.float16(1 / 3), "1/0", "١", "1" * 1000, math.nan, math.inf, "nan", None, True, [1], "1e999999999"]


@pytest.mark.parametrize("bad", [*BAD, 0, -1, 0.0, "-0.1"])
def test_bad_epsilon(bad):
    with pytest.raises(ParameterError, match="epsilon must") as caught:
        checked_epsilon(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [*BAD, 1, -1e-9, 1.5])
def test_bad_delta(bad):
    with pytest.raises(ParameterError, match="delta must"):
        checked_delta(bad)


def test_gaussian_noise_needs_a_delta():
    with pytest.raises(ParameterError, match="delta must be above 0 for Gaussian noise, got 0; take Laplace"):
        gaussian_scale(1, 1, 0)


@pytest.mark.parametrize("bad", [0, -1, 1.5, None, True, "1", 2**200])
def test_bad_sensitivity(bad):
    with pytest.raises(ParameterError, match="l1_sensitivity must"):
        laplace_scale(bad, 1)
    with pytest.raises(ParameterError, match="l2_sensitivity_squared must"):
        gaussian_scale(bad, 1, 1e-6)


def test_scales_beyond_the_proved_range_are_refused():
    with pytest.raises(ParameterError, match="above 2\\^40"):
        laplace_scale(2**50, 1)
    with pytest.raises(ParameterError, match="above 2\\^40"):
        gaussian_scale(2**100, 1, 1e-6)
    with pytest.raises(ParameterError, match="epsilon must be at most"):
        gaussian_scale(1, 10**6, 1e-6)


def test_absurd_parameters_end_in_an_error():
    for epsilon, delta in [("1e-180", "1e-180"), ("1e-12", "1e-100")]:
        with pytest.raises(ParameterError, match="above 2\\^40"):
            gaussian_scale(1, epsilon, delta)
    with pytest.raises(ParameterError, match="fewer than 190 digits"):
        checked_epsilon(-(10**5000))


def test_scales_below_the_proved_range_are_raised():
    assert laplace_scale(1, 1000) == 0.01
    assert gaussian_scale(1, 1000, 0.99) >= 0.01
