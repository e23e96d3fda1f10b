"""Spark's frames: their schema, settings, rows and errors, through SQL and methods that classic frames and Spark Connect share."""

import logging
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from armslength.checks import integer, short_repr, type_name
from armslength.errors import (
    ArmslengthError,
    InputError,
    MissingPackageError,
    ParameterError,
    UnknownNameError,
)
from armslength.ingest.event_columns import is_text
from armslength.ingest.relations import check_names
from armslength.sketches.sketches import Sketches
from armslength.spark.summing import Row

_MOST_PARTITIONS = 100_000
# they decide the bucket of a person
_FUNCTIONS = ("isnull", "pmod", "regexp_replace", "translate", "xxhash64")
_OWN_CLASS = "Class: org.apache.spark.sql.catalyst.expressions."
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def opened_frame(source: Any) -> Any:
    """The frame, or the table of this name, if it is no stream."""
    if isinstance(source, str):
        source = _table(source)
    if not str(type(source).__module__).startswith("pyspark.sql.") or not hasattr(source, "mapInArrow"):
        raise ParameterError(
            f"source must be a Spark DataFrame or the name of a table, got {short_repr(type(source).__name__)}",
            "source",
        )
    with our_errors():
        is_stream = source.isStreaming
    if is_stream:
        raise ParameterError(
            "source is a stream, which has no end; release what it has written to a table", "source"
        )
    return source


def _table(name: str) -> Any:
    session = SparkSession.getActiveSession()
    if session is None:
        raise ParameterError(
            "source is the name of a table, which needs a Spark session; start one", "source"
        )
    try:
        table = session.table(name)
        table.schema  # noqa: B018  # Spark Connect looks for the table only now
    except Exception:  # noqa: BLE001  # whatever a catalog says
        raise UnknownNameError(f"Spark finds no table {short_repr(name)}") from None
    return table


def arrow_types(frame: Any, roles: dict[str, str]) -> pa.Schema:
    """The columns under the names of their roles, if they are there, with the types that a task will see."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415  # it asks for pandas

    with our_errors():
        columns = frame.schema.fields
    check_names(roles, [column.name for column in columns], "the source")
    fields = {column.name: column.dataType for column in columns}
    schema = []
    for role, name in roles.items():
        try:
            kind = to_arrow_type(fields[name])
        except Exception:  # noqa: BLE001  # whatever Spark says about other types
            raise InputError(
                f"{role} must be a column of text or numbers, got {type_name(fields[name].simpleString())}; cast it first",
                role,
            ) from None
        schema.append(pa.field(role, kind))
    return pa.schema(schema)


def quoted(name: str) -> str:
    """A column's name as Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def bucket_key(column: str, kind: pa.DataType) -> str:
    """A column for the hash that brings a person's events together: of text, the printable ASCII characters of its NFD form.

    Guarantee: the same for all spellings of one person, whose NFC forms are equal but for white space around them and, in a whole number,
    decimals of zero. NFC forms are equal where NFD forms are, and canonical order moves marks alone.
    """
    if pa.types.is_floating(kind):
        return f"{column} + 0"  # -0.0 is 0.0
    if not is_text(kind):
        return column
    letters = decomposed_letters()
    plain = f"CAST(CAST({column} AS BINARY) AS STRING)"  # without a collation of its own
    ascii_part = f"regexp_replace(translate({plain}, '{''.join(letters)}', '{''.join(letters.values())}'), '[^!-~]', '')"
    whole = f"regexp_replace({ascii_part}, '^(-?[0-9]+)[.]0*$', '$1')"
    return f"regexp_replace({whole}, '^-(0+)$', '$1')"


@cache
def decomposed_letters() -> dict[str, str]:
    """The characters whose canonical decomposition begins with an ASCII character, and that character: é and e."""
    decomposed = {chr(code): unicodedata.normalize("NFD", chr(code))[0] for code in range(0x80, 0x3000)}
    return {letter: first for letter, first in decomposed.items() if first.isascii()}


def setting(frame: Any, name: str, otherwise: int) -> int:
    """A setting of the frame's session as a whole number; the default where a platform has words there."""
    with our_errors():
        value = str(frame.sparkSession.conf.get(name, str(otherwise)))
    return int(value) if value.lstrip("-").isdigit() else otherwise


def check_functions(frame: Any) -> None:
    """Refuses a session that replaced a function which decides the bucket of a person."""
    with our_errors():
        descriptions = [frame.sparkSession.sql(f"DESCRIBE FUNCTION {name}").collect() for name in _FUNCTIONS]
    if not all(any(_OWN_CLASS in str(line[0]) for line in lines) for lines in descriptions):
        raise ParameterError(
            f"the session replaces one of Spark's own functions {', '.join(_FUNCTIONS)}; drop the replacement"
        )


def checked_partitions(frame: Any, partitions: Any) -> int:
    """The number of partitions; None takes that of Spark's own shuffles."""
    if partitions is None:
        return max(1, setting(frame, "spark.sql.shuffle.partitions", 200))
    return integer("partitions", partitions, at_least=1, at_most=_MOST_PARTITIONS)


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
    """Spark's errors as ours: its own may quote data, and show the stacks of many processes."""
    try:
        with _quiet():
            yield
    except ArmslengthError:
        raise
    except Exception as problem:  # noqa: BLE001  # Spark's, Java's and the network's
        if "No module named 'armslength'" in str(problem):
            raise MissingPackageError(
                "armslength is not installed for the Python of Spark's workers; nothing was charged"
            ) from None
        raise InputError(
            f"Spark could not compute source to its end ({_condition(problem)}); nothing was charged, "
            "and Spark's own log says more",
            "source",
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps this thread's errors, which quote data, off the driver's standard error, where PySpark 4 writes them."""
    own = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != own

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(is_of_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_of_others)


def _condition(problem: Exception) -> str:
    """The kind of error in Spark's public words, without its message."""
    for name in ("getCondition", "getErrorClass"):
        condition = getattr(problem, name, lambda: None)()
        if isinstance(condition, str):
            return condition
    return type(problem).__name__


def to_frame(sketches: Sketches, session: Any) -> Any:
    """Released rows as a frame: `label`, `values`, `in_clear` and, where totals were released, `total`.

    The frame holds released numbers: they stay the same however often Spark computes it, and joins cost no privacy. `values` is binary, k
    packed little-endian numbers of 8 bytes (int64 as released, float64 for sketches that were scaled by a fraction), which
    `numpy.frombuffer` reads. A row with `in_clear` contains data without noise and is **not private**. The frame does not hold the
    protocol; `Sketches.save` keeps both.

    Args:
        sketches: Released rows.
        session: The Spark session of the frame.
    """
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}", "sketches")
    if not hasattr(session, "createDataFrame"):
        raise ParameterError(f"session must be a Spark session, got {type(session).__name__}", "session")
    packed = sketches.values.astype(sketches.values.dtype.newbyteorder("<"), copy=False)
    columns: list[Any] = [sketches.labels, [bytearray(row.tobytes()) for row in packed], sketches.in_clear]
    schema = "label STRING, values BINARY, in_clear BOOLEAN"
    if sketches.totals is not None:
        columns.append(sketches.totals.tolist())
        schema += f", total {'BIGINT' if sketches.totals.dtype.kind == 'i' else 'DOUBLE'}"
    return session.createDataFrame(list(zip(*columns, strict=True)), schema)
