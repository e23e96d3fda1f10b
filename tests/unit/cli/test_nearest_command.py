"""`armslength nearest` as it is typed."""

import csv
import io
import json
from functools import partial

import numpy as np
import pytest

import armslength as al
from unit.cli import commands

run = partial(commands.run, "nearest")

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=300, sketch_dim=128, sparsity=1, seed="nearest command"), epsilon=1
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    x = np.zeros((5, 300), dtype=int)
    x[2, :150], x[3, 150:], x[4, 150:] = 900, 900, 900
    path = tmp_path_factory.mktemp("nearest") / "sketches.parquet"
    al.release(PROTOCOL, x, labels=list("abcde"), ledger=al.NO_LEDGER).save(path)
    return path


def test_a_table_for_people(file):
    result = run(file, "--count", "2", "--level", "0.999999")
    assert result.exit_code == 0
    question, _, _, heading, *lines = result.output.splitlines()
    assert "all parties together" in question
    assert heading.split() == ["party", "rank", "nearest", "verdict", "distance"]
    lines = [line.split() for line in lines if line]
    assert len(lines) == 5 * 2
    assert lines[0][:4] == ["a", "1", "b", "inconclusive"]
    assert lines[0][-1] == "nearest"
    assert lines[0][-2] != "be"
    assert lines[1][0] == "a"
    assert lines[1][3] == "differ"
    assert lines[1][-1] != "nearest"
    assert lines[4][-3:] == ["could", "be", "nearest"]
    assert "each party by itself" in run(file, "--each").output.splitlines()[0]


def test_scripts_get_every_digit(file):
    expected = al.nearest(al.load(file), count=3).to_arrow().to_pylist()
    assert json.loads(run(file, "--count", "3", "--format", "json").stdout) == expected
    rows = list(csv.DictReader(io.StringIO(run(file, "--count", "3", "--format", "csv").stdout)))
    assert [float(row["upper"]) for row in rows] == [row["upper"] for row in expected]
    each = json.loads(run(file, "--count", "3", "--each", "--format", "json").stdout)
    assert all(one["upper"] < other["upper"] for one, other in zip(each, expected, strict=True))


def test_one_query_is_not_its_own_answer(file):
    rows = json.loads(run(file, "--query", "d", "--format", "json").stdout)
    assert len(rows) == 4
    assert {row["query"] for row in rows} == {"d"}
    assert rows[0]["label"] == "e"


def test_another_index(file, tmp_path):
    x = np.zeros((2, 300), dtype=int)
    x[1, :150] = 900
    al.release(PROTOCOL, x, labels=["zero", "half"], ledger=al.NO_LEDGER).save(tmp_path / "index.parquet")
    rows = json.loads(
        run(file, "--index", tmp_path / "index.parquet", "--count", "1", "--format", "json").stdout
    )
    assert [row["label"] for row in rows][:3] == ["zero", "zero", "half"]
    one = run(file, "--index", tmp_path / "index.parquet", "--query", "c", "--format", "json")
    assert [row["label"] for row in json.loads(one.stdout)] == ["half", "zero"]


def test_data_in_the_clear_is_said(file, tmp_path):
    clear = al.sketch_in_clear(PROTOCOL, np.zeros((1, 300), dtype=int), labels=["query"])
    clear.save(tmp_path / "clear.parquet")
    table = run(tmp_path / "clear.parquet", "--index", file)
    assert table.output.splitlines()[-1] == "data in the clear is part of it: not private"
    listed = run(tmp_path / "clear.parquet", "--index", file, "--format", "json")
    assert listed.stderr == "armslength: data in the clear is part of it: not private\n"


def test_wrong_input_is_one_line(file):
    for arguments, message in [
        ((file, "--query", "nowhere"), "no sketch labelled"),
        ((file, "--count", "0"), "--count must be"),
        ((file, "--about", "people"), "--about 'people' needs the number of people"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"armslength: {message}")
