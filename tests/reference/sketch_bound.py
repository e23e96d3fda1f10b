"""The bound in the sketch, naive: whole sketches in Python's own integers, one event and one unit at a time."""

from collections import defaultdict
from collections.abc import Sequence

from reference.contributions import event_hash, group_hash
from reference.spec import item_number

Column = dict[int, int]  # row -> entry of A
Event = tuple[int, Column, int]  # group, column of the item, amount


def sketches(events: Sequence[Event]) -> dict[tuple[int, int], int]:
    """A·x of all groups, by (group, row)."""
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for group, column, amount in events:
        for row, entry in column.items():
            sums[group, row] += entry * amount
    return sums


def squared_norm(events: Sequence[Event]) -> int:
    """The squared ℓ2 norm of all sketches together."""
    return sum(value**2 for value in sketches(events).values())


def longest_prefix(events: Sequence[Event], bound: int) -> list[int]:
    """What is kept of each amount."""
    kept: list[Event] = []
    for place, (group, column, amount) in enumerate(events):
        sign = 1 if amount > 0 else -1
        part = abs(amount)
        while squared_norm([*kept, (group, column, sign * part)]) > bound:
            part -= 1
        kept.append((group, column, sign * part))
        if part < abs(amount):
            return [event[2] for event in kept] + [0] * (len(events) - place - 1)
    return [event[2] for event in kept]


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
