"""The same random streams through the library and through tests/reference/draws.py: every value, and every word that was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.laws import DiscreteLaplace, Law, RoundedNormal
from armslength.noise.draw import add_draws
from reference.draws import TABLE_SCALE, certain_magnitude, draw

LAWS: tuple[type[DiscreteLaplace] | type[RoundedNormal], ...] = (DiscreteLaplace, RoundedNormal)
_PATTERN_MASK = 2**15 - 1


class Replay:
    """Words from a list, and how many were asked for; an error beyond its end."""

    def __init__(self, words: Sequence[int] | NDArray[np.uint64]) -> None:
        self._words = np.asarray(words, dtype=np.uint64)
        self.asked = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words."""
        if self.asked + count > len(self._words):
            raise IndexError("the stream has no more words")
        self.asked += count
        return self._words[self.asked - count : self.asked].copy()


@dataclass(frozen=True)
class Agreement:
    """How the two implementations compare.

    Attributes:
        streams: How many draws were made by both.
        different: How many of them have different values.
        odd: How many took another number of words than docs/noise.md says.
        deep: How many needed more than the first 63 bits of W.
    """

    streams: int = 0
    different: int = 0
    odd: int = 0
    deep: int = 0

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(
            self.streams + other.streams,
            self.different + other.different,
            self.odd + other.odd,
            self.deep + other.deep,
        )


def compared(law: Law, streams: Sequence[Sequence[int]]) -> Agreement:
    """One draw from the beginning of each stream."""
    different = odd = deep = 0
    until_63 = 2 if law.scale <= TABLE_SCALE else 1
    for stream in streams:
        value, source = np.zeros(1, dtype=np.int64), Replay(stream)
        add_draws(value, law, source)
        expected, needed = draw(law.name, law.scale, stream)
        different += int(value[0]) != expected
        # Levels 0 and 3 are as sharp as can be. Level 1 may pass on what 63 bits would decide, and then 127 are asked for.
        allowed = {needed, until_63 + 1} if needed == until_63 else {needed}
        odd += source.asked not in allowed
        deep += needed > until_63
    return Agreement(len(streams), different, odd, deep)


def compared_at_once(law: Law, count: int, generator: np.random.Generator) -> Agreement:
    """Many draws from one stream, as a release makes them: first the beginning of every draw, then what is missing, in order."""
    words = generator.integers(0, 2**64, 3 * count + 100, dtype=np.uint64)
    values = np.zeros(count, dtype=np.int64)
    add_draws(values, law, Replay(words))
    small = law.scale <= TABLE_SCALE
    stream = words.tolist()
    starts = [stream[i // 4] >> 16 * (i % 4) & 0xFFFF if small else stream[i] for i in range(count)]
    more = iter(stream[-(-count // 4) if small else count :])
    different = known = 0
    for value, start in zip(values.tolist(), starts, strict=True):
        if small:
            sign, magnitude = start >> 15, certain_magnitude(law.name, law.scale, start & _PATTERN_MASK, 15)
            if magnitude is None:
                revealed = (start & _PATTERN_MASK) << 48 | next(more) & (1 << 48) - 1
                magnitude = certain_magnitude(law.name, law.scale, revealed, 63)
        else:
            sign, magnitude = (
                start >> 63,
                certain_magnitude(law.name, law.scale, start & (1 << 63) - 1, 63),
            )
        if magnitude is not None:
            known += 1
            different += value != (-magnitude if sign else magnitude)
    return Agreement(known, different)


def random_streams(count: int, generator: np.random.Generator) -> list[list[int]]:
    """Uniform words: eight for each draw."""
    words: list[list[int]] = generator.integers(0, 2**64, (count, 8), dtype=np.uint64).tolist()
    return words


def stream_of(
    scale: float, w: int, bits: int, generator: np.random.Generator, following: int | None = None
) -> list[int]:
    """A stream whose W begins with these bits, 63 + 64·j of them; its sign and all that is not W is random.

    Args:
        scale: Up to 256 a draw begins with a quarter of a word.
        w: The bits of W as an integer.
        bits: How many they are.
        generator: For the rest.
        following: Every word after these bits; None for random ones.
    """
    noise: list[int] = generator.integers(0, 2**64, 12, dtype=np.uint64).tolist()
    rest = noise[2:8] if following is None else [following] * 6
    first = w >> (bits - 63)
    more = [w >> shift & (1 << 64) - 1 for shift in range(bits - 127, -1, -64)]
    if scale > TABLE_SCALE:
        return [noise[0] & 1 << 63 | first, *more, *rest]
    pattern = noise[0] & 1 << 15 | first >> 48
    beginning = [noise[8] & ~0xFFFF | pattern, noise[1] & ~((1 << 48) - 1) | first & (1 << 48) - 1]
    return [*beginning, *more, *rest]
