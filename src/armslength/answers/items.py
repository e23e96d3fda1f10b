"""Which items of a public list one party has more of than another, from the sketches alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from armslength import plots
from armslength.answers.pairs import (
    ASSUMPTIONS,
    FEWER,
    INCONCLUSIVE,
    MORE,
    Answer,
    by_evidence,
    directions,
)
from armslength.checks import number, short_repr
from armslength.errors import NotResolvableError, ParameterError, UnknownNameError, plural
from armslength.estimates.distances import clear_note
from armslength.estimates.intervals import Level
from armslength.estimates.item_intervals import ItemIntervals, item_intervals, largest_entries
from armslength.estimates.pair_noise import Floats
from armslength.estimates.questions import COUNTS, POPULATIONS
from armslength.estimates.shapes import NO_POPULATIONS
from armslength.estimates.totals import totals
from armslength.protocol.contribution import VOTES
from armslength.protocol.protocol import Protocol, checked_vocabulary
from armslength.randomness.hashing import item_words, read_to_the_end
from armslength.randomness.seeds import canonical_text
from armslength.results import percent, sentences
from armslength.sketches.sketches import Sketches, check_same_space

_TO_TOTALS = 0.02  # of the error
_MOST_SHOWN = 10
_MOST_ITEMS = 2**24
_VOTES = "a point more is one more in every 100 votes: everybody has one vote, split over all their items"
_AMOUNTS = "a point more is one more in every 100 that were counted"
_UNLISTED = "an item that is not listed can share a bin with one that is: how often that misleads is part of the error"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemDifferences(Answer):
    """For each item, how much more of it one party has than another; with the level, all intervals hold together.

    Attributes:
        labels: The parties a and b.
        items: The items, those with the strongest evidence first.
        difference: The estimates of b − a: counts of people or events, or data units; for shapes, shares of the total.
        lower: The lower ends; −∞ for an item that could not be measured.
        upper: The upper ends.
        ties: For each item, the items in the same bin, each with whether it is "more" or "fewer" if it is the cause of a
            positive difference here. The difference is then that of all of them together: W01 − Z47, say.
        unit: What is counted, in words.
    """

    labels: tuple[str, str]
    items: tuple[str, ...]
    difference: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    ties: tuple[tuple[tuple[str, str], ...], ...]
    unit: str

    @property
    def verdict(self) -> tuple[str, ...]:
        """Whether b has more or fewer of each item than a; of an item with ties, all of them together."""
        return directions(self.lower, self.upper)

    def to_arrow(self) -> pa.Table:
        """One line for each item: item, difference, lower, upper, verdict, tied_with ("Z47 fewer"), in_clear."""
        columns = {"item": self.items, "difference": self.difference, "lower": self.lower}
        columns |= {"upper": self.upper, "verdict": self.verdict}
        columns["tied_with"] = [self._tie(row) for row in range(len(self.items))]
        return self._table(columns, unit=self.unit, a=self.labels[0], b=self.labels[1])

    def sentence(self, row: int) -> str:
        """One item with its numbers: "W01 +180 (+120 to +240), tied with Z47 fewer"."""
        value, low, high = (self._number(ends[row]) for ends in (self.difference, self.lower, self.upper))
        tie = self._tie(row)
        return f"{self.items[row]} {value} ({low} to {high}){f', tied with {tie}' if tie else ''}"

    @property
    def summary(self) -> str:
        """One line: the items that differ, and by how much the others differ at most."""
        rows = self._that_differ()
        parts = [self.sentence(row) for row in rows[:_MOST_SHOWN]]
        if len(rows) > _MOST_SHOWN:
            parts.append(f"{len(rows) - _MOST_SHOWN} more that differ")
        named = {name for row in rows for name in (self.items[row], *dict(self.ties[row]))}
        others = [row for row, name in enumerate(self.items) if name not in named]
        if others:
            count = plural(len(others), "other" if rows else "item")
            parts.append(f"{count} inconclusive{self._bound(others)}")
        return " · ".join(parts)

    def _bound(self, rows: list[int]) -> str:
        """By how much these items differ at most; of those that are tied or could not be measured, nothing is known alone."""
        ends = [max(-self.lower[row], self.upper[row]) for row in rows if not self.ties[row]]
        known = [end for end in ends if end < np.inf]
        if not known:
            return ""
        differ = "it differs" if len(rows) == 1 else "each differs"
        if len(known) < len(rows):
            differ = f"{len(known):,} of them, each alone, differ"
        points = " points" if self.about != COUNTS else ""
        return f" ({differ} by at most {self._number(max(known)).removeprefix('+')}{points})"

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the intervals of the items that differ, or of the first ones if none is."""
        apart = self._that_differ()
        rows = apart or list(range(min(_MOST_SHOWN, len(self.items))))
        ends = (self.difference[rows], self.lower[rows], self.upper[rows])
        a, b = map(plots.short_name, self.labels)
        names, is_apart = [self.items[row] for row in rows], np.full(len(rows), bool(apart))
        words = ("differs", INCONCLUSIVE)
        return plots.forest(names, ends, is_apart, f"{b} − {a}, {self.unit}", ax, words=words)

    def __str__(self) -> str:
        return sentences([f"{self._title()}:", f"  {self.summary}"], self.note)

    def _title(self) -> str:
        count = sum(verdict != INCONCLUSIVE for verdict in self.verdict)
        apart = f"{count} of {plural(len(self.items), 'item')} {'differs' if count == 1 else 'differ'}, at {percent(self.level)}, all together"
        return f"{self.labels[1]} against {self.labels[0]}, in {self.unit}: {apart}"

    def _that_differ(self) -> list[int]:
        """The items that differ; of those that are tied, the first."""
        rows: list[int] = []
        tied: set[str] = set()
        for row, verdict in enumerate(self.verdict):
            if verdict != INCONCLUSIVE and self.items[row] not in tied:
                tied.update(dict(self.ties[row]))
                rows.append(row)
        return rows

    def _tie(self, row: int) -> str:
        """The tie of an item in words, for the sign that its difference has."""
        verdicts = {MORE: FEWER, FEWER: MORE} if self.difference[row] < 0 else {MORE: MORE, FEWER: FEWER}
        return ", ".join(f"{name} {verdicts[verdict]}" for name, verdict in self.ties[row])

    def _number(self, value: float) -> str:
        """A count, or a share in percentage points, with its sign."""
        value *= 100 if self.about != COUNTS else 1
        text = f"{value:+,.0f}" if 100 <= abs(value) < np.inf else f"{value:+.3g}"
        return text.replace("-", "−")


def item_differences(
    left: Sketches, right: Sketches, items: Any, *, about: str, level: float, vocabulary: Any = None
) -> ItemDifferences:
    """How much more of each listed item one row has than another, with intervals that hold together.

    List the items without looking at these sketches: codes that matter to you, or the most popular ones of a public source. A list
    that has the items with the largest differences gives the sharpest intervals, since bins without a listed item show
    how large errors are. SparseJL with sparsity 1 takes a list of k/20 items (k/41 if "balanced"), with sparsity 3 or more any
    list, and Identity any list, most sharply. Reference: docs/reference/answers.md.

    Args:
        left: One row.
        right: One row; right − left is estimated.
        items: The items, or column numbers of a fixed vocabulary.
        about: "counts" for differences of counts; else differences of shares of each side's total: of votes, the share of an item in an
            average person's vote.
        level: With this probability no interval misses.
        vocabulary: All names of a fixed vocabulary in its order, where items are names and the protocol has only their hash.
    """
    error = 1 - number("level", level, above=0.0, at_most=1.0 - 1e-9)
    check_same_space((*left.protocols, *right.protocols))
    names, columns = listed_items(left.protocols[0], items, vocabulary)
    unit, chance, rows, rest = 1.0, np.zeros(len(names)), [right - left], error
    if about != COUNTS:
        sides = [_Share.of(side, _TO_TOTALS * error / 2) for side in (left, right)]
        rows, rest = _corners(*sides), rest - _TO_TOTALS * error
    else:
        unit = float(left.protocols[0].resolution)
    if about == POPULATIONS:
        if not (_is_of_people(left) and _is_of_people(right)):
            raise ParameterError(NO_POPULATIONS, "about")
        chance = _chance(sides, columns, rest)
    intervals = item_intervals(rows, columns, rest)
    lower = intervals.value - np.hypot(intervals.value - intervals.lower, chance)
    upper = intervals.value + np.hypot(intervals.upper - intervals.value, chance)
    order = by_evidence(intervals.value, lower, upper)
    ties = _ties(intervals, names)
    protocols = (*left.protocols, *right.protocols)
    shares = _VOTES if all(protocol.votes for protocol in protocols) else _AMOUNTS
    notes = (
        shares if about != COUNTS else "",
        ASSUMPTIONS[about],
        _UNLISTED if left.transform.item_blocks and left.transform.projection_variance > 0 else "",
        _unmeasured(intervals),
        clear_note(left, right),
    )
    return ItemDifferences(
        labels=(left.labels[0], right.labels[0]),
        items=tuple(names[row] for row in order),
        difference=unit * intervals.value[order],
        lower=unit * lower[order],
        upper=unit * upper[order],
        ties=tuple(ties[row] for row in order),
        unit=_unit_text(protocols, about),
        about=about,
        level=float(level),
        note="; ".join(filter(None, notes)),
    )


def listed_items(protocol: Protocol, items: Any, vocabulary: Any = None) -> tuple[list[str], Any]:
    """(names, columns): the items as text, and as `Transform.columns` takes them; each may come once."""
    if isinstance(items, (str, bytes, bytearray)) or not hasattr(items, "__iter__"):
        raise ParameterError(
            f"items must be a list of names or of integers, got {type(items).__name__}", "items"
        )
    values = items.to_pylist() if hasattr(items, "to_pylist") else read_to_the_end(items)
    if not 1 <= len(values) <= _MOST_ITEMS:
        raise ParameterError(
            f"items must be 1 to {_MOST_ITEMS} names or integers, got {len(values)}", "items"
        )
    is_text = all(isinstance(item, str) for item in values)
    is_open = protocol.transform.input_dim is None
    if is_text and is_open and protocol.items == "int64":
        values, is_text = list(map(_integer, values)), False
    elif is_open and is_text != (protocol.items == "string"):
        raise ParameterError(f"items must all be of the protocol's type, {protocol.items}", "items")
    columns: Any
    if is_text:
        names = list(map(_canonical, values))
        columns = names if is_open else _column_numbers(protocol, names, vocabulary)
    else:
        columns = item_words(values)[:, 1].view(np.int64)
        names = list(map(str, columns.tolist()))
        columns = columns if is_open else protocol.transform.column_numbers(columns)
    if len(set(names)) < len(names):
        repeated = next(name for name, times in Counter(names).items() if times > 1)
        raise ParameterError(f"items lists {short_repr(repeated)} twice", "items")
    return names, columns


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ParameterError(
            f"items must be integers, as the protocol's are, got {short_repr(text)}", "items"
        ) from None


def _canonical(name: str) -> str:
    try:
        text = canonical_text(name).decode()
    except ValueError as problem:
        raise ParameterError(f"items must be {problem}", "items") from None
    if not text:
        raise ParameterError("items has an empty name", "items")
    return text


def _column_numbers(protocol: Protocol, names: list[str], vocabulary: Any) -> NDArray[np.int64]:
    """The column numbers of names in a fixed vocabulary: the one given, that of the record, or the list itself."""
    input_dim = protocol.transform.input_dim
    if vocabulary is None and protocol.record is not None:
        vocabulary = protocol.record.items()
    if vocabulary is None and len(names) == input_dim:
        vocabulary = names
    if protocol.vocabulary is None or vocabulary is None or isinstance(vocabulary, str):
        raise ParameterError(
            "items by name need vocabulary, because the protocol does not have the names; or give column numbers",
            "items",
            "vocabulary",
        )
    if checked_vocabulary(vocabulary, input_dim) != protocol.vocabulary:
        raise ParameterError("vocabulary must be the protocol's, in its order", "vocabulary")
    numbers = {_canonical(name): number for number, name in enumerate(vocabulary)}
    missing = next((name for name in names if name not in numbers), None)
    if missing is not None:
        raise UnknownNameError(f"items: no {short_repr(missing)} in the protocol's vocabulary", "items")
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _is_of_people(row: Sketches) -> bool:
    """Whether a row is made of released votes, each of them counted at most once."""
    noises = row.noises
    return (
        all(protocol.votes for protocol in row.protocols)
        and not noises.in_clear.any()
        and bool(((noises.coefficients > 0) & (noises.coefficients <= 1)).all())
    )


class _Share(NamedTuple):
    """A row whose items are shares of its total."""

    row: Sketches
    total: float  # as released
    low: float  # what the noise of the total allows
    high: float

    @classmethod
    def of(cls, row: Sketches, error: float) -> "_Share":
        """The row. The true total is between both ends, except with this probability."""
        total = totals(row)
        low, high = (float(end[0]) for end in total.rule.interval(Level(error / 2, "guaranteed")))
        if not low > 0:
            raise NotResolvableError(
                f"the total of {row.labels[0]} may be 0, so its shares cannot be resolved; ask about='counts'"
            )
        return cls(row, float(total.value[0]), low, high)

    def divided_by(self, total: float) -> Sketches:
        """The row in shares of a total."""
        return self.row * (float(self.row.protocols[0].resolution) / total)


def _corners(left: _Share, right: _Share) -> list[Sketches]:
    """y/T_y − x/T_x at the released totals, and at the corners of all that their noise allows."""
    ends = (left.total, right.total), *product((left.low, left.high), (right.low, right.high))
    return [right.divided_by(of_right) - left.divided_by(of_left) for of_left, of_right in ends]


def _chance(sides: Sequence[_Share], columns: Any, error: float) -> Floats:
    """How far chance moves the difference in the share of each item, at the error for all of them together: approximate.

    What one person's vote has of an item is between 0 and 1, so its variance is at most y(1 − y), y being the item's share; with weights of
    at most 1, as the typical party has, the variance of the average is no larger than that of as many people as the weights add up to. Bins
    that several listed items share are taken for one item, as their votes may cancel there only by chance of the public signs.
    """
    variance = np.zeros(1)
    for side in sides:
        y = np.clip(largest_entries(side.divided_by(side.low), columns), 0.0, 0.5)
        variance = variance + y * (1 - y) / side.low
    deviate = -ndtri(error / 2 / len(variance))
    return np.asarray(deviate * np.sqrt(variance))


def _ties(intervals: ItemIntervals, names: Sequence[str]) -> list[tuple[tuple[str, str], ...]]:
    """For each item the others in its bin, and which way each goes where the item goes up."""
    ties: list[tuple[tuple[str, str], ...]] = [()] * len(names)
    bins, signs = intervals.bins, intervals.signs
    if bins is None or signs is None:
        return ties
    order = np.argsort(bins, kind="stable")
    cuts = np.flatnonzero(np.diff(bins[order])) + 1
    for members in (part.tolist() for part in np.split(order, cuts) if len(part) > 1):
        for row in members:
            others = (other for other in members if other != row)
            ties[row] = tuple((names[i], MORE if signs[i] == signs[row] else FEWER) for i in others)
    return ties


def _unmeasured(intervals: ItemIntervals) -> str:
    left_out = len(intervals.value) - intervals.measured
    count = int(np.isinf(intervals.upper).sum()) - left_out
    notes = (
        f"the list is long, so {intervals.measured} items were chosen by one block of the sketch and measured by the others",
        f"{plural(count, 'item')} could not be measured, in bins of other listed items",
    )
    return "; ".join(note for note, number in zip(notes, (left_out, count), strict=True) if number > 0)


def _unit_text(protocols: Sequence[Protocol], about: str) -> str:
    """What a difference is counted in."""
    if about != COUNTS:
        votes = all(protocol.votes for protocol in protocols)
        return f"percentage points of all {'votes' if votes else 'that was counted'}"
    kinds = {protocol.contribution for protocol in protocols}
    votes, amounts = VOTES in kinds, any(isinstance(kind, int) for kind in kinds)
    return "votes" if kinds == {VOTES} else "counts" if votes or amounts else "data units"
