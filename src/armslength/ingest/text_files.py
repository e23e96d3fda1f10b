"""Text files as Arrow batches, record by record: delimited text and JSON, as lines or as an array.

Guarantee: a record is a function of its own bytes. One reader goes from the beginning of a file to its end and cuts every record
from the same state (`cut_records`), so one person's events cannot change how anybody else's are read. Readers that start in the
middle of a file cannot promise that: they must guess whether they are inside quotes.
Reference: docs/privacy.md, event tables; docs/decisions/0025-text-readers.md.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength._numba import kernel
from armslength.errors import InputError
from armslength.ingest.event_files import EventFile
from armslength.ingest.sources import constant_columns

LINE = "line"  # the column of JSON objects
LINE_FEED, CARRIAGE_RETURN = 10, 13
FINE, OPEN_QUOTE, STRAY_QUOTE, TEXT_AFTER_QUOTE, OTHER_WIDTH = range(5)


@kernel
def _line_end(data: NDArray[np.uint8], position: int) -> int:
    """How many bytes the line end at a position has; 0 if there is none."""
    if position < len(data) and data[position] == LINE_FEED:
        return 1
    is_long = position + 1 < len(data) and data[position] == CARRIAGE_RETURN
    return 2 if is_long and data[position + 1] == LINE_FEED else 0


@kernel
def cut_records(  # noqa: C901, PLR0912, PLR0915  # one state machine, with a branch for each byte that means something
    data: NDArray[np.uint8],
    is_last: bool,
    delimiter: int,
    quote: int,
    target_of: NDArray[np.int64],
    texts: NDArray[np.uint8],
    ends: NDArray[np.int32],
) -> tuple[int, int, int, int]:
    """Cuts delimited text into records: (how many, how many line ends, bytes used, what is wrong with the record after them).

    Guarantee: every record is read from the same state, at its first byte, and ends at the first line end outside its quotes. So its
    fields, and where the next record begins, are a function of its own bytes. An unfinished last record is left for the next call
    unless `is_last`. `quote` is -1 if no character encloses fields. Field i goes to row `target_of[i]` of `texts` (-1: nowhere), and `ends` says where each record's bytes end there.
    """
    size, width = len(data), len(target_of)
    filled = np.zeros(len(texts), dtype=np.int64)
    position, used, records, line_ends = 0, 0, 0, 0
    while position < size:
        end = _line_end(data, position)
        if end:  # an empty line is no record
            position += end
            used, line_ends = position, line_ends + 1
            continue
        field = 0
        while True:  # a field
            target = target_of[field] if field < width else -1
            if position < size and data[position] == quote:
                position += 1
                while True:
                    start = position
                    while position < size and data[position] != quote:
                        position += 1
                    if position == size:
                        return records, line_ends, used, OPEN_QUOTE if is_last else FINE
                    if position + 1 == size and not is_last:
                        # the next byte tells whether the field ends here
                        return records, line_ends, used, FINE
                    doubled = position + 1 < size and data[position + 1] == quote
                    stop = position + 1 if doubled else position
                    if target >= 0:
                        for i in range(start, stop):
                            texts[target, filled[target] + i - start] = data[i]
                        filled[target] += stop - start
                    if not doubled:
                        position += 1
                        break
                    position += 2
            else:
                start = position
                while position < size:
                    byte = data[position]
                    if byte == delimiter or byte == LINE_FEED or byte == quote:  # noqa: PLR1714, SIM109  # three comparisons, compiled
                        break
                    if byte == CARRIAGE_RETURN and position + 1 < size and data[position + 1] == LINE_FEED:
                        break
                    position += 1
                if position < size and data[position] == quote:
                    return records, line_ends, used, STRAY_QUOTE
                if target >= 0:
                    for i in range(start, position):
                        texts[target, filled[target] + i - start] = data[i]
                    filled[target] += position - start
            if position == size or data[position] != delimiter:
                break
            position += 1
            field += 1
        end = _line_end(data, position)
        if end:
            position += end
            line_ends += 1
        elif not is_last and (
            position == size or (position + 1 == size and data[position] == CARRIAGE_RETURN)
        ):
            break
        elif position < size:
            return records, line_ends, used, TEXT_AFTER_QUOTE
        if field + 1 != width:
            return records, line_ends, used, OTHER_WIDTH
        for target in range(len(texts)):
            ends[target, records] = filled[target]
        records += 1
        used = position
    return records, line_ends, used, FINE


@kernel
def line_ends_outside_quotes(data: NDArray[np.uint8], quote: int) -> int:
    """How many line ends have an even number of quotes before them; -1 if the number of all quotes is odd.

    A second way to count records, which checks `cut_records`.
    """
    count, inside = 0, False
    for byte in data:
        if byte == quote:
            inside = not inside
        elif byte == LINE_FEED and not inside:
            count += 1
    return -1 if inside else count


BACKSLASH, DOUBLE_QUOTE, COMMA, BLANK = 92, 34, 44, 32
BLANKS = (BLANK, LINE_FEED, CARRIAGE_RETURN, 9)
OPENING, CLOSING = (91, 123), (93, 125)  # [ { and ] }
# where in an array: before [, after it, after an object, after a comma, after ]
BEFORE, FIRST, BETWEEN, NEXT, AFTER = range(5)


@kernel
def cut_objects(  # noqa: C901, PLR0912  # one state machine
    data: NDArray[np.uint8], state: int, ends: NDArray[np.int32]
) -> tuple[int, int, int, bool]:
    """Cuts a JSON array into its objects: (how many, bytes used, the state after them, whether all is well).

    Each object ends at its `ends`, and the bytes before it, brackets and commas, are replaced by blanks.

    Guarantee: what is cut depends on an object's own bytes. No object begins with another, so if all pieces are objects, which the
    engine checks, they are those of the array. An unfinished last object is left for the next call.
    """
    position, count = 0, 0
    while position < len(data):
        byte = data[position]
        if byte in BLANKS:
            position += 1
            continue
        if byte == OPENING[1] and state in (FIRST, NEXT):
            at, depth, inside = position, 0, False
            while at < len(data):
                byte = data[at]
                if inside:
                    if byte == BACKSLASH:
                        at += 1
                    elif byte == DOUBLE_QUOTE:
                        inside = False
                elif byte == DOUBLE_QUOTE:
                    inside = True
                elif byte in OPENING:
                    depth += 1
                elif byte in CLOSING:
                    depth -= 1
                    if depth == 0:
                        break
                at += 1
            if at >= len(data):
                break
            position, state = at + 1, BETWEEN
            ends[count] = position
            count += 1
            continue
        if byte == OPENING[0] and state == BEFORE:
            state = FIRST
        elif byte == COMMA and state == BETWEEN:
            state = NEXT
        elif byte == CLOSING[0] and state in (FIRST, BETWEEN):
            state = AFTER
        else:
            return count, position, state, False
        data[position] = BLANK
        position += 1
    return count, position, state, True


_BYTES_AT_ONCE = 4 << 20
_LONGEST_RECORD = 1 << 30
_LONGEST_HEADER = 16 << 20
_LONGEST_LINE = 16 << 20  # of JSON: the engine needs many times as much memory to look into it
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# an escaped pair, one half of a pair, or any other escape, so that an escaped backslash does not begin one
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_PROBLEMS = {
    OPEN_QUOTE: "a quoted field has no end",
    STRAY_QUOTE: "there is a quote inside a field that does not begin with one; write such a field in quotes, its own quotes doubled",
    TEXT_AFTER_QUOTE: "there is text between a closing quote and the next delimiter; quotes inside a quoted field are written twice",
    OTHER_WIDTH: "there are more or fewer fields than in the header",
}


def header_names(file: EventFile) -> list[str]:
    """The column names in the first line of delimited text."""
    with file.opened(look=True) as (stream, _), io.BufferedReader(stream) as buffered:  # type: ignore[type-var]  # bytes are enough
        header = buffered.readline(_LONGEST_HEADER)
    names = _names_in(header, file)
    if not any(names):
        try:
            header.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise file.wrong_encoding() from None
        raise InputError(f"{file.name} does not begin with a line of column names")
    return names


def _names_in(header: bytes, file: EventFile) -> list[str]:
    """The names in a header; none if it is no header."""
    quoting = csv.QUOTE_NONE if file.quote is None else csv.QUOTE_MINIMAL
    try:
        line = header.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
        dialect: dict[str, Any] = {"delimiter": file.delimiter, "quotechar": file.quote, "quoting": quoting}
        return next(csv.reader([line], **dialect, strict=True), [])
    except (UnicodeDecodeError, csv.Error):  # a carriage return inside is such an error
        return []


def first_object(file: EventFile) -> bytes | None:
    """The first object of a JSON file; None for a file without any."""
    for data, ends in _objects(file, look=True):
        for start, end in pairwise((0, *ends)):
            if piece := bytes(data[start:end]).strip():
                return _without_lone_surrogates(piece)
    return None


def _without_lone_surrogates(text: bytes) -> bytes:
    """JSON text of the same length with U+FFFD for escaped lone surrogates, which JSON allows and parsers refuse."""
    if _SURROGATE.search(text) is None:
        return text
    return _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], text)


@dataclass
class BytesRead:
    """How many bytes of text files were read on the disk so far, for a progress bar."""

    count: int = 0


def records(
    file: EventFile, roles: dict[str, str], read: BytesRead | None = None
) -> Iterator[pa.RecordBatch]:
    """The fields of the chosen columns, as text under the names of their roles; those in names of folders, too."""
    inside, folders = file.split(roles)
    quote = -1 if file.quote is None else ord(file.quote)
    line, target_of = 1, np.empty(0, dtype=np.int64)  # the line of the file, for messages
    for chunk, is_last in _Chunks(file, read):
        data = chunk.data
        if line == 1:
            first_ends = np.flatnonzero(data == LINE_FEED)[:1]
            if not len(first_ends) and not is_last:
                continue  # the header is longer than this
            chunk.used = int(first_ends[0]) + 1 if len(first_ends) else len(data)
            names = _names_in(data[: chunk.used].tobytes(), file)
            if not set(inside.values()) <= set(names):
                raise InputError(f"{file.name} changed while it was read")
            target_of = np.full(len(names), -1, dtype=np.int64)
            target_of[[names.index(name) for name in inside.values()]] = np.arange(len(inside))
            data, line = data[chunk.used :], 2
        texts = np.empty((len(inside), len(data)), dtype=np.uint8)
        ends = np.zeros((len(inside), len(data) // len(target_of) + 2), dtype=np.int32)
        count, line_ends, used, problem = cut_records(
            data, is_last, ord(file.delimiter), quote, target_of, texts, ends[:, 1:]
        )
        line += int(np.count_nonzero(data[:used] == LINE_FEED))
        if problem:
            raise InputError(
                f"cannot read {file.name}: in the record that begins on line {line}, {_PROBLEMS[problem]}"
            )
        if line_ends_outside_quotes(data[:used], quote) != line_ends:
            raise InputError(f"cannot read {file.name}: two counts of its records differ")
        chunk.used += used
        if count:
            columns = {
                role: _texts(ends[index, : count + 1], texts[index]) for index, role in enumerate(inside)
            }
            columns |= constant_columns(folders, count)
            yield _valid(pa.RecordBatch.from_arrays([columns[role] for role in roles], list(roles)), file)


def lines(file: EventFile, roles: dict[str, str], read: BytesRead | None = None) -> Iterator[pa.RecordBatch]:
    """The objects of a JSON file as text, `line`, and the columns that are in names of folders.

    A line feed is never part of a JSON object, so a line is a record. One of more than 16 MiB is null, and so is its event.
    """
    for data, ends in _objects(file, read):
        texts = _texts(ends, np.frombuffer(_without_lone_surrogates(data.tobytes()), dtype=np.uint8))
        fits = np.diff(ends) <= _LONGEST_LINE
        if not fits.all():
            texts = pc.if_else(pa.array(fits), texts, pa.scalar(None, pa.string()))
        columns = {LINE: texts, **constant_columns(file.split(roles)[1], len(texts))}
        batch = _valid(pa.RecordBatch.from_pydict(columns), file)
        line = batch.column(LINE)
        has_text = pc.match_substring_regex(line, r"\S")
        yield batch.filter(pc.or_kleene(line.is_null(), has_text))


def _objects(
    file: EventFile, read: BytesRead | None = None, *, look: bool = False
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int32]]]:
    """(bytes, where each object ends in them) of a JSON file: its lines, or the objects of its array if it begins with one."""
    is_array: bool | None = None
    state = BEFORE
    for chunk, is_last in _Chunks(file, read, look=look):
        data = chunk.data
        if is_array is None:
            head = data.tobytes()
            start = 3 if head.startswith(_BYTE_ORDER_MARK) else 0
            first = head[start:].lstrip()[:1]
            if not is_last and (not first or _BYTE_ORDER_MARK.startswith(head)):
                continue  # nothing to see yet
            is_array = file.kind == "json" and first == b"["
            chunk.used, data = start, data[start:]
        if is_array:
            ends = np.zeros(len(data) // 2 + 2, dtype=np.int32)
            count, used, state, is_fine = cut_objects(data, state, ends[1:])
            if not is_fine or (is_last and (state != AFTER or used < len(data))):
                raise InputError(f"{file.name} is not an array of JSON objects")
            ends = ends[: count + 1]
            chunk.used += int(ends[-1]) if count else used
        else:
            ends = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(data == LINE_FEED) + 1]).astype(
                np.int32
            )
            if is_last and len(data) > ends[-1]:
                ends = np.append(ends, np.int32(len(data)))
            chunk.used += int(ends[-1])
        if len(ends) > 1:
            yield data[: ends[-1]], ends


def _valid(batch: pa.RecordBatch, file: EventFile) -> pa.RecordBatch:
    """The batch, if its text is UTF-8: the engine trusts Arrow's buffers."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        raise file.wrong_encoding() from None
    return batch


def _texts(ends: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array:
    """Text that lies in one piece, as an Arrow column, not yet validated."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(data[: ends[-1]])]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


class _Chunks:
    """The bytes of a file as (chunk, whether it is the last); the caller sets `used`, and the next chunk begins there.

    A record that is longer than a chunk makes the next one longer.
    """

    def __init__(self, file: EventFile, read: BytesRead | None, *, look: bool = False) -> None:
        self._file = file
        self._read = read or BytesRead()
        self._look = look
        self.used = 0
        self.data: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def __iter__(self) -> Iterator[tuple["_Chunks", bool]]:
        buffer = np.empty(_BYTES_AT_ONCE, dtype=np.uint8)
        filled, is_last = 0, False
        before = self._read.count
        with self._file.opened(look=self._look) as (file, stored):
            while not is_last:
                if filled == len(buffer):
                    if len(buffer) >= _LONGEST_RECORD:
                        raise InputError(
                            f"{self._file.name} has a record of more than {_LONGEST_RECORD} bytes"
                        )
                    buffer = np.concatenate([buffer, np.empty_like(buffer)])
                while filled < len(buffer) and not is_last:
                    count = file.readinto(buffer[filled:].data)  # type: ignore[attr-defined]  # of all that `opened` gives
                    filled, is_last = filled + (count or 0), not count
                self._read.count = before + stored.tell()
                self.data, self.used = buffer[:filled], 0
                yield self, is_last
                buffer[: filled - self.used] = buffer[self.used : filled].copy()
                filled -= self.used
