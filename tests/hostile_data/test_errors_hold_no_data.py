"""No message, warning, log line or output shows a value of the data, whatever the data is.

Canaries are planted in every kind of input, the inputs are wrong in every way that we can think of, and all that is shown is searched for any
piece of them. A refusal of the private path that none of them reaches is listed with its reason.
"""

import gc
import subprocess
import sys

import pyarrow as pa
import pytest

import armslength as al
from armslength.sklearn import SparseJLTransformer
from hostile_data.calls import FIXED, STRINGS, of_matrices, of_sizes, of_streams, of_tables, table
from hostile_data.canaries import BYTES, DAY, HUGE, INTEGER, NOT_WHOLE, REAL, TEXT, traces
from hostile_data.error_sites import SOURCE, sites
from hostile_data.outcomes import outcome

PRIVATE_PATH = ("ingest/", "transforms/integer_rows.py", "randomness/hashing.py", "sklearn.py")
UNREACHED = {
    "cannot connect to the … server: are the host and the port right, and does it run?": "it shows names of the schema at most: tests/unit/ingest has it",
    "cannot open source: is it spelled right, and may you read it?": "it shows names of the schema at most: tests/unit/ingest has it",
    "cannot read source: a file that it reads is not there": "it shows names of the schema at most: tests/unit/ingest has it",
    "column … must have one type, got several; cast it: table[…].astype('string')": "it shows names of the schema at most: tests/unit/ingest has it",
    "the query names a column that is not there": "it shows names of the schema at most: tests/unit/ingest has it",
    "the … database has no table of this name; its tables are …": "it shows names of the schema at most: tests/unit/ingest has it",
    "the … server refused the login: are the user, the password and the name of the database right?": "asks for a server",
    "the temporary folder must have room for a copy of the events, got: …; set TMPDIR to another": "asks for a full disk",
    "… must have records of at most … bytes, got a longer one": "asks for a large file: tests/property has it",
    "… must not change while it is read, got another header": "asks for a second writer",
    "… must be a column of text or numbers, of decimals those of at most … digits without a negative scale, got others; cast it first": "asks for such decimals: tests/unit/ingest has it",
    "the index of X must name each row once, got duplicates or missing names; pass labels, or X.reset_index(drop=True)": "it shows nothing: tests/unit/ingest has it",
    "cannot open the …:// address: is it spelled right, and are there a network and credentials?": "asks for a network: tests/unit/ingest has a store",
    "cannot read source: it holds text that is no UTF-8": "asks for damage inside Parquet: tests/unit/ingest has it",
    "cannot read …: it is damaged": "asks for a file that changes after it was opened: tests/faults has it",
    "cannot read the standard input: this process has none": "asks for a process without one: tests/unit/ingest has it",
    "cannot read …: counted in two ways, its records are not as many": "asks for a fault of ours: tests/property has it",
}


@pytest.fixture(scope="module")
def made():
    """Every InputError with the file and the line that made it."""
    return []


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, made):
    make = al.InputError.__init__

    def noted(error, *arguments):
        caller = sys._getframe(1)
        made.append((error, caller.f_code.co_filename, caller.f_lineno))
        make(error, *arguments)

    folder = tmp_path_factory.mktemp("events")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(al.InputError, "__init__", noted)
        return [*of_matrices(), *of_streams(), *of_sizes(), *of_tables(folder)]


def test_nothing_of_the_data_is_shown(outcomes):
    shown = {each.name: each.printed for each in outcomes if traces(each.printed)}
    assert shown == {}


def test_every_refusal_is_an_error_of_ours(outcomes):
    others = {each.name: repr(each.error) for each in outcomes if not each.is_ours}
    # scikit-learn's own words, which its checks ask for
    assert {name for name in others if "transformer: " not in name} == set()
    assert all(error.startswith(("ValueError(", "TypeError(")) for error in others.values())


@pytest.mark.usefixtures("outcomes")
def test_every_refusal_of_data_is_reached_or_has_a_reason(made):
    raised = {(file, line) for error, file, line in made if error.__traceback__ is not None}
    unreached = [
        site.text
        for site in sites(PRIVATE_PATH)
        if site.error == "InputError"
        and not any((str(SOURCE / site.module), line) in raised for line in site.lines)
    ]
    assert sorted(unreached) == sorted(UNREACHED)


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
        ("ingest.arrays.type_name", str, lambda: FIXED.release(_STRUCTS, ledger=al.NO_LEDGER)),
        (
            "ingest.grid._off_grid",
            lambda: al.InputError(f"got {REAL}"),
            lambda: FIXED.release([[REAL] * 3], ledger=al.NO_LEDGER),
        ),
        ("ingest.batches.type_name", str, lambda: table(STRINGS, _STRUCTS)),
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
