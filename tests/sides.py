"""What `al.explain` says of rows that are not in one object."""

from typing import Any

import armslength as al
from armslength.answers.explain import Explanation, Side, explain_rows, explain_sides
from armslength.answers.items import ItemDifferences
from armslength.estimates.questions import question


def explained(
    a: al.Sketches, b: al.Sketches, *, about: str | None = None, level: float = 0.95
) -> Explanation:
    """What sets the people of b apart from those of a, without how similar they are."""
    (answer,) = explain_sides([Side.of(a), Side.of(b)], [(0, 1)], about=question(about, a, b), level=level)
    if isinstance(answer, str):
        raise al.NotResolvableError(answer)
    return answer


def items_explained(a: al.Sketches, b: al.Sketches, items: Any, **options: Any) -> ItemDifferences:
    """The same for a list of items."""
    answer = explain_rows(Side.of(a), Side.of(b), items=items, **options)
    if not isinstance(answer, ItemDifferences):
        raise TypeError("a list of items has differences of items")
    return answer
