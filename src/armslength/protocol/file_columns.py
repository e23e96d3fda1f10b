"""The columns of a sketch file as arrays: rows as they were released never become one object each."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.errors import CorruptFileError
from armslength.protocol.file_layout import BYTES_OF_AN_OBJECT, LONGEST_LABEL, NOISE_TYPE, Head, too_large
from armslength.protocol.provenance import (
    UNKNOWN,
    NoiseSource,
    Provenance,
    Release,
    Released,
    middle_of_dropped_bits,
)
from armslength.protocol.sketches import LARGEST_FACTOR, SMALLEST_FACTOR, Sketches

_LARGEST_NUMBER = LARGEST_FACTOR * 2.0**63  # what scaling makes of the largest integer; squares stay finite


def noise_column(sketches: Sketches, releases: Sequence[Release]) -> pa.Array:
    """For each row the list of its noises: id, coefficient, and the number of its release, which the file calls its protocol."""
    numbers = {release: number for number, release in enumerate(releases)}
    if sketches.released is None:
        rows = [
            [
                {
                    "id": bytes.fromhex(source.id),
                    "coefficient": coefficient,
                    "protocol": numbers[source.protocol, source.source],
                }
                for source, coefficient in row.terms
            ]
            for row in sketches.provenance
        ]
        return pa.array(rows, NOISE_TYPE)
    count = len(sketches)
    kind = NOISE_TYPE.value_type
    ids = pa.py_buffer(np.ascontiguousarray(sketches.released.ids))
    number = numbers[sketches.released.protocol, sketches.released.source]
    terms = pa.StructArray.from_arrays(
        [
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, ids]),
            pa.array(np.ones(count)),
            pa.array(np.full(count, number, dtype=np.int32)),
        ],
        fields=list(kind),
    )
    return pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32), terms, type=NOISE_TYPE)


def sketches_of(table: pa.Table, head: Head, limit: int, where: str) -> Sketches:
    """The sketches of a table that has been read, every field checked.

    Args:
        table: Rows with the columns that a file must have; labels as a dictionary.
        head: What the file's metadata says of them.
        limit: How many bytes the objects of combined rows may take.
        where: The file, for messages.
    """
    if any(column.null_count for column in table.columns):
        raise CorruptFileError(f"{where} must have no missing values, got some")
    values = _values_of(table, head, where)
    noises = _noises_of(table, head.releases, limit, where)
    return Sketches(
        values, labels_of(table.column("label"), where), noises, head.protocols, _totals_of(table, where)
    )


def labels_of(column: pa.ChunkedArray, where: str) -> list[str]:
    """The labels of all rows, of a column that was read as a dictionary."""
    labels = column.combine_chunks()
    different = labels.dictionary
    ends = np.frombuffer(different.buffers()[1], dtype=np.int32)[different.offset :]
    lengths = np.diff(ends[: len(different) + 1])
    # Lengths first: a label that is too long never becomes a string.
    fit = bool(((lengths >= 1) & (lengths <= LONGEST_LABEL)).all())
    names: list[str] = different.to_pylist() if fit else []
    if not fit or not all(map(str.isprintable, names)):
        raise CorruptFileError(
            f"{where} must have printable labels of 1 to {LONGEST_LABEL} bytes, got others"
        )
    return [names[number] for number in labels.indices.to_pylist()]


def _values_of(table: pa.Table, head: Head, where: str) -> NDArray[Any]:
    """n x k numbers with their dropped bits."""
    column = table.column("values").combine_chunks()
    flat = column.flatten()
    if flat.null_count or len(flat) != len(column) * column.type.list_size:
        raise CorruptFileError(f"{where} must have no missing values, got some")
    values: NDArray[Any] = flat.to_numpy().reshape(len(column), column.type.list_size)
    if values.dtype == np.float64 and not (np.abs(values) <= _LARGEST_NUMBER).all():
        raise CorruptFileError(f"{where} must have finite values, got others")
    return values << np.int64(head.dropped_bits) if head.dropped_bits else values


def _totals_of(table: pa.Table, where: str) -> NDArray[Any] | None:
    if "total" not in table.schema.names:
        return None
    totals: NDArray[Any] = table.column("total").to_numpy()
    if not (np.abs(totals) <= _LARGEST_NUMBER).all():
        raise CorruptFileError(f"{where} must have finite totals, got others")
    return totals


def _noises_of(
    table: pa.Table, releases: tuple[Release, ...], limit: int, where: str
) -> Released | list[Provenance]:
    """The noises of all rows, as arrays if every row is as it was released."""
    noise = table.column("noise").combine_chunks()
    terms = noise.flatten()
    fields = dict(zip((field.name for field in terms.type), terms.flatten(), strict=True))
    if any(field.null_count for field in fields.values()):
        raise CorruptFileError(f"{where} must have no missing values, got some")
    numbers = fields["protocol"].to_numpy()
    unsaid = [number for number, (_, source) in enumerate(releases) if source == UNKNOWN]
    if np.isin(numbers, unsaid).any():
        raise CorruptFileError(
            f"{where} must say what was released for every row with noise, got some without"
        )
    offsets = table.column("offset").to_numpy()
    if len(numbers) and (numbers == numbers[0]).all() and 0 <= numbers[0] < len(releases):
        released = Released(_bytes_of(fields["id"]), *releases[numbers[0]])
        if (
            (np.diff(noise.offsets.to_numpy()) == 1).all()
            and (fields["coefficient"].to_numpy() == 1.0).all()
            and (offsets == released.offset).all()
            and not table.column("in_clear").to_numpy().any()
        ):
            return released
    if BYTES_OF_AN_OBJECT * len(terms) > limit:
        raise too_large(limit, where)
    columns = (noise.to_pylist(), offsets.tolist(), table.column("in_clear").to_pylist())
    return [_provenance(*row, releases) for row in zip(*columns, strict=True)]


def _bytes_of(ids: pa.FixedSizeBinaryArray) -> NDArray[np.void]:
    """The ids as an array of their own."""
    return np.frombuffer(ids.buffers()[1], dtype="V16")[ids.offset : ids.offset + len(ids)].copy()


def _provenance(
    terms: list[dict[str, Any]], offset: float, clear: bool, releases: tuple[Release, ...]
) -> Provenance:  # a field of the file
    if not abs(offset) <= _LARGEST_NUMBER:
        raise ValueError("offset")
    read = []
    for term in terms:
        if not SMALLEST_FACTOR <= abs(term["coefficient"]) <= LARGEST_FACTOR or term["protocol"] < 0:
            raise ValueError("coefficient")
        read.append((NoiseSource(term["id"].hex(), *releases[term["protocol"]]), term["coefficient"]))
    if len({source.id for source, _ in read}) != len(read):
        raise ValueError("noise ids")
    # What dropping bits took away is known: an offset may differ from it by the rounding of sums alone.
    parts = [coefficient * middle_of_dropped_bits(source.protocol) for source, coefficient in read]
    if abs(offset - math.fsum(parts)) > 1e-9 * math.fsum(map(abs, parts)):
        raise ValueError("offset")
    return Provenance(tuple(read), offset, clear)
