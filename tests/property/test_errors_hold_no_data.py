"""Whatever nonsense is made of the canaries, nothing of it is shown."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength import sklearn as transformers
from hostile_data.calls import FIXED, MARGINS, NUMBERS, RECORD, STRINGS, VOTES, check, table
from hostile_data.canaries import BYTES, DAY, HUGE, INTEGER, NOT_WHOLE, OTHER_TEXT, REAL, TEXT, traces
from hostile_data.outcomes import outcome

VALUES = st.sampled_from(
    [TEXT, OTHER_TEXT, INTEGER, -INTEGER, REAL, NOT_WHOLE, DAY, HUGE, BYTES, f"\ud800{TEXT}", f"{TEXT}\u0378"]
)
ODD = st.sampled_from([None, True, float("nan"), float("inf"), 0, "", 1 << 63, complex(REAL, 1)])
CELLS = st.recursive(
    VALUES | ODD,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([TEXT, "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
ROWS = st.lists(st.lists(CELLS, min_size=3, max_size=3) | CELLS, max_size=3)


def _arrow(columns):
    try:
        return pa.table({name: pa.array(values) for name, values in columns.items()})
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError):
        return None  # Arrow holds no such column


def _frame(columns):
    try:
        return pd.DataFrame(columns)
    except (ValueError, OverflowError):
        return None  # columns of different lengths


def shows_nothing(call, *, ours=True):
    seen = outcome("", call)
    assert not traces(seen.printed), seen.printed
    assert seen.is_ours or not ours, repr(seen.error)


@settings(max_examples=100)
@given(ROWS)
def test_matrices(rows):
    shows_nothing(lambda: al.release(FIXED, rows, ledger=al.NO_LEDGER))
    shows_nothing(lambda: al.sketch_in_clear(FIXED, rows))
    shows_nothing(lambda: FIXED.transform.apply(rows))
    shows_nothing(lambda: transformers.SparseJLTransformer(2).fit_transform(rows), ours=False)


@settings(max_examples=100)
@given(st.fixed_dictionaries({name: st.lists(CELLS, min_size=2, max_size=2) for name in "abc"}))
def test_tables_of_numbers(columns):
    for made in (_arrow(columns), _frame(columns)):
        if made is not None:
            shows_nothing(lambda made=made: al.release(FIXED, made, ledger=al.NO_LEDGER))
            shows_nothing(lambda made=made: al.release(STRINGS, made, ledger=al.NO_LEDGER))
            shows_nothing(lambda made=made: al.release(VOTES, made, ledger=al.NO_LEDGER))


@settings(max_examples=100)
@given(CELLS | st.lists(CELLS, max_size=3), CELLS | st.lists(CELLS, max_size=3))
def test_updates(items, amounts):
    for protocol in (STRINGS, NUMBERS, FIXED):
        stream = al.stream(protocol, label="north", ledger=al.NO_LEDGER)
        shows_nothing(lambda stream=stream: stream.update(items, amounts))


@settings(max_examples=20)
@given(
    st.fixed_dictionaries(
        {name: st.lists(CELLS, min_size=2, max_size=2) for name in ("who", "what", "where", "much")}
    )
)
@pytest.mark.parametrize("made", [_arrow, _frame])
def test_events(made, columns):
    source = made(columns)
    if source is not None:
        for protocol in (STRINGS, MARGINS, RECORD):
            shows_nothing(lambda protocol=protocol: table(protocol, source))
            shows_nothing(lambda protocol=protocol: check(protocol, source))
