"""Valid protocols that ask for much work: of each transform and norm, as large as is wanted."""

from collections.abc import Callable
from typing import Any

import numpy as np

import armslength as al
from armslength.protocol.schema import transform_document
from armslength.protocol.work_budget import WorkBudget
from armslength.transforms.transform import Transform

_L1: dict[str, Any] = {}
_GAUSSIAN = {"delta": 1e-6, "noise": "gaussian"}
_L2 = {**_GAUSSIAN, "norm": "l2"}
_INPUT = {**_GAUSSIAN, "noise_site": "input"}

# What grows with a size, and the other fields of the protocol.
GROWING: dict[str, tuple[Callable[[int], Transform], dict[str, Any]]] = {
    "SparseJL, s=1, l2": (lambda size: al.SparseJL(input_dim=size, sketch_dim=16, sparsity=1, seed="x"), _L2),
    "SparseJL block, l2": (
        lambda size: al.SparseJL(input_dim=size, sketch_dim=16, sparsity=4, seed="x"),
        _L2,
    ),
    "SparseJL graph, l2": (
        lambda size: al.SparseJL(
            input_dim=size, sketch_dim=16, sparsity=4, seed="x", construction="graph", independence=256
        ),
        _L2,
    ),
    "SparseJL balanced, l2": (
        lambda size: al.SparseJL(
            input_dim=size, sketch_dim=16, sparsity=4, seed="x", construction="balanced"
        ),
        _L2,
    ),
    "SparseJL rows, l2": (
        lambda size: al.SparseJL(input_dim=8, sketch_dim=2 * size, sparsity=2, seed="x"),
        _L2,
    ),
    "FastJL, laplace": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x"), _L1),
    "FastJL, gaussian": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x"), _GAUSSIAN),
    "FastJL rows": (lambda size: al.FastJL(input_dim=8, sketch_dim=size, seed="x"), _L1),
    "FastJL, l2": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x", density=0.5), _L2),
    "FastJL, input": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x"), _INPUT),
    "FastJL rows, input": (lambda size: al.FastJL(input_dim=8, sketch_dim=size, seed="x"), _INPUT),
    "GaussianJL": (lambda size: al.GaussianJL(input_dim=size, sketch_dim=8, seed="x"), _L1),
    "GaussianJL, l2": (lambda size: al.GaussianJL(input_dim=size, sketch_dim=8, seed="x"), _L2),
    "SignJL sparse": (
        lambda size: al.SignJL(input_dim=size, sketch_dim=8, seed="x", construction="sparse"),
        _L1,
    ),
    "SignJL dense, l2": (lambda size: al.SignJL(input_dim=size, sketch_dim=8, seed="x"), _L2),
    "MatrixJL, l2": (lambda size: al.MatrixJL(np.ones((size, 1), dtype=int), scale=1.0), _L2),
}


def costly_document(name: str, size: int) -> dict[str, Any]:
    """The document of a protocol of this size; its scale is that of a small one, for nothing is computed."""
    build, fields = GROWING[name]
    document = al.Protocol(build(4), epsilon=1, **fields).document()
    return {**document, "transform": transform_document(build(size))}


def valid_document(name: str, size: int) -> dict[str, Any]:
    """The document of a protocol of this size, with its true scale."""
    build, fields = GROWING[name]
    return al.Protocol(build(size), epsilon=1, **fields).document()


def largest_within(name: str, max_work: int) -> int:
    """The largest power of two whose protocol is within so much work."""
    build, fields = GROWING[name]
    size = 4
    document = al.Protocol(build(size), epsilon=1, **fields).document()
    while True:
        try:
            WorkBudget(max_work).charge_protocols(build(2 * size), [document], "a file")
        except al.CorruptFileError:
            return size
        size *= 2


def largest_of_all(name: str) -> int:
    """The largest power of two, up to 2^30, that the transform takes; a matrix that is listed stays at 2^12 rows."""
    build, _ = GROWING[name]
    size = 4
    while size < (2**12 if name.startswith("MatrixJL") else 2**30):
        try:
            build(2 * size)
        except al.ParameterError:
            break
        size *= 2
    return size
