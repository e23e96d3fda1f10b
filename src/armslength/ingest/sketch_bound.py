"""A bound in the sketch: no person's part of all sketches is longer than the protocol's `max_norm`.

Guarantee: what `longest_prefix` keeps depends on one person's events alone, and the ℓ2 norm of A times it, over all groups, is at
most the bound. It is decided in exact integers.
Reference: docs/privacy.md, a bound in the sketch.
"""

from typing import Any

import numpy as np

from armslength._numba import Int64s, Integers, kernel

_ROW_BITS = 24  # a sketch has at most 2^24 numbers
_MULTIPLIER = np.int64(-7046029254386353131)  # 2^64 divided by the golden ratio: spreads keys over a table


@kernel
def bound_sketches(starts: Int64s, groups: Integers, columns: Integers, amounts: Int64s, bound: int) -> None:
    """`longest_prefix` of each person, in place: person i has the events starts[i] … starts[i+1]−1, in the order in which they are kept.

    Guarantee: all events of a person must be among them, already within Σ|amount| ≤ B. The norm of a part of them says nothing, because
    events can cancel.
    """
    table = np.empty((0, 2), dtype=np.int64)
    for person in range(len(starts) - 1):
        own = slice(starts[person], starts[person + 1])
        table = longest_prefix(groups[own], columns[own], amounts[own], bound, table)


@kernel
def longest_prefix(groups: Integers, columns: Integers, amounts: Int64s, bound: int, table: Int64s) -> Int64s:
    """Truncates one person's amounts, in place: the longest prefix of events whose sketches have a squared norm within the bound.

    The first event that does not fit whole keeps the largest part of its amount that does; all later amounts become 0. The sums of
    squares are exact if Σ|amount| ≤ B and s·B² < 2^63 (`protocol.sketch_bound` makes sure of it): every partial norm is at most s·B².

    Args:
        groups: The number of each event's group, in the order in which events are kept.
        columns: The column of each event's item, n x s: the row, or −1−row for an entry of −1; the rows of one column differ.
        amounts: The amount of each event, in grid units.
        bound: The largest squared norm, in integer units.
        table: Memory for any calls of one thread, m x 2; begin with m = 0.

    Returns:
        The table for the next call: a larger one if this person needed it.
    """
    count, entries = columns.shape
    most = np.int64(0)
    for i in range(count):
        most += abs(amounts[i])
    if entries * most * most <= bound:
        return table  # no sketch of these events is longer
    bits = 1
    while (1 << bits) < 2 * count * entries:
        bits += 1
    if len(table) < 1 << bits:
        table = np.empty((1 << bits, 2), dtype=np.int64)
    table[: 1 << bits, 0] = -1
    norm = np.int64(0)
    for i in range(count):
        amount: Any = amounts[i]
        size, along = abs(amount), np.int64(0)  # along: what is there already, in the direction of this event
        for r in range(entries):
            entry = np.int64(columns[i, r])
            value: Any = table[_slot(table, bits, groups[i], entry), 1]
            along += value if (entry >= 0) == (amount >= 0) else -value
        growth = size * (2 * along + entries * size)
        if norm + growth > bound:
            part = _largest_part(size, along, entries, bound - norm)
            amounts[i] = part if amount > 0 else -part
            amounts[i + 1 :] = 0
            return table
        norm += growth
        for r in range(entries):
            entry = np.int64(columns[i, r])
            table[_slot(table, bits, groups[i], entry), 1] += amount if entry >= 0 else -amount
    return table


@kernel
def _slot(table: Int64s, bits: int, group: Any, entry: Any) -> Any:
    """Where the table has the sum of an entry's group and row; a new sum starts at 0. At most half of the table is in use."""
    key = (np.int64(group) << _ROW_BITS) | (entry if entry >= 0 else -1 - entry)
    last = (np.int64(1) << bits) - 1
    slot = ((key * _MULTIPLIER) >> (64 - bits)) & last
    while table[slot, 0] != key:
        if table[slot, 0] == -1:
            table[slot, 0], table[slot, 1] = key, 0
            break
        slot = (slot + 1) & last
    return slot


@kernel
def _largest_part(size: Any, along: Any, entries: int, room: Any) -> Any:
    """The largest part p < size with 2·along·p + entries·p² ≤ room.

    That is convex in p, and 0 ≤ room at p = 0: the parts that fit are an interval from 0, so bisection finds its end.
    """
    low, high = size - size, size  # low fits, high does not
    while high - low > 1:
        part = low + (high - low) // 2
        if part * (2 * along + entries * part) <= room:
            low = part
        else:
            high = part
    return low
