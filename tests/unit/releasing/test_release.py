"""Release: its order, its ledger line, its marks, and that a refusal costs nothing."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import armslength as al
from armslength.errors import CorruptFileError
from armslength.ingest.arrays import projected_sums
from armslength.noise import draw as door
from armslength.releasing import release as release_module

D = 5
TRANSFORM = al.SparseJL(input_dim=D, sketch_dim=8, sparsity=2, seed="x")
COUNTS = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
REAL = al.Protocol(TRANSFORM, al.Arrays(resolution=0.25, on_grid=False), epsilon=1)
X = np.arange(15).reshape(3, D)
NAMES = list("abcde")


def named_frame(rows):
    return pd.DataFrame(rows, columns=NAMES)


@pytest.fixture
def no_noise(monkeypatch):
    """Releases without their noise, so that the integers under it can be seen."""

    monkeypatch.setattr(door, "add_draws", lambda *_: None)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array, named_frame]
)
def test_a_release_is_the_product_plus_noise(form):
    sketches = al.release(COUNTS, form(X), ledger=al.NO_LEDGER, labels=["n", "s", "e"])
    assert np.array_equal(sketches.values, X @ TRANSFORM.matrix().toarray().T)
    assert sketches.labels == ("n", "s", "e")
    assert sketches.protocol is COUNTS
    assert sketches.values.dtype == np.int64
    assert not any(sketches.in_clear)


def test_two_releases_differ_and_have_their_own_noise_ids():
    first, second = (al.release(COUNTS, X, ledger=al.NO_LEDGER) for _ in range(2))
    assert not np.array_equal(first.values, second.values)
    ids = {noise for sketches in (first, second) for noise in sketches.noises.ids.tolist()}
    assert len(ids) == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"ledger": None}, "ledger must be a file"),
        ({"labels": ["a"]}, "name 3 rows"),
        ({"labels": ["a", "a", "b"]}, "differ from each other"),
        ({"population": " "}, "population"),
        ({"items": NAMES}, "items cannot be given"),
        ({"threads": 0}, "threads must be"),
        ({"labels": ["a", "b\nc", "d"]}, "printable"),
    ],
)
def test_bad_arguments_cost_nothing(arguments, says, tmp_path, monkeypatch):
    monkeypatch.setattr(door, "SecretBits", None)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.ParameterError, match=says):
        al.release(COUNTS, X, **{"ledger": ledger, "population": "p", **arguments})
    assert list(tmp_path.iterdir()) == []


def test_without_a_name_all_people_of_a_ledger_are_one_population(tmp_path):
    new, named = (tmp_path / f"{name}.sqlite" for name in ("new", "named"))
    al.release(COUNTS, X, ledger=al.Ledger(new, create=True))
    with pytest.raises(al.BudgetError):  # the same labels again
        al.release(COUNTS, X, ledger=new)
    al.release(COUNTS, X, ledger=new, labels=["d", "e", "f"])
    assert len(al.Ledger(new).entries()) == len(al.Ledger(new).entries("everybody")) == 2
    with pytest.raises(al.BudgetError, match="everybody"):  # it would not know what was charged before
        al.release(COUNTS, X, ledger=new, labels=["g", "h", "i"], population="staff")
    with pytest.raises(al.BudgetError, match="everybody"):
        al.Ledger(new).set_budget("staff", 9, unit="one patient")
    assert len(al.Ledger(new).entries()) == 2
    al.release(COUNTS, X, ledger=al.Ledger(named, create=True), population="staff")
    with pytest.raises(al.ParameterError, match="staff") as caught:
        al.release(COUNTS, X, ledger=named, labels=["d", "e", "f"])
    assert caught.value.arguments == ("population",)
    assert len(al.Ledger(named).entries()) == 1


INPUT_NOISE = al.Protocol(
    al.FastJL(input_dim=D, sketch_dim=4, seed="x", density=0.5), epsilon=1, delta=1e-6, noise_site="input"
)


@pytest.mark.parametrize(
    ("protocol", "data"), [(COUNTS, X), (COUNTS, sparse.csr_array(X)), (INPUT_NOISE, X)], ids=str
)
def test_the_ledger_is_charged_before_noise_is_drawn(protocol, data, tmp_path, monkeypatch):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)

    def crash(*_arguments, **_named):
        assert len(ledger.entries()) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(door, "add_draws", crash)
    with pytest.raises(KeyboardInterrupt):
        al.release(protocol, data, ledger=ledger, population="p")
    assert len(ledger.entries()) == 1


def test_a_ledger_line_says_what_was_spent(tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    al.release(COUNTS, X, ledger=ledger, population="visits", labels=["n", "s", "e"])
    (entry,) = ledger.entries()
    assert (entry.population, entry.labels, entry.unit) == ("visits", ("n", "s", "e"), "one patient")
    assert (entry.epsilon, entry.delta, entry.law, entry.radius) == ("1", "0", "laplace", "1")
    assert (entry.protocol, entry.relation) == (COUNTS.fingerprint, "add_remove")
    assert float.fromhex(entry.scale) == COUNTS.law.scale
    assert entry.time.startswith("20")


def test_the_same_release_twice_must_be_asked_for(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.release(COUNTS, X, ledger=al.Ledger(path, create=True), population="visits")
    with pytest.raises(al.BudgetError, match="repeat=True"):
        al.release(COUNTS, X, ledger=path, population="visits")
    al.release(COUNTS, X, ledger=path, population="other visits")
    al.release(COUNTS, X, ledger=path, population="visits", repeat=True)
    assert len(al.Ledger(path).entries("visits")) == 2
    assert len(al.Ledger(path).entries()) == 3


@pytest.mark.usefixtures("no_noise")
def test_the_ring_wraps_and_comes_back():
    top = np.full((1, D), 2**63 - 1)
    sketches = al.release(COUNTS, top, ledger=al.NO_LEDGER) - al.release(COUNTS, top - 1, ledger=al.NO_LEDGER)
    assert np.array_equal(sketches.values, TRANSFORM.apply(np.ones((1, D), dtype=int)))


def test_noise_on_the_input_is_drawn_only_where_the_published_matrix_can_pass_it(monkeypatch):
    transform = al.FastJL(input_dim=60, sketch_dim=4, seed="x", density=0.02)
    protocol = al.Protocol(transform, epsilon=1, delta=1e-6, noise_site="input")
    assert 0 < len(transform.used_columns) < transform.padded_dim
    shapes = []
    real = release_module.add_noise
    monkeypatch.setattr(
        release_module,
        "add_noise",
        lambda values, law, **kw: shapes.append(values.shape) or real(values, law, **kw),
    )
    al.release(protocol, np.ones((3, 60), dtype=int), ledger=al.NO_LEDGER)
    assert shapes == [(3, len(transform.used_columns))]


@pytest.mark.usefixtures("no_noise")
def test_noise_on_the_input_without_noise_is_the_plain_product():
    transform = al.FastJL(input_dim=60, sketch_dim=4, seed="x", density=0.3)
    protocol = al.Protocol(transform, epsilon=1, delta=1e-6, noise_site="input")
    Y = np.random.default_rng(0).integers(-50, 50, (7, 60))
    assert np.array_equal(al.release(protocol, Y, ledger=al.NO_LEDGER).values, transform.apply(Y))
    assert np.array_equal(al.sketch_in_clear(protocol, Y).values, transform.apply(Y))


def test_a_sketch_in_the_clear_is_marked_everywhere(tmp_path):
    clear = al.sketch_in_clear(COUNTS, X, labels=["a", "b", "c"])
    assert np.array_equal(clear.values, TRANSFORM.apply(X))
    assert all(clear.in_clear)
    assert "IN CLEAR" in repr(clear)
    clear.save(tmp_path / "clear.parquet")
    assert all(al.load(tmp_path / "clear.parquet").in_clear)
    private = al.release(COUNTS, X, ledger=al.NO_LEDGER)
    assert any((private + clear).in_clear)
    for estimate in (
        al.squared_distances(private, clear),
        al.distances(clear),
        al.inner_products(clear, private),
    ):
        assert "not private" in estimate.note
        assert "not private" in estimate.to_arrow().schema.metadata[b"note"].decode()


def test_the_ledger_refuses_what_is_no_ledger(tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough to look at " * 50, encoding="utf-8")
    with pytest.raises(CorruptFileError, match="is not a ledger"):
        al.Ledger(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(CorruptFileError, match="another database"):
        al.Ledger(tmp_path / "other.sqlite")
    with pytest.raises(FileNotFoundError, match="folder"):
        al.Ledger(tmp_path / "no folder" / "ledger.sqlite", create=True)


def test_several_rows_off_the_grid_need_to_say_what_one_unit_touches(tmp_path):
    # 100 rows that all sit on a boundary: a change of 4e-7 in all would move the integers by 200.
    rows = np.ones((100, D))
    protocol = al.Protocol(TRANSFORM, al.Arrays(resolution=0.5, on_grid=False), epsilon=1)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.ParameterError, match="changed_entries must"):
        al.release(protocol, rows, ledger=ledger, population="p")
    assert ledger.entries() == []
    al.release(protocol, rows[:1], ledger=ledger, population="p")
    stated = al.Protocol(
        TRANSFORM, al.Arrays(resolution=0.5, on_grid=False, changed_entries=100 * D), epsilon=1
    )
    before, after = (projected_sums(stated, v, None, 1).values for v in (rows, rows - 1e-9))
    assert np.abs(before - after).sum() <= stated.law.scale
    al.release(stated, rows, ledger=al.NO_LEDGER)


def test_threads_are_checked_before_anything_is_charged(tmp_path):
    protocol = al.Protocol(al.Identity(input_dim=D), epsilon=1)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.ParameterError, match="threads"):
        al.release(protocol, sparse.csr_array(X), ledger=ledger, population="p", threads=0)
    assert ledger.entries() == []


def test_a_label_that_was_released_in_other_company_is_refused(tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    al.release(COUNTS, X[:2], ledger=ledger, population="p", labels=["north", "south"])
    for labels in (["south", "north"], ["north", "east"]):
        with pytest.raises(al.BudgetError, match="again"):
            al.release(COUNTS, X[:2], ledger=ledger, population="p", labels=labels)
    al.release(COUNTS, X[:1], ledger=ledger, population="p", labels=["east"])


def test_bad_input_leaves_no_new_ledger_behind(tmp_path):
    ledger = al.Ledger(tmp_path / "new.sqlite", create=True)
    with pytest.raises(al.InputError):
        al.release(COUNTS, [[1]], ledger=ledger, population="p")
    assert list(tmp_path.iterdir()) == []
    al.release(COUNTS, X, ledger=ledger, population="p")
    assert len(al.Ledger(tmp_path / "new.sqlite").entries()) == 1


def test_a_file_in_the_clear_promises_nothing(tmp_path):
    al.sketch_in_clear(COUNTS, X).save(tmp_path / "clear.parquet")
    head = json.loads(pq.read_schema(tmp_path / "clear.parquet").metadata[b"armslength"])
    assert head["card"]["in_clear"] is True
    assert head["card"]["words"].startswith("NOT PRIVATE")
    assert "differentially private" not in json.dumps(head["card"])
    clear, private = al.sketch_in_clear(COUNTS, X), al.release(COUNTS, X, ledger=al.NO_LEDGER)
    assert "not private" in al.squared_distances(clear, private).note
    assert "not private" in al.distances(clear).to_pandas().attrs["note"]
