"""Releases from Spark: the integers of one machine, the ledger charged once, one clear line for everything else."""

import subprocess
import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, sampled_from, text

import armslength as al
import armslength.spark
from armslength.errors import OutOfMemoryError
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.protocol.neighbors import VOTE
from armslength.spark import spark_tables as module
from armslength.spark.frames import decomposed_letters
from armslength.spark.spark_tables import SparkTableJob
from spark.tables import (
    COLUMNS,
    COUNTED,
    NAMES,
    PROTOCOL,
    events,
    frame_of,
    in_spark,
    on_one_machine,
    same,
    voting,
    with_margins,
)
from unit.ingest.tables_of_events import GROUPS, KEY, SECRET

ROLES = {"person": "who", "item": "what", "group": "where", "public_groups": GROUPS}


def release(source, protocol=PROTOCOL, **known):
    return armslength.spark.release_table(source, protocol, **{**ROLES, "ledger": al.NO_LEDGER, **known})


@pytest.mark.parametrize(
    ("protocol", "known", "partitions"),
    [
        (PROTOCOL, {}, 5),
        (voting(), {}, 4),
        (voting(spread_sample="0.4"), {}, 3),
        (with_margins(), {}, 4),
        (COUNTED, {"vocabulary": NAMES}, 1),
    ],
    ids=["amounts", "votes", "a sample", "margins", "vocabulary"],
)
def test_the_integers_are_those_of_one_machine(session, monkeypatch, protocol, known, partitions):
    monkeypatch.setattr(module, "_CHUNK_BYTES", (100, 100))
    table = events(partitions)
    job = in_spark(frame_of(session, table), protocol, partitions, **known)
    assert same(job.sums(KEY), on_one_machine(table, protocol, **known).sums(KEY))


@settings(max_examples=5)
@given(
    partitions=integers(1, 9),
    pieces=integers(1, 6),
    seed=integers(0, 100),
    protocol=sampled_from([PROTOCOL, voting(), voting(spread_sample="0.5")]),
    twice=booleans(),
)
def test_any_partitioning_gives_the_integers_of_one_machine(
    session, partitions, pieces, seed, protocol, twice
):
    table = events(seed)
    frame = frame_of(session, table).repartition(pieces)
    if twice:  # a frame that is joined with itself has every event twice, which two readings must agree on
        frame, table = frame.unionByName(frame), pa.concat_tables([table, table])
    job = in_spark(frame, protocol, partitions)
    expected = on_one_machine(table, protocol).sums(KEY)
    assert same(job.sums(KEY), expected)
    assert frame.count() == len(table)  # another action, and the same answer after it
    assert same(job.sums(KEY), expected)


def test_one_person_in_several_spellings_is_one_person(session):
    spellings = [
        "Ren\u00e9 1",
        "Rene\u0301 1",
        "Ren\u00e9 1 ",
        "\tRene\u0301 1\u00a0",
        "\u212a2",
        "K2",
        "\u3000K2",
        "5",
        "5.0",
        " 5.00\u00a0",
        "\u9f9c",
        "\uf907",
    ]
    rows = [(who, "north", f"i{n}", 1) for who in spellings for n in range(4)]
    rows += [(f"p{number}", "north", "x", 1) for number in range(20)] + [
        (" ", "north", "x", 1),
        ("", "north", "x", 1),
    ]
    protocol = voting()
    frame = session.createDataFrame(rows, COLUMNS).repartition(5)
    expected = on_one_machine(
        pa.table(dict(zip(["who", "where", "what", "amount"], zip(*rows, strict=True), strict=True))),
        protocol,
    ).sums(KEY)
    assert expected.totals.tolist() == [(4 + 20) * VOTE, 0, 0, 0]
    for partitions in (1, 7, 16):
        assert same(in_spark(frame, protocol, partitions).sums(KEY), expected)


@given(text=text(max_size=8))
def test_spellings_of_one_person_go_to_one_place(text):
    def place(name):
        letters = decomposed_letters()
        return "".join(each for each in (letters.get(each, each) for each in name) if "!" <= each <= "~")

    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    assert len({place(each) for form in forms for each in (form, f" {form}\u00a0")}) == 1


def test_a_table_by_name_is_released_once(session, tmp_path):
    whole = "try_cast(substring(who, 2) AS INT) AS who"  # persons by number, under names that need quotes
    frame = frame_of(session, events()).selectExpr(whole, "where AS `no.where`", "what AS `wh``at`")
    frame.createOrReplaceTempView("visits")
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    known = {"item": "wh`at", "group": "no.where", "population": "visits", "ledger": ledger}
    sketches = release("visits", partitions=2, **known)
    assert sketches.labels == tuple(GROUPS)
    assert isinstance(sketches.values, np.ndarray)
    with pytest.raises(al.BudgetError):
        release("visits", **known)
    assert len(ledger.entries()) == 1
    assert {source for _, source in sketches.releases} == {"events"}
    clear = al.concat([sketches, al.sketch_in_clear(sketches.protocol, [[1]], labels=["query"], items=["a"])])
    marks = armslength.spark.to_frame(clear, session).select("label", "in_clear").collect()
    assert {row["label"]: row["in_clear"] for row in marks} == {**dict.fromkeys(GROUPS, False), "query": True}
    # two actions and a self-join of what was released show the same numbers
    released = armslength.spark.to_frame(sketches, session)
    twice = released.join(released.withColumnRenamed("values", "again"), "label").collect()
    first = {row["label"]: (row["values"], row["total"]) for row in released.collect()}
    assert all(row["values"] == row["again"] == first[row["label"]][0] for row in twice)
    packed = np.stack([np.frombuffer(first[label][0], dtype="<i8") for label in GROUPS])
    assert packed.tolist() == sketches.values.tolist()
    assert [first[label][1] for label in GROUPS] == sketches.totals.tolist()


def test_a_ledger_must_exist_before_anything_is_read(tmp_path):
    known = {"ledger": tmp_path / "missing.sqlite", "population": "visits"}
    with pytest.raises(FileNotFoundError, match="no such ledger"):
        release(None, **known)
    assert list(tmp_path.iterdir()) == []


def test_a_weight_that_is_no_number_is_left_out(session):
    protocol = al.Protocol(
        PROTOCOL.transform, al.Counts(1, total_share="0.5"), epsilon=1000, unit="one person"
    )
    frame = session.createDataFrame(
        [("a", "north", SECRET, 1.0), ("b", "north", SECRET, float("nan")), ("c", "north", "\u0378", 1.0)],
        COLUMNS.replace("BIGINT", "DOUBLE"),
    )
    assert release(frame, protocol, weight="amount", partitions=1).totals.tolist() == [1, 0, 0, 0]


def test_what_cannot_be_done_is_one_line_and_costs_nothing(session, tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    frame = session.createDataFrame([(f"p{number}", "north", SECRET, 1) for number in range(20_000)], COLUMNS)
    with pytest.raises(OutOfMemoryError, match="too little") as caught:
        release(frame, partitions=1, population="visits", ledger=ledger, memory="1KB")
    assert caught.value.__cause__ is None
    assert ledger.entries() == []


def test_functions_of_the_session_do_not_say_where_a_person_belongs(session):
    other = session.newSession()
    frame = frame_of(other, events().slice(0, 3))
    assert release(frame).labels == tuple(GROUPS)
    other.udf.register("xxhash64", lambda _: 1, "bigint")
    if other.sql("SELECT xxhash64('x')").collect()[0][0] == 1:  # Spark 3.5 takes theirs
        with pytest.raises(al.ParameterError, match="replaces one of Spark's own"):
            release(frame)
    else:
        assert release(frame).labels == tuple(GROUPS)


def test_a_job_that_fails_is_one_line_and_costs_nothing(session, tmp_path, capfd):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    strict = session.newSession()
    strict.conf.set("spark.sql.ansi.enabled", "true")
    cast = frame_of(strict, events()).selectExpr(
        f"CAST(concat(who, '{SECRET}') AS INT) AS who", "where", "what"
    )
    with pytest.raises(al.InputError, match="could not compute"):
        release(cast, population="v", ledger=ledger)
    assert SECRET not in capfd.readouterr().err
    frame = frame_of(session, events()).selectExpr("who", "where", f"raise_error('{SECRET}') AS what")
    with pytest.raises(al.InputError, match="could not compute") as caught:
        release(
            frame.selectExpr("who", "where", "CAST(what AS STRING) AS what"), population="v", ledger=ledger
        )
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "Exception" not in str(caught.value.__cause__)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("columns", "known", "says"),
    [
        ("1.5 AS who, where, what", {}, "person must be a column of text or numbers"),
        ("current_timestamp() AS who, where, what", {}, "person must be a column of text or"),
        ("who, where, 1 AS what", {}, "item must be of the protocol's type string"),
        ("who, where, what, what AS amount", {"weight": "amount"}, "weight must be a column of numbers"),
        ("who, where, what", {"person": "Who"}, "person: no column 'Who'"),
        ("who, what AS WHO, where, what", {}, "person: several columns"),
        ("who, where, what", {"partitions": 0}, "partitions must be an integer from 1"),
        ("who, where, what", {"memory": "much"}, "memory must be a size"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_job(session, monkeypatch, columns, known, says):
    monkeypatch.setattr(module, "local_rows", None)
    frame = frame_of(session, events().slice(0, 3)).selectExpr(*columns.split(", "))
    with pytest.raises(al.ArmslengthError, match=says) as caught:
        release(frame, **known)
    assert "\n" not in str(caught.value)


def test_sources_that_are_no_tables_are_refused(session):
    for source, says in [
        (events(), "Spark DataFrame or the name"),
        ("no_such_table", "no table 'no_such_table'"),
        (session.readStream.format("rate").load(), "has no end"),
    ]:
        with pytest.raises(al.ArmslengthError, match=says):
            release(source)
    with pytest.raises(al.ParameterError, match="sketches must be"):
        armslength.spark.to_frame([1], session)
    with pytest.raises(al.ParameterError, match="session must be"):
        armslength.spark.to_frame(al.sketch_in_clear(COUNTED, [[1] * 12]), None)


def test_persons_that_are_equal_under_a_collation_are_different_persons(session):
    if session.version < "4":
        pytest.skip("collations came with Spark 4")
    table = events()
    loose = frame_of(session, table).selectExpr(
        "collate(who, 'UTF8_LCASE_RTRIM') AS who", "where", "what", "amount"
    )
    upper = loose.selectExpr(
        "CASE WHEN what = 'i3' THEN concat(upper(who), ' ') ELSE who END AS who", "where", "what", "amount"
    )
    rows = upper.collect()
    found = in_spark(upper, partitions=2).sums(KEY)
    arrow = type(table).from_pylist([row.asDict() for row in rows], schema=table.schema)
    assert len({row["who"] for row in rows}) > len(set(table.column("who").to_pylist()))
    assert same(found, on_one_machine(arrow).sums(KEY))


def test_without_pyspark_there_is_one_clear_line():
    code = "import sys; sys.modules['pyspark'] = None\nimport armslength\nimport armslength.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith('armslength.spark needs PySpark: pip install "armslength[spark]"')


def test_records_are_those_of_one_machine(session):
    rows = [
        (f"p{n % 40}", float(n % 90), None if n % 7 == 0 else "FM"[n % 2], n % 3 == 0) for n in range(300)
    ]
    names = ["who", "age", "sex", "well"]
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    schema = "who STRING, age DOUBLE, sex STRING, well BOOLEAN"
    record = {"age": [18, 40, 65], "sex": ["F", "M"], "well": "category"}
    protocol = voting(record=record, record_pairs=[("age", "sex")])
    job = TableJob.of(table, protocol, EventColumns("who"), PublicGroups(("all",), None))
    spark = SparkTableJob.of_frame(frame_of(session, table, schema), job, partitions=3)
    assert same(spark.sums(KEY), job.sums(KEY))
    ask = {"item": None, "group": None, "public_groups": None, "label": "all"}
    assert len(release(frame_of(session, table, schema), protocol, **ask)) == 1


def test_persons_that_are_floats_are_whole_numbers(session):
    who = [5.0, 5.0, -0.0, 0.0, 5.5, float("nan"), None, 2.0**54]
    rows = [(person, "north", f"i{n}", 1) for n, person in enumerate(who)]
    frame = session.createDataFrame(rows, "who DOUBLE, where STRING, what STRING, amount INT")
    protocol = voting()
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(["who", "where", "what", "amount"], columns, strict=True)))
    expected = on_one_machine(table, protocol).sums(KEY)
    assert expected.totals.tolist() == [2 * VOTE, 0, 0, 0]
    for partitions in (1, 16):
        assert same(in_spark(frame, protocol, partitions).sums(KEY), expected)
