"""In what parties and groups differ, by the margins of their releases: what the page says, and what one can choose on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from armslength.answers.explain import Explanation, explain_pairs
from armslength.errors import ParameterError
from armslength.estimates.pair_noise import Floats
from armslength.estimates.prevalence import Prevalence
from armslength.sketches.sketches import Sketches

_DOUBTFUL = 0.0005  # how often a side that has nobody may be taken for one that has
_MOST_WORDS = 3
_MOST_NUMBERS = 600_000  # that the page holds for choices: 3 MB

Rows = tuple[int, ...]
Comparison = tuple[Rows, Rows]  # rows of the first side, rows of the second


@dataclass(frozen=True, eq=False)
class Reasons:
    """Prevalences of all sides that can be chosen, and the differences that the page shows without a choice.

    Attributes:
        item_groups: Their names.
        groups: The rows of each group that can be chosen.
        sides: (value, lower, upper) of every item group's prevalence in each party, then in each group: (n + g) x 3 x M. NaN where
            people are too few. None where these are too many numbers for a page.
        shown: The differences between some sides; None where people are too few.
        beyond_chance: Whether they are about the populations behind the rows.
    """

    item_groups: tuple[str, ...]
    groups: tuple[Rows, ...]
    sides: Floats | None
    shown: dict[Comparison, Explanation | None]
    beyond_chance: bool

    def words(self, first: Rows, second: Rows) -> str:
        """The three clearest differences of the second against the first; empty if none was found. The script writes the same."""
        answer = self.shown.get((first, second))
        parts = (
            []
            if answer is None
            else [
                f"{answer.verdict[row]} {answer.item_groups[row]} ({_points(answer.difference[row])}{'' if row else ' points'})"
                for row in range(min(answer.found, _MOST_WORDS))
            ]
        )
        return ", ".join(parts)


def _points(share: float) -> str:
    """A difference in points, with two digits."""
    points = 100 * float(share)
    return f"{points:+.{0 if abs(points) >= 9.95 else 1}f}".replace("-", "−")


def others(rows: Rows, count: int) -> Rows:
    """All other rows."""
    return tuple(sorted(set(range(count)).difference(rows)))


def reasons_of(
    sketches: Sketches,
    groups: Sequence[Rows],
    pairs: Sequence[tuple[int, int]],
    alone: Sequence[int],
    *,
    level: float,
    simultaneous: bool,
    beyond_chance: bool,
) -> Reasons | str:
    """The reasons, or why there are none.

    Guarantee: with probability at least `level` all intervals hold together: half of the error is for all pairs of parties, half for
    all pairs of groups, each group against the rest, and each party against the rest. Not simultaneous: those of each pair.

    Args:
        sketches: The parties.
        groups: Rows of the groups; their choice is taken as given.
        pairs: Pairs of rows to show.
        alone: Rows to show against all others.
        level: The confidence.
        simultaneous: Whether all intervals hold together.
        beyond_chance: Whether they are about the populations behind the rows.
    """
    if sketches.margins is None:
        return "no margins"
    if sketches.noises.has_shared:
        return "some rows have a release in common"
    count, item_groups = len(sketches), sketches.margin_names
    choices = count * (count - 1) // 2, len(groups) * (len(groups) + 1) // 2 + count
    error = 1 - level
    of_pair, of_group = error, error
    if simultaneous:
        of_pair = error / choices[0] / (1 if count == 2 else 2)
        of_group = error / choices[1] / 2
    every = [(row,) for row in range(count)]
    asked: dict[Comparison, float] = {
        **{(every[i], every[j]): of_pair for i, j in pairs},
        **{(others(rows, count), rows): of_group for rows in groups},
        **dict.fromkeys(pairwise(groups[:2]), of_group),
        **{(others(every[row], count), every[row]): of_group for row in alone},
    }
    try:
        shown = {
            comparison: explain_pairs(sketches, [comparison], beyond_chance=beyond_chance, level=1 - miss)[0]
            for comparison, miss in asked.items()
        }
        tails = [(rows, of_pair) for rows in every] + [(rows, of_group) for rows in groups]
        sides = None
        if 3 * len(tails) * len(item_groups) <= _MOST_NUMBERS:
            sides = np.array(
                [
                    _limits(sketches.rows(rows), miss / 2 / len(item_groups), beyond_chance=beyond_chance)
                    for rows, miss in tails
                ]
            )
    except ParameterError as problem:
        return str(problem)
    return Reasons(item_groups, tuple(groups), sides, shown, beyond_chance)


def _limits(side: Sketches, tail: float, *, beyond_chance: bool) -> Floats:
    people = Prevalence.of(side, beyond_chance=beyond_chance)
    if not people.has_people(min(tail, _DOUBTFUL)):
        return np.full((3, len(people.counts)), np.nan)
    return np.array(people.limits(tail))
