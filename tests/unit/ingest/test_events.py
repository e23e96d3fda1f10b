"""Events become the same integers, however they come: lists, arrays, Arrow columns of every kind, in any number."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.ingest import events
from armslength.ingest.events import event_sums

STRINGS = al.Protocol(al.SparseJL(sketch_dim=16, sparsity=2, seed="x"), epsilon=1)
NUMBERS = al.Protocol(al.SparseJL(sketch_dim=16, sparsity=2, seed="x"), epsilon=1, items="int64")
FIXED = al.Protocol(al.SparseJL(input_dim=50, sketch_dim=16, sparsity=2, seed="x"), epsilon=1)
NAMES = ["flu", "cold", "flu", "", "Ä", "cold", "flu"]
AMOUNTS = [1, -2, 3, 2**62, -1, 5, 2**62]


def naive(protocol, items, amounts):
    """Event by event, in Python integers modulo 2^64."""
    total = np.zeros(protocol.transform.sketch_dim, dtype=object)
    for item, amount in zip(items, amounts, strict=True):
        total += int(amount) * protocol.transform.columns([item]).toarray()[:, 0].astype(object)
    return np.array([(int(v) + 2**63) % 2**64 - 2**63 for v in total], dtype=np.int64)


def chunked(values, kind):
    return pa.chunked_array([pa.array(values[:2], kind), pa.array([], kind), pa.array(values[2:], kind)])


def wild_dictionary(index):
    return pa.DictionaryArray.from_arrays(pa.array([index, 0]), pa.array(["a"]), safe=False)


FORMS = {
    "list": list,
    "array": np.array,
    "object array": lambda items: np.array(items, dtype=object),
    "arrow": pa.array,
    "arrow large": lambda items: pa.array(items, pa.large_string()),
    "arrow view": lambda items: pa.array(items, pa.string_view()),
    "arrow chunks": lambda items: chunked(items, pa.string()),
    "arrow dictionary": lambda items: pa.array(items).dictionary_encode(),
    "arrow dictionary chunks": lambda items: chunked(items, pa.string()).dictionary_encode(),
    "arrow dictionaries of their own": lambda items: pa.chunked_array(
        [pa.array(items[:3]).dictionary_encode(), pa.array(items[3:]).dictionary_encode()]
    ),
    "arrow dictionary of views": lambda items: pa.array(items, pa.string_view()).dictionary_encode(),
    "arrow slice": lambda items: pa.array(["other", *items, "other"]).slice(1, len(items)),
    "polars": pl.Series,
    "polars categorical": lambda items: pl.Series(items, dtype=pl.Categorical),
    "pandas": pd.Series,
}


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("amounts", [1, -3, AMOUNTS], ids=["one", "minus three", "each"])
def test_strings_in_every_form(form, amounts):
    each = amounts if isinstance(amounts, list) else [amounts] * len(NAMES)
    found = event_sums(STRINGS, FORMS[form](NAMES), amounts).values[0]
    assert np.array_equal(found, naive(STRINGS, NAMES, each))


@pytest.mark.parametrize("protocol", [NUMBERS, FIXED], ids=["open", "fixed"])
@pytest.mark.parametrize(
    "form", [list, np.array, pa.array, lambda items: chunked(items, pa.int16()), pl.Series, pd.Series]
)
def test_numbers_in_every_form(protocol, form):
    items = [3, 49, 3, 0, 17, 49]
    found = event_sums(protocol, form(items), AMOUNTS[:6]).values[0]
    assert np.array_equal(found, naive(protocol, items, AMOUNTS[:6]))


@pytest.mark.parametrize("most_totals", [0, 10**6])
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_many_events_by_totals_and_one_by_one(monkeypatch, most_totals, at_once):
    monkeypatch.setattr(events, "_MOST_TOTALS", most_totals)
    monkeypatch.setattr(events, "_ENTRIES_AT_ONCE", at_once)
    monkeypatch.setattr(events, "_EVENTS_AT_ONCE", at_once)
    generator = np.random.default_rng(0)
    items, amounts = generator.integers(0, 50, 300), generator.integers(-(2**62), 2**62, 300)
    totals = np.zeros(50, dtype=np.int64)
    np.add.at(totals, items, amounts)
    for transform in (
        FIXED.transform,
        al.HadamardJL(input_dim=50, sketch_dim=16, seed="x"),
        al.Identity(input_dim=50),
        al.SignJL(input_dim=50, sketch_dim=16, seed="x"),
    ):
        found = event_sums(al.Protocol(transform, epsilon=1), items, amounts).values[0]
        assert np.array_equal(found, transform.apply(totals[None, :])[0])


def test_a_dictionary_is_not_unpacked():
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2200), pa.array(["x" * 10**6]))  # 2.2 GB of text
    found = event_sums(STRINGS, pa.chunked_array([column, column.slice(5, 3)]), 1).values[0]
    assert np.array_equal(found, naive(STRINGS, ["x" * 10**6], [2203]))


@given(st.lists(st.text(max_size=4).filter(lambda s: s.isascii()), max_size=40))
def test_an_arrow_column_is_its_list(names):
    found = event_sums(STRINGS, pa.array(names, pa.string()), 1).values[0]
    assert np.array_equal(found, event_sums(STRINGS, names, 1).values[0])


@pytest.mark.parametrize(
    ("protocol", "items", "says"),
    [
        (STRINGS, pa.array(["a", None]), "missing values"),
        (STRINGS, pa.array([1, 2]), "protocol's type string, got int64"),
        (NUMBERS, pa.array(["1"]), "protocol's type int64, got string"),
        (NUMBERS, pa.array([2**63], pa.uint64()), "must fit int64"),
        (STRINGS, wild_dictionary(2_000_000_000), "invalid"),
        (STRINGS, wild_dictionary(-1), "invalid"),
        (STRINGS, pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), "missing values"),
        (NUMBERS, [1, True], "protocol's type int64"),
        (FIXED, pa.array([1, None]), "missing values"),
        (FIXED, pa.array([1, 50]), "from 0 to 49"),
        (FIXED, pa.array([0.5]), "column numbers"),
    ],
)
def test_other_columns_are_refused_without_their_values(protocol, items, says):
    with pytest.raises(al.InputError, match=says):
        event_sums(protocol, items, 1)


def test_a_stream_takes_a_column(monkeypatch):
    monkeypatch.setattr("armslength.releasing.release.add_noise", lambda *_, **__: None)
    stream = al.stream(STRINGS, label="s", ledger=al.NO_LEDGER)
    stream.update(pa.array(NAMES), AMOUNTS)
    stream.update(pa.array([], pa.string()))
    assert np.array_equal(stream.release().values[0], naive(STRINGS, NAMES, AMOUNTS))
