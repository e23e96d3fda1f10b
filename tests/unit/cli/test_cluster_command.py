"""`armslength cluster` as it is typed."""

import csv
import io
import json
from functools import partial

import numpy as np
import pytest

import armslength as al
from armslength.cli.answers import drawn_tree
from unit.cli import commands

run = partial(commands.run, "cluster")

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


def test_a_tree_for_people(file):
    result = run(file)
    assert result.exit_code == 0
    answer, tree = result.output.split("\n\n")
    assert len(tree.splitlines()) == 10  # a legend, four merges and five leaves
    assert "b1, b2; each differs from every party outside" in answer
    assert "├─ " in tree
    for label in ("a1", "a2", "b1", "b2", "c"):
        assert label in answer
        assert label in tree


def test_the_drawing_has_every_leaf_once_below_its_merges(file):
    found = al.cluster(al.load(file))
    lines = drawn_tree(found)
    depth = {text.strip("├─└│ "): len(text) - len(text.lstrip("├─└│ ")) for text in lines}
    assert set(found.labels) < set(depth)
    assert depth["a1"] == depth["a2"] > depth["c"]


def test_merges_of_parties_that_differ_are_marked(file, tmp_path):
    sketches = al.release(PROTOCOL, np.zeros((6, 300), dtype=int), ledger=al.NO_LEDGER)
    sketches.save(tmp_path / "equal.parquet")
    surely = ("--level", "0.999999")
    assert run(tmp_path / "equal.parquet", *surely).output.count(" ≠\n") == 0
    assert run(file, *surely).output.count(" ≠\n") == 2  # three groups


def test_scripts_get_the_whole_tree(file):
    found = al.cluster(al.load(file))
    listed = json.loads(run(file, "--format", "json").stdout)
    assert listed["linkage"] == found.linkage.tolist()
    assert listed["differ"] == found.differ.tolist()
    assert listed["merges"] == found.merges
    assert listed["order"] == list(found.order)
    assert listed["groups"] == listed["clusters"] == found.flat().tolist()
    rows = list(csv.DictReader(io.StringIO(run(file, "--cut", "3", "--format", "csv").stdout)))
    clusters = {row["party"]: row["cluster"] for row in rows}
    assert clusters == {"a1": "0", "a2": "0", "b1": "1", "b2": "1", "c": "2"}
    groups = {row["party"]: int(row["group"]) for row in rows}
    assert [groups[label] for label in found.labels] == found.flat().tolist()
    assert [int(row["position"]) for row in rows] == list(range(5))


def test_a_cut_is_listed(file):
    text = run(file, "--cut", "2").output
    assert "cluster 1: c" in text


def test_wrong_input_is_one_line(file, tmp_path):
    al.release(PROTOCOL, np.zeros((1, 300), dtype=int), ledger=al.NO_LEDGER).save(tmp_path / "one.parquet")
    for arguments, message in [
        ((file, "--cut", "9"), "count must be"),
        ((tmp_path / "one.parquet",), "comparing needs at least 2 rows"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"armslength: {message}")
