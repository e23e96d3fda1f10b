"""A custom distance: your own integer matrix, here for diagnosis codes with categories.

    python examples/custom_transform.py

Hospitals code differently: one uses the unspecified code of a disease, another the detailed one. On plain codes, hospitals with the same
coding habit look alike, whatever their patients have. So the hospitals agree on their own matrix, in two parts:

    A = [ 3·P·G ]    G adds up the codes of a category; P is a random sign sketch of the categories, with weight 3
        [   Q   ]    Q is a random sign sketch of the codes themselves

On average over P and Q, ‖A·z‖² is 9·‖G·z‖² + ‖z‖²: a difference between categories counts more than one within a category. No
built-in transform does that, but the paper's general result takes any integer matrix. The data is generated.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import armslength as al

CATEGORIES, CODES_EACH = 400, 10
CODES = CATEGORIES * CODES_EACH
ROWS = 256  # of P, and of Q
WEIGHT = 3
HOSPITALS = 6


def sign_sketch(rows: int, columns: int, generator: np.random.Generator) -> sparse.csc_array:
    """One ±1 in each column, in a random row: E‖P·z‖² = ‖z‖², and Var‖P·z‖² = (2/rows)(‖z‖₂⁴ − ‖z‖₄⁴)."""
    signs = generator.choice(np.array([-1, 1]), size=columns)
    places = (generator.integers(rows, size=columns), np.arange(columns))
    return sparse.coo_array((signs, places), shape=(rows, columns)).tocsc()


def grouping() -> sparse.csc_array:
    """G, the public map from codes to categories: row g is 1 at the codes of category g."""
    codes = np.arange(CODES)
    ones = np.ones(CODES, dtype=np.int64)
    return sparse.coo_array((ones, (codes // CODES_EACH, codes)), shape=(CATEGORIES, CODES)).tocsc()


def two_level_transform() -> al.MatrixJL:
    """The agreed transform. Its randomness is public, so it has a seed."""
    generator = np.random.default_rng(2026)  # for the public matrix; noise has no seed
    by_category = sign_sketch(ROWS, CATEGORIES, generator) @ grouping()
    by_code = sign_sketch(ROWS, CODES, generator)
    matrix = sparse.vstack([WEIGHT * by_category, by_code], format="csc")
    # With x = 9‖Gz‖² and y = ‖z‖² the variance is at most (2/ROWS)(x² + y²) ≤ (2/ROWS)(x + y)².
    # A variance that is too large keeps the intervals valid.
    return al.MatrixJL(matrix, scale=1.0, variance_coefficients=(2 / ROWS, 0.0))


def hospital_counts(
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(counts with one row per hospital and one code per patient, disease mix of each hospital, coding habit of each)."""
    frequencies = 1 / np.arange(1, CATEGORIES + 1)
    orders = [
        np.concatenate([common, np.arange(3, CATEGORIES)]) for common in ([0, 1, 2], [1, 2, 0], [2, 0, 1])
    ]
    habits = np.array([[0.91, *[0.01] * 9], [0.1, 0.73, *[0.17 / 8] * 8]])  # unspecified, or detailed
    patients_have, habit = np.arange(HOSPITALS) % 3, np.arange(HOSPITALS) // 3
    counts = np.empty((HOSPITALS, CODES), dtype=np.int64)
    for number in range(HOSPITALS):
        shares = np.outer(frequencies[orders[patients_have[number]]], habits[habit[number]]).ravel()
        counts[number] = generator.multinomial(2000, shares / shares.sum())
    return counts, patients_have, habit


def expected_error(protocol: al.Protocol, distance: float) -> float:
    """The relative standard error of an estimated squared distance. It is known before any data."""
    second, fourth = protocol.law.second_moment, protocol.law.fourth_moment
    noise_2, noise_4 = 2 * second, 2 * (fourth - 3 * second**2)  # cumulants of two parties' noise
    k, squared = protocol.transform.sketch_dim, distance**2
    from_noise = 4 * noise_2 * squared + k * (noise_4 + 2 * noise_2**2)
    return math.sqrt(protocol.transform.norm_variance(squared) + from_noise) / squared


def nearest(squared: NDArray[np.float64]) -> NDArray[np.int64]:
    """The nearest other hospital of each hospital."""
    others = squared + np.diag(np.full(HOSPITALS, np.inf))
    return np.array([row.argmin() for row in others])


def main() -> None:
    """Build the matrix, print its cost, release, and compare with the truth."""
    transform = two_level_transform()
    print("The agreed matrix:\n")
    print(transform.card())
    protocol = al.Protocol(transform, epsilon=1, noise="laplace", contribution=1, unit="one patient")
    print(
        f"\n  One patient changes the sketch by at most {transform.l1_sensitivity} in ℓ1 norm: {protocol.noise} noise of scale {protocol.law.scale:g}"
    )
    for distance in (100, 300, 1000):
        share = expected_error(protocol, distance)
        print(f"  At distance {distance:4}, the standard error of the squared distance is {share:.0%}.")

    counts, patients_have, habit = hospital_counts(np.random.default_rng(7))
    labels = [
        f"{'ABCDEF'[i]} (patients {patients_have[i] + 1}, habit {habit[i] + 1})" for i in range(HOSPITALS)
    ]
    sketches = al.concat(
        [
            protocol.release(row[None, :], labels=[label], ledger=al.NO_LEDGER)
            for row, label in zip(counts, labels, strict=True)
        ]
    )
    estimate = al.distances(sketches)
    lower, upper = estimate.interval(0.95)

    plain = np.array([((counts - row) ** 2).sum(axis=1) for row in counts]).astype(float)
    grouped = counts @ grouping().T
    truth = np.sqrt(WEIGHT**2 * np.array([((grouped - row) ** 2).sum(axis=1) for row in grouped]) + plain)

    print("\nHospital A against the others           estimate      95% interval    truth")
    for j in range(1, HOSPITALS):
        print(
            f"  {labels[j]:34} {estimate.value[0, j]:9.0f}   [{lower[0, j]:6.0f}, {upper[0, j]:6.0f}]  {truth[0, j]:7.0f}"
        )
    pairs = np.triu_indices(HOSPITALS, 1)
    held = ((lower <= truth) & (truth <= upper))[pairs]
    print(
        f"\n{held.sum()} of {len(held)} intervals at 95% contain the truth; {estimate.resolved(0.95)[pairs].sum()} pairs are resolved"
    )

    print("\nDoes the nearest hospital have the same patients, or the same coding habit?")
    for how, squared in (
        ("released sketches", estimate.value),
        ("true two-level distance", truth),
        ("plain codes, true distance", plain),
    ):
        alike = patients_have[nearest(squared)] == patients_have
        same_habit = habit[nearest(squared)] == habit
        print(
            f"  by {how:27} patients: {alike.sum()} of {HOSPITALS}, habit: {same_habit.sum()} of {HOSPITALS}"
        )


if __name__ == "__main__":
    main()
