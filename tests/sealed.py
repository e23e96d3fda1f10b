"""Sketch files as a forger writes them: changed, and with the digests of what they hold now."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from armslength.sketches.sketch_format import DIGEST_KEY, KEY, digests_text


def write_sealed(table: Any, path: Any, *, head: Any = None, **options: Any) -> None:
    """Writes the table in one row group, with its own head or another one, as JSON or as bytes."""
    text = table.schema.metadata[KEY] if head is None else head
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    try:
        seal = digests_text(text, [table])
    except (
        pa.ArrowException,
        AttributeError,
        LookupError,
        TypeError,
    ):  # columns of kinds and names that no sketch file has
        seal = digests_text(text, [table.select([])])
    pq.write_table(table.replace_schema_metadata({KEY: text, DIGEST_KEY: seal}), path, **options)
