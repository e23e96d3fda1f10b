"""What sets two parties apart? The share of people with an item of each item group, by the margins of a release."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.items import ItemDifferences, item_differences
from armslength.answers.pairs import (
    ASSUMPTIONS,
    FEWER,
    INCONCLUSIVE,
    MORE,
    Answer,
    by_evidence,
    checked_sketches,
    directions,
)
from armslength.checks import number, short_repr
from armslength.errors import NotResolvableError, ParameterError, plural
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.prevalence import MOST_UNDERCOUNT, Limits, Prevalence, difference_limits
from armslength.estimates.questions import COUNTS, POPULATIONS, question, similarities_about
from armslength.estimates.typical import TypicalParties, large_enough
from armslength.protocol.protocol import Protocol
from armslength.results import (
    LONGEST_LABEL,
    Column,
    heading,
    line,
    percent,
    sentences,
    shortened,
    similarity_text,
)
from armslength.sketches.sketches import Sketches, concat, sum_rows

_DISJOINT = "It assumes that nobody is counted in two releases of a side."
DOUBTFUL = 0.0005  # how often a side that has nobody may be taken for one that has
_SURELY = 0.001  # how often people are said to have more item groups than count, although they do not
_SHOWN_NOISE = 0.025  # how often the noise of the number of people is larger than shown
_WORTH_A_NOTE = 0.005  # of the people, missing in a share
_MOST_HIDDEN = 0.5  # of the people: where noise could hide more, that says nothing
TYPICAL_NAME = "the typical party"
UNEXPLAINED = (
    "a difference can still lie inside item groups, or in how many items a person has: ask about single items"
)
_FIRST_HEADING = "people with an item in"
_MOST_LINES = 20
_MOST_NAMES = 3
_COUNTED = ("margins", "margin_contribution")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explanation(Answer):
    """In which item groups b has more or fewer people than a, those with the clearest evidence first.

    With probability at least `level` all intervals hold together, so that every "more" and "fewer" is true of the shares of people with an
    item of the group. Of people with more item groups than count in full, each counts in part: shares come out too small by what the
    note says, and the intervals allow for it.

    Attributes:
        labels: The two sides.
        rows: How many rows each side has.
        people: How many people each side has, as released.
        item_groups: The names of the item groups.
        a: The estimated prevalence in a: the share of its people with an item of the group, as counted.
        b: The same in b.
        difference: The prevalence in b less that in a.
        lower: The lower ends of the differences.
        upper: The upper ends of the differences.
        similarity: How similar the profiles of both sides are, with both ends; None where that is not known.
    """

    labels: tuple[str, str]
    rows: tuple[int, int]
    people: tuple[float, float]
    item_groups: tuple[str, ...]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    difference: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    similarity: tuple[float, float, float] | None = None

    @property
    def verdict(self) -> tuple[str, ...]:
        """Of b against a: "more", "fewer" or "inconclusive"."""
        return directions(self.lower, self.upper)

    @property
    def found(self) -> int:
        """How many item groups differ; they come first."""
        return sum(verdict != INCONCLUSIVE for verdict in self.verdict)

    @property
    def largest(self) -> float:
        """How large a difference can still be, as a share of people, in an item group in which none was found; 0 if there is none."""
        ends = np.abs([self.lower[self.found :], self.upper[self.found :]])
        return float(ends.max(initial=0.0))

    def reasons(self, most: int = _MOST_NAMES) -> list[str]:
        """The clearest differences in words, such as "more with Injuries (+7.3 points)"; empty if none was found."""
        return [
            f"{self.verdict[row]} with {self.item_groups[row]} ({_points(self.difference[row])} points)"
            for row in range(min(self.found, most))
        ]

    def to_arrow(self) -> pa.Table:
        """One line for each item group: item_group, a, b, difference, lower, upper (shares of people), verdict."""
        names = ("a", "b", "difference", "lower", "upper")
        columns = {"item_group": pa.array(self.item_groups, pa.string())}
        columns |= {name: pa.array(getattr(self, name)) for name in names}
        columns["verdict"] = pa.array(self.verdict, pa.string())
        metadata = {"a": self.labels[0], "b": self.labels[1], "level": repr(self.level), "note": self.note}
        metadata["about"] = self.about
        return pa.table(columns).replace_schema_metadata(metadata)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with a bar and an interval for each item group, the clearest difference at the top."""
        a, b = map(plots.short_name, self.labels)
        ends = (100 * self.difference, 100 * self.lower, 100 * self.upper)
        label = f"fewer in {b} ← 0 → more in {b} than in {a}\n(percentage points of people, {percent(self.level)} intervals)"
        is_found = np.arange(len(self.item_groups)) < self.found
        words = ("differs", INCONCLUSIVE)
        return plots.bars(self.item_groups, ends, is_found, label, ax, words=words)

    def _title(self) -> str:
        a, b = self.labels
        if not self.found:
            return f"No difference found between {a} and {b}: {self._others()}"
        parts = []
        for word in (MORE, FEWER):
            rows = [row for row in range(self.found) if self.verdict[row] == word]
            names = [f"{self.item_groups[row]} ({_points(self.difference[row])})" for row in rows]
            if len(names) > _MOST_NAMES:
                names[_MOST_NAMES:] = [plural(len(names) - _MOST_NAMES, "more item group")]
            parts += [f"{word} with {_joined(names)}"] if names else []
        others = f"; {self._others()}" if self.found < len(self.item_groups) else ""
        has = "has" if self.rows[1] == 1 else "have"
        return f"Of every 100 people, {b} {has} {' and '.join(parts)} than {a}{others}"

    def _others(self) -> str:
        """What is known of the item groups without a difference: how large one could still be."""
        limit = f"differs by more than {100 * self.largest:.1f} points"
        if not self.found:
            return f"no item group {limit}"
        count = len(self.item_groups) - self.found
        return f"{plural(count, 'other item group')}: no difference found; none {limit}"

    def __str__(self) -> str:
        lines = [self._question("all item groups together"), self._similar(), self._title()]
        if self.found:
            count = min(self.found, _MOST_LINES)
            labels = [shortened(label, LONGEST_LABEL) for label in self.labels]
            columns = [
                Column.of_labels(_FIRST_HEADING, self.item_groups[:count]),
                *(Column(label, max(7, len(label)), is_number=True) for label in labels),
                Column("points", 6, is_number=True),
                Column("", len("(−100.0 to −100.0)")),
                Column("", 10),
            ]
            lines += ["", heading(columns)]
            lengths = np.abs(self.difference[: self.found])
            for row in range(count):
                *cells, ends = self._cells(row)
                bar = "▇" * max(1, round(10 * float(lengths[row]) / lengths.max()))
                lines.append(line(columns, [*cells, f"({ends})", bar]))
            if self.found > _MOST_LINES:
                lines.append(f"… and {plural(self.found - _MOST_LINES, 'more item group')} that differ")
            lines.append("")
        else:
            lines.append(f"{UNEXPLAINED[0].upper()}{UNEXPLAINED[1:]}.")
        return sentences([line for number, line in enumerate(lines) if line or number > 2], self.note)

    def _similar(self) -> str:
        """How similar both sides are, in a line."""
        if self.similarity is None:
            return ""
        a, b = self.labels
        return f"The profiles of {a} and {b}: similarity {similarity_text(*self.similarity)}."

    def _head(self, rows: int) -> tuple[pa.Table, int]:
        """What a notebook shows: shares in percent and differences in points."""
        names = [_FIRST_HEADING, *self.labels, "points", "from … to", "verdict"]
        if len(set(names)) < len(names):  # both sides have one name, or that of another column
            names[1:3] = [f"{side}: {label}" for side, label in zip("ab", self.labels, strict=True)]
        cells = [(*self._cells(row), word) for row, word in enumerate(self.verdict[:rows])]
        return pa.table(dict(zip(names, zip(*cells, strict=True), strict=True))), len(self.item_groups)

    def _cells(self, row: int) -> list[str]:
        """What tables show of an item group: its name, the share on both sides, the difference, its interval."""
        shares = [f"{100 * float(side[row]):.1f} %" for side in (self.a, self.b)]
        value, lower, upper = (_points(ends[row]) for ends in (self.difference, self.lower, self.upper))
        return [self.item_groups[row], *shares, value, f"{lower} to {upper}"]


def explain(
    sketches: Sketches,
    a: str | Sequence[str],
    b: str | Sequence[str] | None = None,
    *,
    items: Any = None,
    about: str | None = None,
    level: float = 0.95,
    vocabulary: Any = None,
) -> Explanation | ItemDifferences:
    """What sets b apart from a: the item groups, or the listed items, of which more or fewer of its people have one.

    Without b: what sets a apart from the typical party, the average of the others, in which none weighs more than the median party.

    Args:
        sketches: One row for each party.
        a: A party, or several, whose people are added up.
        b: The same.
        items: A list of items to ask about; they need no item groups. Choose them without looking at these sketches. None: item groups.
        about: "populations" or "people", for items also "counts"; None takes the first of them that the releases allow.
        level: With this probability all intervals hold together.
        vocabulary: With items, all names of a fixed vocabulary in its order, where the protocol has only their hash.

    Raises:
        NotResolvableError: The sides have too few people to say anything, given the noise, or the people of one have many more item groups
            than count in full.
    """
    rows = checked_sketches("sketches", sketches, 2)
    first = _labels("a", a)
    second = [] if b is None else _labels("b", b)
    repeated = set(first) & set(second)
    if repeated:
        raise ParameterError(f"{short_repr(min(repeated))} is on both sides; leave it out of one", "a", "b")
    if second:
        sides = Side(rows[first], _names(first)), Side(rows[second], _names(second))
        return explain_rows(*sides, items=items, about=about, level=level, vocabulary=vocabulary)
    others = [label for label in rows.labels if label not in set(first)]
    if not others:
        raise ParameterError("nobody is left to compare with; name fewer parties", "a")
    about = question(about, rows, of_people=items is None)
    together, left_out = _like_most(rows[others], rows[first], about, has_groups=items is None)
    members = list(range(len(together) - len(first), len(together)))
    sides = typical_of(together, members), Side.of(together, members)
    answer = explain_rows(*sides, items=items, about=about, level=level, vocabulary=vocabulary)
    answer = replace(answer, note=" ".join(filter(None, (answer.note, left_out))))
    if len(first) == 1 and isinstance(answer, Explanation):
        return replace(answer, similarity=_similarity_to_typical(together, answer))
    return answer


def explain_rows(
    a: "Side",
    b: "Side",
    *,
    items: Any = None,
    about: str | None = None,
    level: float = 0.95,
    vocabulary: Any = None,
) -> Explanation | ItemDifferences:
    """What `explain` says of two sides."""
    about = question(about, a.rows, b.rows, of_people=items is None)
    if items is not None:
        return item_differences(a.row, b.row, items, about=about, level=level, vocabulary=vocabulary)
    (answer,) = explain_sides([a, b], [(0, 1)], about=about, level=level)
    if isinstance(answer, str):
        raise NotResolvableError(answer)
    if a.weights is not None or b.weights is not None:
        return answer
    similar = similarities_about(a.row, b.row, about)
    value, lower, upper = (float(end[0, 0]) for end in (similar.value, *similar.interval(level)))
    return replace(answer, similarity=(value, lower, upper))


def _labels(name: str, labels: str | Sequence[str]) -> list[str]:
    """The labels of a side."""
    names = [labels] if isinstance(labels, str) else list(labels)
    if not names:
        raise ParameterError(f"{name} must name at least one party", name)
    return names


def _like_most(others: Sketches, rows: Sketches, about: str, *, has_groups: bool) -> tuple[Sketches, str]:
    """The others that the typical party can be made of, with these rows after them, and a note that names the rest."""
    notes = []
    together = concat([others, rows])
    chosen = np.ones(len(others), dtype=np.bool_)
    if has_groups:
        chosen = explainable(together)[: len(others)]
        notes += [(others[~chosen], "other item groups, or none")]
    if about != COUNTS:
        is_large = large_enough(together, beyond_chance=about == POPULATIONS)[: len(others)]
        notes += [(others[chosen & ~is_large], "too few people")]
        chosen &= is_large
    if not chosen.any():
        chosen, notes = np.ones(len(others), dtype=np.bool_), []
    left_out = "; ".join(f"{_names(part.labels)} ({why})" for part, why in notes if len(part))
    note = f"The typical party is without {left_out}." if left_out else ""
    return concat([others[chosen], rows]), note


def _similarity_to_typical(together: Sketches, answer: Explanation) -> tuple[float, float, float] | None:
    """How similar the last row and the typical party are; None where that is not known."""
    beyond_chance = answer.about == POPULATIONS
    if (
        len(together) < 3
        or together.noises.has_shared
        or not large_enough(together, beyond_chance=beyond_chance)[-1]
    ):
        return None
    ends = TypicalParties.of(together, beyond_chance=beyond_chance).similarities(
        Level.of(answer.level, METHODS[0], 1)
    )
    value, lower, upper = (float(end[-1]) for end in ends)
    return value, lower, upper


def reasons_against_typical(
    sketches: Sketches, chosen: Sequence[int], *, about: str, level: float
) -> list[str]:
    """For each of these rows, what sets it apart from the typical party of all others, in words; empty where nothing can be asked.

    The level is for all rows together, from which these were chosen by what was released.
    """
    known = explainable(sketches) if about != COUNTS else np.zeros(len(sketches), dtype=np.bool_)
    if known.sum() < 2:
        return [""] * len(chosen)
    rows = sketches[known]
    asked = [row for row in chosen if known[row]]
    members = [[int(known[:row].sum())] for row in asked]
    sides = [side for member in members for side in (typical_of(rows, member), Side.of(rows, member))]
    pairs = [(2 * number, 2 * number + 1) for number in range(len(asked))]
    try:
        answers = explain_sides(sides, pairs, about=about, level=level, choices=len(sketches))
    except ParameterError:  # some rows have a release in common, or are no sums of releases
        return [""] * len(chosen)
    reasons = dict(zip(asked, map(_reason, answers), strict=True))
    return [reasons.get(row, "") for row in chosen]


def _reason(answer: Explanation | str) -> str:
    """An answer in words."""
    if isinstance(answer, str):
        return answer.split(";")[0]
    return ", ".join(answer.reasons()) or f"no item group was found to differ; {UNEXPLAINED}"


@dataclass(frozen=True)
class Side:
    """Rows that are added up, or averaged with weights from 0 to 1."""

    rows: Sketches
    name: str
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, sketches: Sketches, numbers: Sequence[int] | None = None) -> "Side":
        """All rows, or those of these numbers, added up."""
        rows = sketches if numbers is None else sketches.rows(numbers)
        return cls(rows, _names(rows.labels))

    @property
    def row(self) -> Sketches:
        """All rows with their weights as one row of this name."""
        rows = self.rows
        if self.weights is not None:
            rows = concat([row * weight for row, weight in zip(rows, self.weights, strict=True)])
        return sum_rows(rows, self.name)


def typical_of(sketches: Sketches, members: Sequence[int]) -> Side:
    """The typical party of all rows but the members: their average, none weighing more than the median of all rows.

    Where numbers of people were not released, it is the plain average.
    """
    others = np.setdiff1d(np.arange(len(sketches)), members)
    if not len(others):
        raise ParameterError("the typical party is made of other parties, and there are none")
    if sketches.totals is None:
        weights = np.full(len(sketches), 1 / len(others))
    else:
        people = np.maximum(sketches.totals.astype(np.float64), 1.0)
        weights = np.minimum(people, np.median(people)) / people
    return Side(sketches.rows(others.tolist()), TYPICAL_NAME, weights[others])


def undercounts(sketches: Sketches) -> tuple[int, list[float]]:
    """How many item groups of a person count in full, and for each row the share of people that may be missing; 0 if not worth a note."""
    sides = [Prevalence.of(row, beyond_chance=False) for row in sketches]
    shares = [
        side.undercount / side.people if side.lacks(_WORTH_A_NOTE, _SURELY) and side.people > 0 else 0.0
        for side in sides
    ]
    return _bound(sketches), shares


def explain_sides(
    sides: Sequence[Side],
    pairs: Sequence[tuple[int, int]],
    *,
    about: str,
    level: float,
    choices: int = 0,
) -> list[Explanation | str]:
    """What `explain` says of each pair of sides, by number, all of them together at the level; a text where it refuses.

    If they were chosen by what was released, the level is for so many choices.

    A side that is part of many pairs is computed once.
    """
    confidence = number("level", level, above=0.0, at_most=1 - 1e-12)
    check_margins([side.rows for side in sides])
    if about == COUNTS:
        raise ParameterError("item groups count people: ask about='populations' or about='people'", "about")
    beyond_chance = about == POPULATIONS
    people = [Prevalence.of(side.rows, beyond_chance=beyond_chance, weights=side.weights) for side in sides]
    names = sides[0].rows.margin_names if sides else ()
    tail = (1 - confidence) / 2 / max(1, len(names) * max(len(pairs), choices))
    limits = [each.limits(tail) if can_be_said(each, tail) else None for each in people]
    results: list[Explanation | str] = []
    for i, j in pairs:
        a, b = sides[i], sides[j]
        if a.rows.noises.shared_count(b.rows.noises):
            raise ParameterError(
                "a and b have a release in common; leave its rows out of one of them", "a", "b"
            )
        first, second = limits[i], limits[j]
        if first is None or second is None:
            results.append(_refusal([(a, people[i]), (b, people[j])], tail))
            continue
        notes = (
            _undercount_note([(a, people[i]), (b, people[j])]),
            f"{ASSUMPTIONS[about]}.",
            _DISJOINT if max(_releases(a.rows), _releases(b.rows)) > 1 else "",
        )
        answer = Explanation(
            labels=(a.name, b.name),
            rows=(len(a.rows), len(b.rows)),
            people=(people[i].people, people[j].people),
            **_ranked(names, first, second),
            about=about,
            level=confidence,
            note=" ".join(filter(None, notes)),
        )
        is_vacuous = not answer.found and answer.largest > _MOST_HIDDEN
        results.append(_hidden(answer) if is_vacuous else answer)
    return results


def can_be_said(side: Prevalence, tail: float) -> bool:
    """Whether differences from a side are named: it surely has people, and not many are missing in the counts."""
    return side.has_people(min(tail, DOUBTFUL)) and not side.lacks(MOST_UNDERCOUNT, _SURELY)


def _releases(side: Sketches) -> int:
    """How many releases the rows of a side are from."""
    return len(set(side.noises.origins["release"].tolist()))


def _undercount_note(sides: Sequence[tuple[Side, Prevalence]]) -> str:
    """By how much shares are too small, where that is worth a note."""
    lacking = [
        f"{100 * people.undercount / people.people:.1f} points in {side.name}"
        for side, people in sides
        if people.lacks(_WORTH_A_NOTE, _SURELY)
    ]
    if not lacking:
        return ""
    bound = _bound(sides[0][0].rows)
    return (
        f"Some people have more than {plural(bound, 'item group')}, and count in part in each: shares can be up to about "
        f"{_joined(lacking)} too small. The intervals allow for it."
    )


def _bound(side: Sketches) -> int:
    """How many item groups of a person count in full."""
    return side.noises.terms(0)[0][0].margin_contribution or 0


def _ranked(names: Sequence[str], a: Limits, b: Limits) -> dict[str, Any]:
    """The columns of an explanation, by evidence."""
    value, lower, upper = difference_limits(a, b)
    order = by_evidence(value, lower, upper)
    lower, upper = (np.clip(end, -1.0, 1.0)[order] for end in (lower, upper))
    of_a, of_b = (np.clip(side.least, 0.0, 1.0)[order] for side in (a, b))
    difference = np.clip(of_b - of_a, lower, upper)
    columns = {"a": of_a, "b": of_b, "difference": difference, "lower": lower, "upper": upper}
    return {"item_groups": tuple(names[row] for row in order), **columns}


def explainable(sketches: Sketches) -> NDArray[np.bool_]:
    """For each row whether its margins count the same of each person as those of most rows that have some."""
    meanings: dict[int, tuple[Any, ...]] = {}
    for row in np.flatnonzero(sketches.with_margins).tolist():
        counted = {_counted(protocol) for protocol, _ in sketches.noises.terms(row)}
        if len(counted) == 1:
            meanings[row] = counted.pop()
    most = Counter(meanings.values()).most_common(1)
    return np.array([bool(most) and meanings.get(row) == most[0][0] for row in range(len(sketches))])


def _counted(protocol: Protocol) -> tuple[Any, ...]:
    """What margins count of each person."""
    return tuple(getattr(protocol, name) for name in _COUNTED)


def check_margins(sides: Sequence[Sketches]) -> None:
    """Refuses sides of which different things are counted, and names the rows that were released without margins."""
    released = [
        (label, protocol)
        for side in sides
        for row, label in enumerate(side.labels)
        for protocol, _ in side.noises.terms(row)
    ]
    bare = list(dict.fromkeys(label for label, protocol in released if protocol.margins is None))
    if bare:
        raise ParameterError(
            f"{_names(bare)} {'was' if len(bare) == 1 else 'were'} released without margins; leave out what has none, "
            "plan the next release with margins, or ask about a list of items"
        )
    different = [name for name in _COUNTED if len({getattr(protocol, name) for _, protocol in released}) > 1]
    if different:
        raise ParameterError(
            f"a and b do not count the same of each person: they have different {', '.join(different)}",
            "a",
            "b",
        )
    if any(side.margins is None for side in sides):
        raise ParameterError(
            "a and b lost their margins when they were joined with more rows of other item groups; load the files of a and b alone",
            "a",
            "b",
        )


def _refusal(sides: Sequence[tuple[Side, Prevalence]], tail: float) -> str:
    """Why no difference between two sides is named, and what helps."""
    few = [(side, people) for side, people in sides if not people.has_people(min(tail, DOUBTFUL))]
    if few:
        side, people = min(few, key=lambda each: each[1].people / each[1].people_noise(_SHOWN_NOISE))
        return (
            f"too few people to say: {side.name} has about {max(0.0, people.people):,.0f}, with noise of "
            f"±{people.people_noise(_SHOWN_NOISE):,.0f}; add it up with similar parties, leave it out, "
            "or plan a larger share of ε for the number of people (total_share)"
        )
    cut = [side.name for side, people in sides if people.lacks(MOST_UNDERCOUNT, _SURELY)]
    bound = _bound(sides[0][0].rows)
    larger = min(max(2 * bound, bound + 5), len(sides[0][0].rows.margin_names))
    return (
        f"many people have more than the {bound} item groups that count in full: in {_joined(cut)} shares can be more than "
        f"{100 * MOST_UNDERCOUNT:g} points too small; plan again with a larger limit, such as item_groups_limit={larger}"
    )


def _hidden(answer: Explanation) -> str:
    """What is said where no difference was found, and noise could hide nearly any."""
    a, b = answer.labels
    return (
        f"too few people to say: noise could hide differences of up to {100 * answer.largest:.0f} points between {a} and {b}; "
        "add up similar parties, or plan a larger share of ε for item groups (item_groups_share)"
    )


def _names(labels: Sequence[str]) -> str:
    """The labels of rows; of more than three, the first two and how many others there are."""
    return _joined(labels if len(labels) <= _MOST_NAMES else (*labels[:2], f"{len(labels) - 2} others"))


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _points(share: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * float(share):+.1f}".replace("-", "−")
