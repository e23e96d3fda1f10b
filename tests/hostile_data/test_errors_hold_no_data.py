"""No message, warning, log line or output shows a value of the data, whatever the data is.

Canaries are planted in every kind of input, the inputs are wrong in every way that we can think of, and all that is shown is searched for any
piece of them.
"""

import gc
import subprocess
import sys

import pyarrow as pa
import pytest

import armslength as al
from armslength.sklearn import SparseJLTransformer
from hostile_data.calls import (
    EVENT_PROTOCOLS,
    FIXED,
    MARGINS,
    RECORD,
    STRINGS,
    check,
    of_matrices,
    of_sizes,
    of_streams,
    of_tables,
    table,
)
from hostile_data.canaries import BYTES, DAY, HUGE, INTEGER, NOT_WHOLE, REAL, TEXT, traces
from hostile_data.outcomes import outcome


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    return [*of_matrices(), *of_streams(), *of_sizes(), *of_tables(folder)]


def test_nothing_of_the_data_is_shown(outcomes):
    shown = {each.name: each.printed for each in outcomes if traces(each.printed)}
    assert shown == {}


def test_every_refusal_is_an_error_of_ours(outcomes):
    others = {each.name: repr(each.error) for each in outcomes if not each.is_ours}
    # scikit-learn's own words, which its checks ask for
    assert {name for name in others if "transformer: " not in name} == set()
    assert all(error.startswith(("ValueError(", "TypeError(")) for error in others.values())


@pytest.mark.parametrize("call", ["table", "check"])
@pytest.mark.parametrize("name", EVENT_PROTOCOLS)
def test_every_kind_of_table_is_also_read(name, call, outcomes):
    of_kind = [each for each in outcomes if each.name.startswith(f"{call} of {name}: ")]
    assert any(each.error is None for each in of_kind)
    assert any(each.error is not None for each in of_kind)


_STRUCTS = pa.table({name: [{TEXT: INTEGER}] for name in ("who", "what", "where", "much")})
_SPELLINGS = [
    *(TEXT, repr(TEXT), ascii(TEXT), TEXT.upper(), TEXT[3:9], TEXT.encode().hex(), repr(TEXT.encode())),
    *(
        str(INTEGER),
        f"{INTEGER:,}",
        f"{INTEGER:_}",
        f"{INTEGER:.6e}",
        hex(INTEGER),
        f"{INTEGER}.0",
        str(INTEGER)[:6],
    ),
    *(str(REAL), f"{REAL:.5e}", f"{REAL:g}", repr(NOT_WHOLE), str(DAY), repr(BYTES), str(HUGE)[:20]),
]


@pytest.mark.parametrize("spelled", _SPELLINGS)
def test_the_search_finds_a_canary(spelled):
    assert traces(f"X must hold numbers, got {spelled}; convert it")


@pytest.mark.parametrize(
    ("place", "leaky", "call"),
    [
        ("ingest.arrays.type_name", str, lambda: al.release(FIXED, _STRUCTS, ledger=al.NO_LEDGER)),
        (
            "ingest.grid._off_grid",
            lambda: al.InputError(f"got {REAL}"),
            lambda: al.release(FIXED, [[REAL] * 3], ledger=al.NO_LEDGER),
        ),
        *(
            ("ingest.batches.type_name", str, lambda c=call, p=protocol: c(p, _STRUCTS))
            for call in (table, check)
            for protocol in (STRINGS, MARGINS, RECORD)
        ),
        ("ingest.relations._letters", lambda _: "", lambda: table(STRINGS, pa.table({TEXT: ["a"]}))),
        ("sklearn._HARMLESS", "", lambda: SparseJLTransformer(2).fit([[TEXT]])),
    ],
)
def test_a_message_that_shows_the_data_is_found(place, leaky, call, monkeypatch):
    assert not traces(outcome("as it is", call).printed)
    monkeypatch.setattr(f"armslength.{place}", leaky)
    assert traces(outcome("leaky", call).printed)


def _chained(kind, *, hidden):
    try:
        {}[TEXT]
    except KeyError:
        if hidden:
            raise kind("X must be there, got nothing") from None
        raise kind("X must be there, got nothing")  # noqa: B904  # the leak to be found


@pytest.mark.parametrize("hidden", [True, False])
def test_an_error_of_ours_has_no_context(hidden):
    shown = outcome("ours", lambda: _chained(al.InputError, hidden=hidden))
    assert not traces(shown.printed)
    assert shown.error.__context__ is None
    assert not any(isinstance(each, KeyError) for each in gc.get_referents(shown.error))
    # the context of another error is seen, whether or not a traceback would show it
    assert traces(outcome("another", lambda: _chained(ValueError, hidden=hidden)).printed)


def test_the_interpreter_shows_no_context_either():
    script = "import armslength as al\ntry:\n    int('CANARY')\nexcept ValueError:\n    raise al.InputError('X must be there, got nothing')"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "X must be there" in ended.stderr
    assert "CANARY" not in ended.stderr.split("Error")[0]
    assert "invalid literal" not in ended.stderr
