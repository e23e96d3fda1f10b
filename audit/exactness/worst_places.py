"""Streams where an inexact inversion would be caught: beside change points, in the far tail, next to 1, at the borders of pieces.

Each goes through the whole draw, as random streams do, and through levels 1 and 2 by themselves: they may be uncertain, never wrong.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.laws import Law
from armslength.noise.inversion import invert_double, invert_float
from armslength.noise.quantile_tables import OCTAVES, PIECES, double_table, float_table, quantile_of, shift_of
from audit.exactness.streams import stream_of
from reference.draws import certain_magnitude, enclosed_tail

_FOLLOWED = 255  # bits of a change point that a stream can follow
_MULTIPLES = (0.01, 0.1, 0.3, 0.5, 1, 1.5, 2, 3, 5, 8, 12, 20, 30, 42, 60)
_FARTHEST = 170.0  # −ln W; beyond that W has no bits among those that are followed
_STEPS = (1, 2, 3, 1 << 10)


@dataclass(frozen=True)
class Forced:
    """What a level by itself said of words at the worst places.

    Attributes:
        words: How many words it was asked about.
        certain: How many of them it answered.
        wrong: How many of its answers are not what every W with these bits gives.
    """

    words: int = 0
    certain: int = 0
    wrong: int = 0

    def __add__(self, other: "Forced") -> "Forced":
        return Forced(self.words + other.words, self.certain + other.certain, self.wrong + other.wrong)


def change_points(law: Law) -> list[int]:
    """W at which the magnitude changes, as ⌊W·2^255⌋, for small, usual and large magnitudes."""
    magnitudes = {1, 2, 3, 10} | {max(1, round(law.scale * multiple)) for multiple in _MULTIPLES}
    found = []
    for n in sorted(magnitudes):
        distance = n / law.scale
        if (distance if law.name == "laplace" else distance**2 / 2) > _FARTHEST:
            continue
        tail = enclosed_tail(law.name, law.scale, n, _FOLLOWED + 64)
        low, high = tail.low >> 64, tail.high >> 64
        if low == high and 1 << 10 < low < (1 << _FOLLOWED) - (1 << 10):
            found.append(low)
    return found


def beside(law: Law) -> list[int]:
    """Change points as ⌊W·2^255⌋, and W beside them by a few units of their 63rd, 127th, 191st and 255th bit."""
    found = []
    for w in change_points(law):
        found.append(w)
        for unit in (192, 128, 64, 0):
            for step in _STEPS:
                found += [w + (step << unit), w - (step << unit)]
    return [w for w in found if 0 <= w < 1 << _FOLLOWED]


def first_bits() -> list[int]:
    """The first 63 bits of W at the ends of its range, and at and beside every border of a piece or a table's interval."""
    ends = [*range(40), *(2**63 - 1 - i for i in range(40)), *(2**20 + i for i in range(-20, 20))]
    borders = [(PIECES + part) << 57 >> octave for octave in range(OCTAVES) for part in range(PIECES)]
    intervals = [i << 48 for i in (1, 2, 3, 100, 2**14, 2**15 - 2, 2**15 - 1)]
    return ends + [border + step for border in borders + intervals for step in (-1, 0, 1)]


def worst_streams(law: Law, generator: np.random.Generator, sampled: int) -> list[list[int]]:
    """Streams of all these kinds.

    Args:
        law: Whose change points.
        generator: For signs, and for words that are not fixed.
        sampled: How many of the borders are taken, in a random order.
    """
    streams = [stream_of(law.scale, w, _FOLLOWED, generator) for w in beside(law)]
    for w in change_points(law):
        streams += [stream_of(law.scale, w, _FOLLOWED, generator, following=word) for word in (0, 2**64 - 1)]
    borders = first_bits()
    chosen = borders[:120] + [borders[i] for i in generator.permutation(len(borders))[:sampled]]
    return streams + [stream_of(law.scale, m, 63, generator) for m in chosen]


def level_1(law: Law, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Magnitudes by level 1 alone, with −1 where it is not certain; the words have no sign."""
    quantile = quantile_of(law)
    table = float_table(quantile)
    values = np.zeros(len(words), dtype=np.int64)
    still_open = np.empty(len(words), dtype=np.int64)
    shift, _ = shift_of(quantile, law.scale)
    opened = invert_float(words, table.high, table.radius, law.scale, shift, values, still_open)
    values[still_open[:opened]] = -1
    return values


def level_2(law: Law, words: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Magnitudes by level 2 alone, with −1 where it is not certain."""
    quantile = quantile_of(law)
    table = double_table(quantile)
    magnitudes = np.empty(len(words), dtype=np.int64)
    shift = shift_of(quantile, law.scale)
    invert_double(words, more, table.high, table.low, table.radius, law.scale, shift, magnitudes)
    return magnitudes


def forced_levels(law: Law, generator: np.random.Generator, sampled: int) -> tuple[Forced, Forced]:
    """Levels 1 and 2 by themselves at the worst places, judged by the tails of the law."""
    near = [(w >> 192, w >> 128 & 2**64 - 1) for w in beside(law)]
    borders = first_bits()
    chosen = borders[:120] + [borders[i] for i in generator.permutation(len(borders))[:sampled]]
    second = generator.integers(0, 2**64, len(chosen), dtype=np.uint64).tolist()
    pairs = sorted({*near, *zip(chosen, second, strict=True), *((m, 0) for m in chosen[:120])})
    words, more = (np.array(part, dtype=np.uint64) for part in zip(*pairs, strict=True))
    first = _judged(law, [m for m, _ in pairs], 63, level_1(law, words))
    return first, _judged(law, [m << 64 | rest for m, rest in pairs], 127, level_2(law, words, more))


def _judged(law: Law, revealed: list[int], bits: int, answers: NDArray[np.int64]) -> Forced:
    certain = wrong = 0
    for w, answer in zip(revealed, answers.tolist(), strict=True):
        if answer >= 0:
            certain += 1
            wrong += answer != certain_magnitude(law.name, law.scale, w, bits)
    return Forced(len(revealed), certain, wrong)


def scales(count: int, seed: int) -> list[float]:
    """The ends of the range, the end of the table, powers and decimals, and scales that are uniform in their logarithm."""
    fixed = [0.01, math.nextafter(0.01, 1), 0.1, 0.3, 1.0, 5.0, 50.0, math.nextafter(256.0, 0), 256.0]
    fixed += [
        math.nextafter(256.0, 300),
        1e3,
        1e6,
        2.0**30,
        1e10,
        2.0**37,
        math.nextafter(2.0**40, 0),
        2.0**40,
    ]
    logarithms = np.random.default_rng(seed).uniform(math.log(0.01), math.log(2.0**40), count)
    return fixed + [float(scale) for scale in np.exp(logarithms)]
