"""Quantiles of Σ (s_i+N_i)² in standard deviations, N the integer noise of coordinate i and s = Sz, a normal of variance D/k.

Exact at D = 0, where s is 0. Elsewhere a k-fold convolution on a lattice, by the fast Fourier transform.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import gammaincinv, ndtr

from armslength.estimates.pair_noise import Floats, PairNoise

Quantiles = tuple[NDArray[Any], NDArray[Any]]  # (upper, lower), in standard deviations
SumLaw = Callable[[Floats], Quantiles]  # from normal deviates to quantiles of the same tails

LARGEST_DEVIATE = 7.0  # tails of 1e-12: below that the transform's own rounding shows
_DEVIATES = np.linspace(0.0, LARGEST_DEVIATE, 113)
_RATIOS = (0.0, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, np.inf)  # variance of s over that of N
_SHARES = np.array([1.0 if np.isinf(ratio) else ratio / (1 + ratio) for ratio in _RATIOS])  # of s in the sum
_FINE, _COARSE = 1 << 21, 1 << 18  # lattice points for the exact law at D = 0, and elsewhere
_COARSE_COORDINATES = 1 << 12  # up to which a coarse lattice is fine enough at D = 0
_COARSEST = 3.0  # lattice steps to a standard deviation, below which a lattice says nothing
_MANY = 1 << 15  # coordinates beyond which a Fourier transform has no digits left for the tails
_NEGLIGIBLE = 1e-19
_UNNOTICED = 1e-30  # 2^21 of them add less than 1e-23 to a probability


@dataclass(frozen=True)
class EstimateQuantiles:
    """Quantiles above and below the mean: one row for each of _RATIOS, one column for each of _DEVIATES."""

    noise: PairNoise
    coordinates: int
    upper: Floats
    lower: Floats

    def at(self, share: Floats, deviate: float) -> Quantiles:
        """(upper, lower) where s has this share of a coordinate's variance; never narrower than normal."""
        tables = self.upper, self.lower
        above, below = (np.array([np.interp(deviate, _DEVIATES, row) for row in table]) for table in tables)
        if self.noise.components and self.noise.is_exact:
            above[0] = null_quantile(self.noise, self.coordinates, deviate)
        upper, lower = (np.maximum(np.interp(share, _SHARES, column), deviate) for column in (above, below))
        return upper, lower


@lru_cache(maxsize=2048)
def estimate_quantiles(noise: PairNoise, coordinates: int) -> EstimateQuantiles:
    """The quantiles of Σ (s_i+N_i)², for a noise in the form of `PairNoise.normalized`."""
    far = _chi_square_row(coordinates)
    rows = [far] * len(_RATIOS)
    if noise.components:
        null = _null_law(noise, coordinates)(_DEVIATES)
        # Where noise is so rare and large that no lattice fits it and s: the wider of the two ends.
        wider = np.maximum(null[0], far[0]), np.maximum(null[1], far[1])
        laws = [_lattice_law(noise, coordinates, ratio) for ratio in _RATIOS[1:-1]]
        rows = [null, *(wider if law is None else law(_DEVIATES) for law in laws), far]
    upper, lower = (np.array([row[end] for row in rows]) for end in (0, 1))
    return EstimateQuantiles(noise, coordinates, upper, lower)


@lru_cache(maxsize=256)
def null_quantile(noise: PairNoise, coordinates: int, deviate: float) -> float:
    """The exact upper quantile at D = 0, in standard deviations."""
    return float(_null_law(noise, coordinates)(np.array([deviate]))[0][0])


@lru_cache(maxsize=4)
def _null_law(noise: PairNoise, coordinates: int) -> SumLaw:
    law = _lattice_law(noise, coordinates, 0.0)
    if law is None:
        raise AssertionError("at D = 0 there is always a lattice")
    return law


def chi_square_quantile(degrees: int, deviate: float) -> float:
    """The upper quantile of a chi-square law, in standard deviations."""
    return float(np.interp(deviate, _DEVIATES, _chi_square_row(degrees)[0]))


@lru_cache(maxsize=64)
def _chi_square_row(coordinates: int) -> Quantiles:
    """Without noise: the chi-square law with k degrees of freedom."""
    tails = ndtr(-_DEVIATES)
    mean, deviation = coordinates, np.sqrt(2 * coordinates)
    # 1 − tail keeps enough digits: the smallest tail is 1e-12
    upper = (2 * gammaincinv(coordinates / 2, 1 - tails) - mean) / deviation
    lower = (mean - 2 * gammaincinv(coordinates / 2, tails)) / deviation
    return upper, lower


def _lattice_quantiles(
    from_above: Floats, from_below: Floats, mean: float, deviation: float, deviates: Floats
) -> Quantiles:
    """(upper, lower) of a law on 0, 1, 2, … lattice steps, by P(sum ≥ value) and P(sum ≤ value).

    They are half a step outside of the last value that is not rare, so that no rounding decides.
    """
    tails = ndtr(-deviates)
    first_rare = len(from_above) - np.searchsorted(from_above[::-1], tails, side="right")
    first_common = np.searchsorted(from_below, tails, side="right")
    return (first_rare - 0.5 - mean) / deviation, (mean - (first_common - 0.5)) / deviation


def _skewed_quantiles(skewness: float, deviates: Floats) -> Quantiles:
    """(upper, lower) of a sum over so many coordinates that its skewness says all: Cornish and Fisher's first term."""
    bend = (deviates**2 - 1) * skewness / 6
    return deviates + bend, deviates - bend


def _lattice_law(noise: PairNoise, coordinates: int, ratio: float) -> SumLaw | None:
    """The k-fold convolution of the law of (s+N)²; None if no lattice of bearable size is fine enough."""
    magnitudes = _magnitudes(noise, coordinates, ratio)
    if magnitudes is None:
        return None
    values = np.arange(len(magnitudes), dtype=np.float64) ** 2
    mean = float(magnitudes @ values)
    variance = float(magnitudes @ (values - mean) ** 2)
    if variance == 0:  # noise that is 0 to all digits: any other sum is rare
        tiny = float(np.sqrt(coordinates * max(noise.cumulants.k4, 1e-300)))
        return partial(_lattice_quantiles, np.array([1.0, 0.0]), np.array([1.0, 1.0]), 0.0, tiny)
    if coordinates > _MANY:
        third = float(magnitudes @ (values - mean) ** 3)
        return partial(_skewed_quantiles, third / variance**1.5 / np.sqrt(coordinates))
    total_mean, deviation = coordinates * mean, float(np.sqrt(coordinates * variance))
    squares = np.zeros((len(magnitudes) - 1) ** 2 + 1)
    squares[np.arange(len(magnitudes)) ** 2] = magnitudes
    # What lies beyond comes back at 0: it takes two coordinates, one of them as far out as any can be.
    length = fft.next_fast_len(int(total_mean + 14 * deviation) + len(squares), real=True)
    pmf = np.maximum(fft.irfft(_power(fft.rfft(squares, length), coordinates), length), 0.0)
    return partial(_lattice_quantiles, np.cumsum(pmf[::-1])[::-1], np.cumsum(pmf), total_mean, deviation)


def _power(transform: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """transform ** exponent, with 0 for powers too small to matter: nearly all of them, and powers are slow."""
    size = np.square(transform.real) + np.square(transform.imag)
    noticed = np.flatnonzero(size > _UNNOTICED ** (2 / exponent))
    result = np.zeros_like(transform)
    result[noticed] = transform[noticed] ** exponent
    return result


def _magnitudes(noise: PairNoise, coordinates: int, ratio: float) -> Floats | None:
    """The law of |s+N| on a lattice as fine as the budget allows; None if that is too coarse."""
    deviation = float(np.sqrt(noise.cumulants.k2 * (1 + ratio)))
    is_fine = ratio == 0 and (noise.is_exact or coordinates > _COARSE_COORDINATES)
    budget = _FINE if is_fine else _COARSE
    farthest = sum(part.reach for part in noise.components) + 9 * np.sqrt(ratio * noise.cumulants.k2)
    # The sum reaches to about k·T² + M²: T lattice steps to a standard deviation, M to the far tail.
    counted = min(coordinates, _MANY)
    finest = np.sqrt(budget / (counted + 60 * np.sqrt(counted) + (farthest / deviation) ** 2))
    unit = noise.unit
    if ratio > 0 and finest < _COARSEST:
        return None
    # Noise that is rare and large is itself on a lattice, and a short one.
    is_own = ratio == 0 and noise.is_on_lattice and deviation / unit <= max(finest, 1.0)
    step = unit if is_own or finest < _COARSEST else deviation / finest
    pmf = noise_pmf(noise, step)
    if ratio > 0:
        spread = np.sqrt(ratio * noise.cumulants.k2)
        pmf = _trimmed(np.convolve(pmf, np.diff(ndtr(_edges(step, 10 * spread) / spread))))
    middle = len(pmf) // 2
    magnitudes = np.concatenate([pmf[middle : middle + 1], 2 * pmf[middle + 1 :]])
    return np.asarray(magnitudes / magnitudes.sum())


def noise_pmf(noise: PairNoise, step: float) -> Floats:
    """The symmetric law of the noise on the lattice of whole steps."""
    pmf = np.ones(1)
    for part in noise.components:
        edges = _edges(step, part.reach)
        pmf = _trimmed(np.convolve(pmf, np.diff(part.law.cdf(edges / part.coefficient))))
    return pmf


def _edges(step: float, reach: float) -> NDArray[Any]:
    """The ends of the intervals that round to −M, …, M steps, where M steps cover the reach."""
    steps = int(np.ceil(reach / step)) + 1
    return np.asarray((np.arange(-steps, steps + 2) - 0.5) * step)


def _trimmed(pmf: NDArray[Any]) -> NDArray[Any]:
    """The symmetric law without its negligible ends."""
    symmetric = (pmf + pmf[::-1]) / 2
    kept = np.flatnonzero(symmetric > _NEGLIGIBLE)
    return np.asarray(symmetric[kept[0] : kept[-1] + 1])
