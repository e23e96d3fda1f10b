"""Folders where sketch files are taken: the same answers as from their files."""

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main

TRANSFORM = al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="folders")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
PARTS = {"part-0": ["north", "south"], "part-1": ["east"], "part-2": ["west", "island", "north pole"]}


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(4)
    top = tmp_path / "rows"
    top.mkdir()
    (top / "_SUCCESS").touch()
    for name, labels in PARTS.items():
        rows = rng.integers(0, 500, (len(labels), 300))
        PROTOCOL.release(rows, labels=labels, ledger=al.NO_LEDGER).save(top / f"{name}.parquet")
    return top


def files_of(folder):
    return [folder / f"{name}.parquet" for name in PARTS]


@pytest.mark.parametrize("flags", [[], ["--top", "4"], ["--against", "east"]], ids=str)
def test_compare_says_the_same_of_a_folder_as_of_its_files(flags, folder):
    for form in ("json", "csv"):
        found = run("compare", folder, *flags, "--format", form)
        assert found.exit_code == 0, found.output
        assert found.stdout == run("compare", *files_of(folder), *flags, "--format", form).stdout
    lines = run("compare", folder, *flags).output.splitlines()
    assert lines[0].split() == ["left", "right", "distance", "from", "to"]
    expected = run("compare", *files_of(folder), *flags).output.splitlines()
    assert [line.split() for line in lines] == [line.split() for line in expected]


def test_every_command_that_reads_sketch_files_takes_a_folder(folder, tmp_path):
    page, card = tmp_path / "page.html", tmp_path / "card.json"
    for command in (
        ["outliers"],
        ["alike", "--left", "north", "--right", "west", "--within", 100],
        ["verify", "--format", "json"],
        ["inspect", "--format", "csv"],
        ["cluster", "--cut", 2],
        ["nearest", "--count", 1],
    ):
        found = run(command[0], folder, *command[1:])
        assert found.exit_code == 0, found.output
        if command[0] != "inspect":  # which lists files of a folder, and rows of files
            expected = run(command[0], *files_of(folder), *command[1:])
            assert found.stdout == expected.stdout
    assert run("report", folder, "-o", page).exit_code == 0
    from_folder = page.read_text(encoding="utf-8")
    assert run("report", *files_of(folder), "-o", page).exit_code == 0
    assert page.read_text(encoding="utf-8") == from_folder
    assert run("card", folder, "--format", "json", "-o", card).exit_code == 0
    assert json.loads(card.read_text(encoding="utf-8"))["in_clear"] is False
    assert run("drift", folder, folder).exit_code == 0
    assert run("sum", folder, "--label", "all", "-o", tmp_path / "sum.parquet").exit_code == 0
    assert al.load(tmp_path / "sum.parquet").labels == ("all",)
    refused = run("sum", folder, "--label", "all", "--overwrite", "-o", files_of(folder)[0])
    assert refused.exit_code == 2
    assert al.load(folder).labels == tuple(label for labels in PARTS.values() for label in labels)


def test_one_label_against_all_others_whatever_they_are_called(folder):
    found = json.loads(run("compare", folder, "--against", "north", "--format", "json").stdout)
    assert sorted(row["right"] for row in found) == ["east", "island", "north pole", "south", "west"]
    refused = run("compare", folder, "--against", "nobody")
    assert refused.exit_code == 2
    assert "'nobody'" in refused.output
    assert len(refused.output.splitlines()) == 1


def test_each_query_of_a_label_has_its_own_verdict(folder):
    far, near = folder / "far", folder / "near"
    for place, rows in (
        (far, [[0] * 300, [10**6] * 300]),
        (near, [[0] * 300, [1] + [0] * 299, [10**6] * 300]),
    ):
        place.mkdir()
        names = [f"{place.name} {number}" for number in range(len(rows))]
        PROTOCOL.release(np.array(rows), labels=names, ledger=al.NO_LEDGER).save(place / "index.parquet")
    queries = folder / "queries"
    queries.mkdir()
    for number, value in enumerate((10**6, 0)):
        query = PROTOCOL.release(np.full((1, 300), value), labels=["q"], ledger=al.NO_LEDGER)
        query.save(queries / f"{number}.parquet")
    asked = al.load(queries)
    shown = str(al.nearest(asked, al.load(near), count=1)).splitlines()
    assert "surely nearest" in shown[1]
    assert "could be nearest" in shown[2]
    assert str(al.nearest(asked, al.load(far), count=1)).count("surely nearest") == 2


def test_nearest_takes_queries_from_a_folder(folder):
    found = run("nearest", folder, "--count", "2", "--format", "json")
    assert found.exit_code == 0, found.output
    assert found.stdout == run("nearest", *files_of(folder), "--count", "2", "--format", "json").stdout
    index = files_of(folder)[2]
    flags = ["--query", "south", "--index", index, "--format", "csv"]
    assert run("nearest", folder, *flags).stdout == run("nearest", *files_of(folder), *flags).stdout


@pytest.mark.parametrize("flags", [(), ("--cut", "2")])
def test_cluster_says_the_same_of_a_folder_as_of_its_files(flags, folder):
    for form in ("table", "json", "csv"):
        found = run("cluster", folder, *flags, "--format", form)
        assert found.exit_code == 0, found.output
        assert found.stdout == run("cluster", *files_of(folder), *flags, "--format", form).stdout
    assert "north pole" in found.stdout


def test_nearest_searches_a_folder(folder):
    query = files_of(folder)[0]
    flags = ["--count", "3", "--format", "json"]
    found = run("nearest", query, "--index", folder, *flags)
    assert found.exit_code == 0, found.output
    named = [flag for path in files_of(folder) for flag in ("--index", path)]
    assert found.stdout == run("nearest", query, *named, *flags).stdout
    one = run("nearest", folder, "--query", "south", *flags)
    assert one.stdout == run("nearest", *files_of(folder), "--query", "south", *flags).stdout
    assert len(json.loads(one.stdout)) == 3


def test_inspect_counts_and_reads_no_row(folder, monkeypatch):
    monkeypatch.setattr("armslength.sketches.sketch_file.SketchFile.sketches", None)  # must not be reached
    shown = run("inspect", folder).output.splitlines()
    size = sum(path.stat().st_size for path in files_of(folder))
    assert shown[0] == f"{folder}: 3 files, 6 rows of 64 numbers, SparseJL, {size:,} bytes"
    assert shown[1] == f"space {PROTOCOL.space}"
    assert "one patient" in " ".join(shown)
    assert shown[-4].split() == ["file", "rows", "row", "groups", "bytes"]
    assert [line.split()[-3:-1] for line in shown[-3:]] == [["2", "1"], ["1", "1"], ["3", "1"]]
    document = json.loads(run("inspect", folder, "--format", "json").output)
    assert (document["rows"], document["sketch_dim"]) == (6, 64)
    assert [file["rows"] for file in document["files"]] == [2, 1, 3]
    assert document["card"]["releases"][0]["protocol"] == PROTOCOL.fingerprint
    rows = list(csv.DictReader(io.StringIO(run("inspect", folder, "--format", "csv").output)))
    assert [row["file"] for row in rows] == list(map(str, files_of(folder)))


def test_inspect_shows_names_on_one_line(folder):
    odd = files_of(folder)[1].rename(folder / "part\n-1\x1b.parquet")
    for arguments in ([folder], [odd]):
        shown = run("inspect", *arguments).output
        assert r"part\n-1\x1b.parquet" in shown
        assert all(line.isprintable() for line in shown.splitlines())
    document = json.loads(run("inspect", folder, "--format", "json").output)
    assert str(odd) in [file["file"] for file in document["files"]]


def test_inspect_shows_some_files_and_protocols_of_many(folder):
    for number in range(30):
        protocol = al.Protocol(TRANSFORM, epsilon=number + 2)
        one = protocol.release(np.zeros((1, 300), dtype=int), labels=["x"], ledger=al.NO_LEDGER)
        one.save(folder / f"x{number:02}.parquet")
    shown = run("inspect", folder).output.splitlines()
    assert shown[-1] == "… and 13 files more; --format json has all"
    assert "… and 29 protocols more; --format json has all" in shown
    assert len(shown) < 50
    al.sketch_in_clear(PROTOCOL, np.zeros((1, 300), dtype=int)).save(folder / "clear.parquet")
    shown = run("inspect", folder).output
    assert "NOT PRIVATE" in shown
    assert "differentially private" not in shown


def test_a_folder_that_is_no_collection(folder):
    (folder / "notes.txt").write_text("hello")
    for verb in ("compare", "nearest", "inspect", "outliers"):
        refused = run(verb, folder)
        assert refused.exit_code == 5
        assert "notes.txt must be a sketch file of armslength" in refused.output


def test_inspect_names_the_files_of_a_folder_that_are_not_private(folder):
    al.sketch_in_clear(PROTOCOL, np.ones((1, 300), int), labels=["query"]).save(folder / "query.parquet")
    rows = list(csv.DictReader(io.StringIO(run("inspect", folder, "--format", "csv").stdout)))
    assert [row["in_clear"] for row in rows] == ["False"] * 3 + ["True"]
    assert sum("NOT PRIVATE" in line for line in run("inspect", folder).output.splitlines()) == 2
    document = json.loads(run("inspect", folder, "--format", "json").output)
    assert [file["in_clear"] for file in document["files"]] == [False, False, False, True]
