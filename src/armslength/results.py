"""What all results share: a printed table, HTML, Arrow and pandas; and the text tables of the command line."""

import html
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from armslength.errors import MissingPackageError, plural

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_LABEL = 28
_ROWS_SHOWN = 10


class Result:
    """A result with its numbers as a table.

    A subclass has `to_arrow` and `_title`, and `_head` if making the whole table takes long.
    """

    def to_arrow(self) -> "pa.Table":
        """The numbers as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """`to_arrow` as a pandas data frame."""
        return data_frame(self.to_arrow())

    def __repr__(self) -> str:
        head, below = self._contents()
        names = head.column_names
        texts = [list(map(_text, head[name].to_pylist())) for name in names]
        columns = [
            Column.of_labels(name, cells, is_number=_is_number(head, name))
            for name, cells in zip(names, texts, strict=True)
        ]
        table = [heading(columns), *(line(columns, cells) for cells in zip(*texts, strict=True))]
        return "\n".join([self._title(), *table, *below])

    def _repr_html_(self) -> str:
        """The same table for notebooks; all text in it is escaped."""
        head, below = self._contents()
        names = "".join(f"<th>{html.escape(name)}</th>" for name in head.column_names)
        styles = ["right" if _is_number(head, name) else "left" for name in head.column_names]
        lines = "".join(
            f"<tr>{''.join(_html_cell(cell, style) for cell, style in zip(row.values(), styles, strict=True))}</tr>"
            for row in head.to_pylist()
        )
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in below)
        return (
            f"<div><p>{html.escape(self._title())}</p><table><thead><tr>{names}</tr></thead>"
            f"<tbody>{lines}</tbody></table>{notes}</div>"
        )

    def _title(self) -> str:
        """One line about the whole result."""
        raise NotImplementedError

    def _head(self, rows: int) -> "tuple[pa.Table, int]":
        """The first rows of the table, and how many it has in all."""
        table = self.to_arrow()
        return table.slice(0, rows), table.num_rows

    def _contents(self) -> "tuple[pa.Table, list[str]]":
        """The rows to print, and the lines below them: how many more there are, and the note of the result."""
        head, rows = self._head(_ROWS_SHOWN)
        if "in_clear" in head.column_names and not any(head["in_clear"].to_pylist()):
            head = head.drop_columns("in_clear")
        more = rows - head.num_rows
        below = [f"… and {plural(more, 'more row')}" if more else "", getattr(self, "note", "")]
        return head, list(filter(None, below))


def sentences(lines: Sequence[str], note: str) -> str:
    """Lines of text, with the note as the last one if there is any."""
    return "\n".join([*lines, note] if note else lines)


def data_frame(table: "pa.Table") -> Any:
    """The table as a pandas data frame, with the table's metadata as `attrs`."""
    try:
        frame = table.to_pandas()
    except ImportError:
        raise MissingPackageError('to_pandas() needs pandas: pip install "armslength[pandas]"') from None
    frame.attrs.update({key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()})
    return frame


@dataclass(frozen=True)
class Column:
    """A column of a text table: its heading, how wide it is, and whether it holds numbers, which are aligned to the right."""

    heading: str
    width: int
    is_number: bool = False

    @classmethod
    def of_labels(cls, heading: str, labels: Iterable[str], *, is_number: bool = False) -> "Column":
        """A column as wide as its longest label, up to a limit."""
        longest = max((len(label) for label in labels), default=0)
        return cls(heading, max(len(heading), min(longest, LONGEST_LABEL)), is_number)


def heading(columns: Sequence[Column]) -> str:
    """The first line of a table."""
    return line(columns, [column.heading for column in columns])


def line(columns: Sequence[Column], cells: Sequence[str | float]) -> str:
    """One line of a table, without spaces at its end."""
    return "  ".join(map(_aligned, columns, map(_text, cells))).rstrip()


def table_lines(rows: Sequence[Mapping[str, str]], text_columns: Collection[str]) -> list[str]:
    """A table of rows with the same keys, which are its headings; columns that are not text hold numbers."""
    columns = [
        Column(name, max(len(name), *(len(row[name]) for row in rows)), is_number=name not in text_columns)
        for name in rows[0]
    ]
    return [heading(columns), *(line(columns, list(row.values())) for row in rows)]


def percent(level: float) -> str:
    """A confidence level: "95 %"."""
    return f"{100 * level:.6g} %"


def three_digits(number: float) -> str:
    """The number to three digits: 0.153 or 14,100."""
    return f"{float(f'{number:.3g}'):,g}"


def similarity_text(value: float, lower: float, upper: float) -> str:
    """A similarity with its interval, with as many digits as the interval supports: "0.91 (0.88 to 0.94)"."""
    if math.isnan(value) or (lower <= 0 and upper >= 1):
        return f"unknown ({max(lower, 0.0):.2f} to {upper:.2f})"
    digits = min(max(math.ceil(-math.log10(max(upper - lower, 1e-4))), 2), 4)
    first, last = (f"{end:.{digits}f}" if end not in (-1, 0, 1) else f"{end:g}" for end in (lower, upper))
    return f"{value:.{digits}f} ({first} to {last})"


def distance_text(value: float, lower: float, upper: float) -> str:
    """A distance with its interval, with as many digits as the interval supports: "153 (120 to 190)"."""
    if not math.isfinite(upper) or upper <= lower:
        return f"{three_digits(value)} ({three_digits(lower)} to {'no limit' if math.isinf(upper) else three_digits(upper)})"
    digits = 1 - math.floor(math.log10(upper - lower))
    return "{} ({} to {})".format(
        *(f"{round(end, digits):,.{max(digits, 0)}f}" for end in (value, lower, upper))
    )


def shortened(label: str, width: int) -> str:
    """The label, with an ellipsis in its middle if it is too long."""
    if len(label) <= width:
        return label
    end = (width - 1) // 2
    return f"{label[: width - 1 - end]}…{label[len(label) - end :]}"


def _aligned(column: Column, text: str) -> str:
    return text.rjust(column.width) if column.is_number else shortened(text, column.width).ljust(column.width)


def _text(cell: Any) -> str:
    """A cell as text: numbers to six digits."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return "no limit" if cell == math.inf else f"{cell:.6g}"
    return "" if cell is None else str(cell)


def _html_cell(cell: Any, side: str) -> str:
    return f'<td style="text-align: {side}">{html.escape(_text(cell))}</td>'


def _is_number(table: "pa.Table", name: str) -> bool:
    return str(table.schema.field(name).type) in ("double", "int64")
