"""Margins, naive: the paragraph of docs/reference/contributions.md, one event at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reference.contributions import Event, persons_events
from reference.sketch_bound import in_keyed_order

Item = str | int
Kept = tuple[str, Item, int]  # row, item, kept amount
OTHER = "(other)"


def group_of_table(item: Item, table: Mapping[Item, str]) -> str:
    """The item group of a whole item."""
    return table.get(item, OTHER)


def group_of_prefixes(item: Item, prefixes: Mapping[str, str]) -> str:
    """The item group of the longest prefix."""
    fitting = [prefix for prefix in prefixes if str(item).startswith(prefix)]
    return prefixes[max(fitting, key=len)] if fitting else OTHER


def margins_of(
    kept: Iterable[Kept], group_of: Callable[[Item], str], most: int
) -> tuple[set[tuple[str, str]], set[str]]:
    """(cells, rows) in which one person counts: what is kept of them in keyed order, and G."""
    cells: list[tuple[str, str]] = []
    rows: set[str] = set()
    for row, item, amount in kept:
        if amount == 0:
            continue
        rows.add(row)
        cell = row, group_of(item)
        if cell not in cells and len(cells) < most:
            cells.append(cell)
    return set(cells), rows


def all_margins(
    events: Iterable[Event],
    rows: Sequence[str],
    names: Sequence[str],
    group_of: Callable[[Item], str],
    *,
    bound: int,
    most: int,
    key: bytes,
    shorten: Callable[[list[Kept]], list[Kept]] = lambda kept: kept,
    each_once: bool = False,
    one_group: bool = False,
) -> list[list[int]]:
    """For each row, how many people have an item in each item group, and how many people there are.

    `shorten` is what a bound in the sketch leaves of a person's events.
    """
    counts = [[0] * (len(names) + 1) for _ in rows]
    for person, theirs in persons_events(events, rows).items():
        kept = in_keyed_order(person, theirs, rows, bound, key, each_once=each_once, one_group=one_group)
        cells, theirs_rows = margins_of(shorten(kept), group_of, most)
        for row, name in cells:
            counts[rows.index(row)][names.index(name)] += 1
        for row in theirs_rows:
            counts[rows.index(row)][-1] += 1
    return counts
