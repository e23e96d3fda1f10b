"""`armslength.spark.release_table`: one private sketch for each public group of the events in a Spark frame or table."""

from dataclasses import dataclass
from typing import Any

from armslength.ingest.event_columns import EventColumns, is_text
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import open_account
from armslength.protocol.protocol import Protocol
from armslength.releasing.release import release_events
from armslength.sketches.sketches import Sketches
from armslength.spark.frames import (
    arrow_types,
    bucket_key,
    check_functions,
    checked_partitions,
    local_rows,
    opened_frame,
    our_errors,
    quoted,
    setting,
)
from armslength.spark.summing import SPARK_SCHEMA, AddingJob, DriverSums, Layout
from armslength.spark.tasks import BUCKET, FINGERPRINT, PartitionJob, task_of

DEFAULT_MEMORY = "512MB"
_BUCKETS_PER_PARTITION = 128  # many, so that their hash fills partitions evenly
_BATCH_BYTES = 1 << 26  # of the rows that Spark hands to Python at a time
_CHUNK_BYTES = (1 << 12, 1 << 22)
_SUMS_PER_TASK = 1 << 25


def release_table(  # noqa: D417, PLR0913  # each is a decision of its own
    source: Any,
    protocol: Protocol,
    *,
    person: str,
    item: str | None = None,
    ledger: Any,
    group: str | None = None,
    public_groups: Any = None,
    label: str | None = None,
    weight: str | None = None,
    population: str = "",
    period: str = "",
    vocabulary: Any = None,
    item_groups: Any = None,
    repeat: bool = False,
    partitions: int | None = None,
    memory: str = DEFAULT_MEMORY,
) -> Sketches:
    """One private sketch for each group of the events in a Spark frame or table, as `al.release` makes of a file.

    Arguments that are not listed here are those of `al.release`.

    Tasks add up exact integers where the events lie. Noise is drawn once, on the driver; the result is plain numbers in its memory, not
    a frame that Spark could compute again. The sums in Spark's shuffle files and messages are **not private**: as secret as the
    source, and protected by `spark.io.encryption.enabled` and `spark.network.crypto.enabled`.

    Guarantee: all rows together are ε-DP for adding or removing, or for replacing, one person with all of their events: each person has
    one vote, split evenly over their different items in one group; or, with a `contribution` C, at most C of a person's events count, by
    weight, over all groups. Tasks that are lost or run twice change nothing. A source that gives other rows when it is computed again is
    refused where that could mix two readings of a person; elsewhere each person stays within the bound. Groups, their order and labels are
    public input. Errors are raised before anything is charged or drawn.
    Reference: docs/privacy.md, event tables and theorem 1.

    Args:
        source: A Spark DataFrame, classic or of Spark Connect, or the name of a table.
        protocol: What the parties agreed on: with al.Votes or al.Counts, and a unit of protection in words.
        ledger: A `Ledger`, the path of one that exists on the driver, or `al.NO_LEDGER`.
        partitions: How many tasks share the events; None takes `spark.sql.shuffle.partitions`.
        memory: About how much each task holds before events go to an encrypted temporary file on its worker.
    """
    account = open_account(ledger, population, period=period, repeat=repeat)
    frame = opened_frame(source)
    columns = EventColumns(person, item, group, weight)
    groups = public_groups_of(group, public_groups, label)
    table = TableJob.of(None, protocol, columns, groups, vocabulary, item_groups=item_groups, memory=memory)
    job = SparkTableJob.of_frame(frame, table, partitions=partitions)
    return release_events(job, account)


@dataclass(frozen=True)
class SparkTableJob(TableJob):
    """What is counted of the events of a frame; its `source` is an empty table with the frame's types."""

    frame: Any
    partitions: int
    roles: dict[str, str]  # the frame's column for each role

    @classmethod
    def of_frame(cls, frame: Any, table: TableJob, *, partitions: int | None = None) -> "SparkTableJob":
        """The job, if the frame has the columns and their types; Spark runs nothing yet."""
        roles = table.columns.named
        check_functions(frame)
        schema = arrow_types(frame, roles)
        whole = {**vars(table), "source": schema.empty_table(), "columns": table.columns.by_role}
        job = cls(**whole, frame=frame, partitions=checked_partitions(frame, partitions), roles=roles)
        with job.opened():
            return job

    def sums(self, key: bytes, *, show_progress: bool = False) -> Sums:  # noqa: ARG002  # Spark shows its own
        """The exact integers of all groups, **not private**, the same as on one machine with this key: one Spark job."""
        layout = self._layout()
        driver_sums = DriverSums(self.protocol, layout)
        with our_errors():
            frame = self._frame_of_sums(key, layout)
        for row in local_rows(frame):
            driver_sums.add(row)
        return driver_sums.sums()

    def _layout(self) -> Layout:
        """Chunks so small that a batch of them fits the memory of a worker's Python."""
        at_once = setting(self.frame, "spark.sql.execution.arrow.maxRecordsPerBatch", 10_000)
        least, most = _CHUNK_BYTES
        size = min(most, max(least, _BATCH_BYTES // at_once)) if at_once > 0 else least
        return Layout(self.shape.groups, self.shape.columns, size // 8)

    def _frame_of_sums(self, key: bytes, layout: Layout) -> Any:
        """The plan: events by bucket, partial sums and bins of people, sums and F by chunk."""
        kinds = self.source.schema
        # quoted, because `group` is a word of SQL
        # and text by its bytes, because different texts may be equal under a collation
        hashed = {
            quoted(role): f"CAST({quoted(role)} AS BINARY)"
            if is_text(kinds.field(role).type)
            else quoted(role)
            for role in self.roles
        }
        key_of_bucket = bucket_key(quoted("person"), kinds.field("person").type)
        buckets = self.partitions * _BUCKETS_PER_PARTITION
        every = ", ".join(f"isnull({role}), {column}" for role, column in hashed.items())
        events = (
            self.frame.selectExpr(*(f"{quoted(name)} AS {quoted(role)}" for role, name in self.roles.items()))
            .filter(f"{quoted('person')} IS NOT NULL")
            .selectExpr(*hashed, f"CAST(pmod(xxhash64({key_of_bucket}), {buckets}) AS INT) AS {BUCKET}")
            .repartition(self.partitions, BUCKET)
            .selectExpr(*hashed, BUCKET, f"xxhash64({every}) AS {FINGERPRINT}")
        )
        fields = {name: getattr(self, name) for name in TableJob.__dataclass_fields__}
        job = PartitionJob(TableJob(**{**fields, "source": None}), key, layout)
        tasks = min(
            layout.chunks + layout.groups,
            max(min(self.partitions, 32), -(-8 * layout.groups * layout.columns // _SUMS_PER_TASK)),
        )
        return (
            events.mapInArrow(task_of(job), SPARK_SCHEMA)
            .repartition(tasks, "chunk")
            .sortWithinPartitions("chunk")
            .mapInArrow(task_of(AddingJob.of(self.protocol, layout)), SPARK_SCHEMA)
        )
