"""Over many seeds: E‖Sz‖² = ‖z‖², and Var‖Sz‖² is its formula. Seeds are public, so a run never differs.

Sizes are small: two coordinates that meet in one row make ‖Sz‖² heavy-tailed where rows are many. All shapes of z are tried on each
seed, and the number of seeds follows from the largest kurtosis of ‖Sz‖² over shapes, which was measured.
"""

import numpy as np
import pytest

import armslength as al
from statistical.limits import check_mean, check_variance, draws_for_variance

D = 12

SHAPES = {
    "flat": np.ones(D, dtype=np.int64),
    "signed": np.array([3, -1, 4, -1, 5, -9, 2, 6, -5, 3, 5, -8]),
    "spiky": np.array([9] + [1] * (D - 1)),
    "sparse": np.array([1, 0, 0, -1] + [0] * (D - 4)),
    "single": np.array([0, 0, 7] + [0] * (D - 3)),
}


class _Named:
    """An open vocabulary with names for the coordinates."""

    names = tuple(f"code {j}" for j in range(D))

    def __init__(self, transform):
        self.transform = transform
        self.scale_squared, self.norm_variance = transform.scale_squared, transform.norm_variance

    def apply(self, Z, threads):
        return self.transform.apply(Z, items=self.names, threads=threads)


TRANSFORMS = {
    "block s=1": lambda seed: al.SparseJL(
        input_dim=D, sketch_dim=4, sparsity=1, seed=seed, construction="block", independence=4
    ),
    "block s=2": lambda seed: al.SparseJL(input_dim=D, sketch_dim=4, sparsity=2, seed=seed),
    "graph s=3": lambda seed: al.SparseJL(
        input_dim=D, sketch_dim=4, sparsity=3, seed=seed, construction="graph", independence=4
    ),
    "balanced s=1": lambda seed: al.SparseJL(
        input_dim=D, sketch_dim=5, sparsity=1, seed=seed, construction="balanced", independence=4
    ),
    "balanced s=2": lambda seed: al.SparseJL(
        input_dim=D, sketch_dim=6, sparsity=2, seed=seed, construction="balanced", independence=4
    ),
    "open vocabulary": lambda seed: _Named(
        al.SparseJL(sketch_dim=4, sparsity=1, seed=seed, construction="block", independence=4)
    ),
    "hadamard": lambda seed: al.HadamardJL(input_dim=D, sketch_dim=5, seed=seed),
    "fast": lambda seed: al.FastJL(input_dim=D, sketch_dim=12, seed=seed, density=0.5),
    "fast q=1": lambda seed: al.FastJL(input_dim=D, sketch_dim=12, seed=seed, density=1.0),
    "fast q=0.2": lambda seed: al.FastJL(input_dim=D, sketch_dim=20, seed=seed, density=0.2),
    "gaussian": lambda seed: al.GaussianJL(input_dim=D, sketch_dim=12, seed=seed),
    "sign dense": lambda seed: al.SignJL(input_dim=D, sketch_dim=6, seed=seed),
    "sign sparse": lambda seed: al.SignJL(input_dim=D, sketch_dim=10, seed=seed, construction="sparse"),
}

KURTOSIS = {
    "block s=1": 5.5,
    "block s=2": 6,
    "graph s=3": 6,
    "balanced s=1": 8,
    "balanced s=2": 4,
    "open vocabulary": 5.5,
    "hadamard": 3.5,
    "fast": 6,
    "fast q=1": 5,
    "fast q=0.2": 6.5,
    "gaussian": 5,
    "sign dense": 5,
    "sign sparse": 5,
}


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_squared_norms_have_the_mean_and_the_variance_stated(name):
    build = TRANSFORMS[name]
    Z = np.stack(list(SHAPES.values()))
    # Seeds are public, so what three quarters of the draws tell from 0.9 and 1.1 they tell in every run.
    squared_norms = np.empty((draws_for_variance(KURTOSIS[name]) * 3 // 4, len(Z)))
    for number in range(len(squared_norms)):
        transform = build(f"statistical {number}")
        squared_norms[number] = float(transform.scale_squared) * (transform.apply(Z, threads=1) ** 2).sum(
            axis=1
        )
    for shape, values, z in zip(SHAPES, squared_norms.T, Z.astype(float), strict=True):
        l2_squared, l4_fourth = float((z**2).sum()), float((z**4).sum())
        variance = build("x").norm_variance(l2_squared, l4_fourth)
        if variance < 1e-9 * l2_squared**2:
            assert values == pytest.approx(l2_squared), shape
            continue
        check_mean(values, l2_squared, variance)
        check_variance(values, l2_squared, variance)


def test_the_printed_row_index_would_lose_rows():
    # Erratum 11: rows i·r are not one-to-one; ours fill all k rows.
    transform = al.SparseJL(input_dim=5000, sketch_dim=12, sparsity=3, seed="x")
    assert set(transform.matrix().tocoo().coords[0].tolist()) == set(range(12))
    assert len({i * r for i in range(1, 5) for r in range(1, 4)}) < 12
