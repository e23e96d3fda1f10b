"""The noise of rows, and of pairs of rows: what is left of two rows' noises when one is subtracted from the other."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.laws import SMALLEST_SCALE, Cumulants, DiscreteLaplace, Law, RoundedNormal, uniform_cumulants
from armslength.sketches.noises import NoiseSource
from armslength.sketches.sketches import Sketches

Term = tuple[NoiseSource, float]
Floats = NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]  # κ₂, κ₄ and the squared step of several noises

MOST_LAWS = 2048  # exact ones in one comparison: each takes a good 50 milliseconds to tabulate
_LARGEST_MULTIPLE = 16  # of the smallest coefficient, up to which a lattice is short enough for the exact law
# To a unit: the variance is counted at most 3 percent larger, 1.8 percent for two Laplace noises.
_KURTOSIS_STEPS = 16
_STEPS_PER_OCTAVE = 16  # for the large kurtosis of noise that is nearly always 0
_SMOOTH_SCALE = 256.0  # from which on a law on the integers is as good as continuous


@dataclass(frozen=True, order=True)
class NoiseComponent:
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

    @property
    def step(self) -> float:
        """The distance of two neighboring values."""
        return self.coefficient * 2.0**self.dropped_bits


@dataclass(frozen=True)
class PairNoise:
    """A sum of independent noises, the same in every coordinate.

    Attributes:
        components: Sorted, so that equal noises are equal objects.
        laws: The law of each component.
        cumulants: Σ coefficient^n·κ_n, in integer units.
        is_exact: Whether it is the noise itself, and not one that stands for others with its kurtosis.
    """

    components: tuple[NoiseComponent, ...]
    laws: tuple[Law, ...] = field(compare=False)
    cumulants: Cumulants = field(compare=False)
    is_exact: bool = True

    @classmethod
    def of(cls, terms: Iterable[Term]) -> "PairNoise":
        """The noise of these terms; terms of one noise must have been merged."""
        return cls.sum_of(
            (source.law, source.protocol.dropped_bits, abs(coefficient)) for source, coefficient in terms
        )

    @classmethod
    def sum_of(cls, laws: Iterable[tuple[Law, int, float]], *, is_exact: bool = True) -> "PairNoise":
        """The sum of independent noises, each with its law, its dropped bits and its coefficient."""
        total = PairNoise((), (), Cumulants(), is_exact)
        for law, bits, coefficient in laws:
            component = NoiseComponent(law.name, law.scale, bits, coefficient)
            cumulants = (law.cumulants + uniform_cumulants(bits)).times(coefficient)
            total = total.plus(PairNoise((component,), (law,), cumulants, is_exact))
        return total

    def plus(self, other: "PairNoise") -> "PairNoise":
        """The sum of this noise and an independent one."""
        components, laws = self.components + other.components, self.laws + other.laws
        order = sorted(range(len(components)), key=components.__getitem__)
        cumulants = Cumulants(self.cumulants.k2 + other.cumulants.k2, self.cumulants.k4 + other.cumulants.k4)
        return PairNoise(
            tuple(components[i] for i in order), tuple(laws[i] for i in order), cumulants, self.is_exact
        )

    @property
    def has_one_law(self) -> bool:
        """Whether all components are small whole multiples of one noise: then the exact law of the estimate at 0 is at hand."""
        if not self.components:
            return True
        smallest = min(component.coefficient for component in self.components)
        multiples = [component.coefficient / smallest for component in self.components]
        return len({replace(component, coefficient=1.0) for component in self.components}) == 1 and all(
            multiple % 1 == 0 and multiple <= _LARGEST_MULTIPLE for multiple in multiples
        )

    def normalized(self) -> "PairNoise":
        """The same noise in units of its smallest coefficient, for quantiles that are counted in standard deviations."""
        if not self.is_exact or not self.components:
            return self
        smallest = min(component.coefficient for component in self.components)
        components = tuple(replace(each, coefficient=each.coefficient / smallest) for each in self.components)
        return PairNoise(components, self.laws, self.cumulants.times(1 / smallest))


NO_NOISE = PairNoise((), (), Cumulants())


@lru_cache(maxsize=4096)
def noise_with_kurtosis(kurtosis: float) -> PairNoise:
    """A noise of variance 1 and this κ₄/κ₂² that stands for all others with it.

    Up to 3 it is a Laplace noise with the share √(kurtosis/3) of the variance, and a normal one with the rest. Of all sums of
    Laplace and normal noises with this variance and kurtosis it has the largest higher cumulants: those are proportional to
    Σ wⁿ, with w the shares of the Laplace noises, and Σ wⁿ ≤ (Σ w²)^(n/2). Above 3 it is a discrete Laplace noise, whose
    kurtosis is 3 + 1/κ₂.
    """
    if kurtosis > 3:
        k2 = 1 / (kurtosis - 3)
        ratio = k2 / (1 + k2 + math.sqrt(1 + 2 * k2))  # α of κ₂ = 2α/(1−α)²
        law = DiscreteLaplace(max(-1 / math.log(ratio), SMALLEST_SCALE) if ratio > 0 else SMALLEST_SCALE)
        return PairNoise.sum_of([(law, 0, 1 / math.sqrt(law.cumulants.k2))], is_exact=False)
    share = math.sqrt(kurtosis / 3)
    shares = ((DiscreteLaplace(_SMOOTH_SCALE), share), (RoundedNormal(_SMOOTH_SCALE), 1 - share))
    return PairNoise.sum_of(
        ((law, 0, math.sqrt(each / law.cumulants.k2)) for law, each in shares if each > 0), is_exact=False
    )


@dataclass(frozen=True)
class PairNoises:
    """The noises of rows, or of pairs of rows.

    Attributes:
        shape: How many rows, or pairs, there are.
        index: Which of the different noises each of them has: `k2[index]` broadcasts to the shape.
        k2: κ₂ of each different noise, in integer units.
        k4: κ₄ of each.
        step: The largest squared distance of two neighboring values.
        exact: Those of the different noises whose exact law is used, by their place in k2.
        shared: The pairs that have a noise in common, and what is left of their noises; these overrule the rest.
    """

    shape: tuple[int, ...]
    index: tuple[Any, ...]
    k2: Floats
    k4: Floats
    step: Floats
    exact: dict[tuple[int, ...], PairNoise]
    shared: "tuple[tuple[NDArray[np.int64], NDArray[np.int64]], PairNoises] | None" = None

    @classmethod
    def of(cls, different: Sequence[PairNoise], numbers: NDArray[np.int64]) -> "PairNoises":
        """Noises by number: one number for each row or pair of a list."""
        moments = _moments(different)
        exact: dict[tuple[int, ...], PairNoise] = {
            (number,): noise for number, noise in enumerate(different) if noise.has_one_law
        }
        return cls(numbers.shape, (numbers,), *moments, exact)

    @property
    def cumulants(self) -> Cumulants:
        """κ₂ and κ₄, as arrays that broadcast to the shape."""
        return Cumulants(self.k2[self.index], self.k4[self.index])

    def each(self, name: str) -> Floats:
        """A cumulant ("k2" or "k4") of every row or pair; shared noises count as two."""
        return np.broadcast_to(getattr(self, name)[self.index], self.shape)

    def by_law(self) -> tuple[list[PairNoise], NDArray[np.int64], Floats, Floats]:
        """The few laws that the different noises have up to a unit.

        Returns:
            The laws; and for each different noise the number of its law, its unit (of squares, in integer units), and the
            slack that its law needs at both ends of an interval, in squared integer units.
        """
        has_noise = self.k2 > 0
        unit = np.where(has_noise, self.k2, 1.0)
        rounded = np.where(has_noise, _rounded_kurtosis(self.k4 / unit**2), -1.0)
        kurtoses, number = np.unique(rounded, return_inverse=True)
        number = number.reshape(self.k2.shape)
        # Half a step: a law that stands for others knows nothing of where their lattice lies.
        slack = np.where(has_noise, self.step / 2, 0.0)
        laws = [NO_NOISE if kurtosis < 0 else noise_with_kurtosis(kurtosis) for kurtosis in kurtoses.tolist()]
        numbers: dict[PairNoise, int] = {}
        for place, noise in self.exact.items():
            if noise not in numbers:
                if len(numbers) == MOST_LAWS:
                    raise ParameterError(
                        f"pairs must have at most {MOST_LAWS} different noises, got more; compare fewer rows at a time"
                    )
                numbers[noise] = len(laws)
                laws.append(noise)
            number[place], unit[place], slack[place] = numbers[noise], 1.0, 0.0
        return laws, number, unit, slack


def _rounded_kurtosis(kurtosis: Floats) -> Floats:
    """The kurtosis rounded up to a grid, so that few laws stand for all noises and no variance is counted too small."""
    above = np.maximum(kurtosis - 3, 1.0)
    coarse = 3 + 2 ** (np.ceil(_STEPS_PER_OCTAVE * np.log2(above)) / _STEPS_PER_OCTAVE)
    fine = np.ceil(np.maximum(kurtosis, 0.0) * _KURTOSIS_STEPS - 1e-6) / _KURTOSIS_STEPS
    return np.where(kurtosis > 4, coarse, fine)


def _moments(noises: Sequence[PairNoise]) -> Moments:
    """κ₂, κ₄ and the squared step of each noise."""
    steps = [max((component.step for component in noise.components), default=0.0) ** 2 for noise in noises]
    return (
        np.array([noise.cumulants.k2 for noise in noises]),
        np.array([noise.cumulants.k4 for noise in noises]),
        np.array(steps),
    )


def row_noises(sketches: Sketches) -> PairNoises:
    """The noise of every row by itself."""
    classes, noises = noise_classes(sketches)
    return PairNoises.of(noises, classes)


def pair_noises(left: Sketches, right: Sketches) -> PairNoises:
    """The noise of every difference left_i − right_j: κ_n = Σ (α−β)^n·κ_n over the noises that either row has."""
    rows, mine = noise_classes(left)
    columns, theirs = (rows, mine) if right is left else noise_classes(right)
    exact: dict[tuple[int, ...], PairNoise] = {
        (i, j): noise
        for i, j in _may_have_one_law(mine, theirs)
        if (noise := mine[i].plus(theirs[j])).has_one_law
    }
    # One number for all pairs, where they have one noise, and no matrix of them.
    index = (0, 0) if len(mine) == len(theirs) == 1 else (rows[:, None], columns[None, :])
    moments = _of_pairs(_moments(mine), _moments(theirs))
    return PairNoises((len(rows), len(columns)), index, *moments, exact, _shared_noises(left, right))


def scaled_pair_noises(left: Sketches, right: Sketches, factors: tuple[Floats, Floats]) -> PairNoises:
    """The noise of every difference f_i·left_i − g_j·right_j, with a factor for each row."""
    moments: list[Moments] = []
    for side, factor in zip((left, right), factors, strict=True):
        classes, noises = noise_classes(side)
        k2, k4, step = (each[classes] for each in _moments(noises))
        moments.append((k2 * factor**2, k4 * factor**4, step * factor**2))
    shape = len(factors[0]), len(factors[1])
    return PairNoises(shape, (...,), *_of_pairs(*moments), {}, _shared_noises(left, right, factors))


def _of_pairs(mine: Moments, theirs: Moments) -> Moments:
    """κ₂, κ₄ and the squared step of all pairs of two lists of independent noises."""
    (k2, k4, step), (other_k2, other_k4, other_step) = mine, theirs
    return (
        k2[:, None] + other_k2[None, :],
        k4[:, None] + other_k4[None, :],
        np.maximum(step[:, None], other_step[None, :]),
    )


def _may_have_one_law(left: Sequence[PairNoise], right: Sequence[PairNoise]) -> Iterator[tuple[int, int]]:
    """The pairs of classes whose first noises have one law, or of which one has no noise: few, where there are many laws."""
    columns: dict[Law | None, list[int]] = {}
    for j, noise in enumerate(right):
        columns.setdefault(noise.laws[0] if noise.laws else None, []).append(j)
    for i, noise in enumerate(left):
        same = [*columns.get(None, []), *columns.get(noise.laws[0], [])] if noise.laws else range(len(right))
        yield from ((i, j) for j in same)


def noise_classes(sketches: Sketches) -> tuple[NDArray[np.int64], list[PairNoise]]:
    """For each row the number of its class, and the noise of each class."""
    if sketches.released is not None and len(sketches.values):
        (first,) = sketches.released.take([0]).rows()
        return np.zeros(len(sketches.values), dtype=np.int64), [PairNoise.of(first.terms)]
    different: dict[PairNoise, int] = {}
    # Most rows have the protocols and coefficients of one before them: an object for each would take longer than the search.
    numbers: dict[tuple[tuple[int, float], ...], int] = {}
    classes = []
    for row in sketches.provenance:
        key = tuple([(id(source.protocol), coefficient) for source, coefficient in row.terms])
        if key not in numbers:
            numbers[key] = different.setdefault(PairNoise.of(row.terms), len(different))
        classes.append(numbers[key])
    return np.array(classes, dtype=np.int64), list(different)


def _shared_noises(
    left: Sketches,
    right: Sketches,
    factors: tuple[Floats, Floats] | None = None,
) -> "tuple[tuple[NDArray[np.int64], NDArray[np.int64]], PairNoises] | None":
    """The pairs of rows that have a noise in common, which is merged and not counted twice."""
    if left is right and left.released is not None and left.released.are_different:
        rows = columns = np.arange(len(left.values))
        return (rows, columns), PairNoises.of([NO_NOISE], np.zeros(len(rows), dtype=np.int64))
    pairs = sorted(sharing_pairs(left, right))
    if not pairs:
        return None
    different: dict[PairNoise, int] = {}
    numbers = []
    for i, j in pairs:
        alpha, beta = (1.0, 1.0) if factors is None else (float(factors[0][i]), float(factors[1][j]))
        merged = left.provenance[i].times(alpha).plus(right.provenance[j], -beta)
        numbers.append(different.setdefault(PairNoise.of(merged.terms), len(different)))
    rows, columns = np.array(pairs, dtype=np.int64).T
    return (rows, columns), PairNoises.of(list(different), np.array(numbers, dtype=np.int64))


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


def shared_cumulants(left: Sketches, right: Sketches) -> tuple[Floats, Floats]:
    """Σαβκ₂ and Σα²β²κ₄ over the noises that both rows have, in integer units."""
    second, fourth = np.zeros((2, len(left.values), len(right.values)))
    for i, j in sharing_pairs(left, right):
        theirs = {source.id: coefficient for source, coefficient in right.provenance[j].terms}
        for source, alpha in left.provenance[i].terms:
            if source.id in theirs:
                each = source.law.cumulants + uniform_cumulants(source.protocol.dropped_bits)
                second[i, j] += alpha * theirs[source.id] * each.k2
                fourth[i, j] += (alpha * theirs[source.id]) ** 2 * each.k4
    return second, fourth
