"""Sparse recovery: a projection alone hides nobody; the noise does.

    python examples/attacks/sparse_recovery.py

The attacker knows the public matrix A, ε, and that the party holds one person only, with 20 of 2,000 items. (This is the worst case: the attacker
knows everyone else's items and has subtracted them.) They see the sketch, 400 numbers, and run orthogonal matching pursuit: take the column that
fits best, fit again, repeat. This is how compressed sensing reads sparse vectors from few numbers, and 400 are plenty.

Result: without noise the attacker finds all 20 items, although the sketch is five times shorter than the vector. At ε = 1 for one person with all
of their items, the attacker does no better than 20 random guesses. Differential privacy says why: an item is among the guesses at most e^ε times
as often as if the person were absent, and then the attacker guesses blindly.

A large count is different. If 4,000 people have an item, the attacker sees the item, as intended: the sketch is there to tell crowds
apart. It reveals no single person, because 3,999 people look the same. `crowd` shows it.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import armslength as al
from armslength.transforms.transform import Transform

ITEMS, SKETCH, HELD = 2000, 400, 20
EPSILON = 1
CHANCE = HELD * HELD / ITEMS  # expected right items among 20 random ones

TRANSFORMS: dict[str, Callable[[], Transform]] = {
    "SparseJL": lambda: al.SparseJL(input_dim=ITEMS, sketch_dim=SKETCH, sparsity=8, seed="recovery"),
    "SignJL": lambda: al.SignJL(input_dim=ITEMS, sketch_dim=SKETCH, seed="recovery"),
}


def protocol_of(transform: Transform, epsilon: float = EPSILON) -> al.Protocol:
    """The protocol: ε protects one person with up to 20 items."""
    return al.Protocol(transform, al.Counts(HELD), epsilon=epsilon, noise="laplace", unit="one person")


def persons(count: int, generator: np.random.Generator) -> sparse.csr_array:
    """One person per row: 20 different items of 2,000."""
    columns = generator.random((count, ITEMS)).argpartition(HELD, axis=1)[:, :HELD]
    starts = np.arange(0, count * HELD + 1, HELD)
    return sparse.csr_array((np.ones(count * HELD, np.int64), columns.ravel(), starts), (count, ITEMS))


def pursued(A: NDArray[np.float64], seen: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Orthogonal matching pursuit on each row: `count` columns of A whose span comes close to the observed row."""
    rows = np.arange(len(seen))
    lengths = np.linalg.norm(A, axis=0)
    basis = np.zeros((len(seen), A.shape[0], count))  # orthonormal, of each row's span so far
    chosen = np.empty((len(seen), count), dtype=np.int64)
    rest = seen.astype(np.float64)
    for step in range(count):
        fit = np.abs(rest @ A) / lengths
        fit[rows[:, None], chosen[:, :step]] = -1  # each column once
        chosen[:, step] = fit.argmax(axis=1)
        new = A[:, chosen[:, step]].T
        before = basis[:, :, :step]
        for _ in range(2):  # the second pass removes the rounding errors of the first
            new = new - np.matmul(before, np.matmul(new[:, None, :], before).transpose(0, 2, 1))[:, :, 0]
        new /= np.maximum(np.linalg.norm(new, axis=1), 1e-9)[:, None]
        basis[:, :, step] = new
        rest -= new * (new * rest).sum(axis=1)[:, None]
    return chosen


def dense_matrix(transform: Transform) -> NDArray[np.float64]:
    """The public matrix as floats."""
    matrix = transform.matrix()
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), dtype=np.float64)


def items_found(transform: Transform, sketches: al.Sketches, people: sparse.csr_array) -> NDArray[np.int64]:
    """The number of right items among the attacker's 20, for each row."""
    guessed = pursued(dense_matrix(transform), sketches.values, HELD)
    found: NDArray[np.int64] = people.toarray()[np.arange(len(guessed))[:, None], guessed].sum(axis=1)
    return found


def attacked(transform: Transform, people: sparse.csr_array, epsilon: float | None) -> NDArray[np.int64]:
    """Items found in each row, from sketches without noise (None) or released at ε."""
    if epsilon is None:
        return items_found(transform, al.sketch_in_clear(protocol_of(transform), people), people)
    released = al.release(protocol_of(transform, epsilon), people, ledger=al.NO_LEDGER)
    return items_found(transform, released, people)


def crowd(transform: Transform, people: int, releases: int) -> tuple[float, NDArray[np.float64]]:
    """For a crowd that shares one item: (how often the attacker finds the item, their estimates of the crowd's size)."""
    X = sparse.csr_array(
        (np.full(releases, people), (np.arange(releases), np.full(releases, 7))), (releases, ITEMS)
    )
    seen = al.release(protocol_of(transform), X, ledger=al.NO_LEDGER).values.astype(np.float64)
    A = dense_matrix(transform)
    fits = seen @ A / (A * A).sum(axis=0)
    return float((np.abs(fits).argmax(axis=1) == 7).mean()), fits[:, 7]


def main() -> None:
    """Attack without and with noise, then show what a crowd reveals."""
    trials = 60
    people = persons(trials, np.random.default_rng(7))
    print(
        f"One person has {HELD} of {ITEMS:,} items; the sketch has {SKETCH} numbers. Items found of {HELD}, mean of {trials} people:\n"
    )
    for name, build in TRANSFORMS.items():
        transform = build()
        clear, private = (attacked(transform, people, epsilon).mean() for epsilon in (None, EPSILON))
        print(
            f"  {name:9} without noise {clear:5.2f}    at ε = {EPSILON} {private:5.2f}    random guesses {CHANCE:.2f}"
        )
    print("\nA crowd is visible, as intended; a person in it is not:\n")
    sparse_transform = TRANSFORMS["SparseJL"]()
    for size in (4000, 3999, 1):
        found, estimates = crowd(sparse_transform, size, 400)
        print(
            f"  {size:5,} people share one item: the attacker finds it in {found:6.1%} of releases and estimates "
            f"{estimates.mean():7.0f} ± {estimates.std():.0f} people"
        )
    spread = math.sqrt(2) * protocol_of(sparse_transform).law.scale
    print(f"\n  (In the sparse sketch the rows of that item stand out: 4,000 against noise of {spread:.0f}.)")


if __name__ == "__main__":
    main()
