"""`al.release`: rows from public input alone, the ledger first, and one clear line for bad input."""

import gzip
import json
from contextlib import contextmanager
from io import StringIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.ingest.partitions import EventStore
from reference.contributions import bounded_counts
from unit.ingest.tables_of_events import (
    EXACT,
    GROUPS,
    as_table,
    counting_protocol,
    random_events,
    release,
    table,
)


def test_rows_are_the_public_groups_whatever_the_data_is():
    none = table([("p", "unlisted", 1, 1)])
    some = table([("p", "south", 1, 1), ("q", "unlisted", 1, 1)])
    nobody = table([(None, "south", 1, 1)])
    for source in (none, some, nobody, some.slice(0, 0)):
        sketches = release(source)
        assert sketches.labels == tuple(GROUPS)
    assert not release(none).values.any()
    assert not release(nobody).values.any()
    assert np.flatnonzero(release(some).values.any(axis=1)).tolist() == [1]
    order = GROUPS[::-1]
    assert release(some, public_groups=order).labels == tuple(order)


def test_one_group_by_a_label():
    source = table([("p", "anything", 1, 1), ("q", None, 1, 1)])
    sketches = release(source, group=None, public_groups=None, label="my hospital")
    assert sketches.labels == ("my hospital",)
    expected = al.sketch_in_clear(EXACT, [[2]], items=["i1"]).values
    assert sketches.values.tolist() == expected.tolist()


def test_a_release_of_a_table_is_that_of_its_counts():
    events = random_events(4, weighted=False)
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=32, seed="t"), al.Counts(1000, total_share="0.5"), epsilon=10**6, unit="u"
    )
    sketches = release(table(events), protocol)
    kept = [e for e in events if e[0] and e[2] is not None and e[1] in GROUPS]
    counts = [[sum(e[1] == g and e[2] == i for e in kept) for i in range(12)] for g in GROUPS]
    expected = al.sketch_in_clear(protocol, counts, items=[f"i{i}" for i in range(12)])
    assert sketches.values.tolist() == expected.values.tolist()
    assert sketches.totals.tolist() == expected.totals.tolist()


@pytest.mark.parametrize(
    "transform",
    [
        al.SparseJL(input_dim=12, sketch_dim=8, seed="x"),
        al.HadamardJL(input_dim=12, sketch_dim=8, seed="x"),
        al.GaussianJL(input_dim=12, sketch_dim=8, seed="x"),
        al.SignJL(input_dim=12, sketch_dim=8, seed="x"),
    ],
    ids=lambda transform: transform.name,
)
@pytest.mark.parametrize("counted_at_once", [True, False])
def test_every_transform_with_a_vocabulary(transform, counted_at_once, monkeypatch):
    monkeypatch.setattr("armslength.ingest.sums._MOST_COUNTS", 10**6 if counted_at_once else 0)
    names = [f"i{number}" for number in range(12)]
    protocol = al.Protocol(transform, al.Counts(1000), epsilon=10**9, unit="u", vocabulary=names)
    events = random_events(5, weighted=False)
    source = pa.concat_tables([table(events), table([("p", "north", "not in the list", 1)])])
    sketches = release(source, protocol, vocabulary=names)
    kept = [e for e in events if e[0] and e[2] is not None and e[1] in GROUPS]
    counts = [[sum(e[1] == g and e[2] == i for e in kept) for i in range(12)] for g in GROUPS]
    assert sketches.values.tolist() == al.sketch_in_clear(protocol, counts).values.tolist()


def test_the_ledger_is_charged_once_with_the_groups_as_labels(tmp_path):
    path = tmp_path / "ledger.sqlite"
    source = table([("p", "south", 1, 1)])
    release(source, population="visits", ledger=al.Ledger(path, create=True))
    (entry,) = al.Ledger(path).entries()
    assert entry.labels == ("north", "south", "empty", "east")
    assert entry.unit == "one person"
    with pytest.raises(al.BudgetError):
        release(source, population="visits", ledger=path)
    assert len(al.Ledger(path).entries()) == 1


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"public_groups": None}, "public_groups must list every group"),
        ({"public_groups": ["a", "a"]}, "differ from each other"),
        ({"group": None}, "needs a group column"),
        ({"person": "nobody"}, "person: no column 'nobody' in the source; none of its 4 columns"),
        ({"item": "who"}, "different columns"),
        ({"ledger": None}, "ledger must be a file"),
        ({"ledger": "unused.sqlite"}, "no such ledger"),
        ({"memory": "lots"}, "memory must be a size"),
        ({"vocabulary": ["a"]}, "open vocabulary"),
        ({"group": None, "public_groups": None}, "give label if"),
    ],
)
def test_bad_arguments_get_one_line(known, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(al.ArmslengthError, match=says) as caught:
        release(table([("p", "south", 1, 1)]), **known)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (al.Protocol(al.SparseJL(sketch_dim=8, seed="x"), epsilon=1, unit="u"), "protocol is for arrays"),
        (
            al.Protocol(al.SparseJL(sketch_dim=8, seed="x"), al.Counts(1), epsilon=1),
            "must say who is protected",
        ),
        (al.Protocol(al.Identity(input_dim=3), al.Counts(1), epsilon=1, unit="u"), "items must be 'int64'"),
        (
            al.Protocol(al.Identity(input_dim=1), al.Counts(1), epsilon=1, unit="u", vocabulary=["a"]),
            "vocabulary must list the names",
        ),
    ],
)
def test_protocols_that_do_not_fit_are_refused(protocol, says):
    with pytest.raises(al.ParameterError, match=says):
        release(table([("p", "south", 1, 1)]), protocol)


def test_weights_are_refused_where_people_vote():
    with pytest.raises(al.ParameterError, match="where people vote"):
        release(as_table([("p", "south", 1, 2)]), counting_protocol("vote"), weight="amount")


@pytest.mark.parametrize("item", [12, -1, 2**62])
def test_column_numbers_beyond_the_input_are_left_out(item):
    events = as_table([("p", "south", item, 1), ("p", "south", 3, 1)])
    values = release(events, counting_protocol(contribution=1, epsilon=1000)).values
    assert (values[1, 3], np.abs(values).sum()) == (1, 1)


def test_a_vocabulary_counts_names_and_not_spellings():
    names = ["\u00c9", "b"]
    protocol = al.Protocol(al.Identity(input_dim=2), al.Counts(9), epsilon=1000, unit="u", vocabulary=names)
    source = pa.table({"who": list("abc"), "where": ["north"] * 3, "what": ["E\u0301", "\u00c9", "c"]})
    assert release(source, protocol, vocabulary=names).values.tolist()[0] == [2, 0]
    with pytest.raises(al.ParameterError, match="each name once"):
        al.Protocol(al.Identity(input_dim=2), epsilon=1, vocabulary=["\u00c9", "E\u0301"])


def test_spellings_of_one_name_are_numbered_together():
    # what is taken is what the specification says, however the name is spelled
    names = ["\u00c9", "b"]
    protocol = al.Protocol(al.Identity(input_dim=2), al.Counts(2), epsilon=1, unit="u", vocabulary=names)
    spelled = [("p", "north", item, 1) for item in ("E\u0301", "\u00c9", "b", "b")]
    numbered = [("p", "north", number, 1) for number in (0, 0, 1, 1)]
    source = pa.table({"who": ["p"] * 4, "where": ["north"] * 4, "what": [event[2] for event in spelled]})
    columns, groups = EventColumns("who", "what", "where"), PublicGroups(("north",), "where")
    for key in (bytes([number]) * 32 for number in range(40)):
        found = TableJob.of(source, protocol, columns, groups, names).sums(key).values
        expected = bounded_counts(numbered, ["north"], 2, key)
        assert found[0].tolist() == [expected.get(("north", number), 0) for number in range(2)]


@pytest.mark.parametrize("vocabulary", [["a", "c"], "hash", None])
def test_only_the_list_itself_is_the_vocabulary(vocabulary):
    protocol = al.Protocol(al.Identity(input_dim=2), al.Counts(1), epsilon=1, unit="u", vocabulary=["a", "b"])
    given = protocol.vocabulary if vocabulary == "hash" else vocabulary
    with pytest.raises(al.ParameterError, match="vocabulary must"):
        release(table([("p", "south", 1, 1)]), protocol, vocabulary=given)
    numbers = al.Protocol(
        al.Identity(input_dim=2), al.Counts(1), epsilon=1, unit="u", vocabulary=["a", "b"], items="int64"
    )
    with pytest.raises(al.ParameterError, match="items must be 'string'"):
        release(as_table([("p", "south", 1, 1)]), numbers, vocabulary=["a", "b"])


def test_every_release_has_a_key_of_its_own(monkeypatch):
    keys = []
    real = TableJob.sums
    monkeypatch.setattr(
        TableJob, "sums", lambda self, key, **known: keys.append(key) or real(self, key, **known)
    )
    for _ in range(3):
        release(table([("p", "south", 1, 1)]))
    assert len(set(keys)) == 3
    assert {len(key) for key in keys} == {32}


def test_sketches_and_totals_of_tables_and_streams_have_noise():
    # 1000 coordinates of scale 100: that most of them are 0 has probability below 1e-100
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=1000, seed="t"), al.Counts(1, total_share="0.5"), epsilon="0.02", unit="u"
    )
    sketches = release(
        table([("p", "unlisted", 1, 1)]), protocol, public_groups=[f"g{i}" for i in range(200)]
    )
    stream = al.stream(protocol, label="s", ledger=al.NO_LEDGER)
    assert (sketches.values != 0).mean() > 0.9
    assert len(set(sketches.totals.tolist())) > 100
    streamed = [al.stream(protocol, label="s", ledger=al.NO_LEDGER).release() for _ in range(50)] + [
        stream.release()
    ]
    assert len({int(each.totals[0]) for each in streamed}) > 25


def test_the_ledger_is_charged_before_there_is_noise(tmp_path, monkeypatch):
    monkeypatch.setattr("armslength.releasing.release.noised", None)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(TypeError):
        release(table([("p", "south", 1, 1)]), population="visits", ledger=ledger)
    assert len(ledger.entries()) == 1


def test_very_many_groups_are_added_in_parts(monkeypatch):
    monkeypatch.setattr("armslength.ingest.sums._MOST_ADDED", 64)
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"), al.Counts(9, total_share="0.5"), epsilon=10**6, unit="u"
    )
    groups = [f"g{number}" for number in range(57)]
    rng = np.random.default_rng(1)
    events = [(f"p{number}", groups[rng.integers(57)], int(rng.integers(9)), 1) for number in range(500)]
    sketches = release(table(events), protocol, public_groups=groups)
    counts = [[sum(e[1] == g and e[2] == i for e in events) for i in range(9)] for g in groups]
    expected = al.sketch_in_clear(protocol, counts, items=[f"i{i}" for i in range(9)])
    assert sketches.values.tolist() == expected.values.tolist()
    assert sketches.totals.tolist() == expected.totals.tolist()


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "csv.gz", "jsonl", "table"])
@pytest.mark.parametrize("most_rows", [10**6, 300], ids=["in memory", "several passes"])
def test_bars_know_how_much_there_is_and_reach_their_end(ending, most_rows, tmp_path, monkeypatch):
    events = table([(f"p{n % 700}", GROUPS[n % 2] if n % 3 else "nowhere", n % 11, 1) for n in range(5000)])
    path = tmp_path / f"events.{ending}"
    if ending == "parquet":
        pq.write_table(events, path)
    elif ending == "arrow":
        with pa.ipc.new_file(path, events.schema) as writer:
            writer.write_table(events)
    elif ending != "table":
        rows = events.to_pylist()
        lines = (
            [json.dumps(row) for row in rows]
            if ending == "jsonl"
            else [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        )
        data = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    bars = []

    @contextmanager
    def recorded(title, total, unit, *, show):
        assert show
        done = []
        yield done.append
        bars.append((title, total, unit, sum(done)))

    monkeypatch.setattr("armslength.ingest.event_table.progress", recorded)
    real = EventStore.__init__

    def small(self, *arguments):
        real(self, *arguments)
        self._most_rows, self._most_bytes = most_rows, most_rows

    monkeypatch.setattr(EventStore, "__init__", small)
    release(events if ending == "table" else path, progress=True)
    is_text = ending in ("csv", "csv.gz", "jsonl")
    total = path.stat().st_size if is_text else 5000
    counted = sum(1 for n in range(5000) if n % 3)
    assert bars == [
        ("reading", total, "B" if is_text else "rows", total),
        ("counting", counted, "rows", counted),
    ]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_data_holder_sees_what_counts_before_anything_is_charged(is_terminal, monkeypatch):
    class Screen(StringIO):
        def isatty(self):
            return is_terminal

    screen, charged_after = Screen(), []
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(
        "armslength.releasing.release.release_sums", lambda *_, **__: charged_after.append(screen.getvalue())
    )
    release(table([("p", "south", 1, 1), ("", "south", 1, 1), ("q", "nowhere", 1, 1)]), progress=True)
    (shown,) = charged_after
    assert ("of 3 rows, 1 counts" in shown) == is_terminal
    assert is_terminal or shown == ""


VOTES = al.Protocol(al.SparseJL(sketch_dim=8, seed="x"), al.Votes(), epsilon=1, unit="one person")
COUNTS = al.Protocol(al.SparseJL(input_dim=3, sketch_dim=8, seed="x"), epsilon=1, unit="one person")


@pytest.mark.parametrize(
    ("protocol", "source", "known", "argument"),
    [
        (VOTES, [[1, 2, 3]], {}, "person"),
        (VOTES, [[1, 2, 3]], {"item": "what", "label": "north"}, "person"),
        (COUNTS, [[1, 2, 3]], {"label": "north"}, "person"),
        (COUNTS, [[1, 2, 3]], {"item_groups": {"a": "b"}}, "person"),
        (VOTES, {"who": ["a"], "what": ["b"]}, {"person": "who", "labels": ["north"]}, "labels"),
        (VOTES, {"who": ["a"], "what": ["b"]}, {"person": "who", "items": ["b"]}, "items"),
        (COUNTS, {"who": ["a"], "what": ["b"]}, {"person": "who", "item": "what", "label": "a"}, "person"),
        ("protocol.json", [[1, 2, 3]], {}, "protocol"),
    ],
)
def test_arguments_of_arrays_and_of_tables_are_not_mixed(protocol, source, known, argument, tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.ParameterError) as refused:
        al.release(protocol, source, ledger=ledger, population="visits", **known)
    assert argument in refused.value.arguments
    assert not ledger.spent()
