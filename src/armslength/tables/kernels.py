"""Hot loops of event tables: records of text files, and contribution bounds in whole numbers that cannot overflow."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel


@kernel
def mark_persons_over(
    starts: NDArray[np.int64], amounts: NDArray[np.int64], bound: int, is_over: NDArray[np.bool_]
) -> None:
    """Whether each person's Σ|amount| exceeds the bound; person i has rows starts[i] … starts[i+1]−1."""
    for person in range(len(starts) - 1):
        left = bound
        over = False
        for row in range(starts[person], starts[person + 1]):
            magnitude = abs(amounts[row])
            if not 0 <= magnitude <= left:  # the smallest int64 has no magnitude
                over = True
                break
            left -= magnitude
        is_over[person] = over


@kernel
def take_in_order(
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    amounts: NDArray[np.int64],
    bound: int,
    taken: NDArray[np.int64],
) -> None:
    """What of each amount is taken: in order, until Σ|amount| reaches the bound; the last one is truncated.

    Person i has the places starts[i] … starts[i+1]−1 of the order.
    """
    for person in range(len(starts) - 1):
        left = bound
        for place in range(starts[person], starts[person + 1]):
            row = order[place]
            magnitude = abs(amounts[row])
            part = min(magnitude, left) if magnitude >= 0 else left
            left -= part
            taken[row] = part if amounts[row] > 0 else -part


@kernel
def number_occurrences(same_as_before: NDArray[np.bool_], before: int, numbers: NDArray[np.int64]) -> None:
    """The number of each row in its run of equal rows; the first row goes on from the number `before` it if it is the same."""
    number = before
    for row in range(len(same_as_before)):
        number = number + 1 if same_as_before[row] else 0
        numbers[row] = number


QUOTE, LINE_FEED, CARRIAGE_RETURN = 34, 10, 13
FINE, OPEN_QUOTE, STRAY_QUOTE, TEXT_AFTER_QUOTE, OTHER_WIDTH = range(5)


@kernel
def cut_records(  # noqa: C901, PLR0912, PLR0915  # one state machine, with a branch for each byte that means something
    data: NDArray[np.uint8],
    is_last: bool,
    delimiter: int,
    target_of: NDArray[np.int64],
    texts: NDArray[np.uint8],
    ends: NDArray[np.int32],
) -> tuple[int, int, int, int]:
    """Cuts delimited text into records: (how many, how many line ends, bytes used, what is wrong with the record after them).

    Guarantee: every record is read from the same state, at its first byte, and ends at the first line end outside of its quotes. So its
    fields are a function of its own bytes, and so is where the next record begins, whatever stands before or after it. The last
    record is left for the next call unless the text ends here.

    Args:
        data: Text that begins with a record.
        is_last: Whether the text ends with the data.
        delimiter: What separates fields.
        target_of: For each field of a record, the row of `texts` that takes it; -1 for none.
        texts: For each field that is wanted, the bytes of all records; as wide as the data.
        ends: Where each record's bytes end in `texts`; one column for each record that the data can hold.
    """
    size, width = len(data), len(target_of)
    filled = np.zeros(len(texts), dtype=np.int64)
    place, used, records, line_ends = 0, 0, 0, 0
    while place < size:
        if data[place] == LINE_FEED:  # an empty line is no record
            place += 1
            used, line_ends = place, line_ends + 1
            continue
        if data[place] == CARRIAGE_RETURN and place + 1 < size and data[place + 1] == LINE_FEED:
            place += 2
            used, line_ends = place, line_ends + 1
            continue
        field = 0
        while True:  # a field
            target = target_of[field] if field < width else -1
            if place < size and data[place] == QUOTE:
                place += 1
                while True:
                    start = place
                    while place < size and data[place] != QUOTE:
                        place += 1
                    if place == size:
                        return records, line_ends, used, OPEN_QUOTE if is_last else FINE
                    if place + 1 == size and not is_last:
                        return (
                            records,
                            line_ends,
                            used,
                            FINE,
                        )  # the next byte tells whether the field ends here
                    doubled = place + 1 < size and data[place + 1] == QUOTE
                    stop = place + 1 if doubled else place
                    if target >= 0:
                        for each in range(start, stop):
                            texts[target, filled[target] + each - start] = data[each]
                        filled[target] += stop - start
                    if not doubled:
                        place += 1
                        break
                    place += 2
            else:
                start = place
                while place < size:
                    byte = data[place]
                    if byte == delimiter or byte == LINE_FEED or byte == QUOTE:  # noqa: PLR1714, SIM109  # three comparisons, compiled
                        break
                    if byte == CARRIAGE_RETURN and place + 1 < size and data[place + 1] == LINE_FEED:
                        break
                    place += 1
                if place < size and data[place] == QUOTE:
                    return records, line_ends, used, STRAY_QUOTE
                if target >= 0:
                    for each in range(start, place):
                        texts[target, filled[target] + each - start] = data[each]
                    filled[target] += place - start
            if place < size and data[place] == delimiter:
                place += 1
                field += 1
                continue
            break
        if place == size:
            if not is_last:
                break
        elif data[place] == LINE_FEED:
            place += 1
            line_ends += 1
        elif data[place] == CARRIAGE_RETURN and place + 1 < size and data[place + 1] == LINE_FEED:
            place += 2
            line_ends += 1
        elif data[place] == CARRIAGE_RETURN and place + 1 == size and not is_last:
            break
        else:
            return records, line_ends, used, TEXT_AFTER_QUOTE
        if field + 1 != width:
            return records, line_ends, used, OTHER_WIDTH
        for target in range(len(texts)):
            ends[target, records] = filled[target]
        records += 1
        used = place
    return records, line_ends, used, FINE


@kernel
def line_ends_outside_quotes(data: NDArray[np.uint8]) -> int:
    """How many line ends have an even number of quotes before them; -1 if the number of all quotes is odd.

    Where quotes enclose whole fields, or are doubled inside of them, these are the ends of all records: a second way to count them.
    """
    count, inside = 0, False
    for byte in data:
        if byte == QUOTE:
            inside = not inside
        elif byte == LINE_FEED and not inside:
            count += 1
    return -1 if inside else count
