"""Records: the items of every type of column, the same from every source, and bounded for each person."""

import datetime as dt
import json
import re
import unicodedata
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.protocol.neighbors import VOTE
from armslength.protocol.record import escaped, intervals, prefix, whole
from flat_protocol import flat_protocol
from unit.ingest.tables_of_events import KEY, SECRET

OPEN = al.SparseJL(sketch_dim=64, seed="records")
ONE = PublicGroups(("all",), None)
DAY = dt.date(2024, 3, 31)
NOON = dt.datetime(2024, 3, 31, 12)  # noqa: DTZ001  # a column without a zone


def protocol(record, pairs=(), transform=OPEN, **known):
    known = {"unit": "one patient", **known}
    return flat_protocol(transform, epsilon=1, record=record, record_pairs=pairs, **known)


def items(source, record, pairs=()):
    """How often each item comes, before the bound."""
    job = TableJob.of(source, protocol(record, pairs), EventColumns("id"), ONE)
    with job.opened() as table:
        batches = [batch for piece in table.pieces() for batch in piece]
    spelled = (item for batch in batches for item in batch.column("item").to_pylist())
    return Counter(unicodedata.normalize("NFC", item) for item in spelled)


def column(values, kind=None):
    values = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, kind)
    return pa.table({"id": list(range(len(values))), "x": values})


def listed(*values):
    return Counter(f"x={value}" for value in values)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 3)])
def test_numbers_of_every_type_fall_between_public_edges(kind):
    values = [0, 17, 18, 39, 40, 100, None]
    values = [*map(Decimal, values[:-1]), None] if pa.types.is_decimal(kind) else values
    expected = listed("..18", "..18", "18..40", "18..40", "40..", "40..", "(missing)")
    assert items(column(values, kind), {"x": [18, 40]}) == expected


def test_edges_belong_to_the_interval_above_them():
    below = np.nextafter(0.1, 0)
    assert items(column([0.1, below, -0.0, -0.1]), {"x": ["-0.1", 0, 0.1]}) == listed(
        "0.1..", "0..0.1", "0..0.1", "-0.1..0"
    )
    large = [2**53, 2**53 - 1, 2**63 - 1, -(2**63)]
    assert items(column(large), {"x": [2**53]}) == listed(*[f"{2**53}.."] * 2, *[f"..{2**53}"] * 2)


def test_what_is_no_number_is_missing(tmp_path):
    assert items(column([float("nan"), float("inf"), -float("inf")]), {"x": [0]}) == listed(
        *["(missing)"] * 3
    )
    path = tmp_path / "r.csv"
    path.write_text("id,x\n1,5\n2, 5\n3,1_000\n4,nan\n5,1e3\n6,\n7,5.\n8,inf\n9,0x5\n", encoding="utf-8")
    assert items(path, {"x": [6]}) == listed("..6", "..6", "6..", *["(missing)"] * 6)
    path = tmp_path / "r.jsonl"
    values = [5, 7.5, "5", None, True, [1], {"a": 1}]
    path.write_text(
        "".join(json.dumps({"id": n, "x": value}) + "\n" for n, value in enumerate(values)), encoding="utf-8"
    )
    assert items(path, {"x": [6]}) == listed("..6", "6..", *["(missing)"] * 5)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["F", "M", "", None, " F"]), ["F", "M", "(missing)", "(missing)", " F"]),
        (pa.array(["F", None]).dictionary_encode(), ["F", "(missing)"]),
        (pa.array(["F", "<=50K"], pa.large_string()), ["F", "<=50K"]),
        (pa.array([1, -2, None], pa.int16()), ["1", "-2", "(missing)"]),
        (pa.array([True, False, None]), ["true", "false", "(missing)"]),
        (pa.array([1.0, -0.0, 1.5, None, float("nan"), 1e15]), ["1", "0", "1.5", *["(missing)"] * 2, "1" + "0" * 15]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([Decimal("1.00"), Decimal("2.50")]), ["1", "2.5"]),
        (pa.array(["1.0", "1", "-3.", "01.0", "1.5", "v1.0"]), ["1", "1", "-3", "01", "1.5", "v1.0"]),
        (pa.array(["(missing)", "a(b", "R&D", "50%", "a=b"]), ["%28missing)", "a(b", "R%26D", "50%25", "a=b"]),
        (pa.nulls(2), ["(missing)"] * 2),
    ],
    ids=str,
)  # fmt: skip
def test_categories_of_every_type(values, expected):
    assert items(column(values), {"x": "category"}) == listed(*expected)


def test_categories_that_are_not_listed():
    values = ["F", "1", "1.0", "E\u0301", "\u00c9", "x", "(other)", "", None]
    names = ["F", "1.0", "\u00c9", "(other)"]
    counted = items(column(values), {"x": names})
    found = ["F", "1", "1", "\u00c9", "\u00c9", "(other)", "%28other)", *["(missing)"] * 2]
    assert counted == listed(*found)
    assert counted.keys() <= set(al.record_items({"x": names}))


def test_categories_with_too_many_marks():
    """None is listed, and the engine would take minutes to normalize them; where nothing is listed, no item can have them."""
    many, enough = "a" + "\u0301\u0316" * 100_000, "\u00e1" + "\u0301" * 29
    values = ["F", many, "F\u0301" + many, enough, "\u0301" * 31]
    counted = items(column(values), {"x": ["F", enough]})
    assert counted == listed("F", enough, *["(other)"] * 3)
    left_out = LeftOut()
    job = TableJob.of(column(values), protocol({"x": "category"}), EventColumns("id"), ONE)
    list(job.kept_events(bytes(32), left_out))
    assert left_out == LeftOut(rows=5, item=3)


PERIODS = {
    "year": "2024",
    "quarter": "2024-Q1",
    "month": "2024-03",
    "week": "2024-W13",
    "day": "2024-03-31",
}


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize(
    "values",
    [
        pa.array([DAY, None]),
        pa.array([DAY, None], pa.date64()),
        *(pa.array([NOON, None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        pa.array([dt.datetime(2024, 3, 31, 23, 59, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")),
        # one o'clock in the morning of the next day
        pa.array([dt.datetime(2024, 3, 31, 23, tzinfo=dt.UTC), None], pa.timestamp("us", "Europe/Paris")),
        *(
            pa.array([NOON, None], pa.timestamp(unit, zone))
            for unit in ("s", "ms", "us", "ns")
            for zone in ("UTC", "Europe/Paris", "+05:30")
        ),
        pa.array([NOON, None], pa.timestamp("ns", "UTC")).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([NOON, None], pa.timestamp("ns", "UTC"))),
        pa.array(["2024-03-31", "31.03.2024"]),
        pa.array(["2024-03-31T23:59:00+02:00", "2024-02-30"]),
        pa.array(["2024-03-31 noon", "2024-3-31"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type)[:22],
)
def test_dates_by_period(period, values):
    assert items(column(values), {"x": period}) == listed(PERIODS[period], "(missing)")


def test_weeks_belong_to_the_year_of_their_thursday_and_far_dates_are_missing():
    days = [dt.date(2021, 1, 3), dt.date(2024, 12, 30), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    assert items(column(days), {"x": "week"}) == listed("2020-W53", "2025-W01", "0001-W01", "9999-W52")
    far = pa.array([10_000_000, -10_000_000, 2**31 - 1], pa.int32()).cast(pa.date32())
    assert items(column(far), {"x": "day"}) == listed(*["(missing)"] * 3)
    texts = ["0000-01-01", "9999-12-31", "10000-01-01"]
    assert items(column(texts), {"x": "year"}) == listed("9999", *["(missing)"] * 2)


EXTREMES = [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 253402300800 * 10**6, -62135596800 * 10**6 - 1, -1]
SMALLEST, LARGEST = dt.date.min, dt.date.max


def day_of(number, per_day):
    """The day of an instant in units, in Python's own calendar; None outside of it."""
    days = number // per_day + dt.date(1970, 1, 1).toordinal()
    in_years = SMALLEST.toordinal() <= days <= LARGEST.toordinal()
    return dt.date.fromordinal(days).isoformat() if in_years else "(missing)"


def raw(numbers, kind, words=np.int64):
    """A column with these bytes, whatever its type makes of them."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.array(numbers, words))])


@pytest.mark.parametrize("form", ["table", "parquet", "arrow", "polars"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_farthest_times_are_days_or_missing_and_nothing_ends_a_release(tmp_path, unit, zone, form):
    if form == "polars" and unit == "s":
        pytest.skip("Polars has no such type")
    if form == "parquet" and unit == "s":
        pytest.skip("Parquet has no such type, and its writer refuses what milliseconds cannot hold")
    per_day = 86400 * 1000 ** ["s", "ms", "us", "ns"].index(unit)
    table = column(raw(EXTREMES, pa.timestamp(unit, zone)))
    source = table
    if form == "parquet":
        source = tmp_path / "times.parquet"
        pq.write_table(table, source)
    elif form == "arrow":
        source = tmp_path / "times.arrow"
        with pa.OSFile(str(source), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif form == "polars":
        source = pl.from_arrow(table)
    assert items(source, {"x": "day"}) == listed(*(day_of(number, per_day) for number in EXTREMES))


def test_the_farthest_days_are_missing():
    days = raw([2**31 - 1, -(2**31), 0], pa.date32(), np.int32)
    assert items(column(days), {"x": "day"}) == listed("(missing)", "(missing)", "1970-01-01")
    milliseconds = [2**63 - 1, -(2**63), -1, 5]  # -1 and 5 are no whole days
    assert items(column(raw(milliseconds, pa.date64())), {"x": "day"}) == listed(
        "(missing)", "(missing)", "1969-12-31", "1970-01-01"
    )


def test_old_times_of_parquet_reach_the_year_9999(tmp_path):
    far = dt.datetime(9999, 12, 31, 23)  # noqa: DTZ001  # a column without a zone
    path = tmp_path / "old.parquet"
    pq.write_table(
        column(pa.array([far, NOON], pa.timestamp("us"))), path, use_deprecated_int96_timestamps=True
    )
    assert items(path, {"x": "day"}) == listed("9999-12-31", "2024-03-31")


def test_decimals_of_every_width():
    for kind in (pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(38, 2)):
        values = pa.array([Decimal("5.25"), Decimal("-1000.00"), None], kind)
        assert items(column(values), {"x": [0]}) == listed("0..", "..0", "(missing)")
        assert items(column(values), {"x": "category"}) == listed("5.25", "-1000", "(missing)")
    large = pa.array([Decimal(2**60 + 1)], pa.decimal128(38, 0))
    assert items(column(large), {"x": "category"}) == listed(str(2**60 + 1))  # as an integer
    words = pa.py_buffer(np.array([99999, 0, 5, 0]))
    beyond = pa.Array.from_buffers(pa.decimal128(3, 0), 2, [None, words])
    assert items(column(beyond), {"x": "category"}) == listed("(missing)", "5")
    for refused in (pa.decimal256(39, 0), pa.decimal128(10, -3)):
        with pytest.raises(al.InputError, match="38 digits"):
            items(column(pa.array([Decimal(5000)], refused)), {"x": "category"})


@pytest.mark.parametrize("kind", ["category", [0, 10]], ids=str)
def test_the_farthest_numbers_are_values_or_missing(kind):
    floats = [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, -5e-324, 1.7976931348623157e308]
    for width in (pa.float64(), pa.float32()):
        found = items(column(pa.array(floats).cast(width, safe=False)), {"x": kind})
        assert found.total() == len(floats)
        assert found["x=(missing)"] >= 3
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        ends = [np.iinfo(name).min, np.iinfo(name).max]
        expected = map(str, ends) if kind == "category" else ["0..10" if name[0] == "u" else "..0", "10.."]
        assert items(column(pa.array(ends, name)), {"x": kind}) == listed(*expected)


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["5"], [1, 2]), ([[1]], [1, 2]), ([DAY], "category"), ([b"a"], "category"), ([5], "month")],
    ids=str,
)
def test_columns_of_another_type_are_refused_before_anything_is_read(values, kind):
    with pytest.raises(al.InputError, match="record x must be a column of"):
        items(column(values), {"x": kind})


def test_a_missing_column_is_refused():
    with pytest.raises(KeyError, match="record y: no column"):
        items(column([1]), {"y": [1]})


RECORD = {"age": [18, 40], "sex": ["F", "M"], "seen": "month", "city": "category", "well": "category"}
PAIRS = [("age", "sex"), ("city", "seen")]
ROWS = [
    {"id": "a", "age": 17.5, "sex": "F", "seen": "2024-03-31", "city": "Köln & Bonn", "well": "1"},
    {"id": "b", "age": 18.0, "sex": "x", "seen": None, "city": "100%", "well": "0"},
    {"id": "c", "age": None, "sex": None, "seen": "1999-12-31", "city": "(missing)", "well": None},
]


def test_every_source_gives_the_same_items(tmp_path):
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "r.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "r.csv")
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "r.jsonl").write_text(lines, encoding="utf-8")
    with pa.OSFile(str(tmp_path / "r.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    frame = pd.DataFrame(ROWS).assign(well=[1.0, 0.0, None])  # as pandas reads whole numbers with gaps
    dates = table.set_column(3, "seen", pa.compute.cast(table["seen"], pa.date32()))
    expected = items(table, RECORD, PAIRS)
    assert expected["age=..18 & sex=F"] == expected["city=K\u00f6ln %26 Bonn & seen=2024-03"] == 1
    assert expected["age=(missing) & sex=(missing)"] == expected["sex=(other)"] == 1
    assert expected.total() == 3 * 7
    for source in (
        *(tmp_path / f"r.{ending}" for ending in ("parquet", "csv", "jsonl", "arrow")),
        frame,
        dates,
    ):
        assert items(source, RECORD, PAIRS) == expected
    both = items([tmp_path / "r.csv", tmp_path / "r.jsonl"], RECORD, PAIRS)
    assert both == expected + expected


def cell(name, kind, value):
    """One item by the rules of the guide, in plain Python."""
    if value is None or value == "":
        return f"{prefix(name)}(missing)"
    if isinstance(kind, list) and isinstance(kind[0], int):
        place = sum(value >= edge for edge in kind)
        return prefix(name) + intervals(",".join(map(str, kind)))[place]
    value = whole(unicodedata.normalize("NFC", value))
    is_other = isinstance(kind, list) and value not in kind
    return prefix(name) + ("(other)" if is_other else escaped(value))


NAMES = st.text(st.sampled_from("ab%&=\"' .é≠"), min_size=1, max_size=4)
TEXTS = st.none() | st.text(st.sampled_from("ab%&=()'\"\\ .01\u0301\n"), max_size=6)


@settings(max_examples=60)
@given(
    number=NAMES,
    free=NAMES,
    fixed=NAMES,
    rows=st.lists(st.tuples(st.none() | st.integers(-9, 9), TEXTS, TEXTS), min_size=1, max_size=8),
)
def test_the_engine_follows_the_rules(number, free, fixed, rows):
    names = [f"1{number}", f"2{free}", f"3{fixed}"]
    kinds = [[-3, 0, 4], "category", ["a", "1", "b&", "(("]]
    record = dict(zip(names, kinds, strict=True))
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    types = [pa.int64(), pa.string(), pa.string()]
    table = pa.table(
        {"id": list(range(len(rows)))}
        | {name: pa.array(columns[name], kind) for name, kind in zip(names, types, strict=True)}
    )
    expected = Counter()
    for row in rows:
        cells = [cell(name, kind, value) for name, kind, value in zip(names, kinds, row, strict=True)]
        expected.update([*cells, " & ".join([cells[0], cells[2]])])
    canonical = Counter(unicodedata.normalize("NFC", item) for item in expected.elements())
    assert items(table, record, [(names[2], names[0])]) == canonical


def test_a_vote_is_split_over_the_different_items_of_a_record():
    table = pa.table({"id": [1, 1, 2], "age": [17, 17, 50], "sex": ["F", "F", "M"]})
    record = {"age": [18], "sex": ["F", "M"]}
    names = al.record_items(record, [("age", "sex")])
    fixed = protocol(record, [("age", "sex")], al.Identity(input_dim=len(names)))
    sums = TableJob.of(table, fixed, EventColumns("id"), ONE).sums(KEY)
    voted = {name for name, count in zip(names, sums.values[0], strict=True) if count == VOTE // 3}
    assert voted == {"age=..18", "sex=F", "age=..18 & sex=F", "age=18..", "sex=M", "age=18.. & sex=M"}
    sketch = TableJob.of(table, protocol(record), EventColumns("id"), ONE).sums(KEY).values[0]
    columns = protocol(record).transform.columns(["age=..18", "sex=F", "age=18..", "sex=M"])
    assert sketch.tolist() == (VOTE // 2 * columns.sum(axis=1)).tolist()


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y"]), st.integers(0, 5), TEXTS), max_size=12
    ),
)
def test_one_person_moves_a_release_by_no_more_than_one_vote(rows):
    record = {"age": [2, 4], "sex": ["a", "b"]}
    names = al.record_items(record, [("age", "sex")])
    fixed = protocol(record, [("age", "sex")], al.Identity(input_dim=len(names)), total_share="0.5")
    groups = PublicGroups(("x", "y"), "where")

    def sums(kept):
        table = {"id": [row[0] for row in kept], "where": [row[1] for row in kept]}
        table |= {"age": pa.array([row[2] for row in kept], pa.int64())}
        table |= {"sex": pa.array([row[3] for row in kept], pa.string())}
        job = TableJob.of(pa.table(table), fixed, EventColumns("id", None, "where"), groups)
        return job.sums(KEY)

    everybody, others = sums(rows), sums([row for row in rows if row[0] != "a"])
    assert np.abs(everybody.values - others.values).sum() <= VOTE
    assert np.abs(everybody.totals - others.totals).sum() <= VOTE


def test_records_and_items_exclude_each_other():
    table = column([1, 2])
    with pytest.raises(al.ParameterError, match="item"):
        al.release(protocol({"x": [1]}), table, person="id", item="x", label="a", ledger=al.NO_LEDGER)
    plain = al.Protocol(OPEN, al.Counts(1), epsilon=1, unit="one patient")
    with pytest.raises(al.ParameterError, match="item"):
        al.release(plain, table, person="id", label="a", ledger=al.NO_LEDGER)
    with pytest.raises(al.ParameterError, match="different columns"):
        al.release(protocol({"id": [1]}), table, person="id", label="a", ledger=al.NO_LEDGER)


def test_a_record_has_no_weight():
    table = pa.table({"id": [1, 2], "x": ["F", "M"], "w": [3, -2]})
    with pytest.raises(al.ParameterError, match="where people vote"):
        TableJob.of(table, protocol({"x": ["F", "M"]}), EventColumns("id", None, None, "w"), ONE)


def test_messages_show_no_value(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(f"id,{SECRET}\n1,{SECRET}\n", encoding="utf-8")
    with pytest.raises(KeyError) as refused:
        items(path, {"x": [1]})
    assert not re.search(re.escape(SECRET), str(refused.value))


def test_beyond_chance_takes_records():
    rows = {"id": list(range(400)), "x": ["F", "M"] * 200, "where": ["a"] * 200 + ["b"] * 200}
    ask = {"person": "id", "group": "where", "public_groups": ["a", "b"], "ledger": al.NO_LEDGER}
    plain = al.release(protocol({"x": "category"}, total_share="0.5"), pa.table(rows), **ask)
    assert al.distances(plain, about="populations").value.shape == (2, 2)


DATA = Path(__file__).parents[4] / "shared" / "data"  # beside the project, where it is there


@pytest.mark.parametrize(
    ("name", "record", "pair"),
    [
        ("uci_heart_4hospitals", {"age": [40, 50, 60], "sex": ["0", "1"], "thal": "category"}, ("sex", "thal")),
        ("uci_adult", {"age": [25, 45], "income": ["<=50K", ">50K"], "country": "category"}, ("country", "income")),
    ],
)  # fmt: skip
def test_real_tables(name, record, pair):
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip("the real data is not beside the project")
    frame = pd.read_parquet(path)
    frame["id"] = range(len(frame))
    cells = {}
    for column, kind in record.items():
        if column == "age":
            texts = pd.cut(
                frame[column],
                [-np.inf, *kind, np.inf],
                right=False,
                labels=intervals(",".join(map(str, kind))),
            )
        else:
            texts = frame[column].map(lambda value: f"{value:g}" if isinstance(value, float) else value)
        texts = texts.astype(object).where(frame[column].notna(), "(missing)")
        cells[column] = [f"{column}={text}".replace("&", "%26") for text in texts]
    cells["pair"] = [" & ".join(both) for both in zip(*(cells[each] for each in pair), strict=True)]
    assert items(frame, record, [pair]) == Counter(item for column in cells.values() for item in column)
