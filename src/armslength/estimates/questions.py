"""The question that an answer is for, and the distances and similarities that answer it.

"populations": do the populations behind the parties differ, beyond chance? "people": do the people who were counted differ? Both are about
profiles: rows divided by their released totals. "counts": how far apart are the raw vectors? That is the paper's question, for arrays and
for volumes.
"""

from armslength.checks import one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import as_distances, checked_pair, squared_distances
from armslength.estimates.estimate import Estimate
from armslength.estimates.shapes import (
    NO_POPULATIONS,
    has_spread,
    shape_cosines,
    squared_shape_distances,
)
from armslength.estimates.totals import has_sure_total
from armslength.sketches.sketches import Sketches

POPULATIONS, PEOPLE, COUNTS = QUESTIONS = ("populations", "people", "counts")


def question(about: str | None, *sides: Sketches, of_people: bool = False) -> str:
    """The question as it was asked, or the strongest that these sketches allow.

    A question that was asked is never replaced by another one: it is refused if the sketches cannot answer it.

    Args:
        about: The question, or None.
        sides: What it is asked of.
        of_people: Whether it is about shares of people in any case, so that "counts" is only asked for.
    """
    if about is not None:
        one_of("about", about, QUESTIONS)
        if about != COUNTS and any(side.totals is None for side in sides):
            raise ParameterError(
                f"about={about!r} needs the number of people of each party, which these sketches were released without: "
                "plan the next release with it, or ask about='counts'",
                "about",
            )
        if about == POPULATIONS and not all(map(has_spread, sides)):
            raise ParameterError(NO_POPULATIONS, "about")
        return about
    if not of_people:
        if any(side.totals is None for side in sides):
            return COUNTS
        if sum(int(has_sure_total(side).sum()) for side in sides) < min(2, sum(map(len, sides))):
            return COUNTS  # there may be nobody to ask about
    is_shared = any(side.noises.has_shared for side in sides) or (
        len(sides) == 2 and sides[0].noises.shared_count(sides[1].noises) > 0
    )
    return POPULATIONS if all(map(has_spread, sides)) and not is_shared else PEOPLE


def squared_distances_about(a: Sketches, b: Sketches | None, about: str) -> Estimate:
    """Squared distances of rows ("counts"), or of rows divided by their totals."""
    if about == COUNTS:
        return squared_distances(a, b)
    return squared_shape_distances(a, b, beyond_chance=about == POPULATIONS)


def similarities_about(a: Sketches, b: Sketches | None, about: str) -> Estimate:
    """Cosines of rows divided by their totals."""
    if about == COUNTS:
        raise ParameterError(
            "similarity compares profiles: ask about='populations' or about='people'; counts have distances and inner products",
            "about",
        )
    return shape_cosines(a, b, beyond_chance=about == POPULATIONS)


def distances(a: Sketches, b: Sketches | None = None, *, about: str | None = None) -> Estimate:
    """The distance of every row of a from every row of b, or of all pairs within a, with intervals.

    The square root of the estimated square, clipped at 0: biased, so it has an interval and no variance.

    Args:
        a: One row for each party.
        b: The same; None for all pairs within a.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
    """
    left, right = checked_pair(a, b)
    about = question(about, *((left,) if b is None else (left, right)))
    return as_distances(squared_distances_about(a, b, about))


def similarities(a: Sketches, b: Sketches | None = None, *, about: str | None = None) -> Estimate:
    """How similar every row of a and every row of b are, or all pairs within a: from 0, nothing in common, to 1, the same profile.

    The cosine of the profiles, with an approximate interval.

    Args:
        a: One row for each party.
        b: The same; None for all pairs within a.
        about: "populations" or "people"; None takes the first of them that the releases allow.
    """
    left, right = checked_pair(a, b)
    about = question(about, *((left,) if b is None else (left, right)))
    return similarities_about(a, b, about)
