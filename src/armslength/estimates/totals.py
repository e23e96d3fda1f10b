"""Totals: how large each row is, where the protocol has released that for a share of ε."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.intervals import Level
from armslength.estimates.result import Bounds, Estimate
from armslength.estimates.squared_distances import clear_note
from armslength.protocol.provenance import Provenance
from armslength.protocol.sketches import Sketches


def totals(sketches: Sketches) -> Estimate:
    """Σⱼ xⱼ for every row, in data units: unbiased, with its exact variance.

    Guarantee: the interval of a row as it was released comes from the exact law of its noise; that of a combination of
    several rows from their laws together (a union bound). Both methods give it.
    """
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    if sketches.totals is None:
        raise ParameterError(
            "sketches must have been released with totals, got some without; plan a protocol with total_share"
        )
    unit = float(sketches.protocols[0].resolution)
    value = sketches.totals.astype(np.float64) * unit
    return Estimate(
        "totals",
        value,
        (sketches.labels,),
        (sketches.in_clear,),
        False,
        clear_note(sketches),
        partial(_variance, sketches, unit),
        partial(_interval, sketches, value, unit),
    )


def _variance(sketches: Sketches, unit: float) -> NDArray[np.float64]:
    """γ²·Σα²κ₂ over the noises of each row."""
    return np.array(
        [
            unit**2
            * sum(coefficient**2 * source.total_law.second_moment for source, coefficient in row.terms)
            for row in sketches.provenance
        ]
    )


def _interval(
    sketches: Sketches, value: NDArray[np.float64], unit: float, confidence: float, method: str, pairs: int
) -> Bounds:
    """The totals that noise does not exclude."""
    level = Level.of(confidence, method, pairs)
    reach = unit * np.array([_reach(row, level.tail) for row in sketches.provenance])
    return value - reach, value + reach


def _reach(row: Provenance, tail: float) -> float:
    """What the noise of a row's total exceeds, on either side, with at most the tail's probability, in grid units."""
    each = tail / max(1, len(row.terms))
    return sum(abs(coefficient) * source.total_law.upper_quantile(each) for source, coefficient in row.terms)
