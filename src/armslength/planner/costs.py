"""What a configuration costs, counted and not timed: bytes of a release, additions for a vector."""

import math

from armslength.transforms.base import Transform
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL

_BYTES_OF_AN_INTEGER = 8


def bytes_of_a_row(transform: Transform) -> int:
    """The integers of one released row; a file adds its protocol and card, a few kilobytes once."""
    return _BYTES_OF_AN_INTEGER * transform.sketch_dim


def additions(transform: Transform, density: float | None) -> int | None:
    """Integer additions for one vector of that density (None: every coordinate); None where nobody knows its length."""
    d, k = transform.input_dim, transform.sketch_dim
    if d is None:
        return None
    entries = math.ceil(d * (1.0 if density is None else density))
    if isinstance(transform, SparseJL):
        return transform.sparsity * entries + k
    if isinstance(transform, (HadamardJL, FastJL)):
        padded = transform.padded_dim
        walsh = padded * max(1, padded.bit_length() - 1)
        return walsh + (math.ceil(transform.density * padded * k) if isinstance(transform, FastJL) else k)
    return d if isinstance(transform, Identity) else entries * k
