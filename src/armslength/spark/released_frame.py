"""`armslength.spark.to_frame`: released rows as a Spark frame of local data."""

from typing import Any

from armslength.errors import ParameterError
from armslength.protocol.sketches import Sketches


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
