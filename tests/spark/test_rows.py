"""Rows of vectors: the integers of a matrix on one machine, by public names, each once."""

import threading

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
import armslength.spark
from armslength.spark.frames import batches_of
from armslength.spark.spark_vectors import SparkVectorJob
from armslength.spark.summing import LISTING, VectorSums, together
from armslength.spark.tasks import PACKED, RowsJob, check_vector_type, matrix_of
from spark.tables import same

LABELS = ("r3", "r0", "not there", "r6", "r5")
X = np.random.default_rng(1).integers(-5, 9, size=(7, 12))
EXPECTED = np.stack([X[3], X[0], 0 * X[0], X[6], X[5]])
PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=12, sketch_dim=8, seed="x"),
    epsilon=1,
    radius=1,
    total_share="0.5",
    value_range=(1, 5),
)
DENSE = al.Protocol(al.HadamardJL(input_dim=12, sketch_dim=8, seed="x"), epsilon=1, radius=1)


def in_clear(protocol):
    return al.sketch_in_clear(protocol, EXPECTED)


def batch(numbers, vectors):
    return pa.RecordBatch.from_arrays(
        [pa.array([None if n is None else f"r{n}" for n in numbers], pa.string()), vectors], ["row", "vector"]
    )


def packed(dtype, rows=X):
    return pa.array([row.astype(PACKED[dtype]).tobytes() for row in rows], pa.binary())


def products(job, batches):
    gathered = VectorSums(job.protocol, len(job.labels))
    for row in job.rows(iter(batches)):
        gathered.add(row)
    return gathered.sums()


@pytest.mark.parametrize("protocol", [PROTOCOL, DENSE], ids=["sparse", "dense"])
@pytest.mark.parametrize("dtype", [*PACKED, None])
def test_tasks_give_the_integers_of_a_matrix(protocol, dtype):
    vectors = packed(dtype) if dtype else pa.array(X.tolist(), pa.list_(pa.float64()))
    job = RowsJob(protocol, LABELS, dtype)
    cut = [
        batch([3, 5, None], vectors.take([3, 5, 1])),
        batch(range(7), vectors).slice(6),
        batch([0], vectors[:1]),
    ]
    assert same(products(job, cut), in_clear(protocol))


@pytest.mark.parametrize(
    ("vectors", "dtype", "says"),
    [
        (pa.array([b"12345678"]), "float64", "12 numbers of 8 bytes in every listed row, got another length"),
        (pa.array([None], pa.binary()), "float64", "got a missing one"),
        (pa.array([[1.0] * 11]), None, "12 numbers in every listed row"),
        (pa.array([[1.0] * 11 + [None]]), None, "a number in every place"),
        (pa.array([[1.0] * 11 + [float("nan")]]), None, "finite"),
        (pa.array([np.full(12, np.inf).tobytes()]), "float64", "finite"),
        (pa.array([np.full(12, 0.5).tobytes()]), "float64", "grid"),
    ],
)
def test_vectors_that_are_none_are_refused(vectors, dtype, says):
    with pytest.raises(al.InputError, match=says):
        products(RowsJob(DENSE, LABELS, dtype), [batch([3], vectors)])
    # of a row that is not listed, nothing is asked
    assert not products(RowsJob(DENSE, LABELS, dtype), [batch([1], vectors)]).values.any()


def test_blocks_are_cut_and_joined_whatever_the_order():
    job = RowsJob(PROTOCOL, LABELS, "int64", block_bytes=8 * 14 * 2)  # two rows
    whole = batch(range(7), packed("int64"))
    turned = [whole.take(pa.array(range(7)[::-1]))]
    sent = [list(job.rows(iter(each))) for each in ([whole], turned)]
    # where a row goes is a function of the row: a stage that is computed again cannot lose it
    places = [
        {(row[0], number) for row in rows if row[0] >= 0 for number in numbers_in(row)} for rows in sent
    ]
    assert places[0] == places[1] == {(0, 0), (0, 1), (1, 3), (2, 4)}
    joined = list(together(sent[0]))
    assert sorted(row[0] for row in joined) == [LISTING, 0, 1, 2]
    gathered = VectorSums(PROTOCOL, len(LABELS))
    for row in joined:
        gathered.add(row)
    assert same(gathered.sums(), in_clear(PROTOCOL))


def numbers_in(row):
    return np.frombuffer(row[1], dtype="<i8").reshape(-1, 10)[:, 0].tolist()


@pytest.mark.parametrize("what", ["lost", "listing lost", "changed"])
def test_rows_that_are_lost_are_not_taken_for_zeros(what):
    job = RowsJob(PROTOCOL, LABELS, "int64")
    rows = list(job.rows(iter([batch(range(7), packed("int64"))])))
    cells = np.frombuffer(rows[0][1], dtype="<i8").reshape(-1, 10).copy()
    cells[0, 1] += 1
    changed = {
        "lost": rows[1:],
        "listing lost": rows[:-1],
        "changed": [(rows[0][0], cells.tobytes(), b""), *rows[1:]],
    }
    gathered = VectorSums(PROTOCOL, len(LABELS))
    for row in changed[what]:
        gathered.add(row)
    with pytest.raises(al.InputError, match="same rows whenever Spark computes it again"):
        gathered.sums()


def test_a_name_that_is_no_text_is_refused():
    ids = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], "<i4")), pa.py_buffer(b"\xff\xfe")]
    )
    broken = pa.RecordBatch.from_arrays([ids, packed("int64")[:1]], ["row", "vector"])
    with pytest.raises(al.InputError, match="valid text"):
        products(RowsJob(DENSE, LABELS, "int64"), [broken])


def test_a_row_that_occurs_twice_is_refused():
    job = RowsJob(DENSE, LABELS, "int64")
    for twice in ([batch([3, 3], packed("int64")[:2])], [batch([3], packed("int64")[:1])] * 2):
        with pytest.raises(al.InputError, match="row must name each row once"):
            products(job, twice)


def test_a_slice_of_packed_numbers_is_read_where_it_lies():
    column = packed("float32")
    assert matrix_of(column[2:5], 12, "float32").tolist() == X[2:5].tolist()
    assert matrix_of(column[:0], 12, "float32").shape == (0, 12)


@pytest.mark.parametrize(
    ("kind", "dtype", "says"),
    [
        (pa.binary(), None, "dtype of binary vectors"),
        (pa.binary(), "float16", "dtype of binary vectors"),
        (pa.list_(pa.float64()), "float64", "dtype must be left out"),
        (pa.list_(pa.string()), None, "vector must be binary"),
        (pa.int64(), None, "vector must be binary"),
    ],
)
def test_columns_that_hold_no_vectors_are_refused(kind, dtype, says):
    with pytest.raises(al.ArmslengthError, match=says):
        check_vector_type(kind, dtype)


def release(source, protocol=PROTOCOL, **known):
    usual = {
        "row": "id",
        "vector": "v",
        "public_rows": list(LABELS),
        "dtype": "float64",
        "ledger": al.NO_LEDGER,
    }
    return armslength.spark.release_rows(source, protocol, **{**usual, **known})


@pytest.fixture(scope="module")
def frame(session):
    rows = [(f"r{n}", n, bytearray(x.astype("<f8").tobytes()), x.tolist()) for n, x in enumerate(X)]
    return session.createDataFrame(
        [*rows, (None, None, None, None)], "id STRING, n INT, v BINARY, l ARRAY<INT>"
    )


def test_rows_from_spark_are_those_of_one_machine(session, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("armslength.spark.spark_vectors._BATCH_BYTES", 300)  # three vectors at a time
    before = session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    known = {"row": "id", "public_rows": list(LABELS)}
    for column, dtype, partitions in (("v", "float64", None), ("l", None, 2)):
        job = SparkVectorJob(frame, PROTOCOL, vector=column, dtype=dtype, partitions=partitions, **known)
        assert same(job.sums(), in_clear(PROTOCOL))
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    sketches = release(frame, row="n", public_rows=["3", "0"], population="rows", ledger=ledger)
    assert sketches.labels == ("3", "0")
    assert sketches.releases == ((PROTOCOL, "rows"),)
    assert len(ledger.entries()) == 1
    with pytest.raises(al.InputError, match="row must name each row once"):
        release(frame.union(frame), population="others", ledger=ledger)
    assert len(ledger.entries()) == 1
    assert session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before


def test_two_releases_at_once_leave_the_session_as_it_was(session, frame):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = session.conf.get(name)
    inside = threading.Event()

    def another():
        with batches_of(frame, 5):
            seen.append(session.conf.get(name))

    seen = []
    with batches_of(frame, 7):
        thread = threading.Thread(target=lambda: (inside.set(), another()))
        thread.start()
        inside.wait()
        assert session.conf.get(name) == "7"
    thread.join()
    assert (seen, session.conf.get(name)) == (["5"], before)


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"row": "v"}, "different columns"),
        ({"row": 1}, "row must be the name of a column"),
        ({"row": "ID"}, "row must be a column of source"),
        ({"row": "l"}, "row must be a column of text or whole numbers"),
        ({"vector": "n", "dtype": None}, "vector must be binary"),
        ({"public_rows": []}, "public_rows must list"),
        ({"public_rows": "r1"}, "public_rows must list"),
        ({"public_rows": ["a", "a"]}, "differ from each other"),
        ({"partitions": -1}, "partitions must be an integer"),
        ({"ledger": None}, "ledger must be given"),
        (
            {"protocol": al.Protocol(al.SparseJL(sketch_dim=8, seed="x"), epsilon=1)},
            "input_dim must be fixed",
        ),
        (
            {
                "protocol": al.Protocol(
                    al.SparseJL(input_dim=12, sketch_dim=8, seed="x"),
                    epsilon=1,
                    resolution="1/2",
                    on_grid=False,
                )
            },
            "changed_entries must say",
        ),
        (
            {
                "protocol": al.Protocol(
                    al.FastJL(input_dim=30, sketch_dim=8, seed="x"), epsilon=1, delta=1e-6, noise_site="input"
                )
            },
            "noise_site must be",
        ),
        ({"protocol": "protocol.json"}, "protocol must be al.Protocol"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_job(frame, monkeypatch, known, says):
    monkeypatch.setattr("armslength.spark.spark_vectors.local_rows", None)
    with pytest.raises(al.ArmslengthError, match=says):
        release(frame, **known)
