"""Hot loops over rows and the centers of their clusters. Rows are taken one after another, so blocks of any size give the same sums."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel
from armslength.estimates.kernels import squared_difference

_CANCELLED = 0.125  # of the two squared norms: what is left of them has lost three bits and more


@kernel
def subtract_origin(
    values: NDArray[np.int64],
    origin: NDArray[np.int64],
    shifts: NDArray[np.float64],
    result: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """result[i] = values[i] − origin + shifts[i], the difference taken modulo 2^64 before it becomes a float; and its square."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            result[i, j] = np.float64(values[i, j] - origin[j]) + shifts[i]
        squares[i] = squared_norm(result[i])


@kernel
def squared_norm(row: NDArray[np.float64]) -> float:
    """‖row‖², in four sums that do not wait for each other."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = len(row) - len(row) % 4
    for j in range(0, whole, 4):
        a += row[j] * row[j]
        b += row[j + 1] * row[j + 1]
        c += row[j + 2] * row[j + 2]
        d += row[j + 3] * row[j + 3]
    for j in range(whole, len(row)):
        a += row[j] * row[j]
    return (a + b) + (c + d)


@kernel
def recompute_cancelled(
    rows: NDArray[np.float64],
    row_squares: NDArray[np.float64],
    means: NDArray[np.float64],
    mean_squares: NDArray[np.float64],
    limits: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """result[i, j] = ‖rows[i] − means[j]‖² by differences, where ‖u‖² + ‖c‖² − 2⟨u, c⟩ has lost digits that matter.

    Which pairs those are depends on the pair alone, so that blocks of any size give the same numbers.

    Args:
        rows: The u_i.
        row_squares: ‖u_i‖².
        means: The c_j.
        mean_squares: ‖c_j‖².
        limits: For each row, the sum of squared norms up to which rounding does no harm.
        result: The squared distances, by products.
    """
    longest = mean_squares.max()
    for i in range(result.shape[0]):
        if row_squares[i] + longest <= limits[i]:
            continue
        for j in range(result.shape[1]):
            norms = row_squares[i] + mean_squares[j]
            if norms > limits[i] and result[i, j] < _CANCELLED * norms:
                result[i, j] = squared_difference(rows[i], means[j], 0.0)


@kernel
def choose_centers(
    squares: NDArray[np.float64],
    own: NDArray[np.int32],
    noise: NDArray[np.float64],
    centers: tuple[NDArray[np.float64], NDArray[np.float64]],
    reach: NDArray[np.float64],
    chosen: NDArray[np.int32],
    found: tuple[NDArray[np.float64], NDArray[np.float64]],
    margin: NDArray[np.float32],
) -> None:
    """For each row the center of the smallest debiased squared distance; of equal ones the first.

    Args:
        squares: ‖u_i − c_j‖².
        own: The cluster whose center has row i in it; −1 for none.
        noise: What the noise of row i adds to a squared norm.
        centers: What the noise of center j adds, −∞ for a cluster without rows, which nobody chooses; and how many rows it is the mean of.
        reach: For each two centers, what one standard deviation of a row's noise moves the difference of its squared distances to
            them by, for a row whose noise adds 1 to a squared norm.
        chosen: The center of row i.
        found: ‖u_i − c‖² of that center, and its debiased squared distance.
        margin: How many standard deviations of the row's noise the second best center is behind.
    """
    center_noise, sizes = centers
    square, value = found
    for i in range(squares.shape[0]):
        best, second = np.inf, np.inf
        first, other = 0, 0
        value[i] = np.inf
        for j in range(squares.shape[1]):
            distance = squares[i, j] - center_noise[j] - noise[i]
            unbiased = distance
            if own[i] == j:
                # One part in sizes[j] of the center's noise is the row's own, and cancels.
                unbiased += 2 * noise[i] / sizes[j]
                distance = unbiased
                if unbiased < 0:
                    # (1−1/m)² times the distance to the mean of the others: for a negative one that is a step away, and a row
                    # that is nearest to both of two centers would go back and forth for ever.
                    distance /= (1 - 1 / sizes[j]) ** 2
            if distance < best:
                second, other = best, first
                best, first = distance, j
                value[i] = unbiased
            elif distance < second:
                second, other = distance, j
        chosen[i] = first
        square[i] = squares[i, first]
        behind = second - best
        deviation = reach[first, other] * np.sqrt(noise[i])
        # Not above 0 is also what two infinite distances differ by.
        margin[i] = np.inf if behind == np.inf else behind / deviation if behind > 0 else 0.0


@kernel
def add_to_centers(rows: NDArray[np.float64], chosen: NDArray[np.int32], sums: NDArray[np.float64]) -> None:
    """sums[chosen[i]] += rows[i], in the order of the rows."""
    for i in range(len(chosen)):
        total = sums[chosen[i]]
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


@kernel
def add_one_by_one(
    chosen: NDArray[np.int32], amounts: NDArray[np.float64], totals: NDArray[np.float64]
) -> None:
    """totals[chosen[i]] += amounts[i], in the order of the rows."""
    for i in range(len(chosen)):
        totals[chosen[i]] += amounts[i]
