"""What a release takes: every kind of input becomes the same integers, and bad input costs nothing."""

import math
import pickle

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import armslength as al
from armslength.ingest.arrays import projected_sums
from armslength.noise import draw as door
from flat_protocol import flat_protocol

D = 5
TRANSFORM = al.SparseJL(input_dim=D, sketch_dim=8, sparsity=2, seed="x")
COUNTS = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
REAL = al.Protocol(TRANSFORM, al.Arrays(resolution=0.25, on_grid=False), epsilon=1)
X = np.arange(15).reshape(3, D)
NAMES = list("abcde")


def frames():
    table = pa.table({name: X[:, j] for j, name in enumerate(NAMES)})
    return {
        "list": X.tolist(),
        "int8": X.astype(np.int8),
        "uint64": X.astype(np.uint64),
        "float": X.astype(float),
        "float32": X.astype(np.float32),
        "fortran": np.asfortranarray(X),
        "csr": sparse.csr_array(X),
        "coo float": sparse.coo_matrix(X.astype(float)),
        "pyarrow": table,
        "batches": pa.Table.from_batches(table.to_batches(max_chunksize=1)),
        "mixed types": table.set_column(1, "b", pa.array(X[:, 1].astype(np.float32))),
        "pandas": pd.DataFrame(X, columns=NAMES),
        "polars": pl.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)}),
        "duckdb": duckdb.from_arrow(table),
    }


@pytest.mark.parametrize("kind", list(frames()))
def test_every_kind_of_input_becomes_the_same_integers(kind):
    assert np.array_equal(projected_sums(COUNTS, frames()[kind], None, 2).values, TRANSFORM.apply(X))


def test_booleans_and_masks_of_a_table():
    table = pa.table({name: [True, False, True] for name in NAMES})
    assert np.array_equal(
        projected_sums(COUNTS, table, None, 1).values, TRANSFORM.apply([[1] * D, [0] * D, [1] * D])
    )


def test_blocks_do_not_matter(monkeypatch):
    whole = projected_sums(REAL, X / 3, None, 1).values
    monkeypatch.setattr("armslength.ingest.arrays._ENTRIES_AT_ONCE", 1)
    assert np.array_equal(projected_sums(REAL, X / 3, None, 2).values, whole)


def test_columns_of_a_frame_must_be_the_vocabulary():
    named = al.Protocol(TRANSFORM, epsilon=1, vocabulary=NAMES)
    frame = pd.DataFrame(X, columns=NAMES)
    assert np.array_equal(projected_sums(named, frame, None, 1).values, TRANSFORM.apply(X))
    with pytest.raises(al.InputError, match="vocabulary in its order"):
        projected_sums(named, frame[NAMES[::-1]], None, 1)


def test_open_vocabulary_by_names_of_columns_and_by_items():
    transform = al.SparseJL(sketch_dim=8, sparsity=2, seed="x")
    strings = al.Protocol(transform, epsilon=1)
    expected = X @ transform.columns(NAMES).toarray().T
    assert np.array_equal(projected_sums(strings, pd.DataFrame(X, columns=NAMES), None, 1).values, expected)
    assert np.array_equal(projected_sums(strings, X, NAMES, 1).values, expected)
    assert np.array_equal(projected_sums(strings, sparse.csr_array(X), NAMES, 1).values, expected)
    ids = al.Protocol(transform, epsilon=1, items="int64")
    assert np.array_equal(
        projected_sums(ids, X, np.arange(D), 1).values, X @ transform.columns(range(D)).toarray().T
    )
    for protocol, items, says in [
        (strings, [1, 2, 3, 4, 5], "type string"),
        (ids, NAMES, "type int64"),
        (strings, ["a"] * D, "twice"),
        (strings, None, "items must name"),
        (strings, NAMES[:3], "3 columns"),
    ]:
        with pytest.raises(al.InputError, match=says):
            projected_sums(protocol, X, items, 1)


DAMAGED = sparse.csc_array(np.eye(2, D, dtype=int))
DAMAGED.indices = np.array([0, 10**8], dtype=np.int32)

BAD_INPUT = {
    "nan": (REAL, [[math.nan, 0, 0, 0, 777.125]], "finite"),
    "infinity": (REAL, [[math.inf, 0, 0, 0, 777.125]], "finite"),
    "width": (COUNTS, [[777, 1]], "5 columns"),
    "off the grid": (COUNTS, [[777.125, 0, 0, 0, 0]], "on_grid=False"),
    "empty": (COUNTS, np.zeros((0, D)), "no rows"),
    "one dimension": (COUNTS, [777] * D, "2 dimensions"),
    "text": (COUNTS, [["777"] * D], "integers or floats"),
    "objects": (COUNTS, np.array([[777, None, 0, 0, 0]], dtype=object), "integers or floats"),
    "ragged": (COUNTS, [[777], [1, 2]], "array of numbers"),
    "complex": (COUNTS, [[777j] * D], "integers or floats"),
    "none": (COUNTS, None, "2 dimensions|integers or floats"),
    "duplicates": (
        REAL,
        sparse.coo_array(([777.125, 1.0], ([0, 0], [1, 1])), shape=(1, D)),
        "duplicate",
    ),
    "sparse nan": (REAL, sparse.csr_array([[math.nan, 0, 0, 0, 777.125]]), "finite"),
    "masked": (COUNTS, np.ma.array([[777] * D], mask=[[1, 0, 0, 0, 0]]), "masked"),
    "damaged": (COUNTS, DAMAGED, "do not fit its shape"),
    "missing": (
        COUNTS,
        pd.DataFrame({name: pd.array([777, None], dtype="Int64") for name in NAMES}),
        "missing",
    ),
    "text column": (COUNTS, pd.DataFrame({name: ["secret-777"] for name in NAMES}), "numbers"),
    "no rows": (COUNTS, pd.DataFrame({name: pd.array([], dtype="int64") for name in NAMES}), "no rows"),
    "huge": (REAL, [[1e300, 0, 0, 0, 777.125]], "value_range"),
}


@pytest.mark.parametrize("kind", list(BAD_INPUT))
def test_bad_input_is_one_clear_line_and_costs_nothing(kind, tmp_path, monkeypatch):
    protocol, X, says = BAD_INPUT[kind]
    monkeypatch.setattr(door, "SecretBits", None)  # any draw would fail loudly
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.InputError, match=says) as caught:
        al.release(protocol, X, ledger=ledger, population="p")
    assert "\n" not in str(caught.value)
    assert "777" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_sparse_input_needs_zero_in_the_range():
    protocol = al.Protocol(TRANSFORM, al.Arrays(value_range=(1, 5)), epsilon=1)
    with pytest.raises(al.InputError, match="contain 0"):
        projected_sums(protocol, sparse.csr_array(X), None, 1)
    assert projected_sums(protocol, X, None, 1).values.shape == (3, 8)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (np.array([2**63 - 1], dtype=np.uint64), np.array([2**63], dtype=np.uint64)),
        (np.array([2**62, 2**62 - 1]), np.array([2**62, 2**62])),
    ],
)
def test_sparse_integers_are_clamped_before_they_can_wrap(low, high):
    for protocol in (
        al.Protocol(TRANSFORM, al.Arrays(value_range=(0, 100)), epsilon=1),
        al.Protocol(TRANSFORM, al.Arrays(resolution=4, on_grid=False, changed_entries=1), epsilon=1),
    ):
        matrices = [
            sparse.coo_array((values, (np.zeros(len(values), int), np.zeros(len(values), int))), shape=(1, D))
            for values in (low, high)
        ]
        if len(low) > 1:
            for matrix in matrices:
                with pytest.raises(al.InputError, match="overflow"):
                    projected_sums(protocol, matrix, None, 1)
        else:
            before, after = (projected_sums(protocol, matrix, None, 1).values for matrix in matrices)
            assert np.abs(before - after).sum() <= protocol.law.scale


def test_a_pandas_index_is_not_data():
    frame = pd.DataFrame(X, columns=NAMES, index=pd.Index(["north", "south", "east"], name="hospital"))
    assert np.array_equal(projected_sums(COUNTS, frame, None, 1).values, TRANSFORM.apply(X))
    vocabulary = al.Protocol(al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
    plain = projected_sums(vocabulary, pd.DataFrame(X, columns=NAMES), None, 1).values
    filtered = pd.DataFrame(np.vstack([X, X]), columns=NAMES).iloc[[0, 2, 4]]
    assert projected_sums(vocabulary, filtered, None, 1).values.shape == plain.shape
    patients = pd.DataFrame(X, columns=NAMES).set_index(pd.Index([100, 2, 3], name="patient"))
    assert np.array_equal(projected_sums(vocabulary, patients, None, 1).values, plain)
    with pytest.raises(al.InputError, match="5 columns"):
        projected_sums(COUNTS, pd.DataFrame(X[:, :4], columns=NAMES[:4], index=[7, 8, 9]), None, 1)


def test_an_engine_s_error_does_not_quote_the_data():
    relation = duckdb.sql("select cast(s as integer) a, 1 b, 1 c, 1 d, 1 e from (values ('Mr Smith')) t(s)")
    with pytest.raises(al.InputError) as caught:
        projected_sums(COUNTS, relation, None, 1)
    assert "Smith" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_table_that_can_be_read_once():
    table = pa.table({name: X[:, j] for j, name in enumerate(NAMES)})
    vocabulary = al.Protocol(al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
    once = projected_sums(vocabulary, table.to_reader(), None, 1).values
    assert np.array_equal(once, projected_sums(vocabulary, table, None, 1).values)


def test_sums_of_an_engine_are_whole_decimals():
    table = pa.table({name: X[:, j] for j, name in enumerate(NAMES)})
    sums = duckdb.from_arrow(table).aggregate(", ".join(f"sum({name}) {name}" for name in NAMES))
    assert np.array_equal(
        projected_sums(COUNTS, sums, None, 1).values, TRANSFORM.apply(X.sum(axis=0)[None, :])
    )
    big = pa.table({name: pa.array([10**30], pa.decimal128(38, 0)) for name in NAMES})
    with pytest.raises(al.InputError, match="fit int64"):
        projected_sums(COUNTS, big, None, 1)


def test_the_index_of_a_data_frame_names_the_rows():
    frame = pd.DataFrame(X, columns=NAMES)
    for index in (
        ["north", "south", "west"],
        pd.Index(["north", "south", "west"], dtype="string", name="who"),
        pd.CategoricalIndex(["north", "south", "west"], categories=["west", "south", "north"]),
    ):
        named = frame.set_axis(index, axis=0)
        for sketches in (al.release(COUNTS, named, ledger=al.NO_LEDGER), al.sketch_in_clear(COUNTS, named)):
            assert list(sketches.labels) == ["north", "south", "west"]
        labels = al.release(COUNTS, named, ledger=al.NO_LEDGER, labels=list("abc")).labels
        assert list(labels) == list("abc")
    for index in ([7, 8, 9], pd.MultiIndex.from_product([["a"], [1, 2, 3]]), pd.RangeIndex(3)):
        numbered = al.release(COUNTS, frame.set_axis(index, axis=0), ledger=al.NO_LEDGER)
        assert list(numbered.labels) == ["0", "1", "2"]
    for index in (["north", "north", "west"], pd.Index(["a", None, "b"], dtype="string")):
        with pytest.raises(al.InputError, match="index of X"):
            al.release(COUNTS, frame.set_axis(index, axis=0), ledger=al.NO_LEDGER)


def test_large_integers_beside_floats_in_a_list_are_refused():
    with pytest.raises(al.InputError, match="array of integers"):
        projected_sums(al.Protocol(al.Identity(input_dim=2), epsilon=1), [[2**60 + 129, 1.0]], None, 1)


@pytest.mark.parametrize("items", [5, "abcde", b"abcde", {"a": 1}])
def test_what_is_no_list_of_items_is_refused(items):
    with pytest.raises(al.InputError, match="items must"):
        projected_sums(al.Protocol(al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), epsilon=1), X, items, 1)


def test_a_sparse_matrix_of_too_many_places_is_refused():
    # Places are numbered in 63 bits to find duplicates.
    wide = al.Protocol(al.SparseJL(input_dim=2**40, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
    with pytest.raises(al.InputError, match=r"2\^63 places"):
        projected_sums(wide, sparse.coo_array((2**24, 2**40), dtype=np.int64), None, 1)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"value_range": (-3, 3)},
        {"resolution": 0.5},
        {"resolution": 2, "on_grid": False, "changed_entries": 64},
        {"resolution": 0.25, "value_range": (-1, 2)},
    ],
    ids=str,
)
def test_columns_that_lie_together_are_the_same_data(kind, setting):
    # A frame's to_numpy() has this layout, and tiles read rows.
    protocol = flat_protocol(
        al.SparseJL(input_dim=64, sketch_dim=16, sparsity=2, seed="x"), epsilon=1, **setting
    )
    Y = np.random.default_rng(0).integers(-5 if np.dtype(kind).kind != "u" else 0, 6, (40, 64)).astype(kind)
    expected = projected_sums(protocol, Y, None, 1).values
    for form in (np.asfortranarray(Y), np.asfortranarray(np.pad(Y, 2))[2:-2, 2:-2], Y[::-1][::-1]):
        assert np.array_equal(projected_sums(protocol, form, None, 2).values, expected)
    one_by_one = [projected_sums(protocol, row[None, :], None, 1).values[0] for row in Y]
    assert np.array_equal(one_by_one, expected)


@pytest.mark.parametrize("low", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40])
def test_a_range_at_the_end_of_32_bits(low):
    protocol = al.Protocol(al.Identity(input_dim=8), al.Arrays(value_range=(low, low + 10)), epsilon=1)
    values = np.array([[low - 5, low - 1, low, low + 1, low + 9, low + 10, low + 11, 0]], dtype=np.float64)
    expected = np.clip(values, low, low + 10).astype(np.int64)
    assert np.array_equal(projected_sums(protocol, values, None, 1).values, expected)
    assert np.array_equal(projected_sums(protocol, values.astype(np.int64), None, 1).values, expected)
    # and a value clamps as it does alone, whatever stands beside it
    for j in range(8):
        alone = np.full((1, 8), low - 5, dtype=np.float64)
        alone[0, j] = values[0, j]
        assert projected_sums(protocol, alone, None, 1).values[0, j] == expected[0, j]


SPARE = [
    al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="x"),
    al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="x", construction="balanced"),
    al.SignJL(input_dim=20, sketch_dim=8, seed="x"),
    al.GaussianJL(input_dim=20, sketch_dim=8, seed="x"),
    al.HadamardJL(input_dim=20, sketch_dim=8, seed="x"),
    al.Identity(input_dim=20),
]


@pytest.mark.parametrize("transform", SPARE, ids=lambda t: t.name)
@pytest.mark.parametrize("kept", [True, False])
def test_spare_room_behind_the_last_entry_is_not_read(transform, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr("armslength.transforms.sparse_jl._KEPT_ENTRIES", 0)
        transform = pickle.loads(pickle.dumps(transform))  # noqa: S301  # our own, without what it has kept
    matrix = sparse.csr_array((2, 20), dtype=np.int64)
    matrix.data, matrix.indices = np.array([1, 2, 9]), np.array([0, 2, 2**31 - 1], dtype=np.int32)
    matrix.indptr = np.array([0, 1, 2], dtype=np.int32)
    dense = np.zeros((2, 20), dtype=int)
    dense[0, 0], dense[1, 2] = 1, 2
    protocol = al.Protocol(transform, epsilon=1, noise="laplace")
    assert np.array_equal(projected_sums(protocol, matrix, None, 1).values, transform.apply(dense))
    assert np.array_equal(transform.apply(matrix), transform.apply(dense))
    assert len(al.release(protocol, matrix, ledger=al.NO_LEDGER)) == 2


def test_sparse_matrices_begin_with_their_first_entry():
    matrix = sparse.csr_array((1, 20), dtype=np.int64)
    matrix.data, matrix.indices, matrix.indptr = np.array([1, 2]), np.array([0, 2]), np.array([1, 2])
    with pytest.raises(al.InputError, match="do not fit its shape"):
        projected_sums(al.Protocol(SPARE[0], epsilon=1), matrix, None, 1)


@pytest.mark.parametrize("resolution", [0.25, 1, 4])
@pytest.mark.parametrize("value_range", [None, (-3, 8)])
def test_integers_in_any_order_are_those_of_their_sums(resolution, value_range):
    rng = np.random.default_rng(8)
    places, values = rng.integers(0, 30, 90), 4 * rng.integers(-2, 3, 90)
    X = sparse.csr_array((values, places, np.array([0, 40, 90])), shape=(2, 30))
    dense = np.zeros((2, 30), dtype=np.int64)
    np.add.at(dense, (np.repeat([0, 1], [40, 50]), places), values)
    protocol = al.Protocol(
        al.SparseJL(input_dim=30, sketch_dim=8, sparsity=1, seed="any order"),
        al.Arrays(radius=4, resolution=resolution, value_range=value_range, total_share="0.1"),
        epsilon=1,
    )
    found, expected = al.sketch_in_clear(protocol, X), al.sketch_in_clear(protocol, dense)
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.totals, expected.totals)
