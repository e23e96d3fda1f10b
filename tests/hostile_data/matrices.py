"""Matrices that hold canaries and are wrong in every way that a release can refuse, and some that it takes."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from hostile_data.canaries import BYTES, DAY, HUGE, INTEGER, NOT_WHOLE, OTHER_TEXT, REAL, TEXT

WIDTH = 3


def broken_text():
    """An Arrow column whose text is no UTF-8."""
    places = np.array([0, len(BYTES)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(places.tobytes()), pa.py_buffer(BYTES)])


class Failing:
    """What fails when it is made an array, as a lazy data set can."""

    def __array__(self, *_, **__):
        raise RuntimeError(TEXT, INTEGER)


class FailingStream:
    """What fails when its stream is opened."""

    def __arrow_c_stream__(self, *_):
        raise KeyError(TEXT)


class FailingList(list):
    """What fails when it is read."""

    def __iter__(self):
        raise RuntimeError(TEXT)


def _late_failure():
    schema = pa.schema([(name, pa.int64()) for name in "abc"])

    def batches():
        yield pa.record_batch([[INTEGER]] * WIDTH, schema=schema)
        raise ValueError(TEXT)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _columns(*values, kind=None):
    return pa.table({name: pa.array(values, kind) for name in "abc"})


def _broken_csr(indices, dtype=np.int64):
    matrix = sparse.csr_array(np.full((1, WIDTH), INTEGER, dtype=dtype))
    matrix.indices = np.array(indices, dtype=np.int32)
    return matrix


def _twice(value, dtype):
    return sparse.coo_array((np.array([value, value], dtype=dtype), ([0, 0], [1, 1])), shape=(1, WIDTH))


_ROW = [INTEGER, INTEGER + 1, INTEGER + 2]
_VALUES = {
    "text": TEXT,
    "bytes": BYTES,
    "date": DAY,
    "decimal": NOT_WHOLE,
    "huge": HUGE,
    "nothing": None,
    "complex": complex(REAL, REAL),
    "dict": {TEXT: INTEGER},
    "list": [TEXT],
    "nan": float("nan"),
    "infinity": float("inf"),
    "large": REAL * 1e20,
    "off the grid": REAL,
    "odd": INTEGER,
    "time": np.datetime64(DAY),
    "bool": True,
}
_TYPES = [
    pa.string(),
    pa.binary(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
]
_MIXED = {f"a list with {name}": [[INTEGER, value, REAL]] for name, value in _VALUES.items()}
_ARRAYS = {f"objects with {name}": np.array([[INTEGER, None, 1]], dtype=object) for name in ("nothing",)}
_FRAMES = {
    f"{name} in a frame of {kind.__module__.split('.')[0]}": (kind, value)
    for name, value in _VALUES.items()
    for kind in (pd.DataFrame, pl.DataFrame)
}


def _frame(kind, value):
    """A frame with the value in it; None where the library itself refuses to hold it."""
    try:
        return kind({"a": [INTEGER, 1], "b": [value, 2 if isinstance(value, float) else value], "c": [1, 2]})
    except Exception:  # noqa: BLE001  # the library's own affair
        return None


def matrices():
    """(name, X) of all of them, made anew: some can be read only once."""
    found = {
        **_MIXED,
        **_ARRAYS,
        "mixed objects": pd.DataFrame({"a": [TEXT, INTEGER, REAL], "b": [1, 2, 3], "c": [1, 2, 3]}),
        "one dimension": _ROW,
        "no dimension": INTEGER,
        "three dimensions": [[_ROW]],
        "no rows": np.zeros((0, WIDTH), dtype=int),
        "too wide": [[*_ROW, INTEGER]],
        "ragged": [_ROW, _ROW[:2]],
        "text itself": TEXT,
        "a mapping": {TEXT: _ROW},
        "a set": {TEXT, INTEGER},
        "half floats": np.full((1, WIDTH), 7391.5, dtype=np.float16),
        "long floats": np.full((1, WIDTH), REAL, dtype=np.longdouble),
        "large among floats": [[2**60 + INTEGER, REAL, 1.0]],
        "masked": np.ma.masked_equal([_ROW], INTEGER),
        "records": np.array([(INTEGER, 2, 3)], dtype=[(TEXT, int), ("b", int), ("c", int)]),
        "texts": np.array([[TEXT] * WIDTH]),
        "sparse text": sparse.csr_array(np.array([[REAL, 0, 1j]])),
        "sparse, infinite": sparse.csr_array(np.array([[REAL, np.inf, 0]])),
        "sparse, off the grid": sparse.csc_array(np.array([[REAL, 0, 0]])),
        "sparse, too wide": sparse.csr_array(np.array([[*_ROW, INTEGER]])),
        "sparse, broken": _broken_csr([0, 1, INTEGER % 1000]),
        "sparse, unordered and broken": _broken_csr([2, 0, -7]),
        "sparse floats twice": _twice(REAL, float),
        "sparse integers twice": _twice(2**62 + INTEGER, np.int64),
        "a failing array": Failing(),
        "a failing stream": FailingStream(),
        "a failing list": FailingList([_ROW]),
        "a stream that ends badly": _late_failure(),
        "a column of vectors": pa.table({"a": [_ROW], "b": [1], "c": [2]}),
        "a series": pd.Series([TEXT]),
        "another series": pl.Series([TEXT]),
        "a lazy frame": pl.LazyFrame({"a": [TEXT]}),
        "objects of polars": pl.DataFrame({name: pl.Series([Failing()], dtype=pl.Object) for name in "abc"}),
        "categories": pd.DataFrame({name: pd.Categorical([TEXT]) for name in "abc"}),
        "an index of text": pd.DataFrame({name: [REAL] for name in "abc"}, index=[TEXT]),
        "an index with duplicates": pd.DataFrame({name: [1, 2] for name in "abc"}, index=[TEXT, TEXT]),
        "columns named alike": pa.table([[INTEGER], [1], [2]], names=[TEXT, TEXT, "c"]),
        "columns named by the data": pd.DataFrame({TEXT: [REAL], OTHER_TEXT: [None], "c": ["x"]}),
        "missing": _columns(INTEGER, None),
        "no batch": _columns(kind=pa.int64()),
        "wide decimals": _columns(decimal.Decimal(HUGE // 10**90), kind=pa.decimal128(38)),
        "wider decimals": _columns(decimal.Decimal(HUGE // 10**60), kind=pa.decimal256(70)),
        "decimals": _columns(NOT_WHOLE),
        "structs": _columns({TEXT: INTEGER}),
        "enumerated": pl.DataFrame({name: pl.Series([TEXT], dtype=pl.Enum([TEXT])) for name in "abc"}),
        "text that is none": pa.table({name: broken_text() for name in "abc"}),
        "metadata": _columns(INTEGER).replace_schema_metadata({b"pandas": TEXT.encode()}),
        "metadata of another form": _columns(INTEGER).replace_schema_metadata({b"pandas": b"[5]"}),
        "unsigned": np.full((1, WIDTH), 2**63 + INTEGER, dtype=np.uint64),
        "as it should be": np.array([_ROW]),
    }
    found |= {f"Arrow {kind}": _columns(TEXT, kind=kind) for kind in _TYPES if not pa.types.is_binary(kind)}
    found |= {name: _frame(*made) for name, made in _FRAMES.items()}
    return [(name, X) for name, X in found.items() if X is not None]
