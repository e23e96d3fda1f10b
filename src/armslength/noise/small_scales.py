"""Level 0, for small scales: 16 random bits and one look-up.

One bit is the sign, 15 are the first bits of W. Of the 32,768 intervals of W nearly all give one magnitude; those that hold
a boundary, and the one next to 0, are left to the next level, which goes on with the same bits. The table is made in ball
arithmetic from the law's tail, without any inverse function.
"""

from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength.balls import precision
from armslength.compiled import kernel
from armslength.noise.quantiles import Quantile

LARGEST_SMALL_SCALE = 256.0  # one interval in 22 is open; magnitudes fit 16 bits
OPEN = np.int16(-(2**15))
BITS = 15
_INTERVALS = 1 << BITS
_MASK = np.uint64(2**48 - 1)
_48 = np.uint64(48)


@lru_cache(maxsize=32)
def look_up_table(quantile: Quantile, scale: float) -> NDArray[np.int16]:
    """The signed value of each of 2^16 patterns (the sign is the highest bit), or OPEN."""
    magnitudes = np.zeros(_INTERVALS, dtype=np.int16)
    is_open = np.zeros(_INTERVALS, dtype=bool)
    is_open[0] = True
    with precision(192):
        n = 0
        while True:
            n += 1
            exact = quantile.tail(arb(scale), n) * _INTERVALS
            first, last = (int(end.floor().unique_fmpz() or 0) for end in (exact.lower(), exact.upper()))
            # Every W below the boundary gives at least n, every W above it less. Intervals that could hold it are open.
            magnitudes[:first] = n
            is_open[first : last + 1] = True
            if first == 0:
                break
    table = np.concatenate([magnitudes, -magnitudes])
    table[np.concatenate([is_open, is_open])] = OPEN
    table.flags.writeable = False
    return table


@kernel
def look_up(
    patterns: NDArray[np.uint16],
    table: NDArray[np.int16],
    values: NDArray[np.int64],
    to_zero: bool,
    still_open: NDArray[np.int32],
) -> int:
    """Adds to the values, or to zero, and lists the places that are still open as far as the list is long; how many there are."""
    opened = 0
    for i in range(len(patterns)):
        value = table[patterns[i]]
        if value == OPEN:
            if opened < len(still_open):
                still_open[opened] = i
            opened += 1
            value = np.int16(0)
        values[i] = value if to_zero else values[i] + value
    return opened


def open_places(
    patterns: NDArray[np.uint16], table: NDArray[np.int16], values: NDArray[np.int64], *, to_zero: bool
) -> NDArray[np.int64]:
    """Adds what the table knows to the values, or to zero; the places that it leaves open."""
    still_open = np.empty(len(patterns) // 16 + 64, dtype=np.int32)
    count = look_up(patterns, table, values, to_zero, still_open)
    if count > len(still_open):  # many times what is expected: the list was too short
        return np.flatnonzero(table[patterns] == OPEN)
    return still_open[:count].astype(np.int64)


def continued(patterns: NDArray[np.uint16], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """First words of level 1 that begin with these patterns and go on with the low 48 bits of these words."""
    return (patterns.astype(np.uint64) << _48) | (words & _MASK)
