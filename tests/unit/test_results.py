"""What all results share: numbers in their text and HTML, tables, pickling; and single estimates by label."""

import builtins
import math
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.answers.pairs import INCONCLUSIVE, VERDICTS, Answer
from armslength.results import similarity_text
from report_parties import with_margins

MORE_OR_FEWER = ("more", "fewer", INCONCLUSIVE)
HOSTILE = "<script>alert('x')</script> & co"
PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=60, sketch_dim=32, seed="results"), al.Arrays(total_share="0.25"), epsilon=2
)


def release(count, seed=1, labels=None):
    data = np.random.default_rng(seed).poisson(40, (count, 60))
    names = labels or [HOSTILE, *(f"clinic {number}" for number in range(1, count))]
    return al.release(PROTOCOL, data, labels=names, ledger=al.NO_LEDGER)


ROWS = release(4)
LATER = release(4, seed=2)
VOTES = with_margins([[0.1, 0.1, 0.3], [0.1, 0.6, 0.3]], 500)
RESULTS = {
    "distances": al.distances(ROWS),
    "between": al.squared_distances(ROWS, LATER),
    "norms": al.squared_norms(ROWS),
    "products": al.inner_products(ROWS),
    "shapes": al.distances(ROWS, about="people"),
    "totals": al.totals(ROWS),
    "part": al.distances(ROWS)["clinic 1"],
    "nearest": al.nearest(ROWS, count=2),
    "clusters": al.cluster(ROWS),
    "outliers": al.outliers(ROWS),
    "drift": al.drift(ROWS, LATER),
    "compare": al.compare(ROWS),
    "compare counts": al.compare(ROWS, LATER, about="counts", top=5),
    "nearest by counts": al.nearest(ROWS, about="counts"),
    "outliers by counts": al.outliers(ROWS, about="counts"),
    "explain": al.explain(VOTES, "ward 1", "ward 2"),
    "items": al.explain(VOTES, "ward 1", items=["A0", "S0"]),
    "plan": al.plan(500, epsilon=1, distance=40, seed="x"),
    "protocol": PROTOCOL,
}
WITH_LABELS = [name for name in RESULTS if name not in ("plan", "protocol", "part", "explain", "items")]


@pytest.mark.parametrize("name", RESULTS)
def test_pickling_keeps_all_numbers(name):
    result = RESULTS[name]
    again = pickle.loads(pickle.dumps(result))  # noqa: S301  # our own bytes
    assert type(again) is type(result)
    assert again.to_arrow().equals(result.to_arrow(), check_metadata=True)
    assert repr(again) == repr(result)
    assert str(again) == str(result)


@pytest.mark.parametrize("name", RESULTS)
def test_the_text_and_the_html_have_the_numbers(name):
    result = RESULTS[name]
    table = result.to_arrow()
    text, page = repr(result), result._repr_html_()
    for column in ("value", "lower", "similarity", "distance", "relative_error"):
        if column in table.column_names and name not in ("protocol", "explain"):  # which has points
            for number in table[column].to_pylist()[:5]:
                assert f"{number:.6g}" in text
                assert f">{number:.6g}<" in page
    if name == "protocol":
        assert all(f">{number}<" in page for number in ("0.25", "0.666667"))


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.912, 0.884, 0.941), "0.91 (0.88 to 0.94)"),
        ((0.99876, 0.9981, 1.0), "0.999 (0.998 to 1)"),
        ((0.25, -0.220019, 0.58), "0.25 (-0.22 to 0.58)"),  # of counts that may be below 0
        ((0.25, -1.0, 0.58), "0.25 (-1 to 0.58)"),
        ((0.5, 0.0, 0.58), "0.50 (0 to 0.58)"),
    ],
)
def test_a_similarity_has_as_many_digits_as_its_interval_supports(ends, text):
    assert similarity_text(*ends) == text


def test_long_results_print_their_first_lines_and_how_many_more_there_are():
    assert "and 425 more rows" in repr(al.distances(release(30)))
    assert "and 425 more rows" in al.distances(release(30))._repr_html_()


@pytest.mark.parametrize("name", WITH_LABELS)
def test_labels_cannot_become_markup(name):
    page = RESULTS[name]._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_note_cannot_become_markup_and_is_there():
    clear = al.sketch_in_clear(PROTOCOL, np.ones((2, 60)), labels=["a<b", "c"])
    estimate = al.distances(clear)
    assert "not private" in repr(estimate)
    assert "in_clear" in repr(estimate)
    assert "a&lt;b" in estimate._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_tables_have_plain_types(name):
    table = RESULTS[name].to_arrow()
    assert table.num_rows > 0
    for field in table.schema:
        assert field.type in (pa.string(), pa.float64(), pa.int64(), pa.bool_()), field
    types = {
        **dict.fromkeys(("label", "left", "right", "query", "verdict", "field"), pa.string()),
        **dict.fromkeys(("value", "lower", "upper", "similarity", "distance"), pa.float64()),
        **dict.fromkeys(("resolved", "in_clear", "possible", "outlier", "apart"), pa.bool_()),
        **dict.fromkeys(("group", "rank"), pa.int64()),
    }
    for column in set(table.column_names) & set(types) - {"value" if name == "protocol" else ""}:
        assert table.schema.field(column).type == types[column], column


@pytest.mark.parametrize("name", RESULTS)
def test_data_frames_have_the_same_lines_and_the_description(name):
    result = RESULTS[name]
    table, frame = result.to_arrow(), result.to_pandas()
    assert list(frame.columns) == table.column_names
    assert frame.equals(table.to_pandas())
    described = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    assert frame.attrs == described


_WITHOUT_PANDAS = """
import sys
import armslength as al


class NoPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NoPandas())
protocol = al.Protocol(al.Identity(input_dim=3), epsilon=1)
sketches = al.release(protocol, [[1, 2, 3], [4, 5, 6], [7, 8, 9]], ledger=al.NO_LEDGER)
for result in (protocol, sketches, al.distances(sketches), al.outliers(sketches)):
    try:
        result.to_pandas()
    except ImportError as error:
        print(error)
"""


def test_without_pandas_the_extra_is_named():
    printed = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PANDAS], capture_output=True, text=True, check=True
    ).stdout
    assert printed.count('pip install "armslength[pandas]"') == 4


def test_large_estimates_print_without_all_intervals(monkeypatch):
    estimate = al.distances(release(400))
    asked = []
    monkeypatch.setattr(al.Estimate, "interval", lambda *_, **__: asked.append(1))
    text = repr(estimate)
    assert not asked
    assert f"{estimate.value[0, 1]:.6g}" in text
    assert f"{400 * 399 // 2 - 10:,} more rows" in text


def test_shapes_without_an_interval_still_print():
    # Totals of 8 with noise of scale 2: above 0 as released, but not surely.
    few = 8 * np.eye(3, 60)
    sketches = al.release(PROTOCOL, few, labels=list("abc"), ledger=al.NO_LEDGER)
    while not (sketches.totals > 0).all():
        sketches = al.release(PROTOCOL, few, labels=list("abc"), ledger=al.NO_LEDGER)
    estimate = al.distances(sketches, about="people")
    assert np.isinf(estimate.interval(0.99999)[1][0, 1])
    assert f"{estimate.value[0, 1]:.6g}" in repr(estimate)


def test_one_pair_is_a_number():
    estimate = al.distances(ROWS)
    assert float(estimate["clinic 1", "clinic 2"]) == estimate.value[1, 2]
    assert float(al.distances(ROWS[1], ROWS[2])) == pytest.approx(estimate.value[1, 2])
    assert float(al.distances(ROWS[1:3])) == pytest.approx(estimate.value[1, 2])
    assert float(al.totals(ROWS[2])) == al.totals(ROWS).value[2]
    assert math.isclose(float(al.distances(ROWS)["clinic 2", "clinic 1"]), estimate.value[1, 2])


@pytest.mark.parametrize(
    ("estimate", "count"),
    [(al.distances(ROWS), 6), (al.distances(ROWS[0]), 0), (al.totals(ROWS), 4), (RESULTS["between"], 16)],
)
def test_several_values_are_no_number(estimate, count):
    with pytest.raises(al.ParameterError, match=f"estimate of {count} values to float"):
        float(estimate)


def test_parts_of_an_estimate_are_those_of_its_rows():
    estimate = al.squared_distances(ROWS)
    lower, upper = estimate.interval()
    among = estimate[["clinic 3", "clinic 1"]]
    assert among.within
    assert among.labels == (("clinic 3", "clinic 1"),) * 2
    assert (among.value == estimate.value[np.ix_([3, 1], [3, 1])]).all()
    others = estimate["clinic 2"]
    assert others.labels == (("clinic 2",), (HOSTILE, "clinic 1", "clinic 3"))
    assert not others.within
    for end, whole in zip(others.interval(), (lower, upper), strict=True):
        assert (end[0] == whole[2, [0, 1, 3]]).all()
    assert (others.variance[0] == estimate.variance[2, [0, 1, 3]]).all()
    crossed = estimate[["clinic 1"], [HOSTILE, "clinic 2"]]
    assert crossed.value.shape == (1, 2)
    assert crossed.pairs == 2
    between = RESULTS["between"]["clinic 1"]
    assert (between.value[0] == RESULTS["between"].value[1]).all()
    total = al.totals(ROWS)[["clinic 2", "clinic 1"]]
    assert (total.value == al.totals(ROWS).value[[2, 1]]).all()


def test_simultaneous_parts_count_their_own_pairs():
    estimate = al.squared_distances(ROWS)
    (lower, _), (some, _) = estimate.interval(1 - 0.05 / 3), estimate["clinic 2"].interval(simultaneous=True)
    np.testing.assert_allclose(some[0], lower[2, [0, 1, 3]])


@pytest.mark.parametrize(
    "chosen", ["nobody", ["clinic 1", "nobody"], 3, ("clinic 1", "clinic 2", "clinic 3")]
)
def test_what_is_no_label_is_refused(chosen):
    with pytest.raises(al.ArmslengthError, match="label"):
        RESULTS["distances"][chosen]


def test_a_label_of_two_rows_is_refused():
    twice = al.distances(al.concat([ROWS, LATER]))
    with pytest.raises(al.ParameterError, match="2 rows are labelled"):
        twice["clinic 1"]


@pytest.mark.parametrize("name", RESULTS)
def test_verdicts_are_three_words_and_answers_say_their_question_and_level(name):
    result = RESULTS[name]
    table = result.to_arrow()
    if "verdict" in table.column_names:
        words = MORE_OR_FEWER if name in ("explain", "items") else VERDICTS
        assert set(table["verdict"].to_pylist()) <= set(words)
    if isinstance(result, Answer):
        metadata = table.schema.metadata
        assert metadata[b"about"].decode() == result.about
        assert float(metadata[b"level"]) == result.level == 0.95
        assert metadata[b"note"].decode() == result.note


def test_errors_of_a_comparison_are_ours_and_come_when_it_is_read(monkeypatch):
    comparison = al.compare(ROWS)
    monkeypatch.setattr(al.Estimate, "clear_lines", _failing)
    for read in (comparison.to_arrow, lambda: list(comparison), lambda: repr(comparison)):
        with pytest.raises(al.ParameterError, match="while reading"):
            read()


def _failing(*_, **__):
    raise al.ParameterError("while reading")


def test_results_do_not_import_an_extra(monkeypatch):
    real = builtins.__import__

    def no_extras(name, *arguments, **named):
        assert name.split(".")[0] not in ("matplotlib", "pandas"), name
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", no_extras)
    for result in RESULTS.values():
        assert repr(result)
        assert result._repr_html_()
