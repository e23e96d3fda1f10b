"""Rounded rows: products of 16-bit integers on every kind of machine, and a margin that is enough, and hardly more."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest

from armslength import _numba
from armslength._numba import PAIR_ROWS, PAIR_WIDTH, multiply_pairs
from armslength.answers import rounding
from armslength.answers.heaps import whole_square
from armslength.answers.rounding import Center, Rounded, margin, panel_order

RNG = np.random.default_rng(8)
STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers():
    RNG.bit_generator.state = STATE  # whatever has run before


@pytest.mark.parametrize("features", ["+avx512bw,+avx2,+sse2", "+avx2,+sse2", "+sse2", ""])
def test_products_of_pairs(monkeypatch, features):
    ours = _numba._pair_products

    def pretended(real, builder):
        wanted = [each for each in features.split(",") if each in real.split(",")]
        return ours(",".join(wanted), builder)

    monkeypatch.setattr(_numba, "_pair_products", pretended)

    @numba.njit
    def multiply(rows, first, panel, start, tile):
        multiply_pairs(rows, first, panel, start, tile)

    rows = RNG.integers(-32767, 32768, (3 * PAIR_ROWS, 10), dtype=np.int16)
    columns = RNG.integers(-6500, 6500, (PAIR_WIDTH, 10), dtype=np.int16)
    panel = np.ascontiguousarray(columns.view(np.int32).T)
    tile = np.zeros((PAIR_ROWS, PAIR_WIDTH), dtype=np.int32)
    multiply(rows.view(np.int32), 6, panel, 1234, tile)
    expected = 1234 + rows[6:12].astype(np.int64) @ columns.astype(np.int64).T
    assert np.array_equal(tile, expected)


def unpacked(rounded, width):
    """The integers of each row."""
    panels, words, _ = rounded.words.shape
    halves = rounded.words.view(np.int16).reshape(panels, words, width, 2)
    return halves.transpose(0, 2, 1, 3).reshape(panels * width, 2 * words).astype(np.int64)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("coordinates", [1, 2, 7, 64])
def test_a_row_is_its_integers_times_its_scale(kind, coordinates):
    values = np.rint(RNG.normal(0, 1, (70, coordinates)) * 2.0 ** RNG.integers(0, 30, (70, 1))).astype(kind)
    offsets = np.where(np.arange(70) % 3, 0.0, 7.5)
    center = Center.of(values[:9], offsets[1:])
    order, spans = panel_order(np.arange(70) % 2, 2)
    assert spans == [(0, 2), (2, 4)]
    rounded = Rounded.of(values, offsets, order, PAIR_WIDTH, center)
    integers = unpacked(rounded, PAIR_WIDTH)
    assert (np.linalg.norm(integers.astype(float), axis=1) <= rounding._NORM).all()
    assert not integers[order < 0].any()
    for place in np.flatnonzero(order >= 0):
        away = values[order[place]].astype(float) - center.point + offsets[order[place]]
        left = away / rounded.scale[place] - integers[place, :coordinates]
        assert np.abs(left).max() <= 0.5 + 1e-9
        assert rounded.square[place] == pytest.approx(away @ away, rel=1e-12)
        shifted = coordinates * offsets[order[place]] ** 2
        assert rounded.slack[place] == pytest.approx(away @ away + shifted, rel=1e-12)
    assert sorted(order[order >= 0].tolist()) == list(range(70))


def test_what_cannot_be_rounded_always_passes():
    values = np.array([[5.0], [2.0**61], [np.inf], [np.nan], [2.0**45], [0.0]])
    center = Center(np.zeros(1), 0.0, 1.0)
    order = np.array([0, 1, 2, 3, 4, 5, -1, -1])
    rounded = Rounded.of(values, np.zeros(6), order, 8, center)
    w, z = rounded.column_factors(center, order)
    assert (rounded.scale > 0).tolist() == [True, False, False, False, False, True, False, False]
    assert np.isneginf(z[1:5]).all()
    assert np.isfinite(z[[0, 5]]).all()
    assert np.isposinf(z[6:]).all()
    assert (w > 0).all()
    far = Rounded.of(values, np.full(6, 2.0**61), order, 8, center)
    assert not far.scale.any()


def test_the_margin_is_what_the_worst_rows_need():
    # Equal coordinates, of which rounding takes nearly a half: every product is too small by as much as it can be.
    def lost(k):
        return ((rounding._NORM - 0.5 * math.sqrt(k) - 1) / math.sqrt(k)) % 1

    coordinates = max(range(200, 400), key=lambda k: lost(k) if lost(k) < 0.5 else 0)
    center = Center(np.zeros(coordinates), 0.0, 1.0)
    rounded = Rounded.of(np.full((1, coordinates), 1.0), np.zeros(1), np.zeros(1, dtype=np.int64), 1, center)
    product = int((unpacked(rounded, 1)[0, :coordinates] ** 2).sum())
    exact = coordinates / Fraction(float(rounded.scale[0])) ** 2
    assert 0.95 * margin(coordinates) < exact - product < margin(coordinates)


def test_margins_fit_into_32_bits():
    assert rounding._NORM**2 + margin(rounding.LARGEST_DIM) < 2**31
    assert margin(1) >= rounding._NORM + 64


@pytest.mark.parametrize("largest", [3, 2**20, 2**23, 2**24, 2**40, 2**62])
def test_whole_squares_are_exact_or_not_sure(largest):
    left, right = RNG.integers(-largest, largest, (2, 60))
    exact = sum((int(a) - int(b)) ** 2 for a, b in zip(left, right, strict=True))
    assert whole_square(left, right) == (exact if largest < 2**23 else -1.0)
    assert whole_square(left.astype(float), right.astype(float)) == (exact if largest < 2**23 else -1.0)
    assert whole_square(left + 0.5, right.astype(float)) == -1.0


@pytest.mark.parametrize("outlier", [2**20, 2**40, 2**60])
@pytest.mark.parametrize("place", [0, 7])
def test_an_outlier_takes_no_digits_from_the_others(outlier, place):
    values = np.rint(RNG.normal(0, 100, (50, 16))).astype(np.int64)
    with_outlier = values.copy()
    with_outlier[place] += outlier
    zeros, order = np.zeros(50), np.arange(50)
    alone, beside = (
        np.delete(Rounded.of(each, zeros, order, 1, Center.of(each, zeros)).scale, place)
        for each in (values, with_outlier)
    )
    assert (beside > 0).all()
    assert (beside < 1.5 * alone).all()


def test_a_length_is_found_where_most_rows_are_equal():
    values = np.zeros((9, 4))
    values[3] = 8.0
    center = Center.of(values, np.zeros(9))
    assert center.length == 16
    assert not center.point.any()
    assert Center.of(np.zeros((3, 4)), np.zeros(3)).length == 1
