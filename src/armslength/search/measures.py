"""What rows are compared by: their sizes and all, or their shapes alone."""

from armslength.checks import one_of
from armslength.errors import ParameterError
from armslength.estimates.shapes import NOTE, squared_shape_distances
from armslength.estimates.squared_distances import clear_note, squared_distances
from armslength.protocol.sketches import Sketches
from armslength.search.blocks import Measure
from armslength.search.collection import Collection

BY = ("size", "shape")


def squared_measure(by: str) -> Measure:
    """Squared distances of rows as they are ("size"), or of rows divided by their totals ("shape")."""
    return squared_distances if one_of("by", by, BY) == "size" else squared_shape_distances


def noted(by: str, *sides: Sketches) -> str:
    """What must be known to read an answer about these rows; empty if nothing."""
    return "; ".join(part for part in (NOTE if by == "shape" else "", clear_note(*sides)) if part)


def checked_sketches(name: str, sketches: object, at_least: int) -> Sketches:
    """The sketches, if they are sketches of so many rows."""
    if not isinstance(sketches, Sketches):
        advice = "; load it with .to_sketches()" if isinstance(sketches, Collection) else ""
        raise ParameterError(f"{name} must be al.Sketches, got {type(sketches).__name__}{advice}")
    checked_rows(name, sketches, at_least)
    return sketches


def checked_rows(name: str, rows: object, at_least: int) -> Sketches | Collection:
    """The rows, if they are sketches or a collection of so many rows."""
    if not isinstance(rows, Sketches | Collection):
        raise ParameterError(f"{name} must be al.Sketches or a collection of them, got {type(rows).__name__}")
    if len(rows) < at_least:
        least = f"at least {at_least} row{'s' if at_least > 1 else ''}"
        raise ParameterError(f"{name} must have {least}, got {len(rows)}")
    return rows
