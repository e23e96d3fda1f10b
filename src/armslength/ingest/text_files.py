"""Text files as Arrow batches, record by record: CSV, TSV and JSON lines, plain or as .gz.

Guarantee: a record is a function of its own bytes. One reader goes from the beginning of a file to its end and cuts every record
from the same state (`cut_records`), so one person's events cannot change how anybody else's are read. Readers that start in the
middle of a file cannot promise that: they must guess whether they are inside quotes.
Reference: docs/privacy.md, event tables; docs/decisions/0025-text-readers.md.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength._numba import kernel
from armslength.errors import InputError, printable

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

    Guarantee: every record is read from the same state, at its first byte, and ends at the first line end outside its quotes. So its
    fields, and where the next record begins, are a function of its own bytes. An unfinished last record is left for the next call
    unless `is_last`. Field i goes to row `target_of[i]` of `texts` (-1: nowhere), and `ends` says where each record's bytes end there.
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
                        # the next byte tells whether the field ends here
                        return records, line_ends, used, FINE
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

    A second way to count records, which checks `cut_records`.
    """
    count, inside = 0, False
    for byte in data:
        if byte == QUOTE:
            inside = not inside
        elif byte == LINE_FEED and not inside:
            count += 1
    return -1 if inside else count


DELIMITERS = {"csv": ",", "tsv": "\t"}
LINES = pa.schema([("line", pa.string())])
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


def header_names(path: Path, kind: str) -> list[str]:
    """The column names in the first line of a CSV or TSV file."""
    with _opened(path) as (file, _):
        header = file.readline(_LONGEST_HEADER)
    names = _names_in(header, kind)
    if not any(names):
        try:
            header.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise not_utf8(path) from None
        raise InputError(f"{printable(str(path))} must begin with a line of column names, got something else")
    return names


def not_utf8(path: Path) -> InputError:
    """The error for a file that is not UTF-8."""
    return InputError(
        f"{printable(str(path))} must be text in UTF-8, got other bytes; convert it first, such as with "
        "iconv -f LATIN1 -t UTF-8"
    )


def _names_in(header: bytes, kind: str) -> list[str]:
    """The names in a header; none if it is no header."""
    try:
        line = header.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
        return next(csv.reader([line], delimiter=DELIMITERS[kind], strict=True), [])
    except (UnicodeDecodeError, csv.Error):  # a carriage return inside is such an error
        return []


def first_object(path: Path) -> bytes | None:
    """The first line of a file of JSON lines that is not blank; None for a file without any."""
    with _opened(path) as (file, _):
        line = file.readline(_LONGEST_RECORD).removeprefix(_BYTE_ORDER_MARK)
        while line.isspace():
            line = file.readline(_LONGEST_RECORD)
    return _without_lone_surrogates(line) or None


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
    path: Path, kind: str, names: Sequence[str], roles: dict[str, str], read: BytesRead | None = None
) -> Iterator[pa.RecordBatch]:
    """The fields of the chosen columns, as text under the names of their roles."""
    target_of = np.full(len(names), -1, dtype=np.int64)
    for target, name in enumerate(roles.values()):
        target_of[names.index(name)] = target
    line = 1  # of the file, for messages
    for chunk, is_last in _Chunks(path, read):
        data = chunk.data
        if line == 1:
            first_ends = np.flatnonzero(data == LINE_FEED)[:1]
            if not len(first_ends) and not is_last:
                continue  # the header is longer than this
            chunk.used = int(first_ends[0]) + 1 if len(first_ends) else len(data)
            if _names_in(data[: chunk.used].tobytes(), kind) != list(names):
                raise InputError(
                    f"{printable(str(path))} must not change while it is read, got another header"
                )
            data, line = data[chunk.used :], 2
        texts = np.empty((len(roles), len(data)), dtype=np.uint8)
        ends = np.zeros((len(roles), len(data) // len(names) + 2), dtype=np.int32)
        count, line_ends, used, problem = cut_records(
            data, is_last, ord(DELIMITERS[kind]), target_of, texts, ends[:, 1:]
        )
        line += int(np.count_nonzero(data[:used] == LINE_FEED))
        if problem:
            raise InputError(
                f"cannot read {printable(str(path))}: in the record that begins on line {line}, {_PROBLEMS[problem]}"
            )
        if line_ends_outside_quotes(data[:used]) != line_ends:
            raise InputError(
                f"cannot read {printable(str(path))}: counted in two ways, its records are not as many"
            )
        chunk.used += used
        if count:
            columns = [_texts(ends[place, : count + 1], texts[place]) for place in range(len(roles))]
            yield _valid(pa.RecordBatch.from_arrays(columns, list(roles)), path)


def lines(path: Path, read: BytesRead | None = None) -> Iterator[pa.RecordBatch]:
    """The lines of a file, each with its line end. A line feed is never part of a JSON object, so a line is a record.

    A line of more than 16 MiB is null, and so is its event.
    """
    is_first = True
    for chunk, is_last in _Chunks(path, read):
        data = chunk.data
        if is_first and data[:3].tobytes() == _BYTE_ORDER_MARK:
            chunk.used, data = 3, data[3:]
        ends = np.flatnonzero(data == LINE_FEED).astype(np.int32) + 1
        if is_last and len(data) > (ends[-1] if len(ends) else 0):
            ends = np.append(ends, np.int32(len(data)))
        if len(ends):
            is_first = False
            ends = np.concatenate([np.zeros(1, dtype=np.int32), ends])
            chunk.used += int(ends[-1])
            whole = np.frombuffer(_without_lone_surrogates(data[: ends[-1]].tobytes()), dtype=np.uint8)
            texts = _texts(ends, whole)
            fits = np.diff(ends) <= _LONGEST_LINE
            if not fits.all():
                texts = pc.if_else(pa.array(fits), texts, pa.scalar(None, pa.string()))
            yield _valid(pa.RecordBatch.from_arrays([texts], schema=LINES), path)


def _valid(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """The batch, if its text is UTF-8: the engine trusts Arrow's buffers."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        raise not_utf8(path) from None
    return batch


def _texts(ends: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array:
    """Text that lies in one piece, as an Arrow column, not yet validated."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(data[: ends[-1]])]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


class _Chunks:
    """The bytes of a file as (chunk, whether it is the last); the caller sets `used`, and the next chunk begins there.

    A record that is longer than a chunk makes the next one longer.
    """

    def __init__(self, path: Path, read: BytesRead | None) -> None:
        self._path = path
        self._read = read or BytesRead()
        self.used = 0
        self.data: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def __iter__(self) -> Iterator[tuple["_Chunks", bool]]:
        path = self._path
        room = np.empty(_BYTES_AT_ONCE, dtype=np.uint8)
        filled, is_last = 0, False
        before = self._read.count
        with _opened(path) as (file, on_disk):
            while not is_last:
                if filled == len(room):
                    if len(room) >= _LONGEST_RECORD:
                        raise InputError(
                            f"{printable(str(path))} must have records of at most {_LONGEST_RECORD} bytes, got a longer one"
                        )
                    room = np.concatenate([room, np.empty_like(room)])
                while filled < len(room) and not is_last:
                    count = file.readinto(room[filled:].data)
                    filled, is_last = filled + (count or 0), not count
                self._read.count = before + on_disk.tell()
                self.data, self.used = room[:filled], 0
                yield self, is_last
                room[: filled - self.used] = room[self.used : filled].copy()
                filled -= self.used


@contextmanager
def _opened(path: Path) -> Iterator[tuple[io.BufferedIOBase, io.BufferedIOBase]]:
    """The file's bytes, unpacked where its name ends in .gz, and the file on the disk; errors become ours."""
    try:
        with path.open("rb") as on_disk:
            if path.suffix.lower() == ".gz":
                with gzip.GzipFile(fileobj=on_disk, mode="rb") as file:
                    yield file, on_disk
            else:
                yield on_disk, on_disk
    except (OSError, EOFError, zlib.error):
        raise InputError(f"cannot read {printable(str(path))}: damaged, or not what its name says") from None
