"""The noise of a pair: what is left of two rows' noises when one is subtracted from the other."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armslength.laws.cumulants import Cumulants, uniform_cumulants
from armslength.laws.law import Law
from armslength.lazy import lazy
from armslength.protocol.provenance import NoiseSource, Provenance
from armslength.protocol.sketches import Sketches

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
    """The noises of all pairs: few different ones, and which pair has which.

    Attributes:
        noises: The different noises.
        number: n x m, the position of each pair's noise.
    """

    noises: tuple[PairNoise, ...]
    number: NDArray[np.int32]

    def each(self, name: str) -> NDArray[np.float64]:
        """A cumulant ("k2", "k4", …) of every pair."""
        return np.array([getattr(noise.cumulants, name) for noise in self.noises])[self.number]


def pair_noises(left: Sketches, right: Sketches) -> PairNoises:
    """The noise of every difference left_i − right_j: κ_n = Σ (α−β)^n·κ_n over the noises that either row has."""
    numbers: dict[PairNoise, int] = {}

    def numbered(noise: PairNoise) -> int:
        return numbers.setdefault(noise, len(numbers))

    # Rows with the same parts are of one class; pairs of classes give nearly all pairs their noise.
    left_class, left_terms = _classes(left.provenance)
    right_class, right_terms = _classes(right.provenance)
    by_class = np.array(
        [[numbered(PairNoise.of((*a, *b))) for b in right_terms] for a in left_terms], dtype=np.int32
    ).reshape(len(left_terms), len(right_terms))
    number = by_class[np.ix_(left_class, right_class)]
    for i, j in _sharing_pairs(left.provenance, right.provenance):
        number[i, j] = numbered(PairNoise.of(left.provenance[i].plus(right.provenance[j], -1.0).terms))
    return PairNoises(tuple(numbers), number)


def row_noises(sketches: Sketches) -> PairNoises:
    """The noise of every row by itself, as n x 1."""
    classes, terms = _classes(sketches.provenance)
    return PairNoises(tuple(PairNoise.of(each) for each in terms), np.array(classes, dtype=np.int32)[:, None])


def _classes(rows: tuple[Provenance, ...]) -> tuple[list[int], list[tuple[Term, ...]]]:
    """For each row the number of its class, and the terms of one member of each class."""
    known: dict[PairNoise, int] = {}
    members: list[tuple[Term, ...]] = []
    classes = []
    for row in rows:
        noise = PairNoise.of(row.terms)
        if noise not in known:
            known[noise] = len(members)
            members.append(row.terms)
        classes.append(known[noise])
    return classes, members


def _sharing_pairs(left: tuple[Provenance, ...], right: tuple[Provenance, ...]) -> set[tuple[int, int]]:
    """The pairs of rows that have a noise in common."""
    holders: dict[str, list[int]] = {}
    for j, row in enumerate(right):
        for source, _ in row.terms:
            holders.setdefault(source.id, []).append(j)
    return {
        (i, j) for i, row in enumerate(left) for source, _ in row.terms for j in holders.get(source.id, ())
    }
