"""`armslength cluster` as it is typed."""

import csv
import io
import json
from functools import partial

import numpy as np
import pytest

import armslength as al
from unit.cli import commands

run = partial(commands.run, "cluster")
SURELY = ("--level", "0.999999")

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="cluster command"), epsilon=1
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    x = np.zeros((5, 300), dtype=int)
    x[2:4, :150], x[4, 150:] = 900, 4000
    path = tmp_path_factory.mktemp("cluster") / "sketches.parquet"
    al.release(PROTOCOL, x, labels=["a1", "a2", "b1", "b2", "c"], ledger=al.NO_LEDGER).save(path)
    return path


def test_groups_for_people(file):
    done = run(file, *SURELY)
    assert done.exit_code == 0
    question, *_ = done.output.splitlines()
    assert "all 10 pairs together" in question
    groups = [line for line in done.output.splitlines() if line.startswith(("  A", "  B", "  –"))]
    assert [line[5:].split(";")[0] for line in groups] == ["a1, a2", "b1, b2", "c"]
    assert all("differs from every" in line for line in groups)


def test_parties_of_one_group_are_listed_once(tmp_path):
    labels = list("uvwxyz")
    sketches = al.release(PROTOCOL, np.zeros((6, 300), dtype=int), labels=labels, ledger=al.NO_LEDGER)
    sketches.save(tmp_path / "equal.parquet")
    done = run(tmp_path / "equal.parquet", *SURELY)
    assert "u, v, w, x, y, z" in done.output
    assert "  –" not in done.output


def test_parties_that_are_alike_can_be_in_one_group(file):
    """However surely a difference was found."""
    rows = json.loads(run(file, "--alike", 10**6, "--format", "json").stdout)
    assert [row["group"] for row in rows] == [0] * 5


def test_scripts_get_a_row_for_each_party(file):
    found = al.cluster(al.load(file))
    rows = json.loads(run(file, "--format", "json").stdout)
    assert rows == found.to_arrow().to_pylist()
    text = csv.DictReader(io.StringIO(run(file, "--format", "csv").stdout))
    assert list(text) == [{name: str(value) for name, value in row.items()} for row in rows]


def test_wrong_input_is_one_line(file, tmp_path):
    al.release(PROTOCOL, np.zeros((1, 300), dtype=int), ledger=al.NO_LEDGER).save(tmp_path / "one.parquet")
    for arguments, name in [((file, "--level", "2"), "--level"), ((tmp_path / "one.parquet",), "at least 2")]:
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("armslength: ")
        assert name in result.stderr
        assert result.stderr.count("\n") == 1
