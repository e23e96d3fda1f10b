"""Fields of a protocol that have rules of their own: the contribution, the unit in words, the promise of a grid."""

from fractions import Fraction
from typing import Any

from armslength.checks import integer, shown
from armslength.errors import ParameterError
from armslength.privacy.parameters import exact_number

_LONGEST_UNIT = 1000


def contribution_and_radius(contribution: Any, radius: Any, relation: str) -> tuple[int | None, Fraction]:
    """(C, ρ): the radius is C for add/remove neighbors and 2C for replace, or as given, or 1."""
    if contribution is not None:
        if radius is not None:
            raise ParameterError("radius must be left out when contribution is given: contribution sets it")
        bound = integer("contribution", contribution, at_least=1, at_most=2**40)
        return bound, Fraction(bound if relation == "add_remove" else 2 * bound)
    checked = exact_number("radius", 1 if radius is None else radius)
    if not 0 < checked <= 2**40:
        raise ParameterError(f"radius must be above 0 and at most 2^40, got {shown(radius)}")
    return None, checked


def checked_unit(unit: Any) -> str:
    """The unit of protection in words: one line."""
    if not isinstance(unit, str) or len(unit) > _LONGEST_UNIT or not unit.isprintable():
        raise ParameterError(
            f"unit must be one line of at most {_LONGEST_UNIT} characters, got {shown(unit)}"
        )
    return unit


def checked_on_grid(on_grid: Any, resolution: Any) -> bool:
    """Whether data is promised to lie on the grid: yes unless said otherwise, or unless the grid is ours to choose."""
    if on_grid is None:
        return bool(resolution != "auto")
    if not isinstance(on_grid, bool):
        raise ParameterError(f"on_grid must be True, False or None, got {shown(on_grid)}")
    return on_grid
