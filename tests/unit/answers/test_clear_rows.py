"""The mark of rows in the clear survives in every table that is made of them."""

from functools import partial

import numpy as np
import pytest

import armslength as al

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=20, sketch_dim=16, sparsity=1, seed="clear"),
    al.Counts(1, total_share="0.5"),
    epsilon=50,
    unit="u",
)
LABELS = ["a", "b", "c", "query"]


@pytest.fixture(scope="module")
def mixed():
    rows = np.random.default_rng(5).poisson(400, (4, 20))
    private = al.release(PROTOCOL, rows[:3], labels=LABELS[:3], ledger=al.NO_LEDGER)
    return al.concat([private, al.sketch_in_clear(PROTOCOL, rows[3:], labels=LABELS[3:])])


ESTIMATES = {
    "squares": al.squared_distances,
    "products": al.inner_products,
    "distances": al.distances,
    "distances of counts": partial(al.distances, about="counts"),
    "similarities": al.similarities,
}


@pytest.mark.parametrize("measure", ESTIMATES.values(), ids=ESTIMATES)
def test_estimates_mark_the_pairs_that_data_in_the_clear_is_part_of(measure, mixed):
    for table in (measure(mixed).to_arrow(), measure(mixed[:3], mixed[[1, 3]]).to_arrow()):
        for line in table.to_pylist():
            assert line["in_clear"] == ("query" in (line["left"], line["right"]))
    assert not any(measure(mixed[:3]).to_arrow()["in_clear"].to_pylist())


@pytest.mark.parametrize("measure", [al.squared_norms, al.totals], ids=lambda measure: measure.__name__)
def test_estimates_of_rows_mark_them(measure, mixed):
    assert measure(mixed).to_arrow()["in_clear"].to_pylist() == [False, False, False, True]


def test_a_data_frame_keeps_the_mark_where_its_attributes_get_lost(mixed):
    pandas = pytest.importorskip("pandas")
    frame = al.distances(mixed).to_pandas()
    lost = pandas.DataFrame(frame.to_dict())
    assert not lost.attrs
    assert lost[lost.in_clear].right.unique().tolist() == ["query"]


@pytest.mark.parametrize("known", [{}, {"top": 6}, {"top": 6, "farthest": True}, {"each": True}], ids=str)
@pytest.mark.parametrize("about", ["counts", "people"])
def test_compare_marks_pairs(known, about, mixed):
    lines = al.compare(mixed, about=about, **known).to_arrow().to_pylist()
    assert len(lines) == 6
    assert all(line["in_clear"] == ("query" in (line["left"], line["right"])) for line in lines)


def tables_of(sketches):
    """Every answer as a table."""
    yield al.nearest(sketches).to_arrow()
    yield al.nearest(sketches[:2], sketches[2:]).to_arrow()
    yield al.outliers(sketches).to_arrow()
    yield al.cluster(sketches).to_arrow()
    yield al.drift(sketches[[3]], sketches[[3]]).to_arrow()


def test_answers_say_that_data_in_the_clear_is_part_of_them(mixed):
    for table in tables_of(mixed):
        assert all(table["in_clear"].to_pylist())
    private = al.concat(
        [mixed[:3], al.release(PROTOCOL, np.ones((1, 20), int), labels=["d"], ledger=al.NO_LEDGER)]
    )
    for table in tables_of(private):
        assert not any(table["in_clear"].to_pylist())


def test_drift_marks_the_parties(mixed):
    found = al.drift(mixed, mixed)
    assert found.to_arrow()["in_clear"].to_pylist() == [False, False, False, True]
