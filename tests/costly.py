"""Valid protocols that ask for much work: of each transform, as large as is wanted."""

from collections.abc import Callable
from typing import Any

import armslength as al
from armslength.protocol.schema import transform_document
from armslength.protocol.work_budget import WorkBudget
from armslength.transforms.transform import Transform

_LAPLACE: dict[str, Any] = {}
_GAUSSIAN = {"delta": 1e-6, "noise": "gaussian"}
_INPUT = {**_GAUSSIAN, "noise_site": "input"}

# What grows with a size, and the other fields of the protocol.
GROWING: dict[str, tuple[Callable[[int], Transform], dict[str, Any]]] = {
    "FastJL, laplace": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x"), _LAPLACE),
    "FastJL, gaussian": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x"), _GAUSSIAN),
    "FastJL rows": (lambda size: al.FastJL(input_dim=8, sketch_dim=size, seed="x"), _LAPLACE),
    "FastJL, input": (lambda size: al.FastJL(input_dim=size, sketch_dim=8, seed="x"), _INPUT),
    "FastJL rows, input": (lambda size: al.FastJL(input_dim=8, sketch_dim=size, seed="x"), _INPUT),
    "GaussianJL": (lambda size: al.GaussianJL(input_dim=size, sketch_dim=8, seed="x"), _LAPLACE),
    "SignJL sparse": (
        lambda size: al.SignJL(input_dim=size, sketch_dim=8, seed="x", construction="sparse"),
        _LAPLACE,
    ),
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
    """The largest power of two, up to 2^30, that the transform takes."""
    build, _ = GROWING[name]
    size = 4
    while size < 2**30:
        try:
            build(2 * size)
        except al.ParameterError:
            break
        size *= 2
    return size
