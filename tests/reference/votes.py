"""Votes and margins, naive: docs/reference/contributions.md, one person at a time, with Python's own integers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, isqrt

from reference.contributions import Person, group_hash, joined, persons_events, sip

VOTE = 2**20  # grid units
COARSE = 2**16
Item = str | int
Vote = tuple[Person, str | None, Item | None]  # person, group, item
OTHER = "(other)"


@dataclass(frozen=True)
class Projection:
    """The published matrix: how many entries ±1 a column has, and the sum of the columns of some items."""

    entries: int
    total_of: Callable[[Sequence[Item]], Sequence[int]]


@dataclass(frozen=True)
class Rule:
    """The item groups: their names, the one that an item belongs to (None: to none), and how many count whole."""

    names: Sequence[str]
    group_of: Callable[[Item], str | None]
    most: int


@dataclass
class Row:
    """The exact integers of one row, in grid units: what a release adds noise to."""

    values: list[int]
    people: int = 0
    squares: int = 0
    outer: dict[tuple[int, int], int] = field(default_factory=dict)
    entries: int = 1
    margins: list[int] = field(default_factory=list)

    @property
    def norm(self) -> int:
        """F."""
        return isqrt(sum(entry**2 for entry in self.outer.values())) // (self.entries * 2**12)


def row_of_person(key: bytes, person: str, rows: Iterable[str], order: Sequence[str]) -> str:
    """The one row that a person votes in."""
    return min(rows, key=lambda row: (group_hash(key, person, row), order.index(row)))


def is_sampled(key: bytes, person: str, share: Fraction) -> bool:
    """Whether a person is in the sample for F."""
    return sip(key, joined(sip(key, person.encode()))) < floor(share * 2**64)


def add_vote(row: Row, projected: Sequence[int], items: int, *, sampled: bool) -> None:
    """Adds the vote of a person with so many different items, whose columns add up to this."""
    weight = VOTE // items
    mass, length = items * weight, sum(entry**2 for entry in projected)
    square = weight**2 * length // (row.entries * VOTE)
    for place, entry in enumerate(projected):
        row.values[place] += weight * entry
    row.people += mass
    row.squares += square
    coarse = COARSE // items
    if sampled and coarse:
        here = [place for place, entry in enumerate(projected) if entry]
        for one in here:
            for other in here:
                moved = coarse**2 * projected[one] * projected[other]
                row.outer[one, other] = row.outer.get((one, other), 0) + moved


def add_margins(row: Row, rule: Rule, items: Iterable[Item]) -> None:
    """Adds a person's weight to each of their item groups, and four times what it lacks to the last number."""
    theirs = {name for item in items if (name := rule.group_of(item)) is not None}
    weight = VOTE if len(theirs) <= rule.most else VOTE * rule.most // len(theirs)
    for name in theirs:
        row.margins[rule.names.index(name)] += weight
    row.margins[-1] += 4 * (VOTE - weight)


def votes(
    events: Iterable[Vote],
    rows: Sequence[str],
    projection: Projection,
    key: bytes,
    *,
    share: Fraction = Fraction(1),
    rule: Rule | None = None,
) -> list[Row]:
    """The exact integers of each row."""
    size = len(projection.total_of([]))
    width = 0 if rule is None else len(rule.names) + 1
    sums = {row: Row([0] * size, entries=projection.entries, margins=[0] * width) for row in rows}
    for person, theirs in persons_events([(*event, 1) for event in events], rows).items():
        chosen = row_of_person(key, person, {row for row, _, _ in theirs}, rows)
        items = {item for row, item, _ in theirs if row == chosen}
        if len(items) > VOTE:
            continue
        projected = [int(entry) for entry in projection.total_of(list(items))]
        add_vote(sums[chosen], projected, len(items), sampled=is_sampled(key, person, share))
        if rule is not None:
            add_margins(sums[chosen], rule, items)
    return list(sums.values())


def group_of_table(item: Item, table: Mapping[Item, str]) -> str:
    """The item group of a whole item."""
    return table.get(item, OTHER)


def group_of_prefixes(item: Item, prefixes: Mapping[str, str]) -> str:
    """The item group of the longest prefix."""
    fitting = [prefix for prefix in prefixes if str(item).startswith(prefix)]
    return prefixes[max(fitting, key=len)] if fitting else OTHER
