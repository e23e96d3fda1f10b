"""The heart of the guarantee: integers of neighbors differ by no more than the noise was calibrated for.

Neighbors are drawn over the whole allowed domain, also from values that break float sums and rounding: huge next to
tiny, halves, subnormals, both sides of the range.
"""

import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.arrays import projected_sums
from armslength.laws import DiscreteLaplace
from armslength.noise import draw as door
from armslength.protocol.neighbors import gaussian_sensitivity_squared
from flat_protocol import flat_protocol

D = 6
NASTY = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.0**-30,
    5e-324,
    -5e-324,
    1e-300,
    1 / 3,
    0.1,
    2.0**40,
    -(2.0**40),
    1 - 2.0**-53,
]
COORDINATE = st.sampled_from(NASTY) | st.floats(-100, 100)

TRANSFORMS = [
    al.SparseJL(input_dim=D, sketch_dim=4, sparsity=2, seed="x"),
    al.SparseJL(input_dim=D, sketch_dim=4, sparsity=3, seed="x", construction="graph"),
    al.HadamardJL(input_dim=D, sketch_dim=5, seed="x"),
    al.FastJL(input_dim=D, sketch_dim=3, seed="x", density=0.5),
    al.GaussianJL(input_dim=D, sketch_dim=3, seed="x"),
    al.SignJL(input_dim=D, sketch_dim=3, seed="x", construction="sparse"),
    al.Identity(input_dim=D),
]


@functools.cache
def protocol_of(transform, **fields):
    """The protocol with ε = 1: examples that differ in their data alone share it."""
    return flat_protocol(transform, epsilon=1, **fields)


def l1_radius_of(protocol):
    """What the Laplace scale covers: ε·b."""
    assert isinstance(protocol.law, DiscreteLaplace)
    return Fraction(protocol.law.scale) * protocol.epsilon


def check(protocol, x, neighbor):
    before, after = (
        projected_sums(protocol, np.array([v]), None, 1).values[0].tolist() for v in (x, neighbor)
    )
    difference = [((a - b + 2**63) % 2**64) - 2**63 for a, b in zip(before, after, strict=True)]
    assert sum(abs(d) for d in difference) <= l1_radius_of(protocol)
    assert sum(d * d for d in difference) <= gaussian_sensitivity_squared(
        protocol.transform, protocol.grid_radius, "output"
    )


@st.composite
def real_neighbors(draw, radius):
    """x and x' with ‖x − x'‖₁ ≤ radius, exactly."""
    x = [draw(COORDINATE) for _ in range(D)]
    neighbor, left = list(x), Fraction(radius)
    for j in draw(st.permutations(range(D))):
        target = draw(COORDINATE | st.floats(-3, 3).map(lambda step, j=j: x[j] + step))
        moved = min(max(Fraction(target), Fraction(x[j]) - left), Fraction(x[j]) + left)
        candidate = float(moved)
        for value in (candidate, math.nextafter(candidate, x[j]), x[j]):
            if abs(Fraction(value) - Fraction(x[j])) <= left:
                neighbor[j] = value
                left -= abs(Fraction(value) - Fraction(x[j]))
                break
    return x, neighbor


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.name)
@pytest.mark.parametrize("resolution", [1, 0.25, "auto", 8])
@pytest.mark.parametrize("limits", [None, (-3, "2.5")])
@given(data=st.data())
def test_real_neighbors(transform, resolution, limits, data):
    radius = Fraction(5, 2)
    protocol = protocol_of(
        transform, radius=radius, resolution=resolution, on_grid=False, noise="laplace", value_range=limits
    )
    x, neighbor = data.draw(real_neighbors(radius))
    assert sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(x, neighbor, strict=True)) <= radius
    check(protocol, x, neighbor)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.name)
@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=D, max_size=D),
    st.lists(st.integers(-3, 3), min_size=D, max_size=D),
)
def test_neighbors_on_the_grid(transform, x, step):
    radius = max(1, sum(abs(s) for s in step))
    protocol = protocol_of(transform, radius=radius, noise="laplace")
    check(protocol, np.array(x), np.array(x) + np.array(step))


@given(st.lists(st.integers(0, 255), min_size=D, max_size=D), st.integers(0, D - 1))
def test_neighbors_that_wrap_around_a_narrow_type(x, j):
    protocol = protocol_of(TRANSFORMS[0], noise="laplace")
    x = np.array(x, dtype=np.uint8)
    neighbor = x.astype(np.int64)
    neighbor[j] += 1
    check(protocol, x, neighbor)


def test_the_bound_is_reached():
    # The calibration wastes nothing: one person can move the integers by exactly what the noise covers.
    for transform in TRANSFORMS:
        protocol = al.Protocol(transform, al.Arrays(radius=3), epsilon=1, noise="laplace")
        columns = np.asarray(abs(transform.matrix()).sum(axis=0)).ravel()
        x = np.zeros((1, D), dtype=int)
        x[0, int(columns.argmax())] = 3
        assert np.abs(projected_sums(protocol, x, None, 1).values).sum() == l1_radius_of(protocol)


def l2_squared_that_gaussian_noise_covers(protocol):
    """The largest squared ℓ2 sensitivity for which this σ is enough, by the independent δ of Balle & Wang."""

    def exact_delta(squared):
        with mpmath.workdps(40):
            ratio, e = mpmath.sqrt(squared) / protocol.law.scale, mpmath.mpf(float(protocol.epsilon))
            return mpmath.ncdf(ratio / 2 - e / ratio) - mpmath.exp(e) * mpmath.ncdf(-ratio / 2 - e / ratio)

    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exact_delta(middle) <= float(protocol.delta) else (low, middle)
    return low


@pytest.mark.parametrize("site", ["output", "input"])
@pytest.mark.parametrize("radius", [1, 3])
def test_gaussian_noise_covers_what_it_is_added_to(site, radius):
    # On the input, noise is added after the Hadamard step, whose columns have squared norm d', not 1.
    protocol = al.Protocol(
        al.FastJL(input_dim=D, sketch_dim=3, seed="x", density=0.5),
        al.Arrays(radius=radius),
        epsilon=1,
        delta=1e-6,
        noise="gaussian",
        noise_site=site,
    )
    moved = []
    for j in range(D):
        x, neighbor = np.zeros((1, D), dtype=int), np.zeros((1, D), dtype=int)
        neighbor[0, j] = radius
        before_noise = protocol.transform.hadamard_step if site == "input" else protocol.transform.apply
        difference = before_noise(neighbor) - before_noise(x)
        moved.append(int((difference.astype(object) ** 2).sum()))
    assert max(moved) == l2_squared_that_gaussian_noise_covers(protocol)


class Replay:
    """The same bits for everybody: what no real source may do."""

    def __init__(self, _buffer=None):
        pass

    def words(self, count):
        return np.random.default_rng(7).integers(0, 2**64, count, dtype=np.uint64)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("transform", [TRANSFORMS[0], TRANSFORMS[2], TRANSFORMS[6]], ids=lambda t: t.name)
def test_under_the_same_bits_neighbors_differ_by_what_the_theorem_allows_and_no_more(
    transform, noise, monkeypatch
):
    monkeypatch.setattr(door, "SecretBits", Replay)
    protocol = al.Protocol(transform, al.Arrays(radius=2), epsilon=1, delta=1e-6, noise=noise)
    x = np.arange(D)[None, :]
    neighbor = x.copy()
    neighbor[0, 2] += 2
    a, b = (al.release(protocol, v, ledger=al.NO_LEDGER).values for v in (x, neighbor))
    difference = (b - a)[0]
    assert np.array_equal(difference, np.asarray(transform.apply(neighbor - x))[0])
    assert 0 < np.abs(difference).sum() <= 2 * transform.l1_sensitivity
    assert (difference**2).sum() <= 4 * transform.l2_sensitivity_squared
