"""From data to integers, against exact rationals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from armslength.errors import InputError
from armslength.ingest.grid import Grid

EXPONENTS = st.integers(-30, 30)
FLOATS = st.floats(-(2.0**31), 2.0**31) | st.sampled_from([5e-324, -5e-324, -0.0, 0.5, -0.5, 1e-300, -1e-300])
RANGES = st.none() | st.tuples(st.fractions(-1000, 1000), st.fractions(-1000, 1000)).map(
    lambda r: tuple(sorted(r))
)


def expected(value, exponent, limits):
    unit = Fraction(2) ** exponent
    grid = math.floor(Fraction(value) / unit)
    if limits is not None:
        grid = min(max(grid, math.floor(limits[0] / unit)), math.floor(limits[1] / unit))
    return grid


@given(FLOATS, EXPONENTS, RANGES)
@example(-5e-324, 30, None)
@example(-5e-324, -30, None)
@example(2.0**31, -30, None)
def test_floats_are_floored_and_clamped_exactly(value, exponent, limits):
    grid = Grid(exponent, on_grid=False, limits=limits)
    for dtype in (np.float64, np.float32, np.float16):
        array = (
            np.array([value], dtype=dtype) if dtype is np.float64 or abs(value) < 6e4 else np.zeros(1, dtype)
        )
        assert grid.integers(array)[0] == expected(float(array[0]), exponent, limits)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]
)
@given(data=st.data())
def test_integers_of_every_type_are_floored_and_clamped_exactly(dtype, data):
    values = data.draw(arrays.arrays(dtype, 3))
    exponent, limits = data.draw(EXPONENTS), data.draw(RANGES)
    got = Grid(exponent, on_grid=False, limits=limits).integers(values)
    for value, result in zip(values.tolist(), got.tolist(), strict=True):
        wanted = expected(int(value), exponent, limits)
        assert (result - wanted) % 2**64 == 0
        if limits is not None:
            assert result == wanted


@given(st.integers(-(2**20), 2**20), EXPONENTS)
def test_data_on_the_grid_passes_and_anything_else_is_refused(steps, exponent):
    grid = Grid(exponent, on_grid=True, limits=None)
    on = math.ldexp(steps, exponent)
    assert grid.integers(np.array([on]))[0] == steps
    with pytest.raises(InputError, match="on_grid=False"):
        grid.integers(np.array([math.ldexp(2 * steps + 1, exponent - 1)]))
    if exponent > 0:
        with pytest.raises(InputError, match="on_grid=False"):
            grid.integers(np.array([(steps << exponent) + 1]))
        assert grid.integers(np.array([steps << exponent]))[0] == steps


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_even_with_a_range(bad):
    for limits in (None, (Fraction(0), Fraction(1))):
        with pytest.raises(InputError, match="finite"):
            Grid(0, on_grid=False, limits=limits).integers(np.array([0.0, bad]))


def test_too_large_values_are_refused_or_clamped():
    with pytest.raises(InputError, match="value_range"):
        Grid(-60, on_grid=False, limits=None).integers(np.array([1e300]))
    clamped = Grid(-20, on_grid=False, limits=(Fraction(-1), Fraction(1))).integers(np.array([1e300, -1e300]))
    assert clamped.tolist() == [2**20, -(2**20)]


@pytest.mark.parametrize("dtype", [np.longdouble, np.complex128, object])
def test_other_types_are_refused(dtype):
    with pytest.raises(InputError, match="X must hold integers or floats"):
        Grid(0, on_grid=False, limits=None).integers(np.zeros(2, dtype=dtype))


def test_the_grid_is_asked_for_before_the_range():
    grid = Grid(2, on_grid=True, limits=(Fraction(0), Fraction(8)))
    for dtype in (np.int64, np.float64, np.uint16):
        assert grid.integers(np.array([1000, 4], dtype=dtype)).tolist() == [2, 1]
        with pytest.raises(InputError, match="on_grid=False"):
            grid.integers(np.array([1001], dtype=dtype))
    coarse = Grid(32, on_grid=True, limits=(Fraction(-42), Fraction(-1)))
    with pytest.raises(InputError, match="on_grid=False"):
        coarse.integers(np.array([32766], dtype=np.int16))
    fine = Grid(-60, on_grid=True, limits=(Fraction(0), Fraction(1)))
    assert fine.integers(np.array([1e300])).tolist() == [2**60]
