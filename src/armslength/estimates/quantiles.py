"""Quantiles of the estimate: exact at D = 0, and for differences that are spread over many coordinates elsewhere.

A coordinate of the sketches' difference is s + N: N the integer noise, s = (Sz)_i. At D = 0 s is 0, and the law of
Σ N_i² is public. Elsewhere s is a sum of many small terms, so a normal of variance D/k; the law of Σ (s_i+N_i)² is then a
k-fold convolution, made by the fast Fourier transform on a lattice. Quantiles are kept as numbers of standard
deviations, for tails given as normal deviates z, so that they meet V(D) and a level in one place.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import gammaincinv, ndtr

from armslength._numba import float_bits, kernel
from armslength.estimates.pair_noise import PairNoise
from armslength.threads import ordered_map

CELL_BITS = 7  # cells in each doubling: 128
_CELL_SHIFT = np.int64(52 - CELL_BITS)


@kernel
def read_off(
    values: NDArray[np.float64],
    origin: float,
    first_cell: int,
    lines: NDArray[np.float64],
    ends: tuple[float, float, float],
    result: NDArray[np.float64],
) -> None:
    """result = the function that `RisingFunction` has put into cells, at these values; 0 below its origin."""
    least, reach, beyond = ends
    last = lines.shape[0] - 1
    for i in range(len(values)):
        distance = values[i] - origin
        cell = (float_bits(distance) >> _CELL_SHIFT) - first_cell
        inside = min(max(cell, 0), last)
        answer = lines[inside, 0] + lines[inside, 1] * distance
        answer = beyond if distance > reach else answer
        answer = 0.0 if distance < least else answer
        result[i] = distance if np.isnan(distance) else answer


LARGEST_DEVIATE = 7.0  # tails of 1e-12: below that the transform's own rounding shows
_DEVIATES = np.linspace(0.0, LARGEST_DEVIATE, 113)
_RATIOS = (0.0, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, np.inf)  # variance of s over that of N
_FINE, _COARSE = 1 << 21, 1 << 18  # lattice points for D = 0, and elsewhere
_COARSEST = 3.0  # lattice steps to a standard deviation, below which a lattice says nothing
_MANY = 1 << 15  # coordinates beyond which a Fourier transform has no digits left for the tails
_NEGLIGIBLE = 1e-19
_UNNOTICED = 1e-30  # 2^21 of them add less than 1e-23 to a probability


@dataclass(frozen=True)
class QuantileSheet:
    """Upper and lower quantiles in standard deviations: one row for each ratio, one column for each deviate.

    Attributes:
        upper: How far above its mean the estimate is with at most the tail's probability.
        lower: How far below.
        noise: The noise that the sheet is for.
        coordinates: k.
    """

    upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    noise: PairNoise
    coordinates: int

    def at(
        self, share: NDArray[np.float64], deviate: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(upper, lower) where s has this share of a coordinate's variance; never narrower than normal."""
        nodes = np.array([1.0 if np.isinf(ratio) else ratio / (1 + ratio) for ratio in _RATIOS])
        above, below = (
            np.array([np.interp(deviate, _DEVIATES, row) for row in sheet])
            for sheet in (self.upper, self.lower)
        )
        if self.noise.parts and not self.noise.is_rounded:
            above[0] = null_quantile(self.noise, self.coordinates, deviate)
        upper, lower = (np.maximum(np.interp(share, nodes, column), deviate) for column in (above, below))
        return upper, lower


@lru_cache(maxsize=256)
def quantile_sheet(noise: PairNoise, coordinates: int) -> QuantileSheet:
    """The quantiles of Σ (s_i+N_i)² over this many coordinates; for a noise in the form of `PairNoise.shape`."""
    far = _chi_square_row(coordinates)
    if not noise.parts:
        return QuantileSheet(
            np.array([far[0]] * len(_RATIOS)), np.array([far[1]] * len(_RATIOS)), noise, coordinates
        )

    def quantiles(ratio: float) -> tuple[NDArray[Any], NDArray[Any]] | None:
        law = _lattice_law(noise, coordinates, ratio) if ratio else _null_law(noise, coordinates)
        return None if law is None else law.quantiles(_DEVIATES)

    found = list(ordered_map(quantiles, _RATIOS[:-1]))
    null = found[0] or far  # at D = 0 there is always a law
    # Noise so seldom and so large that no lattice holds both it and s: the wider of the two ends.
    wider = np.maximum(null[0], far[0]), np.maximum(null[1], far[1])
    rows = [*(wider if row is None else row for row in found), far]
    return QuantileSheet(
        np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), noise, coordinates
    )


@lru_cache(maxsize=256)
def null_quantile(noise: PairNoise, coordinates: int, deviate: float) -> float:
    """The exact upper quantile at D = 0, in standard deviations."""
    return float(_null_law(noise, coordinates).quantiles(np.array([deviate]))[0][0])


@lru_cache(maxsize=4)
def _null_law(noise: PairNoise, coordinates: int) -> "_LatticeLaw | _ManyCoordinates":
    law = _lattice_law(noise, coordinates, 0.0)
    if law is None:
        raise AssertionError("at D = 0 there is always a lattice")
    return law


def chi_square_quantile(degrees: int, deviate: float) -> float:
    """The upper quantile of a chi-square law, in standard deviations."""
    return float(np.interp(deviate, _DEVIATES, _chi_square_row(degrees)[0]))


@lru_cache(maxsize=64)
def _chi_square_row(coordinates: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where noise is nothing: the chi-square law with k degrees of freedom."""
    tails = ndtr(-_DEVIATES)
    mean, deviation = coordinates, np.sqrt(2 * coordinates)
    # 1 − tail keeps enough digits: the smallest tail is 1e-12
    upper = (2 * gammaincinv(coordinates / 2, 1 - tails) - mean) / deviation
    lower = (mean - 2 * gammaincinv(coordinates / 2, tails)) / deviation
    return upper, lower


@dataclass(frozen=True)
class _LatticeLaw:
    """The law of a sum on 0, 1, 2, … lattice steps."""

    from_above: NDArray[np.float64]  # P(sum ≥ value)
    from_below: NDArray[np.float64]  # P(sum ≤ value)
    mean: float
    deviation: float

    def quantiles(self, deviates: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distances from the mean that are passed with at most the tails' probability, in standard deviations.

        They lie half a step outside of the last value that is not rare, so that no rounding can decide.
        """
        tails = ndtr(-deviates)
        first_rare = len(self.from_above) - np.searchsorted(self.from_above[::-1], tails, side="right")
        first_common = np.searchsorted(self.from_below, tails, side="right")
        upper = (first_rare - 0.5 - self.mean) / self.deviation
        return upper, (self.mean - (first_common - 0.5)) / self.deviation


@dataclass(frozen=True)
class _ManyCoordinates:
    """A sum over so many coordinates that its skewness says all: Cornish and Fisher's first term."""

    skewness: float

    def quantiles(self, deviates: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distances from the mean in standard deviations."""
        bend = (deviates**2 - 1) * self.skewness / 6
        return deviates + bend, deviates - bend


def _lattice_law(noise: PairNoise, coordinates: int, ratio: float) -> _LatticeLaw | _ManyCoordinates | None:
    """The k-fold convolution of the law of (s+N)²; None if no lattice of bearable size is fine enough."""
    magnitudes = _magnitudes(noise, coordinates, ratio)
    if magnitudes is None:
        return None
    values = np.arange(len(magnitudes), dtype=np.float64) ** 2
    mean = float(magnitudes @ values)
    variance = float(magnitudes @ (values - mean) ** 2)
    if variance == 0:  # noise that is 0 to all digits: any other sum is rare
        tiny = float(np.sqrt(coordinates * max(noise.cumulants.k4, 1e-300)))
        return _LatticeLaw(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 0.0, tiny)
    if coordinates > _MANY:
        third = float(magnitudes @ (values - mean) ** 3)
        return _ManyCoordinates(third / variance**1.5 / np.sqrt(coordinates))
    total_mean, deviation = coordinates * mean, float(np.sqrt(coordinates * variance))
    squares = np.zeros((len(magnitudes) - 1) ** 2 + 1)
    squares[np.arange(len(magnitudes)) ** 2] = magnitudes
    # What lies beyond comes back at 0: it takes two coordinates, one of them as far out as any can be.
    length = fft.next_fast_len(int(total_mean + 14 * deviation) + len(squares), real=True)
    pmf = np.maximum(fft.irfft(_power(fft.rfft(squares, length), coordinates), length), 0.0)
    return _LatticeLaw(np.cumsum(pmf[::-1])[::-1], np.cumsum(pmf), total_mean, deviation)


def _power(transform: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """transform ** exponent, with 0 in place of powers that no sum can notice: nearly all of them, and powers are slow."""
    size = np.square(transform.real) + np.square(transform.imag)
    noticed = np.flatnonzero(size > _UNNOTICED ** (2 / exponent))
    result = np.zeros_like(transform)
    result[noticed] = transform[noticed] ** exponent
    return result


def _magnitudes(noise: PairNoise, coordinates: int, ratio: float) -> NDArray[np.float64] | None:
    """The law of |s+N| on a lattice that is as fine as the budget allows."""
    deviation = float(np.sqrt(noise.cumulants.k2 * (1 + ratio)))
    budget = _FINE if ratio == 0 else _COARSE
    farthest = sum(part.reach for part in noise.parts) + 9 * np.sqrt(ratio * noise.cumulants.k2)
    # The sum reaches to about k·T² + M²: T lattice steps to a standard deviation, M to the far tail.
    counted = min(coordinates, _MANY)
    finest = np.sqrt(budget / (counted + 60 * np.sqrt(counted) + (farthest / deviation) ** 2))
    unit = min(part.coefficient for part in noise.parts)
    if ratio == 0 and _is_whole(noise) and deviation / unit <= max(finest, 1.0):
        step = unit
    elif finest < _COARSEST:
        if ratio > 0:
            return None
        step = unit  # rare and large: N itself is a lattice, and a short one
    else:
        step = deviation / finest
    pmf = np.ones(1)
    for part, law in zip(noise.parts, noise.laws, strict=True):
        edges = _edges(step, part.reach)
        pmf = _trimmed(np.convolve(pmf, np.diff(law.cdf(edges / part.coefficient))))
        if part.dropped_bits:
            width = 2.0**part.dropped_bits * part.coefficient
            pmf = np.convolve(pmf, np.diff(np.clip(_edges(step, width) / width + 0.5, 0, 1)))
    if ratio > 0:
        spread = np.sqrt(ratio * noise.cumulants.k2)
        pmf = _trimmed(np.convolve(pmf, np.diff(ndtr(_edges(step, 10 * spread) / spread))))
    middle = len(pmf) // 2
    magnitudes = np.concatenate([pmf[middle : middle + 1], 2 * pmf[middle + 1 :]])
    return np.asarray(magnitudes / magnitudes.sum())


def _is_whole(noise: PairNoise) -> bool:
    """Whether all noises lie on one lattice: whole multiples of the smallest coefficient, no bits dropped."""
    smallest = min(part.coefficient for part in noise.parts)
    return all(part.dropped_bits == 0 and (part.coefficient / smallest) % 1 == 0 for part in noise.parts)


def _edges(step: float, reach: float) -> NDArray[Any]:
    """The ends of the intervals that round to −M, …, M steps, M steps being as far as the law reaches."""
    most = int(np.ceil(reach / step)) + 1
    return np.asarray((np.arange(-most, most + 2) - 0.5) * step)


def _trimmed(pmf: NDArray[Any]) -> NDArray[Any]:
    """The symmetric law without ends that no sum can notice."""
    symmetric = (pmf + pmf[::-1]) / 2
    kept = np.flatnonzero(symmetric > _NEGLIGIBLE)
    return np.asarray(symmetric[kept[0] : kept[-1] + 1])


# A rising function that is read at millions of places: cells that are found without a search.


_SHIFT = 52 - CELL_BITS
_SMALLEST = 5e-324
_HARMLESS = 1e-4


@dataclass(frozen=True)
class RisingFunction:
    """0 below its origin, and from there on linear between places where it is known.

    It is put into cells whose width is at most a 128th of their distance from the origin: a cell's number stands in the first
    bits of that distance as a float, so a value costs neither a search nor a logarithm. Cells smear a jump, so they are
    compared with the function itself at every place and between, and are used only where they never differ by more than a
    ten-thousandth of |place − value|; else every value is searched for.
    """

    places: NDArray[np.float64]
    values: NDArray[np.float64]
    beyond: float  # its value behind the last place
    least: float  # how far from the origin it begins: 0, or just behind it
    first_cell: int
    lines: NDArray[np.float64]  # for each cell: intercept and slope, over the distance from the origin
    has_cells: bool = True

    @classmethod
    def of(
        cls,
        places: NDArray[np.float64],
        values: NDArray[np.float64],
        finest: float,
        *,
        beyond: float,
        zero_at_origin: bool,
    ) -> "RisingFunction":
        """The function that is linear between these places.

        Args:
            places: Where it is known; they rise, and may stand still.
            values: Its values there.
            finest: A distance from the first place below which one cell is enough.
            beyond: The value behind the last place.
            zero_at_origin: Whether it is still 0 at the first place itself.
        """
        origin = float(places[0])
        reach = max(float(places[-1]) - origin, finest)
        first, last = (int(np.float64(distance).view(np.int64)) >> _SHIFT for distance in (finest, reach))
        # Cell 0 begins at the origin, each other one where the bits of its number say; the last ends at the last place.
        edges = (np.arange(first + 1, last + 1, dtype=np.int64) << _SHIFT).view(np.float64)
        edges = np.concatenate([[0.0], edges[edges < reach], [reach]])
        known = np.interp(origin + edges, places, values)
        slopes = np.diff(known) / np.diff(edges)
        lines = np.stack([known[:-1] - slopes * edges[:-1], slopes], axis=1)
        least = _SMALLEST if zero_at_origin else 0.0
        made = cls(places, values, beyond, least, first, lines)
        judges = np.concatenate(
            [places, (places[1:] + places[:-1]) / 2, origin + (edges[1:] + edges[:-1]) / 2]
        )
        judges = judges[(judges > origin) & (judges <= places[-1])]
        found, exact = np.empty_like(judges), np.interp(judges, places, values)
        made.read(judges, found)
        if (np.abs(found - exact) <= _HARMLESS * np.abs(judges - exact)).all():
            return made
        return cls(places, values, beyond, least, first, lines, has_cells=False)

    def read(self, places: NDArray[np.float64], result: NDArray[np.float64]) -> None:
        """result = the function at these places."""
        origin = float(self.places[0])
        if self.has_cells:
            ends = (self.least, float(self.places[-1]) - origin, self.beyond)
            read_off(places, origin, self.first_cell, self.lines, ends, result)
            return
        found = np.interp(places, self.places, self.values, right=self.beyond)
        result[:] = np.where(places - origin < self.least, 0.0, found)
