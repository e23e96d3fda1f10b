"""Protocols whose matrices are as large as their transforms allow, or larger."""

from typing import Any

import armslength as al
from flat_protocol import flat_protocol

_NOISE_ON_INPUT = {"delta": 1e-6, "noise": "gaussian", "noise_site": "input"}

# A transform, its sizes at a limit, which of them is at it, and the other fields of the protocol.
LIMITS: dict[str, tuple[Any, dict[str, Any], str, dict[str, Any]]] = {
    "FastJL columns": (al.FastJL, {"input_dim": 2**23, "sketch_dim": 8}, "input_dim", {}),
    "FastJL rows": (al.FastJL, {"input_dim": 2**6, "sketch_dim": 2**19}, "sketch_dim", {}),
    "FastJL, input": (al.FastJL, {"input_dim": 64, "sketch_dim": 2**11}, "sketch_dim", _NOISE_ON_INPUT),
    "GaussianJL": (al.GaussianJL, {"input_dim": 2**23, "sketch_dim": 8}, "input_dim", {}),
    "SignJL": (al.SignJL, {"input_dim": 2**23, "sketch_dim": 8, "construction": "sparse"}, "input_dim", {}),
    "HadamardJL columns": (al.HadamardJL, {"input_dim": 2**27, "sketch_dim": 8}, "input_dim", {}),
    "HadamardJL rows": (al.HadamardJL, {"input_dim": 2**23, "sketch_dim": 2**21}, "sketch_dim", {}),
    "SparseJL sparsity": (
        al.SparseJL,
        {"input_dim": 2**40, "sketch_dim": 2**13, "sparsity": 2**12},
        "sparsity",
        {},
    ),
    "SparseJL independence": (
        al.SparseJL,
        {"input_dim": 2**40, "sketch_dim": 8, "independence": 64},
        "independence",
        {},
    ),
    "SparseJL balanced": (
        al.SparseJL,
        {"input_dim": 2**26, "sketch_dim": 8, "construction": "balanced"},
        "input_dim",
        {},
    ),
}


def document_of(name: str, *, times: int) -> dict[str, Any]:
    """The document of a protocol with `times` the limit; its scale is that of a small one, for nothing is to be computed."""
    kind, sizes, growing, fields = LIMITS[name]
    small = kind(
        **sizes | {"input_dim": 64, "sketch_dim": 16} | ({"sparsity": 1} if "sparsity" in sizes else {}),
        seed="x",
    )
    document: dict[str, Any] = flat_protocol(small, epsilon=1, **fields).document()
    document["transform"]["parameters"] |= sizes | {growing: times * sizes[growing]}
    return document
