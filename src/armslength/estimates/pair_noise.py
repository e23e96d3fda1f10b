"""The noise of a pair: what is left of two rows' noises when one is subtracted from the other."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.laws import Cumulants, Law, uniform_cumulants
from armslength.sketches.noises import NoiseSource
from armslength.sketches.sketches import Sketches
from armslength.threads import lazy

Term = tuple[NoiseSource, float]


@dataclass(frozen=True, order=True)
class Part:
    """One independent noise: a law, its dropped bits, and how often it is taken."""

    name: str
    scale: float
    dropped_bits: int
    coefficient: float

    @property
    def reach(self) -> float:
        """How far out the noise can be noticed: beyond it lies less than 1e-19."""
        scales = 46 * self.scale if self.name == "laplace" else 9.2 * self.scale
        return self.coefficient * (scales + 1 + 2.0**self.dropped_bits)


@dataclass(frozen=True)
class PairNoise:
    """A sum of independent noises, the same in every coordinate.

    Attributes:
        parts: Sorted, so that equal noises are equal objects.
        laws: The law of each part.
        is_rounded: Whether coefficients were rounded or parts left out, so that quantiles are near and not exact.
    """

    parts: tuple[Part, ...]
    laws: tuple[Law, ...]
    is_rounded: bool = False

    @classmethod
    def of(cls, terms: Iterable[Term]) -> "PairNoise":
        """The noise of these terms; terms of one noise must have been merged."""
        both = sorted(
            (
                (
                    Part(source.law.name, source.law.scale, source.protocol.dropped_bits, abs(coefficient)),
                    source.law,
                )
                for source, coefficient in terms
            ),
            key=lambda pair: pair[0],
        )
        return cls(tuple(part for part, _ in both), tuple(law for _, law in both))

    @lazy
    def cumulants(self) -> Cumulants:
        """Σ coefficient^n·κ_n, in integer units."""
        total = Cumulants()
        for part, law in zip(self.parts, self.laws, strict=True):
            each = law.cumulants + uniform_cumulants(part.dropped_bits)
            total += each.times(part.coefficient)
        return total

    def shape(self) -> "PairNoise":
        """The same noise up to its unit, for quantiles that are counted in standard deviations.

        Parts that have less than a ten-thousandth of the variance are left out. Coefficients become whole multiples of
        the smallest where they are; otherwise they are divided by the largest and rounded to eighths of an octave, so
        that rows that were scaled one by one do not each need a law of their own. `is_rounded` says if anything was lost.
        """
        shares = [
            law.cumulants.k2 * part.coefficient**2 for part, law in zip(self.parts, self.laws, strict=True)
        ]
        kept = [
            (p, w) for p, w, v in zip(self.parts, self.laws, shares, strict=True) if v > 1e-4 * sum(shares)
        ]
        if not kept:
            return PairNoise((), ())
        largest = max(part.coefficient for part, _ in kept)
        smallest = min(part.coefficient for part, _ in kept)
        whole = all((part.coefficient / smallest) % 1 == 0 for part, _ in kept) and largest <= 16 * smallest
        rescaled = []
        for part, law in kept:
            ratio = (
                part.coefficient / smallest
                if whole
                else 2 ** (round(8 * math.log2(part.coefficient / largest)) / 8)
            )
            rescaled.append((replace(part, coefficient=ratio), law))
        rescaled.sort(key=lambda pair: pair[0])
        lost = not whole or len(kept) < len(self.parts)
        return PairNoise(tuple(p for p, _ in rescaled), tuple(w for _, w in rescaled), is_rounded=lost)


@dataclass(frozen=True)
class PairNoises:
    """The noises of rows or of all pairs: few different ones, each with the pairs that have it.

    Attributes:
        shape: How many rows, or pairs, there are.
        groups: (noise, an index of all its pairs); together they are all pairs, and later ones overrule earlier ones.
    """

    shape: tuple[int, ...]
    groups: tuple[tuple[PairNoise, Any], ...]

    def each(self, name: str) -> NDArray[np.float64]:
        """A cumulant ("k2", "k4", …) of every pair."""
        result = np.empty(self.shape)
        for noise, chosen in self.groups:
            result[chosen] = getattr(noise.cumulants, name)
        return result


def pair_noises(left: Sketches, right: Sketches) -> PairNoises:
    """The noise of every difference left_i − right_j: κ_n = Σ (α−β)^n·κ_n over the noises that either row has."""
    # Rows with the same parts are of one class; pairs of classes give nearly all pairs their noise.
    rows, row_terms = noise_classes(left)
    columns, column_terms = noise_classes(right)
    only_one = len(row_terms) == len(column_terms) == 1
    groups: list[tuple[PairNoise, Any]] = [
        (
            PairNoise.of((*mine, *theirs)),
            ... if only_one else np.ix_(np.flatnonzero(rows == i), np.flatnonzero(columns == j)),
        )
        for i, mine in enumerate(row_terms)
        for j, theirs in enumerate(column_terms)
    ]
    groups += _shared_groups(left, right)
    return PairNoises((len(left), len(right)), tuple(groups))


def row_noises(sketches: Sketches) -> PairNoises:
    """The noise of every row by itself."""
    classes, terms = noise_classes(sketches)
    groups = [
        (PairNoise.of(each), ... if len(terms) == 1 else np.flatnonzero(classes == number))
        for number, each in enumerate(terms)
    ]
    return PairNoises((len(sketches),), tuple(groups))


def noise_classes(sketches: Sketches) -> tuple[NDArray[np.int64], list[tuple[Term, ...]]]:
    """For each row the number of its class, and the terms of one member of each class."""
    if sketches.released is not None and len(sketches):
        (first,) = sketches.released.take([0]).rows()
        return np.zeros(len(sketches), dtype=np.int64), [first.terms]
    known: dict[PairNoise, int] = {}
    # Most rows have the protocols and coefficients of one before them: an object for each would take longer than the search.
    met: dict[tuple[tuple[int, float], ...], int] = {}
    members: list[tuple[Term, ...]] = []
    classes = []
    for row in sketches.provenance:
        alike = tuple([(id(source.protocol), coefficient) for source, coefficient in row.terms])
        if alike not in met:
            noise = PairNoise.of(row.terms)
            if noise not in known:
                known[noise] = len(members)
                members.append(row.terms)
            met[alike] = known[noise]
        classes.append(met[alike])
    return np.array(classes, dtype=np.int64), members


def _shared_groups(left: Sketches, right: Sketches) -> list[tuple[PairNoise, Any]]:
    """The pairs of rows that have a noise in common: it is merged, and not counted twice."""
    if left is right and left.released is not None and left.released.are_different:
        diagonal = np.arange(len(left))
        return [(PairNoise((), ()), (diagonal, diagonal))]
    found: dict[PairNoise, tuple[list[int], list[int]]] = {}
    for i, j in sharing_pairs(left, right):
        merged = PairNoise.of(left.provenance[i].plus(right.provenance[j], -1.0).terms)
        pairs = found.setdefault(merged, ([], []))
        pairs[0].append(i)
        pairs[1].append(j)
    return [(noise, (np.array(i), np.array(j))) for noise, (i, j) in found.items()]


def sharing_pairs(left: Sketches, right: Sketches) -> set[tuple[int, int]]:
    """The pairs of rows that have a noise in common."""
    both = left.released, right.released
    if both[0] is not None and both[1] is not None and not np.isin(both[0].ids, both[1].ids).any():
        return set()
    holders: dict[str, list[int]] = {}
    for j, row in enumerate(right.provenance):
        for source, _ in row.terms:
            holders.setdefault(source.id, []).append(j)
    return {
        (i, j)
        for i, row in enumerate(left.provenance)
        for source, _ in row.terms
        for j in holders.get(source.id, ())
    }
