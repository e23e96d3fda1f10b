"""What tells that a sketch file was edited: a digest of its head, and one of each column of each row group.

All of it is public, as are the released rows that it is made of: nothing of the data enters but through the noise. It shows
accidents and careless hands, not forgers, who can compute it anew: who must be sure takes the SHA-256 of the whole file from
its sender.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.errors import CorruptFileError
from armslength.formats.canonical import canonical_json, read_json

DIGEST_KEY = b"armslength digests"
_LARGEST = 8 * 2**20  # 20,000 row groups


@dataclass(frozen=True)
class Digests:
    """SHA-256 of what a file holds, in hexadecimal.

    Attributes:
        head: Of the head's text.
        rows: How many rows each row group has.
        groups: For each row group, the digest of each of its columns by name.
    """

    head: str
    rows: tuple[int, ...]
    groups: tuple[dict[str, str], ...]

    @classmethod
    def of(cls, head: bytes, table: pa.Table, group_rows: int) -> "Digests":
        """The digests of a table that is written in row groups of this size."""
        groups = [table.slice(start, group_rows) for start in range(0, max(1, table.num_rows), group_rows)]
        return cls(
            hashlib.sha256(head).hexdigest(),
            tuple(group.num_rows for group in groups),
            tuple(map(_of_columns, groups)),
        )

    def text(self) -> bytes:
        """As it is written."""
        return canonical_json({"head": self.head, "rows": list(self.rows), "groups": list(self.groups)})

    def check(self, table: pa.Table, group: int, where: str) -> None:
        """Refuses columns of a row group that are not those that were written.

        Args:
            table: The columns that were read, without missing values.
            group: The number of their row group.
            where: The file, for messages.
        """
        written = self.groups[group]
        if any(written.get(name) != digest for name, digest in _of_columns(table).items()):
            raise _edited(where)


def read_digests(schema: pa.Schema, head: bytes, group_rows: Sequence[int], where: str) -> Digests:
    """The digests of a file, if they are those of its head and they are of as many rows."""
    text: bytes | None = (schema.metadata or {}).get(DIGEST_KEY)
    if text is None or len(text) > _LARGEST:
        raise _edited(where)
    found: Any = read_json(text, where)
    if set(found) != {"head", "rows", "groups"}:
        raise _edited(where)
    digests = Digests(found["head"], tuple(found["rows"]), tuple(map(dict, found["groups"])))
    if (
        digests.head != hashlib.sha256(head).hexdigest()
        or digests.rows != tuple(group_rows)
        or len(digests.groups) != len(digests.rows)
    ):
        raise _edited(where)
    return digests


def _edited(where: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where} must be as it was written, got a file that was edited; ask its sender for it again"
    )


def _of_columns(table: pa.Table) -> dict[str, str]:
    return {name: _of_column(table.column(name).combine_chunks()) for name in table.schema.names}


def _of_column(column: pa.Array) -> str:
    """Lengths of lists and texts before what is in them, every number in little-endian order."""
    digest = hashlib.sha256()
    for part in _parts(column):
        digest.update(part.nbytes.to_bytes(8, "little"))
        digest.update(part.data)
    return digest.hexdigest()


def _parts(column: pa.Array) -> Iterator[NDArray[Any]]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_list(kind):
        ends = np.frombuffer(column.buffers()[1], dtype="<i4")[
            column.offset : column.offset + len(column) + 1
        ]
        yield np.ascontiguousarray(np.diff(ends))
    if pa.types.is_string(kind):
        data = column.buffers()[2]
        yield np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    elif pa.types.is_list(kind):
        for field in column.flatten().flatten():
            yield from _parts(field)
    elif pa.types.is_fixed_size_list(kind):
        yield from _parts(column.flatten())
    elif pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        yield np.frombuffer(column.buffers()[1], dtype=np.uint8)[width * column.offset :][
            : width * len(column)
        ]
    elif pa.types.is_boolean(kind):
        yield column.to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        numbers = column.to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False))
