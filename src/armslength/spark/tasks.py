"""What runs on the workers: the version first, then the work; our own errors come back as rows, others without their words.

Errors travel as rows because an exception in a task is tried again, and comes with a stack of every process it went through.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from armslength.errors import InputError, ParameterError
from armslength.spark.row_parts import together
from armslength.spark.rows import PROBLEM, Row, in_batches, rows_of
from armslength.spark.summing import packed_problem, summed
from armslength.version import __version__

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_of(job: Any) -> Task:
    """A function for `mapInArrow` that has `job.rows` make rows of a partition's batches."""
    return _shipped(__version__, pickle.dumps(job))


def summing_task() -> Task:
    """A function for `mapInArrow` that adds rows up."""
    return _shipped(__version__, pickle.dumps(Joined(summed)))


def gathering_task() -> Task:
    """A function for `mapInArrow` that puts rows of a block together."""
    return _shipped(__version__, pickle.dumps(Joined(together)))


@dataclass(frozen=True)
class Joined:
    """A job on rows that tasks have sent.

    Attributes:
        work: What is made of them.
    """

    work: Callable[[Iterable[Row]], Iterator[Row]]

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """The rows that it makes."""
        return self.work(rows_of(batches))


def _shipped(version: str, packed: bytes) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(version, packed, batches)

    return task


def run(version: str, packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one task.

    Args:
        version: The driver's version of armslength.
        packed: The job, which is not looked into before the versions agree.
        batches: The partition.
    """
    if version != __version__:
        return in_batches(_refusal(_other_version(version), batches))
    return in_batches(_careful(packed, batches))


def _careful(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    try:
        yield from pickle.loads(packed).rows(batches)  # noqa: S301  # our own driver's, like the function itself
    except (InputError, ParameterError) as problem:
        yield from _refusal(problem, batches)
    except Exception as problem:  # noqa: BLE001  # its words may quote data, and would stand in the log of a worker
        raise RuntimeError(f"armslength: a task ended with {type(problem).__name__}") from None


def _refusal(problem: InputError | ParameterError, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for _ in batches:
        pass  # Spark goes on writing until somebody has read it all
    yield PROBLEM, packed_problem(problem), b""


def _other_version(driver: str) -> ParameterError:
    return ParameterError(
        f"armslength must be of one version everywhere, got {driver} on the driver and {__version__} on a worker; "
        "install the same one"
    )
