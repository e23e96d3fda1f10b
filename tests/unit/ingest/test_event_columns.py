"""Columns: every type that is read, exactly, and every one that is refused. A single value that breaks its rule leaves out its own event."""

import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.errors import OutOfMemoryError
from armslength.ingest import encoding, text_files
from armslength.ingest.check_table import check_table
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns, canonical_person
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.ingest.grid import Grid
from armslength.protocol.neighbors import VOTE
from flat_protocol import flat_protocol
from unit.ingest.tables_of_events import KEY, counting_protocol

OPEN = al.SparseJL(sketch_dim=64, seed="columns")
ONE = PublicGroups(("all",), None)
SECRET = "zq-secret-zq"  # noqa: S105  # a value that no message may show


def open_protocol(items="string", **known):
    fields = {"contribution": 1000, "unit": "one person", "items": items, **known}
    return flat_protocol(OPEN, epsilon=1, **fields)


def integers(source, protocol, weight=None):
    return TableJob.of(source, protocol, EventColumns("who", "what", None, weight), ONE).sums(KEY).values[0]


def sketch(items, kind="string"):
    return al.sketch_in_clear(open_protocol(kind), [[1] * len(items)], items=items).values[0]


@pytest.mark.parametrize(
    "items",
    [
        pa.array(["0042", "42", " 42", "É", "E\u0301"]),
        pa.array(["0042", "42", " 42", "É", "E\u0301"], pa.large_string()),
        pa.array(["0042", "42", " 42", "É", "E\u0301"], pa.string_view()),
        pa.array(["0042", "42", " 42", "É", "E\u0301"]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_text_stays_as_it_is_but_for_its_canonical_form(items):
    table = pa.table({"who": ["a"] * 5, "what": items})
    once, accented = sketch(["0042", "42", " 42"]), sketch(["\u00c9"])
    assert integers(table, open_protocol()).tolist() == (once + 2 * accented).tolist()
    votes = integers(table, open_protocol(contribution="vote"))
    assert votes.tolist() == (VOTE // 4 * (once + accented)).tolist()


def test_a_csv_keeps_zeros_spaces_and_commas(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text('who,what\n1,0042\n1," 42"\n01,"a,b"\n,lost\n2,\n', encoding="utf-8")
    assert integers(path, open_protocol()).tolist() == sketch(["0042", " 42", "a,b"]).tolist()
    as_numbers = tmp_path / "n.csv"
    as_numbers.write_text("who,what\n1,0042\n1,-7\n", encoding="utf-8")
    assert integers(as_numbers, open_protocol("int64")).tolist() == sketch([42, -7], "int64").tolist()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_whole_numbers_of_every_type(kind):
    table = pa.table({"who": pa.array([7, 7], kind), "what": pa.array([1, 100], kind)})
    assert integers(table, open_protocol("int64")).tolist() == sketch([1, 100], "int64").tolist()


def test_the_same_person_under_different_types_is_one_person(tmp_path):
    pq.write_table(pa.table({"who": pa.array([12], pa.int16()), "what": ["a"]}), tmp_path / "1.parquet")
    (tmp_path / "2.csv").write_text("who,what\n12,b\n", encoding="utf-8")
    (tmp_path / "3.jsonl").write_text(
        '{"who": 12, "what": "c"}\n{"who": "12", "what": "d"}\n', encoding="utf-8"
    )
    once = al.Protocol(OPEN, al.Counts(1, total_share="0.5"), epsilon=1, unit="one person")
    job = TableJob.of(sorted(tmp_path.iterdir()), once, EventColumns("who", "what"), ONE)
    assert job.sums(KEY).totals.tolist() == [1]


WHOLE = pa.array([7, 12, None])
DAYS = pa.array([0, 1, None], pa.int32()).cast(pa.date32())
NUMBERS = [
    *(WHOLE.cast(kind) for kind in (pa.uint8(), pa.float32(), pa.float64())),
    *(WHOLE.cast(pa.int32()).cast(kind) for kind in (pa.decimal128(38, 0), pa.decimal256(20, 0))),
    WHOLE.dictionary_encode(),
    pa.array(["7", "12", None], pa.string_view()),
    pa.array(["7", "12", None]).dictionary_encode(),
    pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(["7", "12", None])),
]
DATES = [DAYS, DAYS.cast(pa.date64()), DAYS.cast(pa.date64()).dictionary_encode()]


@pytest.mark.parametrize("role", ["who", "where"])
@pytest.mark.parametrize("ids", [*NUMBERS, *DATES, pa.nulls(3)], ids=lambda ids: str(ids.type))
def test_ids_of_every_type_count_as_their_text(ids, role, tmp_path):
    texts = [None if value is None else str(value).removesuffix(".0") for value in ids.to_pylist()]
    rest = {"who": ["a", "b", "c"], "what": ["x", "y", "z"], "where": ["7"] * 3}
    groups = PublicGroups(tuple({"7", "other", *filter(None, texts)}), "where")
    protocol = al.Protocol(OPEN, al.Counts(1, total_share="0.5"), epsilon=1, unit="one person")

    def sums(source):
        found = TableJob.of(source, protocol, EventColumns("who", "what", "where"), groups).sums(KEY)
        return found.values.tolist(), found.totals.tolist()

    table = pa.table(rest | {role: ids})
    sources = [table]
    if not pa.types.is_run_end_encoded(ids.type):  # Parquet has no such column
        pq.write_table(table, tmp_path / "ids.parquet")
        sources.append(tmp_path / "ids.parquet")
        if "256" not in str(ids.type) and "date64" not in str(ids.type):  # Polars has other types
            sources.append(pl.from_arrow(table))
    expected = sums(pa.table(rest | {role: pa.array(texts, pa.string())}))
    assert [sums(source) for source in sources] == [expected] * len(sources)


@pytest.mark.parametrize(
    ("column", "role"),
    [
        ({"what": pa.array([True])}, "item must be of the protocol's type"),
        ({"what": pa.array([b"x"])}, "item must be of the protocol's type"),
        ({"who": pa.array([["a"]])}, "person must be a column of text or numbers"),
        ({"who": pa.array([1], pa.float16())}, "person must be a column of text or numbers"),
        ({"amount": pa.array([True])}, "weight must be a column of numbers"),
    ],
)
def test_columns_of_other_types_are_refused(column, role):
    good = {"who": pa.array(["a"]), "what": pa.array(["x"]), "amount": pa.array([1])}
    with pytest.raises(al.InputError, match=role):
        integers(pa.table({**good, **column}), open_protocol(), "amount")


def test_items_of_the_other_declared_type_are_refused():
    with pytest.raises(al.InputError, match="type string, got BIGINT"):
        integers(pa.table({"who": ["a"], "what": [1]}), open_protocol())
    with pytest.raises(al.InputError, match="type int64, got VARCHAR"):
        integers(pa.table({"who": ["a"], "what": ["1"]}), open_protocol("int64"))


# Each of these events ended the release once, so that its success told that nobody had such an event.


@pytest.mark.parametrize("item", ["\u0378", "x\U0003fffdy"])
@pytest.mark.parametrize("kind", ["table", "csv", "jsonl"])
def test_an_item_with_a_character_that_nobody_has_assigned_is_left_out(item, kind, tmp_path):
    rows = [("a", "x"), ("a", item), ("b", "y"), ("b", "é")]
    who, what = zip(*rows, strict=True)
    source = pa.table({"who": who, "what": what})
    if kind == "csv":
        source = tmp_path / "e.csv"
        source.write_text("who,what\n" + "".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")
    elif kind == "jsonl":
        source = tmp_path / "e.jsonl"
        lines = [json.dumps({"who": a, "what": b}) + "\n" for a, b in rows]
        source.write_text("".join(lines), encoding="utf-8")
    assert integers(source, open_protocol()).tolist() == sketch(["x", "y", "é"]).tolist()


def test_a_character_that_nobody_has_assigned_is_left_out_before_the_bound():
    # it must not take the place of an event that counts
    one = al.Protocol(OPEN, al.Counts(1), epsilon=1, unit="one person")
    table = pa.table({"who": ["a"] * 9, "what": ["x", *(f"\u0378{n}" for n in range(8))]})
    for key in (bytes([number]) * 32 for number in range(8)):
        product = TableJob.of(table, one, EventColumns("who", "what"), ONE).sums(key).values[0]
        assert product.tolist() == sketch(["x"]).tolist()


def test_a_number_that_does_not_fit_is_left_out():
    table = pa.table({"who": ["a", "a"], "what": pa.array([2**63, 5], pa.uint64())})
    assert integers(table, open_protocol("int64")).tolist() == sketch([5], "int64").tolist()


@pytest.mark.parametrize("bad", ["1.5", "1e3", " 1", "x", "9223372036854775808", "0x10", SECRET])
def test_text_that_is_no_whole_number_is_left_out(bad, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(f"who,what\n1,5\n1,{bad}\n", encoding="utf-8")
    assert integers(path, open_protocol("int64")).tolist() == sketch([5], "int64").tolist()


@pytest.mark.parametrize(
    ("row", "items"),
    [
        ({"who": "a", "what": 5}, "string"),
        ({"who": "a", "what": "5"}, "int64"),
        ({"who": "a", "what": 5.5}, "int64"),
        ({"who": "a", "what": [SECRET]}, "string"),
        ({"who": 1.5, "what": "x"}, "string"),
        ({"who": {"a": SECRET}, "what": "x"}, "string"),
        ({"who": True, "what": "x"}, "string"),
        ({"who": "a", "what": "x", "amount": SECRET}, "string"),
        ({"who": "a", "what": "x", "amount": None}, "string"),
        ({"who": "a", "what": "x", "amount": 1e300}, "string"),
        ({"who": "a", "what": "x", "amount": float("inf")}, "string"),
    ],
)
def test_json_values_of_other_types_are_left_out(row, items, tmp_path):
    path = tmp_path / "e.jsonl"
    good = {"who": "b", "what": "x" if items == "string" else 1, "amount": 1}
    path.write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n", encoding="utf-8")
    found = integers(path, open_protocol(items), "amount" if "amount" in row else None)
    assert found.tolist() == sketch([good["what"]], items).tolist()


def test_a_person_in_json_may_be_a_whole_number_of_any_length(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(
        f'{{"who": {10**30}, "what": "x"}}\n{{"who": "{10**30}", "what": "x"}}\n', encoding="utf-8"
    )
    once = al.Protocol(OPEN, al.Counts(1), epsilon=1, unit="one person")
    job = TableJob.of(path, once, EventColumns("who", "what"), ONE)
    assert job.sums(KEY).values[0].tolist() == sketch(["x"]).tolist()


SPELLINGS = ["Ren\u00e9", "Rene\u0301", "Ren\u00e9 ", "\tRene\u0301\u00a0", "\u2003Ren\u00e9\n"]


def test_one_person_in_several_spellings_is_one_person(tmp_path):
    who = [*SPELLINGS, "Rene", " ", "\u3000"]
    (tmp_path / "e.csv").write_text("who,what\n" + "".join(f'"{each}",x\n' for each in who), encoding="utf-8")
    once = al.Protocol(OPEN, al.Counts(1, total_share="0.5"), epsilon=1, unit="one person")
    job = TableJob.of(tmp_path / "e.csv", once, EventColumns("who", "what"), ONE)
    assert job.sums(KEY).totals.tolist() == [2]  # René in five spellings, and Rene; blanks name nobody


IDS = st.lists(
    st.text(st.sampled_from("05-. \t\u00a0\u3000e\u0301\u00e9\0+x\n\u0660\u2126"), max_size=7), min_size=1
)


@given(ids=IDS)
def test_only_ids_that_are_plain_already_are_left_as_they_are(ids):
    persons = encoding._canonical_persons(pa.array(ids, pa.large_string())).to_pylist()
    assert persons == [canonical_person(each) for each in ids]
    assert all(canonical_person(who) == who for who in persons)


def test_a_whole_number_loses_decimals_of_zero():
    for text, person in {
        "5.0": "5",
        "5.": "5",
        " 5.000\u00a0": "5",
        "-5.0": "-5",
        "007.0": "007",
        "\u3000": "",
    }.items():
        assert canonical_person(text) == person
    for kept in ("5", "5.01", "+5.0", "5.0 x", ".0", "5.0.0", "\u0665.0", "5e0"):
        assert canonical_person(kept) == kept


def test_a_nul_is_part_of_an_id(tmp_path):
    # the engine's own normal form ends at it: one person counted twice, and two persons were one
    once = al.Protocol(OPEN, al.Counts(1, total_share="0.5"), epsilon=1, unit="one person")
    ids = ["x\0a", "\u00a0x\0a", "\u00e9\0a", "e\u0301\0a", "\u00e9\0b", "\u00e9"]
    job = TableJob.of(pa.table({"who": ids, "what": ["i"] * 6}), once, EventColumns("who", "what"), ONE)
    assert job.sums(KEY).totals.tolist() == [4]
    path = tmp_path / "e.jsonl"
    path.write_text("".join(json.dumps({"who": who, "what": "i"}) + "\n" for who in ids), encoding="utf-8")
    assert TableJob.of(path, once, EventColumns("who", "what"), ONE).sums(KEY).totals.tolist() == [4]


def test_an_item_of_a_vocabulary_does_not_end_at_a_nul():
    names = ["\u00e9", "b"]
    protocol = al.Protocol(al.Identity(input_dim=2), al.Counts(9), epsilon=1, unit="u", vocabulary=names)
    table = pa.table({"who": ["a", "b"], "what": ["\u00e9\0junk", "e\u0301"]})
    job = TableJob.of(table, protocol, EventColumns("who", "what"), ONE, names)
    assert job.sums(KEY).values.tolist() == [[1, 0]]


ODD_LINES = {
    "half a character": '{"who": "a", "what": "y", "note": "\\ud800"}',
    "half a character in a key": '{"who": "a", "what": "y", "\\udfff": 1}',
    "deep nesting": '{"who": "a", "what": "y", "note": ' + "[" * 3000 + "]" * 3000 + "}",
    "a long number": '{"who": "a", "what": "y", "note": ' + "1" * 6000 + "}",
    "other capitals": '{"who": "a", "what": "y", "Who": 3}',
    "very many keys": '{"who": "a", "what": "y", ' + ", ".join(f'"k{n}": 0' for n in range(20_001)) + "}",
    "an escaped backslash": '{"who": "a", "what": "y", "note": "\\\\ud800"}',
    "a whole character": '{"who": "a", "what": "y", "note": "\\ud83d\\ude00"}',
}


@pytest.mark.parametrize("odd", ODD_LINES)
@pytest.mark.parametrize("is_first", [True, False])
def test_no_line_of_json_decides_whether_there_is_a_release(odd, is_first, tmp_path):
    lines = [ODD_LINES[odd], '{"who": "b", "what": "x"}']
    path = tmp_path / "e.jsonl"
    path.write_text("\n".join(lines if is_first else lines[::-1]) + "\n", encoding="utf-8")
    assert integers(path, open_protocol()).tolist() == sketch(["x", "y"]).tolist()


def test_half_a_character_in_an_item_is_replaced(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(
        '{"who": "a", "what": "p\\uD800q"}\n{"who": "a", "what": "\\ud83d\\ude00"}\n', encoding="utf-8"
    )
    assert integers(path, open_protocol()).tolist() == sketch(["p\ufffdq", "\U0001f600"]).tolist()


FILLINGS = ["[" + "0," * 40_000 + "0]", '"' + "x" * 80_000 + '"', "{" + '"":0,' * 16_000 + '"":0}']


@pytest.mark.parametrize("filling", FILLINGS, ids=["numbers", "text", "keys"])
@pytest.mark.parametrize("memory", ["1GB", "20MB", "11MB"])
def test_long_lines_of_json_need_no_more_memory_than_a_line(tmp_path, filling, memory):
    """The engine once parsed up to 2,048 lines at a time, each in many times its bytes."""
    path = tmp_path / "e.jsonl"
    lines = [f'{{"who": "p{n}", "n": {filling}, "wh\\u0061t": "x\\"y"}}' for n in range(100)]
    lines += ["", ' {"who": 7.0, "what": "x\\"y"}', f'{{"who": "p", "what": {filling}}}']
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    job = TableJob.of(path, open_protocol(), EventColumns("who", "what"), ONE, memory=memory, threads=2)
    expected = 101 * sketch(['x"y'])
    if filling.startswith('"'):
        expected = expected + sketch([filling[1:-1]])
    assert job.sums(KEY).values[0].tolist() == expected.tolist()


@pytest.mark.parametrize("last", ['{"who": "a", "what": "x"', '[{"who": "a", "what": "x"}]', "5"])
@pytest.mark.parametrize("memory", ["1GB", "1MB"])
def test_a_line_that_is_no_object_is_refused_whatever_its_length(tmp_path, last, memory):
    path = tmp_path / "e.jsonl"
    path.write_text(f'{{"who": "a", "what": "x"}}\n{" " * 5000}{last}\n', encoding="utf-8")
    job = TableJob.of(path, open_protocol(), EventColumns("who", "what"), ONE, memory=memory, threads=2)
    with pytest.raises(al.InputError, match="JSON object"):
        job.sums(KEY)


def test_a_line_that_is_too_long_for_the_memory_is_said_to_be(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text(f'{{"who": "a", "what": "x", "n": {FILLINGS[0]}}}\n', encoding="utf-8")
    job = TableJob.of(path, open_protocol(), EventColumns("who", "what"), ONE, memory="1MB", threads=2)
    with pytest.raises(OutOfMemoryError, match="memory"):
        job.sums(KEY)


@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_too_little_memory_is_not_said_to_be_damage(tmp_path, monkeypatch, error):
    def fails(*_, **__):
        raise error(SECRET)

    table = pa.table({"who": ["a"], "what": ["x"]})
    pq.write_table(table, tmp_path / "e.parquet")
    numbers = pa.table({"who": [1], "what": ["x"]})
    pq.write_table(numbers, tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text("who,what\na,x\n", encoding="utf-8")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fails)
    monkeypatch.setattr(text_files, "cut_records", fails)
    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", fails)
    for source in (*sorted(tmp_path.iterdir()), table.to_pandas()):
        with pytest.raises(OutOfMemoryError, match="memory") as refused:
            integers(source, open_protocol())
        assert SECRET not in str(refused.value)
        assert isinstance(refused.value, MemoryError)


def test_a_line_of_json_that_is_too_long_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_LONGEST_LINE", 1000)
    path = tmp_path / "e.jsonl"
    path.write_text(
        json.dumps({"who": "a", "what": "y", "note": "x" * 2000}) + '\n{"who": "b", "what": "x"}\n',
        encoding="utf-8",
    )
    assert integers(path, open_protocol()).tolist() == sketch(["x"]).tolist()


def test_typed_json_is_refused_by_its_type():
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['"a"', "b"]))
    with pytest.raises(al.InputError, match="person must be a column of text or numbers, got json"):
        integers(pa.table({"who": column, "what": ["x", "y"]}), open_protocol())


def test_what_was_left_out_is_counted_for_the_data_holder(tmp_path):
    path = tmp_path / "e.csv"
    rows = [
        "a,x,north,1",
        ",x,north,1",
        "a,,north,1",
        "a,x,nowhere,1",
        "a,\u0378,north,1",
        "a,x,north,0",
        "a,x,north,z",
    ]
    path.write_text("who,what,where,w\n" + "\n".join(rows) + "\n", encoding="utf-8")
    job = TableJob.of(
        path, open_protocol(), EventColumns("who", "what", "where", "w"), PublicGroups(("north",), "where")
    )
    left_out = LeftOut()
    list(job.kept_events(KEY, left_out))
    assert left_out == LeftOut(rows=7, person=1, group=1, item=2, weight=2)


MANY, ENOUGH = "a" + "\u0301\u0316" * 100_000, "a" + "\u0301" * 30  # normalizing the first takes minutes


@pytest.mark.parametrize(
    "kind", ["table", "dictionary", "csv", "jsonl", "json", "parquet", "large parquet", "sqlite"]
)
def test_text_with_too_many_marks_is_left_out_of_every_source(kind, tmp_path):
    rows = [
        ("p", "x"),
        (MANY, "x"),
        ("p", MANY),
        ("p", f"{MANY}b"),
        (ENOUGH, "y"),
        ("q", ENOUGH),
        ("q", f"é{MANY[1:]}"),
    ]
    if kind == "large parquet":  # read without the engine
        rows += [(None, "x")] * 70_000
    who, what = zip(*rows, strict=True)
    source = table = pa.table({"who": who, "what": what})
    path = tmp_path / f"e.{kind.split()[-1]}"
    if kind == "dictionary":
        source = pa.table({"who": who, "what": table["what"].dictionary_encode()})
    elif kind == "csv":
        path.write_text("who,what\n" + "".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")
    elif kind in ("jsonl", "json"):
        lines = [json.dumps({"who": a, "what": b}) for a, b in rows]
        text = "\n".join(lines) if kind == "jsonl" else f"[{','.join(lines)}]"
        path.write_text(text, encoding="utf-8")
    elif "parquet" in kind:
        pq.write_table(table, path)
    elif kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE e (who TEXT, what TEXT)")
            connection.executemany("INSERT INTO e VALUES (?, ?)", rows)
            connection.commit()
        source = al.Source(f"sqlite:///{path}", table="e")
    if source is table and kind != "table":
        source = path
    job = TableJob.of(source, open_protocol(), EventColumns("who", "what"), ONE)
    left_out = LeftOut()
    list(job.kept_events(KEY, left_out))
    assert left_out == LeftOut(rows=len(rows), person=len(rows) - 6, item=3)
    assert check_table(job).left_out == left_out
    assert job.sums(KEY).values[0].tolist() == sketch(["x", "y", ENOUGH]).tolist()


def test_items_with_too_many_marks_are_in_no_list():
    table = pa.table({"who": ["p", "p"], "what": ["x", MANY]})
    known = {"contribution": "vote", "total_share": "0.1"}
    protocol = open_protocol(margins={"x": "one"}, margin_share="0.2", margin_contribution=1, **known)
    job = TableJob.of(table, protocol, EventColumns("who", "what"), ONE, item_groups={"x": "one"})
    left_out = LeftOut()
    list(job.kept_events(KEY, left_out))
    assert left_out == LeftOut(rows=2, item=1)


WEIGHTS = st.lists(
    st.one_of(
        st.floats(-1e6, 1e6),
        st.integers(-(2**40), 2**40).map(float),
        st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 0.1, 2.5, -2.5, 2.0**60, -(2.0**52) - 0.5]),
    ),
    min_size=1,
    max_size=20,
)


@given(weights=WEIGHTS, exponent=st.integers(-4, 4))
def test_weights_are_floored_as_matrices_are(weights, exponent):
    protocol = counting_protocol(
        2**40, resolution=2.0**exponent, on_grid=False, changed_entries=12, epsilon=1000
    )
    table = pa.table(
        {
            "who": [str(i) for i in range(len(weights))],
            "what": [i % 12 for i in range(len(weights))],
            "w": weights,
        }
    )
    found = integers(table, protocol, "w")
    grid = Grid.of(protocol.resolution, None, on_grid=False)
    bound = protocol.contribution / protocol.resolution
    expected = np.zeros(12, dtype=np.int64)
    for number, weight in enumerate(weights):
        if abs(weight) / 2.0**exponent > 2.0**62:
            continue  # left out
        (amount,) = grid.integers(np.array([weight])).tolist()
        expected[number % 12] += max(min(amount, bound), -bound)
    assert found.tolist() == expected.tolist()


@given(
    values=st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=9), exponent=st.sampled_from([0, 1, 4])
)
def test_whole_weights_are_never_floats(values, exponent):
    protocol = counting_protocol(
        2**40, resolution=2.0**exponent, on_grid=False, changed_entries=12, epsilon=1000
    )
    table = pa.table(
        {"who": [str(i) for i in range(len(values))], "what": list(range(len(values))), "w": values}
    )
    bound = 2**40 >> exponent
    assert integers(table, protocol, "w")[: len(values)].tolist() == [
        max(min(value >> exponent, bound), -bound) for value in values
    ]


@pytest.mark.parametrize(
    "weight",
    [
        pa.array([float("nan"), 2.0]),
        pa.array([float("inf"), 2.0]),
        pa.array([None, 2.0]),
        pa.array([1e300, 2.0]),
        pa.array([0.5, 2.0]),
        pa.array([5e-324, 2.0]),
        pa.array([2**63, 2], pa.uint64()),
        pa.array([2**63 - 1, 2]),
        pa.array([None, 2]),
    ],
)
def test_weights_that_no_grid_holds_are_left_out(weight):
    product = integers(pa.table({"who": ["a", "b"], "what": ["x", "y"], "w": weight}), open_protocol(), "w")
    assert product.tolist() == (2 * sketch(["y"])).tolist()


@pytest.mark.parametrize("text", ["1_000", " 5", "0x10", "1,5", "", "five", "1e999"])
def test_text_that_is_no_number_is_no_weight(text, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(f'who,what,w\na,x,"{text}"\nb,y,2\n', encoding="utf-8")
    assert integers(path, open_protocol(), "w").tolist() == (2 * sketch(["y"])).tolist()


def test_whole_weights_off_a_coarse_grid_are_left_out():
    table = pa.table({"who": ["a", "b", "c"], "what": ["x", "y", "z"], "w": [4, -6, 3]})
    expected = 2 * sketch(["x"]) - 3 * sketch(["y"])
    assert integers(table, open_protocol(resolution=2), "w").tolist() == expected.tolist()


def test_decimals_are_weights():
    protocol = open_protocol(resolution=0.5, on_grid=False, changed_entries=1)
    column = pa.array([Decimal("1.75")], pa.decimal128(10, 2))
    product = integers(pa.table({"who": ["a"], "what": ["x"], "w": column}), protocol, "w")
    assert product.tolist() == (3 * sketch(["x"])).tolist()
