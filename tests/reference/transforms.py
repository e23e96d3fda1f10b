"""Transforms of the package beside the matrix that the written specification gives for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import armslength as al
from reference import spec

Case = tuple[Callable[[], Any], Callable[[], list[list[int]]]]


def sparse(d: int, k: int, s: int, seed: str, construction: str, t: int = 16) -> Case:
    """A `SparseJL` of fixed dimension and its matrix."""
    return (
        lambda: al.SparseJL(
            input_dim=d, sketch_dim=k, sparsity=s, seed=seed, construction=construction, independence=t
        ),
        lambda: spec.sparse_jl(range(d), k, s, t, seed, construction),
    )


CASES: dict[str, Case] = {
    "block s=1": sparse(37, 12, 1, "trial-2026", "block"),
    "block s=3": sparse(37, 12, 3, "trial-2026", "block"),
    "block t=4": sparse(37, 12, 12, "é", "block", 4),
    "graph s=5": sparse(37, 12, 5, "trial-2026", "graph"),
    "graph s=k": sparse(9, 4, 4, "trial-2026", "graph"),
    "balanced s=1": sparse(37, 12, 1, "trial-2026", "balanced"),
    "balanced s=4": sparse(37, 12, 4, "trial-2026", "balanced"),
    "balanced d<k": sparse(5, 12, 1, "trial-2026", "balanced"),
    "one by one": sparse(1, 1, 1, "trial-2026", "block"),
    "hadamard": (
        lambda: al.HadamardJL(input_dim=37, sketch_dim=12, seed="trial-2026"),
        lambda: spec.hadamard_jl(37, 12, "trial-2026"),
    ),
    "hadamard k=d'": (
        lambda: al.HadamardJL(input_dim=32, sketch_dim=32, seed="x"),
        lambda: spec.hadamard_jl(32, 32, "x"),
    ),
    "hadamard d=1": (
        lambda: al.HadamardJL(input_dim=1, sketch_dim=1, seed="x"),
        lambda: spec.hadamard_jl(1, 1, "x"),
    ),
    "fast": (
        lambda: al.FastJL(input_dim=37, sketch_dim=12, seed="trial-2026", density=0.25),
        lambda: spec.fast_jl(37, 12, 2**30, "trial-2026"),
    ),
    "fast q=1": (
        lambda: al.FastJL(input_dim=16, sketch_dim=5, seed="trial-2026"),
        lambda: spec.fast_jl(16, 5, 2**32, "trial-2026"),
    ),
    "fast sparse": (
        lambda: al.FastJL(input_dim=64, sketch_dim=64, seed="trial-2026", density=2081903 / 2**32),
        lambda: spec.fast_jl(64, 64, 2081903, "trial-2026"),
    ),
    "gaussian": (
        lambda: al.GaussianJL(input_dim=37, sketch_dim=11, seed="trial-2026"),
        lambda: spec.gaussian_jl(37, 11, "trial-2026"),
    ),
    "sign dense": (
        lambda: al.SignJL(input_dim=37, sketch_dim=11, seed="trial-2026"),
        lambda: spec.sign_jl(37, 11, "trial-2026", "dense"),
    ),
    "sign sparse": (
        lambda: al.SignJL(input_dim=37, sketch_dim=11, seed="trial-2026", construction="sparse"),
        lambda: spec.sign_jl(37, 11, "trial-2026", "sparse"),
    ),
    "identity": (lambda: al.Identity(input_dim=7), lambda: np.eye(7, dtype=int).tolist()),
}


def dense(matrix: Any) -> NDArray[np.int64]:
    """A matrix as a plain array."""
    array: NDArray[np.int64] = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
    return array
