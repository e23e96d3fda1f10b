"""`armslength.spark.release_rows`: one private sketch for each public row of a Spark frame or table of vectors."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from armslength.checks import short_repr, type_name
from armslength.errors import InputError, ParameterError
from armslength.ingest.event_columns import check_roles
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import open_account
from armslength.protocol.protocol import Protocol
from armslength.release.release import checked_rows, release
from armslength.sketches.sketches import Sketches
from armslength.spark.frames import (
    arrow_types,
    batches_of,
    checked_partitions,
    is_text,
    local_rows,
    opened_frame,
    our_errors,
    quoted,
    setting,
)
from armslength.spark.summing import SPARK_SCHEMA, VectorSums, together
from armslength.spark.tasks import BLOCK_BYTES, PACKED, RowsJob, check_vector_type, joining_task, task_of

_BATCH_BYTES = 1 << 26
_BYTES_PER_TASK = 1 << 25


def release_rows(  # noqa: PLR0913  # each is a decision of its own
    source: Any,
    protocol: Protocol,
    *,
    row: str,
    vector: str,
    public_rows: Any,
    ledger: Any,
    dtype: str | None = None,
    population: str = "",
    repeat: bool = False,
    partitions: int | None = None,
) -> Sketches:
    """One private sketch for each row of a Spark frame or table of vectors, as `Protocol.release` makes of a matrix.

    Tasks multiply where the vectors lie, and send back A·x, which is **not private**: as secret as the source. Noise is drawn once, on
    the driver. While the job runs, `spark.sql.execution.arrow.maxRecordsPerBatch` of the session is lowered if that many vectors
    would not fit the workers' memory.

    Guarantee: all rows together are ε-DP (Laplace) or (ε, δ)-DP (Gaussian) for neighbors with ‖x − x'‖₁ ≤ radius over all rows
    (‖x − x'‖₂ if that is the protocol's norm). Off the grid, neighbors must also differ in at most `changed_entries` entries over all
    rows. You promise both: nothing can check them. Rows, their order and labels are public input, no setting may be chosen by looking
    at the vectors, and random bits are assumed ideal. Errors are raised before anything is charged or drawn, and show no value of a
    vector.
    Reference: docs/privacy.md, theorem 1.

    Args:
        source: A Spark DataFrame, classic or of Spark Connect, or the name of a table.
        protocol: What the parties agreed on: with a fixed input_dim, and noise on the output.
        row: The column that names each row, text or whole numbers. Rows without a name are left out.
        vector: The column of vectors: binary, input_dim packed little-endian numbers; or lists of numbers.
        public_rows: Every row that gets a sketch, in this order. Missing rows count as zeros; rows of other names are left out.
        ledger: A `Ledger`, the path of one that exists on the driver, or `al.NO_LEDGER`.
        dtype: What a binary vector holds: "float64", "float32", "int64" or "int32"; None for lists.
        population: Whose budget the ledger charges.
        repeat: Whether the same population and labels may be released again.
        partitions: How many tasks share the rows; None leaves them where they lie.
    """
    account = open_account(ledger, population, repeat=repeat)
    job = SparkVectorJob(opened_frame(source), protocol, row, vector, public_rows, dtype, partitions)
    account.preview(protocol, job.labels)
    return release(protocol, job.sums(), job.labels, account)


@dataclass
class SparkVectorJob:
    """The release of a frame's vectors: the arguments of `release_rows`, checked before Spark runs anything."""

    frame: Any
    protocol: Protocol
    row: str
    vector: str
    public_rows: Any
    dtype: str | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        protocol, public_rows = self.protocol, self.public_rows
        if not isinstance(protocol, Protocol):
            raise ParameterError(f"protocol must be al.Protocol, got {type(protocol).__name__}")
        if protocol.transform.input_dim is None:
            raise ParameterError("input_dim must be fixed for rows of vectors, got an open vocabulary")
        if protocol.noise_site != "output":
            raise ParameterError(f"noise_site must be 'output' in Spark, got {protocol.noise_site!r}")
        if not isinstance(public_rows, (list, tuple)) or not public_rows:
            raise ParameterError(
                f"public_rows must list the name of every row, got {short_repr(public_rows)}"
            )
        self.labels = tuple(checked_rows(protocol, len(public_rows), list(public_rows)) or ())
        roles = {"row": self.row, "vector": self.vector}
        check_roles(roles)
        kinds = arrow_types(self.frame, roles)
        kind = kinds.field("row").type
        if not (is_text(kind) or pa.types.is_integer(kind)):
            raise InputError(f"row must be a column of text or whole numbers, got {type_name(kind)}; cast it")
        check_vector_type(kinds.field("vector").type, self.dtype)
        if self.partitions is not None:  # None leaves rows where they are
            self.partitions = checked_partitions(self.frame, self.partitions)

    def sums(self) -> Sums:
        """A·x of every public row, **not private**: one Spark job."""
        vector_sums = VectorSums(self.protocol, len(self.labels))
        width = self.protocol.transform.input_dim or 0
        size = width * (8 if self.dtype is None else np.dtype(PACKED[self.dtype]).itemsize)
        with batches_of(self.frame, max(1, _BATCH_BYTES // max(1, size))):
            with our_errors():
                frame = self._frame_of_sums()
            for row in local_rows(frame):
                vector_sums.add(row)
        return vector_sums.sums()

    def _frame_of_sums(self) -> Any:
        row = f"CAST({quoted(self.row)} AS STRING) AS `row`"
        vectors = self.frame.selectExpr(row, f"{quoted(self.vector)} AS vector")
        if self.partitions is not None:
            vectors = vectors.repartition(self.partitions, "row")
        job = RowsJob(self.protocol, self.labels, self.dtype, BLOCK_BYTES)
        sketched = vectors.mapInArrow(task_of(job), SPARK_SCHEMA)
        # A shuffle of the small products: without one, partitions would be computed one after the other.
        whole = 8 * len(self.labels) * (self.protocol.transform.sketch_dim + 2)
        usual = min(32, max(1, setting(self.frame, "spark.sql.shuffle.partitions", 200)))
        blocks = sketched.repartition(max(usual, math.ceil(whole / _BYTES_PER_TASK)), "chunk")
        return blocks.mapInArrow(joining_task(together), SPARK_SCHEMA)
