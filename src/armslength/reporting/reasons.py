"""In what parties and groups differ, by the margins of their releases: what the page says, and what one can choose on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from armslength.answers.explain import DOUBTFUL, NEARLY_ALL, Explanation, explain_pairs
from armslength.errors import ParameterError
from armslength.estimates.pair_noise import Floats
from armslength.estimates.prevalence import Prevalence
from armslength.results import shortened
from armslength.sketches.sketches import Sketches, concat

_MOST_WORDS = 3
_LONGEST_NAME = 32
_MOST_NUMBERS = 600_000  # that the page holds for choices: 3 MB
_MOST_ALONE = 100  # parties that can be compared with all others: each takes a while

Rows = tuple[int, ...]
Comparison = tuple[Rows, Rows]  # rows of the first side, rows of the second


@dataclass(frozen=True, eq=False)
class Reasons:
    """Prevalences of all sides that can be chosen, and the differences that the page shows without a choice.

    Attributes:
        item_groups: Their names.
        rows: The rows that were released with these item groups.
        groups: The rows of each group.
        sides: (value, lower, upper) of every item group's prevalence in each party, then in each group: (n + g) x 3 x M. Up to 100 parties
            there are three of these: among parties and among groups; the same sides against all others; and all others of each side.
            NaN where people are too few, or not known. None where these are too many numbers for a page.
        shown: The differences between some sides; None where people are too few.
        beyond_chance: Whether they are about the populations behind the rows.
        choices: For how many comparisons the intervals hold together.
        limit: How many item groups of each person count; None if all do.
        near_limit: The rows in which many people reach that limit.
    """

    item_groups: tuple[str, ...]
    rows: Rows
    groups: tuple[Rows, ...]
    sides: Floats | None
    shown: dict[Comparison, Explanation | None]
    beyond_chance: bool
    choices: int
    limit: int | None
    near_limit: Rows

    def others(self, rows: Rows) -> Rows:
        """All other rows that can be compared."""
        return _others(rows, self.rows)

    def is_known(self, rows: Rows) -> bool:
        """Whether all of these rows were released with the item groups."""
        return set(rows) <= set(self.rows)

    @property
    def has_alone(self) -> bool:
        """Whether a party or a group can be compared with all others."""
        return self.sides is not None and len(self.sides) > 1

    def words(self, first: Rows, second: Rows) -> str:
        """The three clearest differences of the second against the first; empty if none was found. The script writes the same."""
        answer = self.shown.get((first, second))
        parts = (
            []
            if answer is None
            else [
                f"{answer.verdict[row]} with {shortened(answer.item_groups[row], _LONGEST_NAME)} "
                f"({_points(answer.difference[row])}{'' if row else ' points'})"
                for row in range(min(answer.found, _MOST_WORDS))
            ]
        )
        return ", ".join(parts)


def _points(share: float) -> str:
    """A difference in points, with two digits."""
    points = 100 * float(share)
    return f"{points:+.{0 if abs(points) >= 9.95 else 1}f}".replace("-", "−")


def _others(rows: Rows, known: Rows) -> Rows:
    return tuple(row for row in known if row not in set(rows))


class Explained(NamedTuple):
    """The rows with margins, and their numbers on the page."""

    sketches: Sketches
    numbers: Rows

    def has(self, *sides: Rows) -> bool:
        """Whether there are margins of all rows of these sides, and somebody on each."""
        return all(rows and set(rows) <= set(self.numbers) for rows in sides)

    def places(self, rows: Rows) -> list[int]:
        """The places of these rows in the sketches."""
        place = {row: number for number, row in enumerate(self.numbers)}
        return [place[row] for row in rows]

    def limits(self, rows: Rows, miss: float, *, beyond_chance: bool) -> Floats:
        """(value, lower, upper) of every item group of a side; NaN where people are too few, or there are no margins."""
        names = self.sketches.margin_names
        if self.has(rows):
            people = Prevalence.of(self.sketches.rows(self.places(rows)), beyond_chance=beyond_chance)
            tail = miss / 2 / len(names)
            if people.has_people(min(tail, DOUBTFUL)):
                return np.array(people.limits(tail))
        return np.full((3, len(names)), np.nan)


def explained_rows(parts: Sequence[Sketches]) -> Explained | None:
    """The rows with the margins that most rows have; None if there are none."""
    kinds: list[tuple[Any, list[Sketches], list[int]]] = []
    start = 0
    for part in parts:
        if part.margins is not None:
            protocol = part.protocols[0]
            what = protocol.margins, protocol.contribution, protocol.margin_contribution, protocol.one_group
            same = [kind for kind in kinds if kind[0] == what]
            if not same:
                same = [(what, [], [])]
                kinds += same
            same[0][1].append(part)
            same[0][2].extend(range(start, start + len(part)))
        start += len(part)
    if not kinds:
        return None
    _, sketches, numbers = max(kinds, key=lambda kind: len(kind[2]))
    return Explained(concat(sketches), tuple(numbers))


def reasons_of(
    explained: Explained,
    parties: int,
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
        explained: The rows with margins; the rest is those of them.
        parties: How many rows the page has.
        groups: Rows of the groups; their choice is taken as given.
        pairs: Pairs of rows to show.
        alone: Rows to show against all others.
        level: The confidence.
        simultaneous: Whether all intervals hold together.
        beyond_chance: Whether they are about the populations behind the rows.
    """
    sketches, numbers = explained
    if sketches.noises.has_shared:
        return "some rows have a release in common"
    count, item_groups = len(numbers), sketches.margin_names
    choices = count * (count - 1) // 2, len(groups) * (len(groups) + 1) // 2 + count
    error = 1 - level
    of_pair, of_group = error, error
    if simultaneous:
        of_pair = error / choices[0] / (1 if count == 2 else 2)
        of_group = error / choices[1] / 2
    every = [(row,) for row in range(parties)]
    asked: dict[Comparison, float] = {
        **{(every[i], every[j]): of_pair for i, j in pairs},
        **{(_others(rows, numbers), rows): of_group for rows in groups},
        **dict.fromkeys(pairwise(groups[:2]), of_group),
        **{(_others(every[row], numbers), every[row]): of_group for row in alone},
    }
    limits = partial(explained.limits, beyond_chance=beyond_chance)
    try:
        shown = {
            sides: explain_pairs(
                sketches,
                [(explained.places(sides[0]), explained.places(sides[1]))],
                beyond_chance=beyond_chance,
                level=1 - miss,
            )[0]
            for sides, miss in asked.items()
            if explained.has(*sides)
        }
        sides = None
        has_alone = 2 < count <= _MOST_ALONE
        if (9 if has_alone else 3) * (parties + len(groups)) * len(item_groups) <= _MOST_NUMBERS:
            of_groups = [limits(rows, of_group) for rows in groups]
            among = [limits(rows, of_pair) for rows in every] + of_groups
            blocks = [among]
            if has_alone:
                rest = [limits(_others(rows, numbers), of_group) for rows in (*every, *groups)]
                blocks = [among, [limits(rows, of_group) for rows in every] + of_groups, rest]
            sides = np.array(blocks)
    except ParameterError as problem:
        return str(problem)
    limit, near = _limit_of(sketches)
    return Reasons(
        item_groups,
        numbers,
        tuple(groups),
        sides,
        shown,
        beyond_chance,
        choices=sum(choices) if simultaneous and count > 2 else 1,
        limit=limit,
        near_limit=tuple(numbers[row] for row in near),
    )


def _limit_of(sketches: Sketches) -> tuple[int | None, list[int]]:
    """How many item groups of each person count, and the rows in which many people reach that; the margins themselves tell it."""
    protocol = sketches.noises.terms(0)[0][0]
    most, margins = protocol.margin_contribution, protocol.margins
    if sketches.margins is None or margins is None or most is None:
        return None, []
    if margins.rule == "record" and most >= len(margins.columns):
        return None, []  # everybody has one value in each column, and all count
    counted, people = sketches.margins[:, :-1].sum(axis=1), sketches.margins[:, -1]
    return most, np.flatnonzero((people > 0) & (counted > NEARLY_ALL * most * people)).tolist()
