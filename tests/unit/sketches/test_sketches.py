"""Sketches: they combine like the data they stand for, and keep track of their noises."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import armslength as al
from armslength.ingest.arrays import projected_sums

TRANSFORM = al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1)
X = np.arange(18).reshape(3, 6)


@pytest.fixture
def sketches():
    return al.release(PROTOCOL, X, ledger=al.NO_LEDGER, labels=["a", "b", "c"])


def coefficients(sketch):
    noises = sketch.noises
    ids, factors = noises.ids.tolist(), noises.coefficients.tolist()
    return [dict(zip(ids[i:j], factors[i:j], strict=True)) for i, j in pairwise(noises.starts.tolist())]


def test_rows_by_number_slice_list_and_label(sketches):
    assert sketches["b"].labels == ("b",)
    assert sketches[1:].labels == ("b", "c")
    assert sketches[-1].labels == ("c",)
    assert sketches[[2, 0]].labels == ("c", "a")
    assert sketches[np.array([True, False, True])].labels == ("a", "c")
    assert [row.labels for row in sketches] == [("a",), ("b",), ("c",)]
    assert np.array_equal(sketches[1].values, sketches.values[1:2])
    assert sketches[1].noises == sketches.noises.take([1])
    for bad in (3, -4, "d", ["a", "d"], ["a", 1], None, 1.5, [5], [[0]], True, {}):
        with pytest.raises((al.ParameterError, KeyError)):
            sketches[bad]


def test_rows_by_several_labels(sketches):
    for labels in (["c", "a"], ("c", "a"), np.array(["c", "a"]), pd.Index(["c", "a"])):
        assert sketches[labels].equals(sketches[[2, 0]])
    assert sketches[[]].labels == ()


def test_a_label_of_several_rows_is_refused(sketches):
    twice = al.concat([sketches, sketches["b"]])
    for chosen in ("b", ["a", "b"]):
        with pytest.raises(al.ParameterError, match="2 rows are labelled"):
            twice[chosen]
    assert twice["a"].equals(sketches["a"])


def test_sum_of_rows(sketches):
    assert sum(sketches).equals(sketches["a"] + sketches["b"] + sketches["c"])
    assert sum([sketches["a"]]).equals(sketches["a"])
    for bad in (1, 0.5, False):
        with pytest.raises(TypeError):
            bad + sketches


def test_numbers_of_numpy_give_sketches(sketches):
    for factor in (np.int64(2), np.int8(2), np.float64(0.5), np.float32(0.5)):
        for product in (factor * sketches, sketches * factor):
            assert isinstance(product, al.Sketches)
            assert product.equals(sketches * factor.item())
    assert (sketches / np.float64(2)).equals(sketches / 2)
    for bad in (np.array([1, 2, 3]), np.array(2)):
        with pytest.raises(al.ParameterError, match="factor of sketches"):
            bad * sketches


def test_as_an_array_they_are_their_values(sketches):
    assert np.array_equal(np.asarray(sketches), sketches.values)
    assert np.asarray(sketches, dtype=float).dtype == np.float64
    distances = al.distances(sketches)
    assert np.array_equal(np.asarray(distances), distances.value)
    assert sketches.labels[0] in sketches
    assert "nobody" not in sketches
    with pytest.raises(al.ParameterError, match="list"):
        sketches[sketches.labels[0] :]
    changed = np.array(sketches)
    changed[0, 0] += 1
    assert changed[0, 0] != sketches.values[0, 0]


WITH_TOTALS = al.Protocol(TRANSFORM, al.Arrays(total_share="0.25"), epsilon="0.5")


def test_repr_has_the_numbers_and_html_is_escaped():
    labels = ["<script>", *map(str, range(11))]
    sketches = al.release(WITH_TOTALS, np.zeros((12, 6), int), ledger=al.NO_LEDGER, labels=labels)
    text, page = repr(sketches), sketches._repr_html_()
    for shown in ("12 rows", "8 coordinates", "0.5", str(sketches.totals[0]), str(sketches.values[0, 0])):
        assert shown in text
        assert shown in page
    assert "<script>" in text
    assert "<script>" not in page
    assert "2 more rows" in text
    assert "IN CLEAR" in repr(al.sketch_in_clear(PROTOCOL, X))
    assert repr(sketches[[]])


def test_tables_of_arrow_and_pandas(sketches):
    table = sketches.to_arrow()
    assert table.column_names == ["label", "values", "in_clear"]
    assert table["label"].to_pylist() == ["a", "b", "c"]
    assert table["values"].to_pylist() == sketches.values.tolist()
    totals = al.release(WITH_TOTALS, X, ledger=al.NO_LEDGER)
    frame = totals.to_pandas()
    assert frame["total"].tolist() == totals.totals.tolist()
    assert not frame["in_clear"].any()


def test_sketches_are_the_same_after_pickling(sketches):
    clear = al.sketch_in_clear(PROTOCOL, X)
    totals = al.release(WITH_TOTALS, X, ledger=al.NO_LEDGER)
    for each in (sketches, sketches - 0.5 * sketches["a"], clear, totals, sketches[[]]):
        again = pickle.loads(pickle.dumps(each))  # noqa: S301  # our own
        assert again.equals(each)
        assert again.releases == each.releases
        assert not again.values.flags.writeable


def test_sums_differences_and_multiples(sketches):
    a, b = sketches["a"], sketches["b"]
    total = a + b
    assert np.array_equal(total.values, a.values + b.values)
    assert total.labels == ("a + b",)
    assert coefficients(total)[0] == {**coefficients(a)[0], **coefficients(b)[0]}
    assert set(coefficients(a - b)[0].values()) == {1.0, -1.0}
    assert np.array_equal((2 * a).values, 2 * a.values)
    assert (2 * a).values.dtype == np.int64
    assert (a * 0.5).values.dtype == np.float64
    assert coefficients(a / 4)[0] == dict.fromkeys(coefficients(a)[0], 0.25)
    assert np.array_equal((-a).values, -a.values)


def test_shared_noise_is_merged(sketches):
    a, b, c = sketches
    ab_minus_bc = (a + b) - (b + c)
    assert np.array_equal(ab_minus_bc.values, (a - c).values)
    assert coefficients(ab_minus_bc) == coefficients(a - c)
    assert coefficients(a - a) == [{}]
    assert coefficients(a + a) == coefficients(2 * a)
    # 0.1 + 0.2 − 0.3 leaves 5e-17, which is rounding and no noise
    assert set(coefficients((a * 0.1 + a * 0.2 + b) - (a * 0.3 + c))[0].values()) == {1.0, -1.0}


def test_small_multiples_keep_their_noise(sketches):
    a, b, _ = sketches
    small = a * 2.0**-50
    assert coefficients(small)[0] == dict.fromkeys(coefficients(a)[0], 2.0**-50)
    # Beside a large row, and in every order: only what cancels is rounding.
    for total in (small + b * 1000, b * 1000 + small):
        assert coefficients(total)[0] == {**coefficients(small)[0], **dict.fromkeys(coefficients(b)[0], 1000)}
    assert coefficients(small - small) == [{}]
    assert coefficients(small - a * 2.0**-51) == coefficients(a * 2.0**-51)
    assert coefficients(a * 0) == [{}]
    one_part = coefficients(a * (1 + 1e-10) - a)[0]
    assert list(one_part.values()) == pytest.approx([1e-10], rel=1e-5)


def test_small_multiples_have_the_distances_of_small_data(sketches):
    whole, small = (al.squared_distances(each) for each in (sketches, sketches * 2.0**-50))
    assert np.allclose(small.value * 2.0**100, whole.value, rtol=1e-9)
    assert np.allclose(small.std_error * 2.0**100, whole.std_error, rtol=1e-9)


def test_one_row_combines_with_every_row(sketches):
    drift = sketches - sketches["a"]
    assert np.array_equal(drift.values, sketches.values - sketches.values[0])
    assert coefficients(drift)[0] == {}
    with pytest.raises(al.ParameterError, match="as many rows"):
        sketches + sketches[:2]


def test_concat_joins_rows_of_different_protocols(sketches):
    other = al.release(
        al.Protocol(TRANSFORM, epsilon=2, delta=1e-6, noise="gaussian"), X, ledger=al.NO_LEDGER
    )
    joined = al.concat([sketches, other])
    assert len(joined) == 6
    assert len(joined.protocols) == 2
    with pytest.raises(al.ParameterError, match="2 protocols"):
        joined.protocol  # noqa: B018  # the access is the test
    for bad in ([], [1], "abc"):
        with pytest.raises(al.ParameterError):
            al.concat(bad)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (
            al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="y"), epsilon=1),
            "seed",
        ),
        (
            al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=4, seed="x"), epsilon=1),
            "sparsity",
        ),
        (al.Protocol(al.SignJL(input_dim=6, sketch_dim=8, seed="x"), epsilon=1), "transform"),
        (al.Protocol(TRANSFORM, al.Arrays(resolution=0.5), epsilon=1), "resolution"),
    ],
)
def test_sketches_of_other_spaces_do_not_meet(sketches, other, names):
    stranger = al.release(other, X, ledger=al.NO_LEDGER)
    for meet in (
        lambda: sketches + stranger,
        lambda: al.concat([sketches, stranger]),
        lambda: al.squared_distances(sketches, stranger),
        lambda: al.distances(sketches, stranger),
    ):
        with pytest.raises(al.IncompatibleSketchesError, match=names):
            meet()


def test_noise_on_the_input_does_not_mix_with_noise_on_the_output():
    transform = al.FastJL(input_dim=6, sketch_dim=4, seed="x")
    inside = al.release(
        al.Protocol(transform, epsilon=1, delta=1e-6, noise_site="input"), X, ledger=al.NO_LEDGER
    )
    outside = al.release(al.Protocol(transform, epsilon=1, delta=1e-6), X, ledger=al.NO_LEDGER)
    with pytest.raises(al.IncompatibleSketchesError, match="noise_site"):
        al.squared_distances(inside, outside)


def test_rows_without_noise_have_no_settings_that_could_differ(sketches):
    clear = al.sketch_in_clear(sketches.protocol, X)
    assert clear.misfits == al.concat([clear, sketches]).misfits == []


def test_released_values_cannot_be_written_to(sketches):
    with pytest.raises(ValueError, match="read-only"):
        sketches.values[0, 0] = 1


def test_what_is_no_number_or_sketch_is_refused(sketches):
    for bad in ("2", None, np.nan, True, 1j, 1e300, 1e-300):
        with pytest.raises(al.ParameterError, match="factor of sketches"):
            sketches * bad
    for bad in (0, 1e-300, "2"):
        with pytest.raises(al.ParameterError, match="divisor of sketches"):
            sketches / bad
    with pytest.raises(TypeError, match="combine with sketches"):
        sketches + 1


def test_stream_and_batch_are_the_same_integers_under_the_noise(monkeypatch):
    monkeypatch.setattr("armslength.releasing.release.add_noise", lambda *_, **__: None)
    stream = al.stream(PROTOCOL, label="s", ledger=al.NO_LEDGER)
    stream.update(0)
    stream.update(3, 5)
    stream.update([1, 1, 5], [2, -7, 10])
    stream.update(np.array([2, 2], dtype=np.int32))
    stream.update([], [])
    batch = projected_sums(PROTOCOL, [[1, -5, 2, 5, 0, 10]], None, 1).values
    assert np.array_equal(stream.release().values, batch)


def test_streams_of_open_vocabularies(monkeypatch):
    monkeypatch.setattr("armslength.releasing.release.add_noise", lambda *_, **__: None)
    protocol = al.Protocol(al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
    stream = al.stream(protocol, label="s", ledger=al.NO_LEDGER)
    stream.update("flu")
    stream.update(["flu", "cold", "flu"], [1, -2, 3])
    assert np.array_equal(
        stream.release().values, projected_sums(protocol, [[5, -2]], ["flu", "cold"], 1).values
    )
    other = al.stream(protocol, label="t", ledger=al.NO_LEDGER)
    for bad in ([1], [None], 3.5, [["a"]]):
        with pytest.raises(al.InputError):
            other.update(bad)


def test_the_space_of_sketches_is_that_of_their_protocol(sketches):
    assert sketches.space == PROTOCOL.space
