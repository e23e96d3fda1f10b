"""What `HadamardJL` and `FastJL` share: the padded dimension, the random signs, the Hadamard entries."""

import numpy as np
from numpy.typing import NDArray

from armslength.randomness.stream import Stream
from armslength.transforms.work import LONE_SIGN, SIGN

LARGEST_PADDED_DIM = 2**28  # a padded row of int64 is 2 GB
_FEWEST_SIGNS = 2**22  # of which some are made alone; fewer than that are kept: 32 MB
LARGEST_SCANNED_DIM = 2**25  # five such rows are held when a matrix is scanned: 1.3 GB


def padded_dimension(input_dim: int) -> int:
    """The smallest power of two that is at least input_dim."""
    return 1 << (input_dim - 1).bit_length()


def random_signs(seed: str, purpose: str, count: int) -> NDArray[np.int64]:
    """The diagonal of D: −1 where the bit of the stream is 1, else +1."""
    return 1 - 2 * Stream(seed, purpose).bits(0, count).astype(np.int64)


def are_few(count: int, size: int) -> bool:
    """Whether so many of all signs are made alone: all of them would take much memory, and more time."""
    return size > _FEWEST_SIGNS and LONE_SIGN * count < SIGN * size


def lone_signs(seed: str, purpose: str, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The entries of D at these places, each made alone."""
    stream = Stream(seed, purpose)
    bits = [stream.bits(number, 1)[0] for number in numbers.tolist()]
    return 1 - 2 * np.array(bits, dtype=np.int64)


def signs_work(count: int, size: int) -> int:
    """What that many of all signs cost to make."""
    return LONE_SIGN * count if are_few(count, size) else SIGN * size


def hadamard_entries(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """(−1)^popcount(f AND j) for each row f and column j."""
    shared = np.bitwise_count(rows[:, None] & columns[None, :])
    entries: NDArray[np.int64] = 1 - 2 * (shared & 1).astype(np.int64)
    return entries
