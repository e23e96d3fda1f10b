"""Totals: how large each row is, Σⱼ xⱼ, released beside its sketch for a share of ε, so that shapes can be compared."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import shown
from armslength.errors import ParameterError
from armslength.laws.discrete_laplace import DiscreteLaplace
from armslength.privacy.calibration import laplace_scale
from armslength.privacy.parameters import exact_number
from armslength.protocol.neighbors import GridNeighbors
from armslength.threads import for_blocks
from armslength.transforms.base import block_rows
from armslength.transforms.inputs import Rows, SparseRows


def checked_total_share(value: Any, norm: str) -> Fraction:
    """The share of ε that totals get, at least 0 and below 1."""
    share = exact_number("total_share", value)
    if not 0 <= share < 1:
        raise ParameterError(f"total_share must be at least 0 and below 1, got {shown(value)}")
    if share and norm != "l1":
        raise ParameterError(
            "total_share must be 0 with norm='l2', got more: a total can move by √d times the radius"
        )
    return share


def total_law(neighbors: GridNeighbors, epsilon: Fraction) -> DiscreteLaplace:
    """The law of a total's noise, in grid units.

    Guarantee: all totals of a release together are ε-DP at this ε: neighbors differ by at most R in ℓ1 norm over all rows,
    so their totals differ by at most R over all rows. With the sketches, at the rest of ε, they are ε-DP or
    (ε, δ)-DP by composition.
    Reference: docs/privacy.md, totals.
    """
    return DiscreteLaplace(laplace_scale(neighbors.radius, epsilon))


def row_totals(rows: Rows, threads: int | None) -> NDArray[np.int64]:
    """Σⱼ xⱼ of each row in grid units, modulo 2^64, **not private**."""
    totals = np.zeros(rows.count, dtype=np.int64)

    def add_up(start: int, stop: int) -> None:
        if isinstance(rows, SparseRows):
            starts, _, values = rows.entries(start, stop)
            running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values, dtype=np.int64)])
            totals[start:stop] = running[starts[1:]] - running[starts[:-1]]
        else:
            totals[start:stop] = rows.block(start, stop).sum(axis=1, dtype=np.int64)

    width = max(1, len(rows.columns) // max(1, rows.count)) if isinstance(rows, SparseRows) else rows.width
    for_blocks(rows.count, block_rows(width), add_up, threads)
    return totals
