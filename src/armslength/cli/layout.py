"""Tables for people, line by line: columns of a known width, labels shortened in the middle, numbers to six digits."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST_LABEL = 28
TEXT_WIDTH = 100
NUMBER = 11  # characters of a number with six digits and an exponent


@dataclass(frozen=True)
class Column:
    """A column: its heading, how wide it is, and whether it holds numbers, which stand to the right."""

    heading: str
    width: int
    is_number: bool = False

    @classmethod
    def of_labels(cls, heading: str, labels: Iterable[str]) -> "Column":
        """A column as wide as its longest label, up to a limit."""
        longest = max((len(label) for label in labels), default=0)
        return cls(heading, max(len(heading), min(longest, LONGEST_LABEL)))

    @classmethod
    def of_numbers(cls, heading: str) -> "Column":
        """A column of numbers."""
        return cls(heading, max(len(heading), NUMBER), is_number=True)


def line(columns: Sequence[Column], cells: Sequence[str | float]) -> str:
    """One line of a table; what is left over at its end is not padded."""
    texts = [_cell(column, cell) for column, cell in zip(columns, cells, strict=True)]
    return "  ".join(texts).rstrip()


def heading(columns: Sequence[Column]) -> str:
    """The first line of a table."""
    return line(columns, [column.heading for column in columns])


def shortened(label: str, width: int) -> str:
    """The label, with an ellipsis in its middle if it is too long."""
    if len(label) <= width:
        return label
    end = (width - 1) // 2
    return f"{label[: width - 1 - end]}…{label[len(label) - end :]}"


def paragraph(text: str) -> str:
    """Running text in lines of a width that reads well."""
    return "\n".join(textwrap.wrap(text, TEXT_WIDTH))


def spelled(value: float) -> str:
    """A number to six digits."""
    return "no limit" if value == math.inf else f"{value:.6g}"


def _cell(column: Column, cell: str | float) -> str:
    text = cell if isinstance(cell, str) else spelled(cell)
    return text.rjust(column.width) if column.is_number else shortened(text, column.width).ljust(column.width)
