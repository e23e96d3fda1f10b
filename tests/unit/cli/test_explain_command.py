"""`armslength explain`, as it is typed."""

import csv
import io
import json
import os
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.sketches.noises import Noises
from report_parties import chapters, counted
from unit.cli import commands

run = partial(commands.run, "explain")

SURELY = ("--level", "0.999999")
LABELS = ["north", "harbor", "hill", "bay"]
USUAL, OTHER = [0.02, 0.31, 0.05, 0.12, 0.2], [0.02, 0.22, 0.05, 0.24, 0.2]


def sampled(protocol, labels, people, shares, rng):
    """Rows of people who are samples of populations with these prevalences."""
    return counted(protocol, labels, people, rng.binomial(np.array(people)[:, None], shares), rng)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A folder with a file for each of four parties; harbor and bay are unlike the others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    people = [40_000, 50_000, 30_000, 45_000]
    parties = sampled(chapters(), LABELS, people, [USUAL, OTHER, USUAL, OTHER], rng)
    (tmp_path / "study").mkdir()
    for party in parties:
        party.save(f"study/{party.labels[0]}.parquet")
    return tmp_path / "study"


@pytest.mark.usefixtures("study")
def test_two_parties_in_words():
    done = run("study/", "north", "harbor", *SURELY)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "all item groups together" in lines[0]
    assert "similarity 0.9" in lines[1]
    assert "more with Injuries" in lines[2]
    assert "fewer with Circulatory" in lines[2]
    assert any(line.startswith("Injuries") for line in lines)
    same = run("study/north.parquet", "study/harbor.parquet", "north", "harbor", *SURELY)
    assert same.output == done.output
    assert run("study", "--with", "north", "--against", "harbor", *SURELY).output == done.output


@pytest.mark.usefixtures("study")
def test_one_against_the_typical_party_and_two_groups():
    done = run("study", "north", *SURELY)
    assert done.exit_code == 0, done.output
    assert "north has more with Circulatory" in done.output
    assert "than the typical party" in done.output
    assert "similarity 0." in done.output
    groups = "--with", "north", "--with", "hill", "--against", "harbor", "--against", "bay"
    done = run("study", *groups, *SURELY)
    assert done.exit_code == 0, done.output
    assert "harbor and bay have more with Injuries" in done.output
    assert "than north and hill" in done.output
    mixed = run("study", "north", "harbor", "--with", "hill", "--against", "bay", *SURELY)
    assert mixed.output == done.output
    done = run("study", "north", "--exclude", "harbor,bay", *SURELY)
    assert "No difference found" in done.output
    both = run("study", "--with", "north", "--with", "hill", *SURELY)
    assert "north and hill have more with Circulatory" in both.output


def test_files_without_margins_matter_only_if_they_are_asked_about(study):
    before = run("study", "north", "harbor", *SURELY).output
    used = al.Protocol(chapters().transform, al.Votes(total_share="0.1"), epsilon=1)
    few = counted(chapters(), ["mill", "dale"], [9000] * 2, [[800] * 5] * 2, np.random.default_rng(3))
    noises = Noises.fresh(os.urandom(32), used, "events")
    bare = al.Sketches(few.values, few.labels, noises, [used], few.totals, None, few.spread)
    bare.save(study / "z.parquet")
    assert run("study", "north", "harbor", *SURELY).output == before
    done = run("study", "north", *SURELY)
    assert done.exit_code == 0
    assert "without mill and dale" in done.output
    found, expected = (
        run("study", "north", *more, *SURELY, "--format", "json").stdout
        for more in ((), ("--exclude", "mill,dale"))
    )
    assert found == expected
    done = run("study", "north", "mill", *SURELY)
    assert done.exit_code == 2
    assert "mill was released without margins" in done.output


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("north", "Harbour"), "did you mean 'harbor'?"),
        (("north", "north"), "on both sides"),
        (("--against", "north"), "or with --with"),
    ],
)
def test_what_was_mistyped_is_said(arguments, words):
    assert words in run("study", *arguments).output


@pytest.mark.usefixtures("study")
def test_json_and_csv():
    asked = ("study", "north", "harbor", *SURELY)
    found = json.loads(run(*asked, "--format", "json").stdout)
    expected = al.explain(al.load("study"), "north", "harbor", level=0.999999)
    assert found == expected.to_arrow().to_pylist()
    assert [each["verdict"] for each in found][:2] == ["more", "fewer"]
    done = run(*asked, "--format", "csv")
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [float(each["difference"]) for each in lines] == [each["difference"] for each in found]
    assert expected.note in done.stderr


@pytest.mark.usefixtures("study")
def test_the_question_changes_the_intervals_and_is_never_replaced():
    populations, people = (
        json.loads(run("study", "north", "harbor", "--about", about, "--format", "json").stdout)
        for about in ("populations", "people")
    )
    widths = [sum(row["upper"] - row["lower"] for row in rows) for rows in (populations, people)]
    assert widths[1] < widths[0]
    refused = run("study", "north", "harbor", "--about", "counts")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--about" in refused.stderr


def test_items_instead_of_item_groups(study):
    (study.parent / "codes.txt").write_text("\ufeffI10\n\n S72 \nA09\n", encoding="utf-8")
    done = run("study", "north", "harbor", "--items", "codes.txt")
    assert done.exit_code == 0, done.output
    assert "3 items" in done.output
    assert "Injuries" not in done.output
    found = json.loads(run("study", "north", "harbor", "--items", "codes.txt", "--format", "json").stdout)
    assert {each["item"] for each in found} == {"I10", "S72", "A09"}
    typical = run("study", "north", "--items", "codes.txt")
    assert typical.exit_code == 0, typical.output
    assert "the typical party" in typical.output
    plain = al.Protocol(al.SparseJL(sketch_dim=256, seed="plain"), al.Votes(), epsilon=1, unit="one patient")
    events = {"person": ["a", "b"], "item": ["I10", "S72"], "group": ["north", "harbor"]}
    known = {"person": "person", "item": "item", "group": "group", "ledger": al.NO_LEDGER}
    al.release(plain, pa.table(events), public_groups=["north", "harbor"], **known).save("bare.parquet")
    only = run("bare.parquet", "north", "harbor", "--items", "codes.txt")
    assert only.exit_code == 0, only.output
    assert "3 items" in only.output
    done = run("bare.parquet", "north", "harbor")
    assert done.exit_code == 2
    assert "list of items" in done.output


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("study", "north", "harbor", "hill"),
        ("study", "north", "harbor", "--with", "harbor"),
        ("study", "north", "harbor", "--items", "nothing.txt"),
        ("study", "north", "harbor", "--items", "study/north.parquet"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(arguments):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output


def test_too_few_people_is_an_answer_of_its_own(study):
    del study
    rng = np.random.default_rng(2)
    people, labels = [5, 5000, 6000, 7000], ["one", "two", "three", "four"]
    counted(chapters(), labels, people, [[1] * 5, *[[700] * 5] * 3], rng).save("few.parquet")
    done = run("few.parquet", "one", "two")
    assert done.exit_code == 3
    assert "too few people" in done.output
    done = run("few.parquet", "two")
    assert done.exit_code == 0
    assert "without one (too few people)" in done.output
