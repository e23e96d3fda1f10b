"""Very many sketches in a folder of files: opened by their footers, read a block at a time."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import integer, short_repr
from armslength.errors import IncompatibleSketchesError, ParameterError, plural
from armslength.protocol.work_budget import DEFAULT_WORK
from armslength.sketches.sketch_file import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    JoinedSchema,
    SketchFile,
    open_files,
)
from armslength.sketches.sketches import Sketches, SketchRows, check_same_space
from armslength.threads import cached_attribute


@dataclass(frozen=True)
class _Group:
    """Rows of one row group of one file, by their numbers in it."""

    file: SketchFile
    number: int
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def sketches(self) -> Sketches:
        sketches = self.file.sketches(self.number)
        return sketches if len(sketches) == len(self) else sketches.rows(self.rows)

    def column(self, name: str) -> list[Any]:
        column = self.file.column(name, self.number)
        return [column[row] for row in self.rows]


class Collection(SketchRows):
    """Rows of many files as if they were one `Sketches`, of which a block at a time is in memory; made by `al.open_collection`.

    Rows come in the order of the files and are selected as in `Sketches`. Several may have the same label, if a party
    released again. Everything here is post-processing of released rows: it costs no privacy, however often it is done.

    Attributes:
        files: The files, in order.
        protocols: The protocols of all rows; they share one space.
        releases: The same, each with what was released under it: "events", "rows" or "stream"; "unknown" for a protocol without rows.
        has_totals: Whether all rows have totals; if only some have, no block has any.
        has_margins: Whether all rows have the same margins; if only some have, no block has any.
    """

    def __init__(self, groups: Sequence[_Group], files: Sequence[SketchFile]) -> None:
        self.files = tuple(files)
        self._schema = JoinedSchema(self.files)
        super().__init__(self._schema.protocols)
        self._groups = tuple(group for group in groups if len(group))
        self._starts = np.cumsum([0, *map(len, self._groups)])
        self.releases = self._schema.releases
        self.has_totals = self._schema.layout.has_totals
        self.has_margins = self._schema.layout.margin_width > 0

    @cached_attribute
    def in_clear(self) -> tuple[bool, ...]:
        """For each row, whether data without noise is part of it; reads that column once."""
        return tuple(clear for group in self._groups for clear in group.column("in_clear"))

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __repr__(self) -> str:
        size = f"{plural(len(self), 'row')} in {plural(len(self.files), 'file')}"
        width = plural(self.transform.sketch_dim, "coordinate")
        return f"<Collection of {size}, {width}, {self.transform.name}>"

    def __iter__(self) -> Iterator[Sketches]:
        return (block.span(row, row + 1) for block in self.blocks(1024) for row in range(len(block)))

    def blocks(self, rows: int, first: int = 0) -> Iterator[Sketches]:
        """All rows in order from the first, so many at a time, and in the last block the rest.

        In memory are a row group and two blocks: the one that was given and the one that is being filled.

        Args:
            rows: How many rows a block has.
            first: The number of the row to begin with.
        """
        integer("rows", rows, at_least=1, at_most=2**40)
        integer("first", first, at_least=0, at_most=len(self))
        read = lru_cache(maxsize=1)(lambda number: self._groups[number].sketches())
        return (
            self._joined(start, min(start + rows, len(self)), read) for start in range(first, len(self), rows)
        )

    def _joined(self, start: int, stop: int, read: Callable[[int], Sketches]) -> Sketches:
        """Consecutive rows, a row group at a time."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        last = int(np.searchsorted(self._starts, stop, side="left"))
        pieces = (
            read(number).span(max(0, start - int(begin)), stop - int(begin))
            for number, begin in enumerate(self._starts[first:last], first)
        )
        return self._schema.join(pieces, stop - start)

    def rows(self, numbers: Sequence[int]) -> Sketches:
        """Rows by number, in this order; one may come more than once. Reads each row group that has one of them, once."""
        try:
            wanted = np.array([operator.index(number) for number in numbers], dtype=np.int64)
        except (TypeError, OverflowError):  # no integers, or far beyond every row
            wanted = np.array([-1])
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise ParameterError(f"rows must be numbers from 0 to {len(self) - 1}, got others")
        different, places = np.unique(wanted, return_inverse=True)
        in_groups = self._in_groups(different)
        pieces = (self._groups[home].sketches().rows(rows.tolist()) for home, rows in in_groups)
        sketches = self._schema.join(pieces, len(different))
        return sketches if np.array_equal(different, wanted) else sketches.rows(places.tolist())

    def without(self, label: str) -> "Collection":
        """All rows but those of this label; reads the labels once."""
        numbers = np.array([number for number, other in enumerate(self.each_label()) if other == label])
        if not len(numbers):
            raise ParameterError(f"label must be one of the collection's, got {short_repr(label)}")
        groups = list(self._groups)
        for home, rows in self._in_groups(numbers):
            groups[home] = replace(groups[home], rows=np.delete(groups[home].rows, rows).tolist())
        return Collection(groups, self.files)

    def _in_groups(self, numbers: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The number of each row group that has one of the rows, and their places in it."""
        homes = np.searchsorted(self._starts, numbers, side="right") - 1
        for home in np.unique(homes).tolist():
            yield home, numbers[homes == home] - self._starts[home]

    def each_label(self) -> Iterator[str]:
        """The labels of all rows, in order, a row group at a time; no other column is read."""
        return (label for group in self._groups for label in group.column("label"))

    def to_sketches(self, *, limit: int = DEFAULT_LIMIT) -> Sketches:
        """All rows in memory; refuses more than `limit` bytes of values."""
        integer("limit", limit, at_least=1, at_most=LARGEST_LIMIT)
        needed = 8 * len(self) * (self.transform.sketch_dim + self._schema.layout.margin_width)
        if needed > limit:
            raise ParameterError(
                f"a collection must have at most {limit} bytes of values to be loaded, got {needed}; "
                "take it in blocks, or raise limit"
            )
        return self._schema.join((group.sketches() for group in self._groups), len(self))


def open_collection(
    source: Any, *, limit: int = DEFAULT_LIMIT, max_work: int | None = DEFAULT_WORK
) -> Collection:
    """The sketches in a folder, and in all folders within it, as one collection; reads no row yet.

    Files come sorted by their paths. The footer of each is checked as `al.load` checks it, and all must share one
    space. Every file must be a sketch file, except that names beginning with "." or "_" are left out. A file that is
    replaced, changed or removed after this is noticed when it is read, and refused.

    Args:
        source: A folder, a file, or a list of either, in their order.
        limit: How many bytes one row group of a file may unpack to.
        max_work: How much work their protocols may ask for together, in operations of about a nanosecond; None: no limit.
    """
    files = open_files("source", source, limit, max_work, SketchFile.open)
    if len({file.identity for file in files}) != len(files):
        raise ParameterError("source must name each file once, got one of them twice")
    for file in files:
        try:
            check_same_space((*files[0].header.protocols[:1], *file.header.protocols))
        except IncompatibleSketchesError as problem:
            raise IncompatibleSketchesError(f"{problem} in {file.path}") from None
    groups = [
        _Group(file, number, range(rows)) for file in files for number, rows in enumerate(file.group_rows)
    ]
    for group in groups:
        group.file.check_size([group.number])
    return Collection(groups, files)
