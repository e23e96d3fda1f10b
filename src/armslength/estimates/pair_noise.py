"""The noise of rows, and of differences of two rows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.laws import SMALLEST_SCALE, Cumulants, DiscreteLaplace, Law, RoundedNormal
from armslength.sketches.noises import Noises, Term
from armslength.sketches.sketches import Sketches

Floats = NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]  # κ₂, κ₄ and the squared step of several noises

MOST_LAWS = 32  # exact ones in one comparison: each takes up to 0.2 seconds to tabulate
_MOST_SUMS = 2_000  # of two noises, among which exact laws are looked for
_MOST_COMPONENTS = 64  # of a sum with an exact law; each is a convolution
_MOST_TERMS = 1 << 23  # of all pairs of rows that have a noise in common: about a microsecond each
_LARGEST_MULTIPLE = 16  # of the smallest coefficient, up to which a lattice is short enough for the exact law
# To a unit: the variance is counted at most 3 percent larger, 1.8 percent for two Laplace noises.
_KURTOSIS_STEPS = 16
_STEPS_PER_OCTAVE = 16  # for the large kurtosis of noise that is nearly always 0
_SMOOTH_SCALE = 256.0  # from which on a law on the integers is as good as continuous


class NoiseComponent(NamedTuple):
    """One independent noise: a law and its coefficient."""

    law: Law
    coefficient: float

    @property
    def cumulants(self) -> Cumulants:
        """In integer units."""
        return self.law.cumulants.times(self.coefficient)

    @property
    def reach(self) -> float:
        """Beyond this lies less than 1e-19 of the probability."""
        scales = (46 if self.law.name == "laplace" else 9.2) * self.law.scale
        return self.coefficient * (scales + 2)


@dataclass(frozen=True)
class PairNoise:
    """A sum of independent noises, the same in every coordinate."""

    components: tuple[NoiseComponent, ...]  # sorted, so that equal noises are equal objects
    cumulants: Cumulants = field(compare=False)  # Σ coefficient^n·κ_n, in integer units
    is_exact: bool = True  # False for one that stands for others with its kurtosis

    @classmethod
    def of(cls, terms: Iterable[Term]) -> "PairNoise":
        """The noise of these terms; terms of one noise must have been merged."""
        return cls.sum_of(tuple((protocol.law, abs(factor)) for protocol, factor in terms))

    @classmethod
    @lru_cache(maxsize=4096)
    def sum_of(cls, laws: tuple[tuple[Law, float], ...], *, is_exact: bool = True) -> "PairNoise":
        """The sum of independent noises, each with its law and its coefficient."""
        components = [NoiseComponent(*law) for law in laws]
        components.sort(key=lambda part: (part.law.name, part.law.scale, part.coefficient))
        cumulants = sum((component.cumulants for component in components), Cumulants())
        return cls(tuple(components), cumulants, is_exact)

    def plus(self, other: "PairNoise") -> "PairNoise":
        """The sum of this noise and an independent one."""
        return PairNoise.sum_of(self.components + other.components, is_exact=self.is_exact)

    @property
    def sixth_cumulant(self) -> float:
        """κ₆, in integer units."""
        return sum(part.coefficient**6 * part.law.higher_cumulants[0] for part in self.components)

    @property
    def has_one_law(self) -> bool:
        """Whether all components are small whole multiples of one noise, and few, so that the exact law at D = 0 is at hand."""
        if len(self.components) > _MOST_COMPONENTS:
            return False
        is_one = len({component.law for component in self.components}) <= 1
        return is_one and all(times % 1 == 0 and times <= _LARGEST_MULTIPLE for times in self.multiples)

    @property
    def first_law(self) -> Law | None:
        """The law of the first component; None without noise."""
        return self.components[0].law if self.components else None

    @property
    def unit(self) -> float:
        """The smallest coefficient."""
        return min((component.coefficient for component in self.components), default=1.0)

    @property
    def multiples(self) -> list[float]:
        """The coefficients in units of the smallest."""
        unit = self.unit
        return [component.coefficient / unit for component in self.components]

    @property
    def is_on_lattice(self) -> bool:
        """Whether all values are whole multiples of the unit."""
        return all(times % 1 == 0 for times in self.multiples)

    def normalized(self) -> "PairNoise":
        """The same noise in units of its smallest coefficient."""
        if not self.is_exact or not self.components:
            return self
        pairs = zip(self.components, self.multiples, strict=True)
        return PairNoise.sum_of(tuple(part._replace(coefficient=multiple) for part, multiple in pairs))


NO_NOISE = PairNoise((), Cumulants())


@lru_cache(maxsize=4096)
def noise_with_kurtosis(kurtosis: float) -> PairNoise:
    """A noise of variance 1 and this κ₄/κ₂² that stands for all others with it; docs/estimates.md says why it can."""
    if kurtosis > 3:  # a discrete Laplace noise, whose kurtosis is 3 + 1/κ₂
        k2 = 1 / (kurtosis - 3)
        ratio = k2 / (1 + k2 + math.sqrt(1 + 2 * k2))  # α of κ₂ = 2α/(1−α)²
        law = DiscreteLaplace(max(-1 / math.log(ratio), SMALLEST_SCALE) if ratio > 0 else SMALLEST_SCALE)
        return PairNoise.sum_of(((law, 1 / math.sqrt(law.cumulants.k2)),), is_exact=False)
    share = math.sqrt(kurtosis / 3)  # of the variance, for the Laplace noise
    shares = ((DiscreteLaplace(_SMOOTH_SCALE), share), (RoundedNormal(_SMOOTH_SCALE), 1 - share))
    parts = [(law, math.sqrt(part / law.cumulants.k2)) for law, part in shares if part > 0]
    return PairNoise.sum_of(tuple(parts), is_exact=False)


@dataclass(frozen=True)
class PairNoises:
    """The noises of rows, or of pairs of rows."""

    shape: tuple[int, ...]
    index: tuple[Any, ...]  # which of the different noises each has: k2[index] broadcasts to the shape
    k2: Floats  # of each different noise, in integer units
    k4: Floats
    step: Floats  # the largest squared distance of two neighboring values
    exact: dict[tuple[int, ...], PairNoise]  # noises whose exact law is used, by their index in k2
    # The pairs that have a noise in common, and what is left of their noises; these overrule the rest.
    shared: "SharedNoises | None" = None

    @classmethod
    def of_rows(cls, noises: Noises) -> "PairNoises":
        """The noise of every row by itself."""
        classes, different = noise_classes(noises)
        return cls.of(different, classes)

    @classmethod
    def of(cls, different: Sequence[PairNoise], numbers: NDArray[np.int64]) -> "PairNoises":
        """Noises by number: one number for each row or pair of a list."""
        exact: dict[tuple[int, ...], PairNoise] = {
            (number,): noise for number, noise in enumerate(different) if noise.has_one_law
        }
        return cls(numbers.shape, (numbers,), *_moments(different), exact)

    @property
    def cumulants(self) -> Cumulants:
        """κ₂ and κ₄, as arrays that broadcast to the shape."""
        return Cumulants(self.k2[self.index], self.k4[self.index])

    def each(self, name: str) -> Floats:
        """A cumulant ("k2" or "k4") of every row or pair; shared noises count as two."""
        return np.broadcast_to(getattr(self, name)[self.index], self.shape)

    def take(self, chosen: tuple[NDArray[np.int64], ...]) -> "PairNoises":
        """The noises of some rows or pairs, none of which shares a noise."""
        index = tuple(np.broadcast_to(numbers, self.shape)[chosen] for numbers in self.index)
        return replace(self, shape=(len(chosen[0]),), index=index, shared=None)

    def by_law(self) -> tuple[list[PairNoise], NDArray[np.int64], Floats, Floats]:
        """The few laws that the different noises have up to a unit; and for each noise three arrays.

        They are the number of its law, its unit (of squares), and the slack that its law needs at both ends of an
        interval; both in squared integer units.
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
        exact = self.exact if len(set(self.exact.values())) <= MOST_LAWS else {}
        for index, noise in exact.items():
            if noise not in numbers:
                numbers[noise] = len(laws)
                laws.append(noise)
            number[index], unit[index], slack[index] = numbers[noise], 1.0, 0.0
        return laws, number, unit, slack


def _rounded_kurtosis(kurtosis: Floats) -> Floats:
    """The kurtosis rounded up to a grid: few laws stand for all noises, and no variance is too small."""
    above = np.maximum(kurtosis - 3, 1.0)
    coarse = 3 + 2 ** (np.ceil(_STEPS_PER_OCTAVE * np.log2(above)) / _STEPS_PER_OCTAVE)
    fine = np.ceil(np.maximum(kurtosis, 0.0) * _KURTOSIS_STEPS - 1e-6) / _KURTOSIS_STEPS
    return np.where(kurtosis > 4, coarse, fine)


def _moments(noises: Sequence[PairNoise]) -> Moments:
    """κ₂, κ₄ and the squared step of each noise."""
    steps = [
        max((component.coefficient for component in noise.components), default=0.0) ** 2 for noise in noises
    ]
    return (
        np.array([noise.cumulants.k2 for noise in noises]),
        np.array([noise.cumulants.k4 for noise in noises]),
        np.array(steps),
    )


SharedNoises = tuple[tuple[NDArray[np.int64], NDArray[np.int64]], PairNoises]


def pair_noises(left: Sketches, right: Sketches) -> PairNoises:
    """The noise of every difference left_i − right_j: κ_n = Σ (α−β)^n·κ_n over the noises that either row has."""
    rows, of_rows = noise_classes(left.noises)
    columns, of_columns = (rows, of_rows) if right is left else noise_classes(right.noises)
    exact = _exact_sums(of_rows, of_columns)
    # One number for all pairs, where they have one noise, and no matrix of them.
    index = (0, 0) if len(of_rows) == len(of_columns) == 1 else (rows[:, None], columns[None, :])
    moments = _pair_moments(_moments(of_rows), _moments(of_columns))
    return PairNoises((len(rows), len(columns)), index, *moments, exact, _shared_noises(left, right))


def scaled_pair_noises(left: Sketches, right: Sketches, factors: tuple[Floats, Floats]) -> PairNoises:
    """The noise of every difference f_i·left_i − g_j·right_j, with a factor for each row."""
    moments: list[Moments] = []
    for side, factor in zip((left, right), factors, strict=True):
        classes, noises = noise_classes(side.noises)
        k2, k4, step = (moment[classes] for moment in _moments(noises))
        moments.append((k2 * factor**2, k4 * factor**4, step * factor**2))
    shape = len(factors[0]), len(factors[1])
    return PairNoises(shape, (...,), *_pair_moments(*moments), {}, _shared_noises(left, right, factors))


def _pair_moments(left: Moments, right: Moments) -> Moments:
    """κ₂, κ₄ and the squared step of all pairs of two lists of independent noises."""
    k2, k4 = (np.add.outer(left[number], right[number]) for number in (0, 1))
    return k2, k4, np.maximum.outer(left[2], right[2])


def _exact_sums(left: Sequence[PairNoise], right: Sequence[PairNoise]) -> dict[tuple[int, ...], PairNoise]:
    """The sums of two noises whose exact law is used, by their places; none where that would be too many."""
    exact: dict[tuple[int, ...], PairNoise] = {}
    laws = set[PairNoise]()
    for number, (i, j) in enumerate(_may_have_one_law(left, right)):
        if len(left[i].components) + len(right[j].components) > _MOST_COMPONENTS:
            continue
        noise = left[i].plus(right[j])
        if noise.has_one_law:
            exact[i, j] = noise
            laws.add(noise)
        if len(laws) > MOST_LAWS or number == _MOST_SUMS:
            return {}
    return exact


def _may_have_one_law(left: Sequence[PairNoise], right: Sequence[PairNoise]) -> Iterator[tuple[int, int]]:
    """The pairs of classes whose first noises have one law, or of which one has no noise."""
    columns: dict[Law | None, list[int]] = {}
    for j, noise in enumerate(right):
        columns.setdefault(noise.first_law, []).append(j)
    for i, noise in enumerate(left):
        law = noise.first_law
        same = [*columns.get(None, []), *columns.get(law, [])] if law else range(len(right))
        yield from ((i, j) for j in same)


def noise_classes(noises: Noises) -> tuple[NDArray[np.int64], list[PairNoise]]:
    """For each row the number of its class, and the noise of each class."""
    classes, terms = noises.classes
    return classes, [PairNoise.of(row) for row in terms]


def _shared_noises(
    left: Sketches, right: Sketches, factors: tuple[Floats, Floats] | None = None
) -> SharedNoises | None:
    """The pairs of rows that have a noise in common, which is merged and not counted twice."""
    i, j = left.noises.shared_pairs(right.noises)
    if not len(i):
        return None
    lengths = np.diff(left.noises.starts)[i].sum() + np.diff(right.noises.starts)[j].sum()
    if lengths > _MOST_TERMS:
        raise ParameterError(
            f"pairs of rows with noises in common have {lengths:,} noises together, more than {_MOST_TERMS:,}; compare fewer rows at a time"
        )
    first, second = left.noises.take(i), right.noises.take(j)
    if factors is not None:
        first, second = first.times(factors[0][i]), second.times(factors[1][j])
    return (i, j), PairNoises.of_rows(first.plus(second, -1.0))


def shared_cumulants(left: Sketches, right: Sketches) -> tuple[Floats, Floats]:
    """Σαβκ₂ and Σα²β²κ₄ over the noises that both rows have, in integer units."""
    second, fourth = np.zeros((2, len(left), len(right)))
    k2, k4, _ = _moments([PairNoise.of([(protocol, 1.0)]) for protocol, _ in left.noises.releases])
    i, j = left.noises.shared_terms(right.noises)
    numbers, pairs = left.noises.numbers[i], (left.noises.rows[i], right.noises.rows[j])
    products = left.noises.coefficients[i] * right.noises.coefficients[j]
    np.add.at(second, pairs, products * k2[numbers])
    np.add.at(fourth, pairs, products**2 * k4[numbers])
    return second, fourth
