"""Hot loops of the contribution bounds: whole numbers only, and no sum that could overflow."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel


@kernel
def mark_persons_over(
    starts: NDArray[np.int64], amounts: NDArray[np.int64], bound: int, is_over: NDArray[np.bool_]
) -> None:
    """Whether each person's Σ|amount| exceeds the bound; person i has rows starts[i] … starts[i+1]−1."""
    for person in range(len(starts) - 1):
        left = bound
        over = False
        for row in range(starts[person], starts[person + 1]):
            magnitude = abs(amounts[row])
            if not 0 <= magnitude <= left:  # the smallest int64 has no magnitude
                over = True
                break
            left -= magnitude
        is_over[person] = over


@kernel
def take_in_order(
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    amounts: NDArray[np.int64],
    bound: int,
    taken: NDArray[np.int64],
) -> None:
    """What of each amount is taken: in order, until Σ|amount| reaches the bound; the last one is truncated.

    Person i has the places starts[i] … starts[i+1]−1 of the order.
    """
    for person in range(len(starts) - 1):
        left = bound
        for place in range(starts[person], starts[person + 1]):
            row = order[place]
            magnitude = abs(amounts[row])
            part = min(magnitude, left) if magnitude >= 0 else left
            left -= part
            taken[row] = part if amounts[row] > 0 else -part


@kernel
def number_occurrences(same_as_before: NDArray[np.bool_], before: int, numbers: NDArray[np.int64]) -> None:
    """The number of each row in its run of equal rows; the first row goes on from the number `before` it if it is the same."""
    number = before
    for row in range(len(same_as_before)):
        number = number + 1 if same_as_before[row] else 0
        numbers[row] = number
