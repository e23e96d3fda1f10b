"""Margins, naive: the paragraph of docs/reference/contributions.md, one event at a time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from reference.contributions import Event, event_hash, group_hash, persons_events
from reference.spec import item_number

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


def in_keyed_order(
    person: str,
    theirs: list[tuple[str, str | int, int]],
    groups: Sequence[str],
    bound: int,
    key: bytes,
    *,
    each_once: bool = False,
    one_group: bool = False,
) -> list[tuple[str, str | int, int]]:
    """What one person keeps under the contribution, event by event, in the order of docs/reference/contributions.md."""
    if one_group:
        first = min(theirs, key=lambda event: (group_hash(key, person, event[0]), groups.index(event[0])))
        theirs = [event for event in theirs if event[0] == first[0]]
    if each_once:
        theirs = [(group, item, 1) for group, item in {event[:2] for event in theirs}]
    seen: dict[tuple[str, str | int], int] = defaultdict(int)
    hashed = []
    for group, item, amount in sorted(theirs, key=lambda event: event[2]):
        number = seen[group, item]
        tie = groups.index(group), item_number(item), number
        hashed.append((event_hash(key, person, group, item, number), tie, (group, item, amount)))
        seen[group, item] += 1
    kept, left = [], bound
    for _, _, (group, item, amount) in sorted(hashed):
        part = min(abs(amount), left)
        left -= part
        kept.append((group, item, part if amount > 0 else -part))
    return kept


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
    each_once: bool = False,
    one_group: bool = False,
) -> list[list[int]]:
    """For each row, how many people have an item in each item group, and how many people there are."""
    counts = [[0] * (len(names) + 1) for _ in rows]
    for person, theirs in persons_events(events, rows).items():
        kept = in_keyed_order(person, theirs, rows, bound, key, each_once=each_once, one_group=one_group)
        cells, theirs_rows = margins_of(kept, group_of, most)
        for row, name in cells:
            counts[rows.index(row)][names.index(name)] += 1
        for row in theirs_rows:
            counts[rows.index(row)][-1] += 1
    return counts
