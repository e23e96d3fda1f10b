"""The guarantee of a protocol by another way than the one that chose its noise: columns from the seed, a proof for the scale."""

import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from armslength.errors import counted
from armslength.privacy.gaussian_curve import is_private_enough
from armslength.privacy.parameters import written
from armslength.protocol.choice import gaussian_sensitivity_squared
from armslength.protocol.protocol import Protocol
from armslength.transforms.base import Transform

HOLDS, FAILS, NOT_CHECKED = "holds", "fails", "not checked"
_MOST_COLUMNS, _MOST_ENTRIES = 2048, 1 << 24  # of a matrix that are built anew


@dataclass(frozen=True)
class Check:
    """One thing that was computed anew.

    Attributes:
        subject: What it is about.
        state: "holds", "fails" or "not checked".
        words: What was compared and found, in one line.
    """

    subject: str
    state: str
    words: str


def _most_columns(transform: Transform) -> int:
    return max(1, min(_MOST_COLUMNS, _MOST_ENTRIES // transform.sketch_dim))


def matrix_check_work(protocol: Protocol) -> int:
    """How much work `checked_matrix` is beside computing the sensitivities, in the units of transforms/work.py."""
    transform = protocol.transform
    most = _most_columns(transform)
    return transform.columns_work(most if transform.input_dim is None else min(most, transform.input_dim))


def checked_matrix(protocol: Protocol) -> Check:
    """Columns of the matrix, from the seed: none is longer than the sensitivities say."""
    transform = protocol.transform
    most = _most_columns(transform)
    items: Any
    if transform.input_dim is None:
        text = protocol.items == "string"
        items = [secrets.token_hex(8) if text else secrets.randbits(62) for _ in range(most)]
    elif transform.input_dim <= most:
        items = range(transform.input_dim)
    else:
        items = [secrets.randbelow(transform.input_dim) for _ in range(most)]
    every = len(items) == transform.input_dim
    columns: Any = transform.columns(items)
    magnitudes = abs(columns)
    l1 = int(magnitudes.sum(axis=0).max())
    if int(magnitudes.max()) ** 2 * transform.sketch_dim < 2**63:
        l2_squared = int((magnitudes * magnitudes).sum(axis=0).max())
    else:  # as Python's integers: entries of a matrix that somebody brings have squares beyond 64 bits
        l2_squared = max(
            sum(int(entry) ** 2 for entry in _entries(columns, place)) for place in range(len(items))
        )
    stated = transform.l1_sensitivity, transform.l2_sensitivity_squared
    which = (
        f"all {counted(len(items), 'column')}"
        if every
        else f"{counted(len(items), 'column')} chosen at random"
    )
    words = (
        f"{which} of {transform.name}, built from the public parameters: ℓ1 norms up to {l1}, squared ℓ2 norms up to {l2_squared}; "
        f"stated {stated[0]} and {stated[1]}"
    )
    agrees = (l1, l2_squared) == stated if every else l1 <= stated[0] and l2_squared <= stated[1]
    return Check("matrix", HOLDS if agrees else FAILS, words)


def _entries(columns: Any, place: int) -> list[int]:
    """The entries of one column that are not zero."""
    column = (
        columns[:, place]
        if isinstance(columns, np.ndarray)
        else columns.data[columns.indptr[place] : columns.indptr[place + 1]]
    )
    return list(column[column != 0].tolist())


def checked_calibration(protocol: Protocol) -> Check:
    """That the scale is enough for ε and δ: not by computing it again, but by proving its guarantee."""
    scale, epsilon = Fraction(protocol.law.scale), protocol.sketch_epsilon
    if protocol.noise == "laplace":
        sensitivity = protocol.neighbors.l1_sensitivity(protocol.transform)
        enough = scale * epsilon >= sensitivity
        words = f"scale {protocol.law.scale:g} times ε = {written(epsilon)} is at least the ℓ1 sensitivity {sensitivity}, in exact rationals"
    else:
        squared = gaussian_sensitivity_squared(protocol.transform, protocol.neighbors, protocol.noise_site)
        enough = is_private_enough(squared / scale**2, epsilon, protocol.delta)
        words = (
            f"scale {protocol.law.scale:g}: δ at ε is at most {float(protocol.delta):g}, in ball arithmetic"
        )
    if protocol.total_law is not None:
        totals = Fraction(protocol.total_law.scale) * protocol.totals_epsilon
        enough = enough and totals >= protocol.neighbors.radius
        words += "; the noise of totals is enough for their share"
    return Check("calibration", HOLDS if enough else FAILS, words)
