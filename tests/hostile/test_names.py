"""Names of files that no file can have, or that a terminal would act on; columns that are too many or have odd types."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main

PROTOCOL = al.Protocol(
    al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), al.Counts(2), epsilon=1, unit="one patient"
)
ROLES = {"person": "person", "item": "item", "label": "north", "ledger": al.NO_LEDGER}
UNUSABLE = ["a\0b", "a" * 5000, "/" + "a" * 300, "a\n\x1b[31mb", "a\udcffb"]


def refused(ask):
    with pytest.raises(al.ArmslengthError) as caught:
        ask()
    assert str(caught.value).isprintable()


def release_to(ledger):
    return al.release(
        PROTOCOL, np.zeros((1, 2), int), items=["a", "b"], ledger=ledger, labels=["c"], population="p"
    )


@pytest.mark.parametrize("name", UNUSABLE)
def test_files_that_are_not_there_are_refused_in_one_line(name):
    refused(lambda: al.load(name))
    refused(lambda: al.load([name]))
    refused(lambda: al.Protocol.load(name))
    refused(lambda: al.Ledger(name, read_only=True))
    refused(lambda: al.release(PROTOCOL, f"{name}.csv", **ROLES))
    refused(lambda: al.release(PROTOCOL, name, **ROLES))


@pytest.mark.parametrize("name", UNUSABLE[:3])
def test_nothing_is_written_to_a_name_that_no_file_can_have(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(lambda: PROTOCOL.save(name))
    refused(lambda: release_to(name))
    refused(
        lambda: release_to(al.Ledger(name, create=True))
    )  # SQLite would take what stands before the first NUL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_a_damaged_table_of_an_odd_name_is_refused_in_one_line(kind, tmp_path):
    path = tmp_path / f"a\n\x1b[31m.{kind}"
    path.write_bytes(b'"\xff\n')
    refused(lambda: al.release(PROTOCOL, path, **ROLES))


def test_patterns_without_files_and_other_addresses_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("person,item\n1,x\n")
    for name in ("b*.csv", "[b-z].csv", "**/b/*.csv", "http://127.0.0.1:9/a.csv", "file:a.csv"):
        refused(lambda name=name: al.release(PROTOCOL, name, **ROLES))


def test_names_that_are_patterns_or_queries_are_that_file_alone(tmp_path):
    (tmp_path / "other.csv").write_text("nothing\n")
    for name in ("*.csv", "[a-z]?.csv", "a'; DROP TABLE x; --\".csv", "~a.csv", "{a,b}.csv"):
        path = tmp_path / name
        path.write_text("person,item\n1,x\n")
        assert len(al.release(PROTOCOL, path, **ROLES)) == 1


def test_columns_with_the_names_of_queries_are_columns(tmp_path):
    name = 'a"; DROP TABLE events; --'
    pq.write_table(pa.table({name: [1], "it'em": ["a"]}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"a\\"; DROP TABLE events; --": 1, "it\'em": "a"}\n')
    roles = {**ROLES, "person": name, "item": "it'em"}
    assert len(al.release(PROTOCOL, [tmp_path / "a.parquet", tmp_path / "a.jsonl"], **roles)) == 1


def test_types_are_shown_without_what_is_in_them(tmp_path):
    pq.write_table(pa.table({"person": [{"\x1b\n": 1}], "item": ["a"]}), tmp_path / "a.parquet")
    refused(lambda: al.release(PROTOCOL, tmp_path / "a.parquet", **ROLES))


def test_of_very_many_columns_two_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("person,item" + ",x" * 1_000_000 + "\np,i" + "," * 1_000_000 + "\n")
    assert len(al.release(PROTOCOL, path, **ROLES)) == 1


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    refused(lambda: al.release(PROTOCOL, tmp_path / "a.csv", **ROLES))
    refused(lambda: al.load(tmp_path / "a.csv"))


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("whole_folder", [False, True])
def test_names_of_files_do_not_act_on_a_terminal(form, whole_folder, tmp_path):
    name = "a\n\x1b[31m\x9b2J\u202eb.parquet"
    path = tmp_path / name
    release_to(al.NO_LEDGER).save(path)
    result = CliRunner().invoke(main, ["show", str(tmp_path if whole_folder else path), "--format", form])
    assert result.exit_code == 0
    assert all(line.isprintable() for line in result.output.split("\n"))
    if form == "json":
        assert json.loads(result.output)[0]["file"] == str(path)
