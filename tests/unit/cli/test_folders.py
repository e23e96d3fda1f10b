"""Folders where sketch files are taken: the same answers as from their files."""

import json

import numpy as np
import pytest

import armslength as al
from unit.cli.commands import run

TRANSFORM = al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="folders")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
PARTS = {"part-0": ["north", "south"], "part-1": ["east"], "part-2": ["west", "island", "north pole"]}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(4)
    top = tmp_path / "rows"
    top.mkdir()
    (top / "_SUCCESS").touch()
    for name, labels in PARTS.items():
        rows = rng.integers(0, 500, (len(labels), 300))
        al.release(PROTOCOL, rows, labels=labels, ledger=al.NO_LEDGER).save(top / f"{name}.parquet")
    return top


def files_of(folder):
    return [folder / f"{name}.parquet" for name in PARTS]


@pytest.mark.parametrize("flags", [[], ["--top", "4"], ["--against", "east"]], ids=str)
def test_compare_says_the_same_of_a_folder_as_of_its_files(flags, folder):
    for form in ("json", "csv"):
        found = run("compare", folder, *flags, "--format", form)
        assert found.exit_code == 0, found.output
        assert found.stdout == run("compare", *files_of(folder), *flags, "--format", form).stdout
    assert run("compare", folder, *flags).output == run("compare", *files_of(folder), *flags).output


def test_every_command_that_reads_sketch_files_takes_a_folder(folder, tmp_path):
    page, card = tmp_path / "page.html", tmp_path / "card.json"
    for command in (
        ["outliers"],
        ["compare", "--only", "north,west", "--alike", 100],
        ["verify", "--format", "json"],
        ["show", "--format", "csv"],
        ["cluster"],
    ):
        found = run(command[0], folder, *command[1:])
        assert found.exit_code == 0, found.output
        expected = run(command[0], *files_of(folder), *command[1:])
        assert found.stdout == expected.stdout
    assert run("report", folder, "-o", page).exit_code == 0
    from_folder = page.read_text(encoding="utf-8")
    assert run("report", *files_of(folder), "-o", page).exit_code == 0
    assert page.read_text(encoding="utf-8") == from_folder
    assert run("show", "--card", folder, "--format", "json", "-o", card).exit_code == 0
    assert [each["in_clear"] for each in json.loads(card.read_text(encoding="utf-8"))] == [False] * len(PARTS)
    cards = run("show", "--card", folder).output
    assert all(str(file) in cards for file in files_of(folder))
    assert run("drift", folder, folder).exit_code == 0
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
        al.release(PROTOCOL, np.array(rows), labels=names, ledger=al.NO_LEDGER).save(place / "index.parquet")
    queries = folder / "queries"
    queries.mkdir()
    for number, value in enumerate((10**6, 0)):
        query = al.release(PROTOCOL, np.full((1, 300), value), labels=["q"], ledger=al.NO_LEDGER)
        query.save(queries / f"{number}.parquet")
    asked = al.load(queries)
    far_one, near_one = (al.nearest(asked, al.load(place), count=1) for place in (far, near))
    assert near_one.surely_nearest.tolist() == [True, False]
    assert far_one.surely_nearest.all()
    first, second = (line for line in str(near_one).splitlines() if line.startswith("q "))
    assert "could be" not in first
    assert "could be nearest" in second


def test_show_has_names_on_one_line(folder):
    odd = files_of(folder)[1].rename(folder / "part\n-1\x1b.parquet")
    for arguments in ([folder], [odd]):
        shown = run("show", *arguments).output
        assert r"part\n-1\x1b.parquet" in shown
        assert all(line.isprintable() for line in shown.splitlines())
    document = json.loads(run("show", folder, "--format", "json").output)
    assert str(odd) in [file["file"] for file in document]


def test_a_folder_with_another_file(folder):
    (folder / "notes.txt").write_text("hello")
    for verb in ("compare", "show", "outliers"):
        refused = run(verb, folder)
        assert refused.exit_code == 5
        assert "notes.txt is damaged, or not a sketch file" in refused.output
