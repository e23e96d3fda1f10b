"""Sketches as one Parquet file: written whole or not at all, read only within size limits.

Columns: label; values (k integers, without their dropped bits; or floats once scaled); noise, a list of (id,
coefficient, number of the protocol); offset; in_clear; and total where totals were released. The metadata key `armslength` holds the protocols and the
release card as JSON. DuckDB and polars read it as it is.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.errors import CorruptFileError, FormatError, ParameterError
from armslength.formats.atomic import atomic_write
from armslength.formats.canonical import canonical_json
from armslength.protocol.card import release_card
from armslength.protocol.file_layout import (
    FORMAT,
    KEY,
    LONGEST_LABEL,
    NOISE_TYPE,
    VERSION,
    check_columns_of,
    check_size,
    checked_head,
    fields_match,
    file_schema,
)
from armslength.protocol.protocol import Protocol
from armslength.protocol.provenance import NoiseSource, Provenance
from armslength.protocol.sketches import LARGEST_FACTOR, SMALLEST_FACTOR, Sketches, concat

DEFAULT_LIMIT = 4 * 2**30


def save_sketches(sketches: Sketches, path: str | os.PathLike[str]) -> None:
    """Writes the file, whole or not at all."""
    whole = sketches.values.dtype == np.int64
    bits = _shared_dropped_bits(sketches) if whole else 0
    numbers = {protocol: number for number, protocol in enumerate(sketches.protocols)}
    schema = file_schema(
        sketches.values.shape[1],
        pa.int64() if whole else pa.float64(),
        totals=sketches.totals is not None,
    )
    flat = pa.array((sketches.values >> np.int64(bits) if whole else sketches.values).ravel())
    noise = [
        [
            {"id": bytes.fromhex(source.id), "coefficient": coefficient, "protocol": numbers[source.protocol]}
            for source, coefficient in row.terms
        ]
        for row in sketches.provenance
    ]
    columns = [
        pa.array(sketches.labels, pa.string()),
        pa.FixedSizeListArray.from_arrays(flat, type=schema.field("values").type),
        pa.array(noise, NOISE_TYPE),
        pa.array([row.offset for row in sketches.provenance], pa.float64()),
        pa.array([row.in_clear for row in sketches.provenance], pa.bool_()),
    ]
    if sketches.totals is not None:
        columns.append(pa.array(sketches.totals, schema.field("total").type))
    head = {
        "format": FORMAT,
        "version": VERSION,
        "dropped_bits": bits,
        "protocols": [protocol.document() for protocol in sketches.protocols],
        "card": release_card(sketches.protocols, in_clear=any(sketches.in_clear)),
    }
    table = pa.table(columns, schema=schema.with_metadata({KEY: canonical_json(head)}))
    with atomic_write(path) as file:
        pq.write_table(table, file, compression="zstd", use_dictionary=False, write_statistics=False)


def _shared_dropped_bits(sketches: Sketches) -> int:
    """How many low bits are zero in every row by protocol; 0 for combinations."""
    each = {protocol.dropped_bits for protocol in sketches.protocols}
    released = all(len(row.terms) == 1 and row.terms[0][1] == 1.0 for row in sketches.provenance)
    return each.pop() if len(each) == 1 and released and not any(sketches.in_clear) else 0


def load(paths: Any, *, limit: int = DEFAULT_LIMIT) -> Sketches:
    """The sketches of one file, or of several joined; refuses files that could unpack to more than `limit` bytes."""
    listed = (
        [paths]
        if isinstance(paths, (str, os.PathLike))
        else list(paths)
        if isinstance(paths, Sequence)
        else []
    )
    if not listed:
        raise ParameterError("paths must be a file or a list of files, got nothing of the kind")
    parts = [_load_one(path, limit) for path in listed]
    return parts[0] if len(parts) == 1 else concat(parts)


def _load_one(path: str | os.PathLike[str], limit: int) -> Sketches:
    where = os.fspath(path)
    if not Path(path).is_file():
        raise ParameterError(f"sketches must be a file that is there, got {where}")
    if Path(path).stat().st_size > limit:
        raise CorruptFileError(
            f"{where} must be at most {limit} bytes, got a larger file; raise limit if you trust it"
        )
    try:
        with pq.ParquetFile(path, read_dictionary=["label"]) as file:
            head = checked_head(file, where)
            check_size(file, limit, where)
            protocols = [Protocol.from_document(document) for document in head["protocols"]]
            check_columns_of(file, protocols[0].transform.sketch_dim, where)
            table = file.read()
        return _sketches_of(table, head, protocols, where)
    except (FormatError, ParameterError):
        raise
    except (
        pa.ArrowException,
        OSError,
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        OverflowError,
        AttributeError,
    ):
        raise CorruptFileError(
            f"{where} must be a sketch file of armslength, got a damaged or foreign file"
        ) from None


def _sketches_of(table: pa.Table, head: dict[str, Any], protocols: list[Protocol], where: str) -> Sketches:
    """The sketches of a table that has been read, every field checked."""
    width = protocols[0].transform.sketch_dim
    value_type = table.schema.field("values").type.value_type
    if value_type not in (pa.int64(), pa.float64()) or not fields_match(
        table.schema, file_schema(width, value_type, totals="total" in table.schema.names)
    ):
        raise CorruptFileError(f"{where} must have the columns of version {VERSION}, got others")
    if any(column.null_count for column in table.columns):
        raise CorruptFileError(f"{where} must have no missing values, got some")
    labels = table.column("label").combine_chunks()
    names = labels.dictionary.to_pylist()
    if any(not 1 <= len(name.encode()) <= LONGEST_LABEL or not name.isprintable() for name in names):
        raise CorruptFileError(
            f"{where} must have printable labels of 1 to {LONGEST_LABEL} bytes, got others"
        )
    values = (
        table.column("values").combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    )
    if value_type == pa.float64() and not (np.abs(values) <= LARGEST_FACTOR * 2.0**63).all():
        raise CorruptFileError(f"{where} must have finite values, got others")
    bits = head["dropped_bits"]
    if bits:
        if not all(protocol.dropped_bits == bits for protocol in protocols) or value_type != pa.int64():
            raise CorruptFileError(f"{where} must drop the bits that its protocols say, got others")
        values = values << np.int64(bits)
    provenance = [
        _provenance(terms, offset, clear, protocols)
        for terms, offset, clear in zip(
            table.column("noise").to_pylist(),
            table.column("offset").to_pylist(),
            table.column("in_clear").to_pylist(),
            strict=True,
        )
    ]
    listed = [names[i] for i in labels.indices.to_pylist()]
    return Sketches(values.copy(), listed, provenance, protocols, _totals_of(table, protocols, where))


def _totals_of(table: pa.Table, protocols: list[Protocol], where: str) -> NDArray[Any] | None:
    """The totals, if every protocol says that there are some."""
    if "total" not in table.schema.names:
        return None
    if not all(protocol.total_share for protocol in protocols):
        raise CorruptFileError(f"{where} must have totals only where its protocols release them, got others")
    totals: NDArray[Any] = table.column("total").to_numpy()
    if not (np.abs(totals) <= LARGEST_FACTOR * 2.0**63).all():
        raise CorruptFileError(f"{where} must have finite totals, got others")
    return totals.copy()


def _provenance(
    terms: list[dict[str, Any]], offset: float, clear: bool, protocols: list[Protocol]
) -> Provenance:  # a field of the file
    if not np.isfinite(offset):
        raise ValueError("offset")
    read = []
    for term in terms:
        if not SMALLEST_FACTOR <= abs(term["coefficient"]) <= LARGEST_FACTOR or term["protocol"] < 0:
            raise ValueError("coefficient")
        read.append((NoiseSource(term["id"].hex(), protocols[term["protocol"]]), term["coefficient"]))
    if len({source.id for source, _ in read}) != len(read):
        raise ValueError("noise ids")
    return Provenance(tuple(read), offset, clear)
