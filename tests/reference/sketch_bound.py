"""The bound in the sketch, naive: whole sketches in Python's own integers, one event and one unit at a time."""

from collections import defaultdict
from collections.abc import Sequence

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
