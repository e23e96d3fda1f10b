"""Spark's frames: what is asked of them, what they are asked for, and their errors as ours.

Everything goes through SQL expressions and methods that classic frames and those of Spark Connect share.
"""

import logging
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from armslength.checks import integer, shown, type_name
from armslength.errors import ArmslengthError, InputError, ParameterError
from armslength.sketches.sketches import Sketches
from armslength.spark.messages import Row

_MOST_PARTITIONS = 100_000
_FUNCTIONS = (
    "isnull",
    "pmod",
    "regexp_replace",
    "translate",
    "xxhash64",
)  # on which the place of a person rests
_OWN_CLASS = "Class: org.apache.spark.sql.catalyst.expressions."
_SETTING_LOCK = threading.Lock()
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def opened_frame(source: Any) -> Any:
    """A frame that is read once from its beginning to its end: the one given, or that of a table's name."""
    if isinstance(source, str):
        source = _table(source)
    if not str(type(source).__module__).startswith("pyspark.sql.") or not hasattr(source, "mapInArrow"):
        raise ParameterError(
            f"source must be a Spark DataFrame or the name of a table, got {shown(type(source).__name__)}"
        )
    with our_errors():
        is_stream = source.isStreaming
    if is_stream:
        raise ParameterError("source must have an end, got a stream; release what it has written to a table")
    return source


def _table(name: str) -> Any:
    session = SparkSession.getActiveSession()
    if session is None:
        raise ParameterError(
            "source must be a frame where no Spark session is active, got a name; start one first"
        )
    try:
        table = session.table(name)
        table.schema  # noqa: B018  # Spark Connect looks for the table only now
    except Exception:  # noqa: BLE001  # whatever a catalog says
        raise ParameterError(f"source must be a table that Spark finds, got {shown(name)}") from None
    return table


def arrow_types(frame: Any, roles: dict[str, str]) -> pa.Schema:
    """The chosen columns under the names of their roles, with the types in which they will come to a task."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415  # it asks for pandas

    with our_errors():
        fields = {field.name: field.dataType for field in frame.schema.fields}
    schema = []
    for role, name in roles.items():
        try:
            kind = to_arrow_type(fields[name])
        except Exception:  # noqa: BLE001  # whatever Spark has to say about a type that none of ours is
            raise InputError(
                f"{role} must be a column of text or numbers, got {type_name(fields[name].simpleString())}; cast it first"
            ) from None
        schema.append(pa.field(role, kind))
    return pa.schema(schema)


def quoted(name: str) -> str:
    """A column's name as Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def as_bytes(column: str, kind: pa.DataType) -> str:
    """A column for a hash: text by its bytes, because texts that differ may be equal under a collation."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return f"CAST({column} AS BINARY)" if is_text else column


def place_of_person(column: str, kind: pa.DataType) -> str:
    """A column for the hash that brings a person's events together, whose one spelling only a task finds out.

    Of text, the printable ASCII characters of its NFD form, without blanks. Guarantee: ids that are one person, because their NFC forms are equal
    but for white space around them, have the same ones: NFC forms are equal where NFD forms are, and canonical order moves marks alone.
    """
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    letters = decomposed_letters()
    plain = f"CAST(CAST({column} AS BINARY) AS STRING)"  # without a collation of its own
    return f"regexp_replace(translate({plain}, '{''.join(letters)}', '{''.join(letters.values())}'), '[^!-~]', '')"


@cache
def decomposed_letters() -> dict[str, str]:
    """The characters whose canonical decomposition begins with an ASCII character, and that one: é and e."""
    decomposed = {chr(code): unicodedata.normalize("NFD", chr(code))[0] for code in range(0x80, 0x3000)}
    return {letter: first for letter, first in decomposed.items() if first.isascii()}


def setting(frame: Any, name: str, otherwise: int) -> int:
    """A setting of the frame's session that is a whole number; some platforms have words there."""
    with our_errors():
        value = str(frame.sparkSession.conf.get(name, str(otherwise)))
    return int(value) if value.lstrip("-").isdigit() else otherwise


def check_functions(frame: Any) -> None:
    """Refuses a session in which a function that tells where a person belongs is somebody's own."""
    with our_errors():
        said = [frame.sparkSession.sql(f"DESCRIBE FUNCTION {name}").collect() for name in _FUNCTIONS]
    if not all(any(_OWN_CLASS in str(line[0]) for line in lines) for lines in said):
        raise ParameterError(
            f"functions of the session must leave Spark's own {', '.join(_FUNCTIONS)} as they are, got one of these names; drop it"
        )


def checked_partitions(frame: Any, partitions: Any) -> int:
    """Into how many partitions events are put; None takes as many as Spark's own shuffles have."""
    if partitions is None:
        return max(1, setting(frame, "spark.sql.shuffle.partitions", 200))
    return integer("partitions", partitions, at_least=1, at_most=_MOST_PARTITIONS)


@contextmanager
def batches_of(frame: Any, rows: int) -> Iterator[None]:
    """Inside the block, the frame's session hands at most so many rows to Python at a time; fewer, if it is set so.

    One at a time: the setting is the session's, and another release must not see it change.
    """
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    with _SETTING_LOCK:
        before = setting(frame, name, 10_000)
        if 0 < before <= rows:
            yield
            return
        with our_errors():
            frame.sparkSession.conf.set(name, str(rows))
        try:
            yield
        finally:
            with our_errors():
                frame.sparkSession.conf.set(name, str(before))


def local_rows(frame: Any) -> Iterator[Row]:
    """The rows of a frame, one partition at a time; this runs the job."""
    with our_errors():
        rows = frame.toLocalIterator(prefetchPartitions=True)
    while True:
        with our_errors():
            row = next(rows, None)
        if row is None:
            return
        yield row["chunk"], row["cells"], row["senders"]


@contextmanager
def our_errors() -> Iterator[None]:
    """Spark's errors as one line of ours: its own may quote data, and show the stacks of many processes."""
    try:
        with _quiet():
            yield
    except ArmslengthError:
        raise
    except Exception as problem:  # noqa: BLE001  # Spark's, Java's and the network's
        if "No module named 'armslength'" in str(problem):
            raise ParameterError(
                "armslength must be installed for the Python of Spark's workers, got none there; nothing was charged"
            ) from None
        raise InputError(
            f"source must be computed by Spark to its end, got a failed job ({_condition(problem)}); nothing was charged, "
            "and Spark's own log says more"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside the block, errors of this thread are not written to the driver's standard error, as PySpark 4 does with their data."""
    own = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(is_of_others)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(is_of_others)


def _condition(problem: Exception) -> str:
    """What kind of error it is, in Spark's public words, without its message."""
    for name in ("getCondition", "getErrorClass"):
        condition = getattr(problem, name, lambda: None)()
        if isinstance(condition, str):
            return condition
    return type(problem).__name__


# `armslength.spark.to_frame`: released rows as a Spark frame of local data.


def to_frame(sketches: Sketches, session: Any) -> Any:
    """Released rows as a frame: `label`, `values`, `in_clear` and, where totals were released, `total`.

    The frame is made of numbers that are already released: it shows the same ones however often Spark computes it, and joining it with itself
    costs no privacy. `values` is binary, k packed little-endian numbers of 8 bytes (int64 as released, float64 for sketches that were scaled by
    a fraction), which `numpy.frombuffer` reads. `in_clear` says whether data without noise is part of the row: such a row is **not private**. The protocol does not travel along: `Sketches.save` keeps both.

    Args:
        sketches: Released rows.
        session: The Spark session of the frame.
    """
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    if not hasattr(session, "createDataFrame"):
        raise ParameterError(f"session must be a Spark session, got {type(session).__name__}")
    packed = sketches.values.astype(sketches.values.dtype.newbyteorder("<"), copy=False)
    rows: list[tuple[Any, ...]] = [
        (label, bytearray(values.tobytes()), clear)
        for label, values, clear in zip(sketches.labels, packed, sketches.in_clear, strict=True)
    ]
    columns = "label STRING, values BINARY, in_clear BOOLEAN"
    if sketches.totals is None:
        return session.createDataFrame(rows, columns)
    kind = "BIGINT" if sketches.totals.dtype.kind == "i" else "DOUBLE"
    rows = [(*row, total) for row, total in zip(rows, sketches.totals.tolist(), strict=True)]
    return session.createDataFrame(rows, f"{columns}, total {kind}")
