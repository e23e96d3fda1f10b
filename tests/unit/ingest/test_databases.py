"""Databases: the same events as from memory, text with types of its own, what is refused, and that nothing is written or shown."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from unit.ingest.tables_of_events import GROUPS, KEY, SECRET, as_table, counting_protocol, random_events

EVENTS = as_table(random_events(6, weighted=True))
COLUMNS = EventColumns("who", "what", "where", "amount")
ALL = PublicGroups(("all",), None)


def sums(source, columns=COLUMNS):
    job = TableJob.of(source, counting_protocol(), columns, PublicGroups(tuple(GROUPS), "where"))
    return job.sums(KEY).values.tolist()


def write_sqlite(table, path):
    with sqlite3.connect(path) as connection:
        names = ", ".join(f'"{name}"' for name in table.schema.names)
        connection.execute(f"CREATE TABLE visits ({names})")
        rows = [tuple(row.values()) for row in table.to_pylist()]
        connection.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * len(table.schema))})", rows)
    connection.close()
    return f"sqlite:///{path}"


def write_duckdb(table, path):
    with duckdb.connect(path) as connection:
        connection.register("events", table)
        connection.execute(
            "CREATE SCHEMA other; CREATE TABLE visits AS FROM events; CREATE TABLE other.visits AS FROM events"
        )
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def postgres():
    """A server of our own, and a table in it; skipped where there is none."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra armslength[postgresql] is not installed")
    places = [str(place) for place in Path("/usr/lib/postgresql").glob("*/bin")]
    programs = os.pathsep.join([*places, os.environ["PATH"]])
    initdb, pg_ctl = (shutil.which(name, path=programs) for name in ("initdb", "pg_ctl"))
    if initdb is None or pg_ctl is None:
        pytest.skip("no PostgreSQL server on this machine")
    run = ["env"]
    if os.geteuid() == 0:  # the server does not run as root
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        run = ["runuser", "-u", "nobody", "--"]
    # of its own: pytest closes the folder of its temporary files to other users
    folder = Path(tempfile.mkdtemp(prefix="armslength-postgres-"))
    if len(run) > 1:
        shutil.chown(folder, "nobody")
    options = f"-c listen_addresses= -k {folder}"
    subprocess.run(
        [*run, initdb, "-D", folder / "data", "-A", "trust", "-U", "me", "-E", "UTF8"],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    subprocess.run(
        [*run, pg_ctl, "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start"],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    try:
        yield f"postgresql://me@/postgres?host={folder}"
    finally:
        subprocess.run(
            [*run, pg_ctl, "-D", folder / "data", "-m", "immediate", "stop"],
            check=False,
            capture_output=True,
            cwd=folder,
        )
        shutil.rmtree(folder, ignore_errors=True)


def write_postgres(table, address):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS visits")
        cursor.adbc_ingest("visits", table, mode="create")
        connection.commit()
    return address


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def database(request, tmp_path):
    if request.param == "postgresql":
        return write_postgres(EVENTS, request.getfixturevalue("postgres"))
    return {"sqlite": write_sqlite, "duckdb": write_duckdb}[request.param](EVENTS, tmp_path / "visits.db")


def test_a_table_and_a_query_are_the_events(database):
    expected = sums(EVENTS)
    assert sums(al.Source(database, table="visits")) == expected
    assert (
        sums(al.Source(database, query='SELECT "amount", "what", "who", "where" FROM visits -- all of them'))
        == expected
    )
    assert sums(al.Source(database, query="SELECT * FROM visits;")) == expected
    some = EVENTS.filter(pa.compute.equal(EVENTS.column("where"), "north"))
    assert sums(al.Source(database, query="""SELECT * FROM visits WHERE "where" = 'north'""")) == sums(some)


def test_a_schema_may_be_named(database):
    schema = {"sqlite": "main", "duckdb": "other"}.get(database.split(":")[0], "public")
    assert sums(al.Source(database, table=f"{schema}.visits")) == sums(EVENTS)


@pytest.mark.parametrize(
    "known",
    [
        {"table": "nothing"},
        {"table": 'visits"; DROP TABLE visits; --'},
        {"query": "nonsense"},
        {"query": "DELETE FROM visits"},
        {"query": "SELECT 1); DELETE FROM visits; SELECT (1"},
        {"query": "SELECT * FROM visits) AS a; CREATE TABLE made AS (SELECT 1"},
        {"query": f"SELECT '{SECRET}' + who FROM nothing"},
    ],
)
def test_what_cannot_be_read_gets_one_line_and_changes_nothing(database, known):
    with pytest.raises(al.ArmslengthError) as caught:
        sums(al.Source(database, **known))
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert database not in str(caught.value)
    assert caught.value.__suppress_context__
    assert sums(al.Source(database, table="visits")) == sums(EVENTS)
    with pytest.raises(KeyError):
        sums(al.Source(database, table="made"))


def test_a_column_that_is_not_there(database):
    with pytest.raises(KeyError, match="its columns are 'who', 'where', 'what', 'amount'"):
        sums(al.Source(database, table="visits"), EventColumns("nobody", "what", "where"))


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"table": "nix"}, "its tables are .*'visits'"),
        ({"query": "SELECT who FROM nix"}, "its tables are .*'visits'"),
        ({"query": "SELECT nobody FROM visits"}, "column that does not exist"),
        ({"query": "SELECT who, FROM FROM visits"}, "one SELECT"),
    ],
)
def test_what_is_wrong_has_its_own_message(database, known, says):
    with pytest.raises(al.ArmslengthError, match=says) as caught:
        sums(al.Source(database, **known))
    assert "password" not in str(caught.value)


def test_a_server_that_is_not_there_and_one_that_refuses(postgres):
    for address in (f"postgresql://me:{SECRET}@127.0.0.1:1/x", f"postgresql://me:{SECRET}@host.invalid/x"):
        with pytest.raises(al.InputError, match="cannot connect") as caught:
            sums(al.Source(address, table="visits"))
        assert SECRET not in str(caught.value)
    for address in (postgres.replace("me@", "nobody@"), postgres.replace("/postgres?", "/nothing?")):
        with pytest.raises(al.InputError, match="refused the login"):
            sums(al.Source(address, table="visits"))


def test_a_table_or_a_query(database):
    for known in ({}, {"table": "visits", "query": "SELECT 1"}):
        with pytest.raises(al.ParameterError, match="either table or query"):
            sums(al.Source(database, **known))
    with pytest.raises(al.ParameterError, match="only to files"):
        sums(al.Source(database, table="visits", delimiter=";"))


def test_an_address_is_not_shown():
    address = f"postgresql://me:{SECRET}@127.0.0.1:1/x"
    assert SECRET not in repr(al.Source(address, table="t"))
    assert SECRET not in repr(al.Source(address, table="t").database)
    with pytest.raises(al.ArmslengthError) as caught:
        sums(al.Source(address, table="t"))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["sqlite://visits.db", "sqlite:///", "sqlite:///nothing.db", "duckdb:///nothing.db", "duckdb://x"],
)
def test_files_of_databases_must_be_there(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(al.ArmslengthError, match="database file"):
        sums(al.Source(address, table="t"))
    assert not list(tmp_path.iterdir())


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sqlite(EVENTS, "visits 1?.db")
    assert sums(al.Source("sqlite:///visits 1?.db", table="visits")) == sums(EVENTS)


def test_a_file_that_is_no_database(tmp_path):
    for scheme in ("sqlite", "duckdb"):
        (tmp_path / "e.db").write_bytes(b"SQLite format 3\0" + SECRET.encode() * 100)
        with pytest.raises(al.InputError) as caught:
            sums(al.Source(f"{scheme}:///{tmp_path}/e.db", table="visits"))
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "query", ["FROM read_text('{0}')", "FROM '{0}'", "FROM read_csv('{0}')", "SELECT * FROM glob('{0}*')"]
)
def test_a_query_of_duckdb_reads_its_own_database_alone(query, tmp_path):
    address = write_duckdb(EVENTS, tmp_path / "visits.db")
    (tmp_path / "other.csv").write_text("who,what,where,amount\np,1,north,1\n")
    with pytest.raises(al.InputError):
        sums(al.Source(address, query=query.format(tmp_path / "other.csv")))


MIXED = [
    # who, what counts of (person, item 3)
    ("7", 3),
    (7, 3),
    (7.0, 3),
    (b"7", 3),
    (7.5, 3),
    (None, 3),
    ("", 3),
    (" 7.0 ", 3),
    (float("inf"), 3),
    (2.0**53, 3),
    (2**53, 3),
    (2.0**54, 3),
    ("8", "3"),
    ("9", 3.0),
    ("10", 3.5),
    ("11", b"3"),
]


def test_values_of_sqlite_have_types_of_their_own(tmp_path):
    address = write_sqlite(pa.table({"who": [], "what": []}), tmp_path / "visits.db")
    with sqlite3.connect(tmp_path / "visits.db") as connection:
        connection.executemany("INSERT INTO visits VALUES (?, ?)", MIXED)
        connection.execute("INSERT INTO visits VALUES (CAST(x'ff37' AS TEXT), 3)")  # text that is no text
    connection.close()
    job = TableJob.of(
        al.Source(address, table="visits"), counting_protocol(1), EventColumns("who", "what"), ALL
    )
    # 7, 2^53, 8 and 9; the others name nobody, or no item
    assert job.sums(KEY).values.tolist()[0][3] == 4


def test_weights_of_sqlite_are_exact(tmp_path):
    weights = [1 / 3, 0.1, 2.0**-30, 12345678.87654321, -5, 2**61]
    address = write_sqlite(pa.table({"who": [], "what": [], "w": []}), tmp_path / "visits.db")
    with sqlite3.connect(tmp_path / "visits.db") as connection:
        rows = [(str(n), n, weight) for n, weight in enumerate(weights)]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    connection.close()
    fine = counting_protocol(2**5, 1000, resolution=2.0**-30, on_grid=False, changed_entries=12)
    columns = EventColumns("who", "what", weight="w")
    memory = pa.table(
        {"who": [str(n) for n in range(6)], "what": list(range(6)), "w": [float(w) for w in weights]}
    )
    found, right = (
        TableJob.of(source, fine, columns, ALL).sums(KEY).values.tolist()
        for source in (al.Source(address, table="visits"), memory)
    )
    assert found == right


def test_types_of_duckdb_are_its_own(tmp_path):
    with duckdb.connect(tmp_path / "e.db") as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i::HUGEINT AS huge, i::DECIMAL(9, 0) AS whole, i::DOUBLE AS real, uuid() AS id, "
            "'n'::ENUM('n') AS enumerated, DATE '2026-01-01' + i::INTEGER AS day, {'a': i} AS struct, 3 AS what FROM range(5) t(i)"
        )
    source = al.Source(f"duckdb:///{tmp_path}/e.db", table="visits")
    for person, people in {"huge": 5, "whole": 5, "real": 5, "id": 5, "enumerated": 1, "day": 5}.items():
        job = TableJob.of(source, counting_protocol(1), EventColumns(person, "what"), ALL)
        assert job.sums(KEY).values.tolist()[0][3] == people
    with pytest.raises(al.InputError, match="person must be a column of text or numbers"):
        TableJob.of(source, counting_protocol(1), EventColumns("struct", "what"), ALL).sums(KEY)


def test_types_of_postgresql_are_text(postgres):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS typed")
        cursor.execute(
            "CREATE TABLE typed AS SELECT i::numeric(10, 2) AS whole, i::float8 AS real, gen_random_uuid() AS id, "
            "DATE '2026-01-01' + i AS day, i::text || '.0' AS spelled, 3 AS what, 0.1::float8 + 0.2 AS w FROM generate_series(1, 5) i"
        )
        connection.commit()
    source = al.Source(postgres, table="typed")
    for person in ("whole", "real", "id", "day", "spelled"):
        job = TableJob.of(source, counting_protocol(1), EventColumns(person, "what"), ALL)
        assert job.sums(KEY).values.tolist()[0][3] == 5
    mixed = "SELECT whole::text AS who, 3 AS what FROM typed UNION ALL SELECT spelled, 3 FROM typed UNION ALL SELECT real::text, 3 FROM typed"
    job = TableJob.of(
        al.Source(postgres, query=mixed), counting_protocol(1), EventColumns("who", "what"), ALL
    )
    assert job.sums(KEY).values.tolist()[0][3] == 5


def test_without_the_driver_there_is_a_way_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(ImportError, match=r"armslength\[postgresql\]"):
        sums(al.Source("postgresql://me@host/x", table="visits"))


def test_a_sqlite_file_is_not_written(tmp_path):
    address = write_sqlite(EVENTS, tmp_path / "visits.db")
    before = (tmp_path / "visits.db").read_bytes()
    (tmp_path / "visits.db").chmod(0o400)
    sums(al.Source(address, table="visits"))
    assert (tmp_path / "visits.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["visits.db"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "pandas", "sqlite", "table"])
def test_a_person_written_as_5_and_as_5_0_counts_once(form, tmp_path):
    who = ["5", "5.0", " 5.00 ", "5.", "-7", "-7.0", "5.5", "5.50"]
    people = 4  # 5, -7, 5.5 and 5.50
    source = pa.table({"who": who, "what": [3] * len(who)})
    if form == "csv":
        source = tmp_path / "e.csv"
        source.write_text("who,what\n" + "".join(f"{each},3\n" for each in who))
    elif form == "jsonl":
        source = tmp_path / "e.jsonl"
        numbers = ["5", "5.0", "5.00", "5e0", "-7.0", "-7", "0.5e1", "5.5", "1e300", "-0.0", "0", "0.0"]
        values = [*map(json.dumps, who), *numbers]
        source.write_text("".join(f'{{"who": {each}, "what": 3}}\n' for each in values))
        people += 1  # 0; the numbers 5.5 and 1e300 are nobody
    elif form == "parquet":
        source = tmp_path
        floats = pa.array([5.0, -7.0, 5.5, float("nan"), float("inf"), None, 2.0**54, -0.0])
        pq.write_table(pa.table({"who": floats, "what": [3] * 8}), tmp_path / "1.parquet")
        singles = pa.array([5.0, -7.0, 5.5, 2.0**25], pa.float32())
        pq.write_table(pa.table({"who": singles, "what": [3] * 4}), tmp_path / "2.parquet")
        pq.write_table(pa.table({"who": [5, 0], "what": [3] * 2}), tmp_path / "3.parquet")
        pq.write_table(pa.table({"who": who, "what": [3] * len(who)}), tmp_path / "4.parquet")
        people += 1  # 0
    elif form == "pandas":
        source = pd.DataFrame({"who": [5, None, 5, -7, 0], "what": [3] * 5})
        assert source["who"].dtype == "float64"
        people = 3
    elif form == "sqlite":
        source = al.Source(write_sqlite(source, tmp_path / "e.db"), table="visits")
    job = TableJob.of(source, counting_protocol(1), EventColumns("who", "what"), ALL)
    assert job.sums(KEY).values.tolist()[0][3] == people
