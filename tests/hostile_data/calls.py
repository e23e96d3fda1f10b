"""Every public way in for private data, each with every hostile input."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import armslength as al
from armslength import sklearn as transformers
from armslength.ingest.check_table import check_table
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from flat_protocol import flat_protocol
from hostile_data.canaries import BYTES, DAY, HUGE, INTEGER, NOT_WHOLE, OTHER_TEXT, REAL, TEXT
from hostile_data.events import in_files, in_memory
from hostile_data.matrices import WIDTH, Failing, FailingList, FailingStream, broken_text, matrices
from hostile_data.outcomes import outcome

_PROJECTION = al.SparseJL(input_dim=WIDTH, sketch_dim=8, seed="public")
_OPEN = al.SparseJL(sketch_dim=8, seed="public")
_EVENTS = {"contribution": 4, "unit": "one person"}
_VOTES = {"contribution": "vote", "total_share": "0.1", "unit": "one person"}
_MARGINS = {"margin_share": "0.2", "margin_contribution": 1}
_ITEM_GROUPS = {"a": "A", "b": "B"}
FIXED = al.Protocol(_PROJECTION, epsilon=1)
STRINGS = flat_protocol(_OPEN, epsilon=1, **_EVENTS)
NUMBERS = flat_protocol(_OPEN, epsilon=1, items="int64", **_EVENTS)
VOTES = flat_protocol(_OPEN, epsilon=1, **_VOTES)
MARGINS = flat_protocol(_OPEN, epsilon=1, margins=_ITEM_GROUPS, **_VOTES, **_MARGINS)
RECORD = flat_protocol(
    _OPEN,
    epsilon=1,
    record={"what": ["a"], "much": [1, 2]},
    record_pairs=[("what", "much")],
    margins=["what", "much"],
    **_VOTES,
    **_MARGINS,
)
MATRIX_PROTOCOLS = {
    "plain": FIXED,
    "open": STRINGS,
    "on a coarse grid": al.Protocol(_PROJECTION, al.Arrays(resolution=4, radius=4), epsilon=1),
    "floored": al.Protocol(
        _PROJECTION, al.Arrays(resolution="0.5", on_grid=False, changed_entries=WIDTH), epsilon=1
    ),
    "in a range": al.Protocol(_PROJECTION, al.Arrays(value_range=(1, 10)), epsilon=1),
    "with totals": al.Protocol(
        al.HadamardJL(input_dim=WIDTH, sketch_dim=2, seed="public"), al.Arrays(total_share="0.5"), epsilon=1
    ),
    "of a vocabulary": al.Protocol(_PROJECTION, epsilon=1, vocabulary=["a", "b", "c"]),
    "noise on the input": al.Protocol(
        al.FastJL(input_dim=WIDTH, sketch_dim=8, seed="public"), epsilon=1, delta=1e-6, noise_site="input"
    ),
    "votes": flat_protocol(_PROJECTION, epsilon=1, **_VOTES),
}
AMOUNT_PROTOCOLS = {
    "strings": STRINGS,
    "numbers": NUMBERS,
    "by number": flat_protocol(_PROJECTION, epsilon=1, items="int64", **_EVENTS),
    "of a vocabulary": flat_protocol(_PROJECTION, epsilon=1, vocabulary=["a", "b", "c"], **_EVENTS),
    "on a coarse grid": flat_protocol(_OPEN, epsilon=1, resolution=4, **_EVENTS),
    "with totals": flat_protocol(_OPEN, epsilon=1, total_share="0.1", **_EVENTS),
}
VOTE_PROTOCOLS = {
    "votes": VOTES,
    "votes alone": al.Protocol(_OPEN, al.Votes(), epsilon=1, unit="one person"),
    "votes for numbers": flat_protocol(_OPEN, epsilon=1, items="int64", **_VOTES),
    "votes by number": flat_protocol(_PROJECTION, epsilon=1, items="int64", **_VOTES),
    "votes of a vocabulary": flat_protocol(_PROJECTION, epsilon=1, vocabulary=["a", "b", "c"], **_VOTES),
    "votes of a histogram": flat_protocol(
        al.Identity(input_dim=WIDTH), epsilon=1, vocabulary=["a", "b", "c"], **_VOTES
    ),
    "votes of a sample": flat_protocol(_OPEN, epsilon=1, spread_sample="0.5", **_VOTES),
    "votes with margins": MARGINS,
    "votes with margins by prefix": flat_protocol(
        _OPEN, epsilon=1, margins={"prefix": ["a"], "group": ["A"]}, **_VOTES, **_MARGINS
    ),
    "votes with margins of a vocabulary": flat_protocol(
        _PROJECTION, epsilon=1, vocabulary=["a", "b", "c"], margins=_ITEM_GROUPS, **_VOTES, **_MARGINS
    ),
    "records with margins": RECORD,
    **{
        f"records by {name}": flat_protocol(_OPEN, epsilon=1, record={"what": kind, "much": kind}, **_VOTES)
        for name, kind in {"edges": [1, 2], "month": "month", "category": "category", "list": ["a"]}.items()
    },
}
EVENT_PROTOCOLS = {**AMOUNT_PROTOCOLS, **VOTE_PROTOCOLS}
# These take all sources, the others what concerns their items, their records or their weights.
_CONCERNS = {"strings": "", "votes with margins": "", "on a coarse grid": "for much|grid"}


def of_matrices():
    """Releases, sketches in the clear, products and transformers."""
    for name, protocol in MATRIX_PROTOCOLS.items():
        for kind, X in matrices():
            yield outcome(
                f"release {name}: {kind}", lambda p=protocol, X=X: al.release(p, X, ledger=al.NO_LEDGER)
            )
    for kind, X in matrices():
        yield outcome(f"in the clear: {kind}", lambda X=X: al.sketch_in_clear(FIXED, X))
    for kind, X in matrices():
        yield outcome(f"apply: {kind}", lambda X=X: _PROJECTION.apply(X))
        yield outcome(f"columns: {kind}", lambda X=X: _PROJECTION.columns(X))
        yield outcome(f"norms: {kind}", lambda X=X: _PROJECTION.norm_variance(X))
    for kind, X in matrices():
        yield outcome(f"transformer: {kind}", lambda X=X: transformers.SparseJLTransformer(4).fit(X))
    fitted = transformers.SparseJLTransformer(4).fit(pd.DataFrame({name: [1.0] for name in "abc"}))
    for kind, X in matrices():
        if kind == "columns named by the data":
            continue  # scikit-learn shows names of features that it has not seen, and asks that transformers do
        yield outcome(f"fitted transformer: {kind}", lambda X=X: fitted.transform(X))


def of_sizes():
    """What is too large: places of a sparse matrix, and events for the memory given."""
    beyond = sparse.coo_array(([INTEGER], ([5], [6])), shape=(2**32, 2**32))
    yield outcome(
        "release of too many places", lambda: al.release(STRINGS, beyond, items=[TEXT], ledger=al.NO_LEDGER)
    )
    events = pa.table({"who": [TEXT], "what": [OTHER_TEXT], "where": ["a"], "much": [INTEGER]})
    many = pa.table(
        {
            "who": [TEXT, OTHER_TEXT] * 1000,
            "what": [f"{TEXT}{number}" for number in range(2000)],
            "where": ["a"] * 2000,
            "much": [INTEGER] * 2000,
        }
    )
    for name, protocol in {"amounts": STRINGS, "votes": MARGINS, "records": RECORD}.items():
        for kind, source, memory in (
            *(("one row", events, memory) for memory in ("1KB", "100KB", "2MB")),
            ("many rows", many, "100KB"),
        ):
            yield outcome(
                f"{kind} of {name} in {memory}",
                lambda p=protocol, s=source, m=memory: table(p, s, memory=m),
            )


def _items():
    def failing():
        yield TEXT
        raise ValueError(TEXT)

    values = [
        TEXT,
        INTEGER,
        REAL,
        NOT_WHOLE,
        DAY,
        BYTES,
        HUGE,
        None,
        [TEXT],
        {TEXT: 1},
        f"\ud800{TEXT}",
        f"{TEXT}\u0378",
    ]
    yield from values
    yield from ([value] for value in values)
    yield from ([TEXT, value] for value in values)
    yield from ([INTEGER, value] for value in values)
    yield np.array([TEXT])
    yield np.array([[TEXT]])
    yield np.array([REAL])
    yield np.ma.masked_equal([INTEGER], INTEGER)
    for kind in (None, pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        yield pa.array([TEXT, None], kind)
        yield pa.array([TEXT], kind)
    yield from (pa.array([value]) for value in (INTEGER, REAL, NOT_WHOLE, DAY, BYTES, {TEXT: INTEGER}))
    yield pa.array([2**63 + INTEGER], pa.uint64())
    yield broken_text()
    yield broken_text().dictionary_encode()
    yield pa.DictionaryArray.from_arrays(pa.array([7], pa.int8()), pa.array([TEXT]), safe=False)
    yield pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([TEXT, None]))
    yield pa.chunked_array([[INTEGER], [None]])
    yield from (pd.Series([TEXT]), pd.Categorical([TEXT, OTHER_TEXT]), pd.DataFrame({TEXT: [TEXT]}))
    yield from (
        pl.Series([TEXT, None]),
        pl.Series([DAY]),
        pl.Series([{TEXT: INTEGER}]),
        pl.DataFrame({TEXT: [TEXT]}),
    )
    yield from (Failing(), FailingStream(), FailingList([TEXT]), failing())


_AMOUNTS = (
    TEXT,
    [TEXT],
    REAL,
    [REAL],
    HUGE,
    [HUGE],
    [INTEGER, INTEGER],
    [[INTEGER], [1, 2]],
    None,
    DAY,
    Failing(),
)
_AMOUNTS = (*_AMOUNTS, np.ma.masked_equal([INTEGER], INTEGER), INTEGER)


def of_streams():
    """Updates of streams, and items that name columns."""
    # votes have no streams, and no rows
    for items in _items():
        shown = f"votes: {type(items).__name__}"
        yield outcome(
            f"items of {shown}",
            lambda items=items: al.release(VOTES, [[INTEGER]], items=items, ledger=al.NO_LEDGER),
        )
    for name, protocol in {"strings": STRINGS, "numbers": NUMBERS, "fixed": FIXED}.items():
        stream = al.stream(protocol, label="north", ledger=al.NO_LEDGER)
        for items in _items():
            shown = f"{name}: {type(items).__name__}"
            yield outcome(f"update of {shown}", lambda stream=stream, items=items: stream.update(items))
        for items in _items():
            shown = f"{name}: {type(items).__name__}"
            X = [[INTEGER]]
            yield outcome(
                f"items of {shown}",
                lambda p=protocol, items=items, X=X: al.release(p, X, items=items, ledger=al.NO_LEDGER),
            )
            yield outcome(f"columns of {shown}", lambda p=protocol, items=items: p.transform.columns(items))
        for amounts in _AMOUNTS:
            for items in ([TEXT], pa.array([TEXT]), [1], pa.array([INTEGER])):
                yield outcome(
                    f"amounts of {name}: {type(amounts).__name__}",
                    lambda stream=stream, items=items, amounts=amounts: stream.update(items, amounts),
                )


def of_tables(folder):
    """Event tables, in memory and in files."""
    sources = [*in_memory(), *in_files(folder)]
    for name, protocol in EVENT_PROTOCOLS.items():
        concerns = _CONCERNS.get(name, "for (what|much)$" if protocol.record else "for what$")
        for kind, source in sources:
            if re.search(concerns, kind):
                yield outcome(f"table of {name}: {kind}", lambda p=protocol, s=source: table(p, s))
                yield outcome(f"check of {name}: {kind}", lambda p=protocol, s=source: check(p, s))


def table(protocol, source, **known):
    """A release of an event table whose columns are who, what, where and much."""
    columns = {
        "person": "who",
        "item": None if protocol.record else "what",
        "group": "where",
        "public_groups": ["a"],
        "weight": None if protocol.votes else "much",
        "threads": 1,
    }
    return al.release(protocol, source, ledger=al.NO_LEDGER, **_lists(protocol), **columns, **known)


def check(protocol, source):
    """A check of such a table. What it finds is for the data holder, and may name groups; its errors and warnings may name nothing."""
    columns = EventColumns(
        "who", None if protocol.record else "what", "where", None if protocol.votes else "much"
    )
    groups = public_groups_of("where", ["a"], None)
    job = TableJob.of(source, protocol, columns, groups, threads=1, **_lists(protocol))
    return check_table(job, 10, 0.05)


def _lists(protocol):
    """The public lists that a release under this protocol needs again."""
    has_table = protocol.margins is not None and protocol.margins.rule == "table"
    return {
        "vocabulary": ["a", "b", "c"] if protocol.vocabulary else None,
        "item_groups": _ITEM_GROUPS if has_table else None,
    }
