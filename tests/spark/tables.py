"""Event tables and releases that the tests of Spark share."""

import numpy as np
import pyarrow as pa

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.spark.spark_tables import SparkTableJob
from flat_protocol import flat_protocol
from unit.ingest.tables_of_events import GROUPS, as_table, random_events

COLUMNS = "who STRING, where STRING, what STRING, amount BIGINT"
TRANSFORM = al.SparseJL(sketch_dim=32, sparsity=2, seed="t")
PROTOCOL = al.Protocol(TRANSFORM, al.Counts(5, total_share="0.5"), epsilon=1, unit="one person")
NAMES = [f"i{number}" for number in range(12)]
COUNTED = al.Protocol(
    al.HadamardJL(input_dim=12, sketch_dim=8, seed="x"), al.Counts(5), epsilon=1, unit="u", vocabulary=NAMES
)


def voting(**fields):
    """The protocol of votes, with T, Q and F."""
    known = {"epsilon": 1, "contribution": "vote", "unit": "one person", "total_share": "0.5"}
    return flat_protocol(TRANSFORM, **{**known, **fields})


def with_margins(**fields):
    """The protocol of votes with item groups by prefix."""
    prefixes = {"prefix": ["i1", "i11", "i2"], "group": ["one", "eleven", "two"]}
    return voting(margins=prefixes, margin_share="0.2", margin_contribution=2, **fields)


def events(seed=3):
    """An Arrow table with persons beyond the bound, and rows that lack something."""
    return as_table(random_events(seed, weighted=True), text_items=True)


def frame_of(session, table, schema=COLUMNS):
    """The same rows in Spark."""
    return session.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)


def on_one_machine(table, protocol=PROTOCOL, **known):
    """The release of a table in memory; with weights where amounts are added up."""
    groups = PublicGroups(tuple(GROUPS), "where")
    columns = EventColumns("who", "what", "where", None if protocol.votes else "amount")
    return TableJob.of(table, protocol, columns, groups, **known)


def in_spark(frame, protocol=PROTOCOL, partitions=3, **known):
    """The same release of a frame."""
    return SparkTableJob.of_frame(frame, on_one_machine(None, protocol, **known), partitions=partitions)


def same(left, right):
    """Whether all integers are equal."""
    pairs = [
        (getattr(left, name), getattr(right, name)) for name in ("values", "totals", "margins", "spread")
    ]
    return all((a is None) == (b is None) and np.array_equal(a, b) for a, b in pairs)


def as_partition(table, buckets, size):
    """Events as Spark hands them to a task: under their roles, with bucket and fingerprint, in batches."""
    named = table.rename_columns(["person", "group", "item", "weight"])
    words = [hash(tuple(row.values())) for row in named.to_pylist()]
    named = named.append_column("bucket", pa.array(buckets, pa.int32()))
    return named.append_column("fingerprint", pa.array(words, pa.int64())).to_batches(max_chunksize=size)
