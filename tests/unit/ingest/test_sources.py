"""Sources: every kind of file and table, what is damaged or awkward in them, and what stays behind."""

import tempfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest import engine
from armslength.ingest.contributions import KeyedOrder, Votes
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.ingest.partitions import _TemporaryFile
from flat_protocol import flat_protocol
from unit.ingest.tables_of_events import (
    KEY,
    SECRET,
    release,
    table,
    write_csv,
    write_json,
)

DAMAGED = {
    "e.parquet": b"PAR1 this is not a Parquet file PAR1",
    "e.csv": f'who,where,what\n"{SECRET},x,y\n1,2,3,4,5\n'.encode(),
    "ragged.csv": f"who,where,what\n1,2\n{SECRET},2,3,4\n".encode(),
    "latin.csv": b"who,where,what\na,b,\xff\xfe" + SECRET.encode() + b"\n",
    "e.csv.gz": b"\x1f\x8b" + SECRET.encode(),
    "e.jsonl": f'{{"who": 1, "where": "a", "what": "x"}}\n{{"who": "{SECRET}\n'.encode(),
    "e.arrow": b"ARROW1" + SECRET.encode(),
    "quotes.csv": f'who,where,what\n"{SECRET}"b,north,x\n'.encode(),
    "list.jsonl": f'["{SECRET}"]\n'.encode(),
}

EXACT_TOTALS = al.Protocol(
    al.SparseJL(sketch_dim=32, seed="t"), al.Counts(1, total_share="0.5"), epsilon=1000, unit="u"
)


def broken_text(data):
    """An Arrow column whose bytes are no text."""
    offsets = np.array([0, len(data)], dtype=np.int32).tobytes()
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@pytest.mark.parametrize("column", ["who", "what", "where"])
@pytest.mark.parametrize("form", ["table", "file"])
def test_arrow_text_that_is_no_text_is_refused(column, form, tmp_path):
    # the engine trusts Arrow's buffers: unchecked, these bytes became another person, and an amount of -2^63
    broken = {"who": pa.array(["a"]), "where": pa.array(["north"]), "what": pa.array(["x"])}
    broken[column] = broken_text(b"x\xff\x00" + b"\xff" * 8)
    source = pa.table(broken)
    if form == "file":
        with (
            pa.OSFile(str(tmp_path / "e.arrow"), "wb") as file,
            pa.ipc.new_file(file, source.schema) as writer,
        ):
            writer.write_table(source)
        source = tmp_path / "e.arrow"
    with pytest.raises(al.InputError):
        release(source)


def test_dictionary_indices_that_lead_nowhere_are_refused():
    bad = pa.DictionaryArray.from_arrays(pa.array([7000], pa.int32()), pa.array(["a", "b"]), safe=False)
    with pytest.raises(al.InputError):
        release(pa.table({"who": bad, "where": ["north"], "what": ["x"]}))


@pytest.mark.parametrize("names", [["who", "Who", "Who_1", "what"], ["Who_1", "Who", "who", "what"]])
@pytest.mark.parametrize("form", ["table", "parquet", "csv"])
def test_columns_are_the_files_own_and_not_what_the_engine_renames(names, form, tmp_path):
    # one person in the column Who_1, another two in Who: the engine gives the name Who_1 to Who
    columns = {"who": ["x", "y"], "Who": ["x", "y"], "Who_1": ["one", "one"], "what": ["a", "b"]}
    source = pa.table([pa.array(columns[name]) for name in names], names=names)
    known = {"group": None, "public_groups": None, "label": "all"}
    if form == "parquet":
        pq.write_table(source, tmp_path / "e.parquet")
        source = tmp_path / "e.parquet"
    elif form == "csv":
        write_csv(source, tmp_path / "e.csv")
        source = tmp_path / "e.csv"
    assert release(source, EXACT_TOTALS, person="Who_1", **known).totals.tolist() == [1]
    with pytest.raises(al.InputError, match="several columns like"):
        release(source, EXACT_TOTALS, person="who", **known)


def test_folders_named_like_partitions_are_only_folders(tmp_path, monkeypatch):
    inside = tmp_path / "who=HIVE"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    source = table([("p", "north", 1, 1), ("q", "north", 1, 1)])
    pq.write_table(source, inside / "e.parquet")
    write_csv(source, inside / "e.csv")
    write_json(source, inside / "e.jsonl")
    for name in ("e.parquet", "e.csv", "e.jsonl"):
        assert release(inside / name, EXACT_TOTALS).totals.tolist() == [2, 0, 0, 0], name


def test_without_events_there_are_zeros_in_every_form(tmp_path):
    (tmp_path / "e.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "e.csv").write_text("who,where,what\n", encoding="utf-8")
    nobody = pa.table({"who": pa.nulls(2), "where": ["north", "south"], "what": ["x", "y"]})
    for source in (tmp_path / "e.jsonl", tmp_path / "e.csv", nobody, nobody.to_pandas()):
        assert not release(source).values.any()


def test_json_keys_may_come_late_and_differ_in_capitals(tmp_path):
    lines = ['{"who": "p", "where": "north", "what": "x", "WHAT": 5}']
    lines += [
        f'{{"who": "p{number}", "where": "north", "what": "x", "k{number % 50}": 1}}'
        for number in range(3000)
    ]
    (tmp_path / "e.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert release(tmp_path / "e.jsonl", EXACT_TOTALS).totals.tolist() == [3001, 0, 0, 0]
    with pytest.raises(KeyError, match="did you mean 'who'"):
        release(tmp_path / "e.jsonl", EXACT_TOTALS, person="Who")


def test_very_many_files_are_one_scan(tmp_path):
    for number in range(600):
        (tmp_path / f"{number}.csv").write_text(
            f"who,where,what\np{number % 300},north,x\n", encoding="utf-8"
        )
    assert release(tmp_path, EXACT_TOTALS, memory="100MB").totals.tolist() == [300, 0, 0, 0]


def test_the_engine_is_silent_and_brings_nothing_in():
    protocol = al.Protocol(al.SparseJL(sketch_dim=8, seed="t"), al.Counts(1), epsilon=1, unit="u")
    source = table([("p", "south", 1, 1)])
    with engine.opened_table(source, EventColumns("who", "what"), protocol, by_number=False) as opened:
        for setting in (
            "enable_progress_bar",  # on standard output
            "autoinstall_known_extensions",
            "autoload_known_extensions",
        ):
            assert opened._connection.sql(f"SELECT current_setting('{setting}')").fetchall() == [(False,)], (
                setting
            )


def test_an_interrupted_query_is_an_interrupt(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), engine._our_errors([]):
        raise RuntimeError("Query interrupted")
    with pytest.raises(al.InputError), engine._our_errors([]):
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("form", ["table", "csv"])
def test_an_interruption_in_a_reader_is_an_interrupt(form, tmp_path, monkeypatch):
    def interrupted(*_):
        yield pa.record_batch({"person": ["a"], "group": ["north"], "item": ["x"]})
        raise KeyboardInterrupt

    if form == "csv":
        source = tmp_path / "e.csv"
        source.write_text("who,where,what\na,north,x\n", encoding="utf-8")
        monkeypatch.setattr("armslength.ingest.relations.records", interrupted)
    else:
        source = pa.table({"who": ["a"], "where": ["north"], "what": ["x"]})

        class Stream(list):
            schema = source.schema

            def __iter__(self):
                yield from source.to_batches()
                raise KeyboardInterrupt

        monkeypatch.setattr("armslength.ingest.relations.table_stream", lambda *_: Stream())
    with pytest.raises(KeyboardInterrupt):
        release(source)


@pytest.mark.parametrize("memory", ["lots", "-1", "1", "", "1PB", 5])
def test_memory_is_a_size(memory):
    with pytest.raises(al.ParameterError, match="memory must be a size"):
        release(table([("p", "south", 1, 1)]), memory=memory)


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_get_one_line_without_data_and_cost_nothing(name, tmp_path):
    (tmp_path / name).write_bytes(DAMAGED[name])
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.InputError) as caught:
        release(tmp_path / name, population="p", ledger=ledger)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere.parquet", "no such file: nowhere.parquet"),
        ("no/*.csv", "no file matches"),
        (3, "must be files or a table"),
        (np.zeros((2, 2)), "must be files or a table"),
    ],
)
def test_sources_that_are_none(source, says):
    with pytest.raises(al.ArmslengthError, match=says):
        release(source)


def test_an_empty_folder_is_no_source(tmp_path):
    with pytest.raises(al.ParameterError, match="no files in"):
        release(tmp_path)


def test_a_file_of_another_kind_is_no_source(tmp_path):
    (tmp_path / "e.xlsx").write_bytes(b"")
    for source in (tmp_path, tmp_path / "e.xlsx", f"{tmp_path}/*.xlsx"):
        with pytest.raises(al.ParameterError, match="names end in"):
            release(source)


def test_a_column_of_pandas_with_several_types_is_named():
    people = pd.Series([5, 5.0, "5", SECRET, None], dtype=object)
    frame = pd.DataFrame({"who": people, "where": "north", "what": "x", "note": people})
    with pytest.raises(al.InputError, match=r"'who'.*astype") as caught:
        release(frame)
    assert SECRET not in str(caught.value)
    frame["who"] = frame["who"].astype("string")  # a column that nobody names may stay as it is
    assert release(frame, EXACT_TOTALS).totals.tolist() == [2, 0, 0, 0]


def test_nothing_stays_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    release(table([("p", "south", 1, 1)]))
    with pytest.raises(KeyError):
        release(table([("p", "south", 1, 1)]), item="nothing")
    assert list(tmp_path.iterdir()) == []


def one_large_table():
    count = 300_000
    rng = np.random.default_rng(0)
    return pa.table(
        {"who": rng.integers(0, 9_000, count).astype(str), "what": rng.integers(0, 999, count).astype(str)}
    )


def one_heavy_person():
    often = pa.table({"who": ["bot"] * 150_000, "what": np.arange(150_000).astype(str)})
    same = pa.table({"who": ["other bot"] * 200_000, "what": ["same"] * 200_000})
    return pa.concat_tables([one_large_table().slice(0, 20_000), often, same])


@pytest.mark.parametrize("contribution", [7, "vote"])
@pytest.mark.parametrize("source", [one_large_table, one_heavy_person])
def test_a_small_memory_spills_and_gives_the_same(source, contribution, monkeypatch):
    events = source()
    places = pa.array(np.random.default_rng(1).choice(["a", "b", "c"], len(events)))
    events = events.append_column("where", places)
    transform = al.SparseJL(sketch_dim=16, seed="t")
    known = {"contribution": contribution, "unit": "u", "total_share": "0.1"}
    protocol = flat_protocol(transform, epsilon=1, **known)
    groups, columns = PublicGroups(("a", "b", "c"), "where"), EventColumns("who", "what", "where")
    wrote, compacted = [], []
    rule = Votes if protocol.votes else KeyedOrder
    for owner, name, calls in ((_TemporaryFile, "write", wrote), (rule, "compact", compacted)):
        real = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *a, real=real, calls=calls, **k: calls.append(1) or real(*a, **k)
        )
    found = {}
    for memory in ("1GB", "70MB", "4MB"):
        wrote.clear()
        compacted.clear()
        job = TableJob.of(events, protocol, columns, groups, memory=memory)
        sums = job.sums(KEY)
        found[memory] = (
            sums.values.tolist(),
            sums.totals.tolist(),
            None if sums.spread is None else sums.spread.tolist(),
        )
        assert bool(compacted) == (memory != "1GB" and source is one_heavy_person)
    assert bool(wrote) == (memory == "4MB")
    assert len({str(values) for values in found.values()}) == 1


@pytest.mark.parametrize("contribution", [5000, "vote"])
def test_somebody_with_most_events_changes_nothing_for_others(contribution):
    """First one long id with different and with equal events, then many people who share an item."""
    heavy = [f"i{number}" for number in range(3000)] + ["same"] * 4000
    people = [f"p{number}" for number in range(30_000)]
    who = ["somebody with a name that is too long for two words"] * len(heavy) + people
    events = pa.table({"who": who, "what": heavy + ["x"] * len(people)})
    protocol = flat_protocol(
        al.SparseJL(sketch_dim=16, seed="t"), epsilon=1, unit="u", contribution=contribution
    )
    columns, one = EventColumns("who", "what"), PublicGroups(("all",), None)
    small, large = (
        TableJob.of(events, protocol, columns, one, memory=memory, threads=2).sums(KEY).values.tolist()
        for memory in ("300KB", "1GB")
    )
    assert small == large
