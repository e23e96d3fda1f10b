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
    assert lines[0].startswith("Similarity of north and harbor: 0.9")
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
    assert "people, north has more with Circulatory" in done.output
    assert "than the typical party" in done.output
    done = run(
        "study", "--with", "north", "--with", "hill", "--against", "harbor", "--against", "bay", *SURELY
    )
    assert done.exit_code == 0, done.output
    assert "harbor + bay has more with Injuries" in done.output
    assert "north + hill" in done.output
    done = run("study", "north", "harbor", "--with", "hill", "--against", "bay", *SURELY)
    assert "harbor + bay has more with Injuries" in done.output
    done = run("study", "north", "--exclude", "harbor,bay", *SURELY)
    assert "No difference found between the typical party and north" in done.output
    assert "or in how many items a person has" in done.output
    both = run("study", "--with", "north", "--with", "hill", *SURELY)
    assert "north + hill" not in both.output  # added up by their margins alone
    assert "north and hill have more with Circulatory" in both.output
    (a, b) = (json.loads(run("study", "north", "--format", "json").stdout)[side] for side in "ab")
    assert (a, b) == ("the typical party", "north")


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
    assert "without mill, dale" in done.stderr
    assert done.stdout == run("study", "north", "--exclude", "mill,dale", *SURELY).stdout
    done = run("study", "north", "mill", *SURELY)
    assert done.exit_code == 2
    assert "mill was released without margins" in done.output


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("north", "Harbour"), "did you mean 'harbor'?"), (("--against", "north"), "add --with")],
)
def test_what_was_mistyped_is_said(arguments, words):
    assert words in run("study", *arguments).output


@pytest.mark.usefixtures("study")
def test_json_and_csv():
    found = json.loads(run("study", "north", "harbor", *SURELY, "--format", "json").stdout)
    assert (found["a"], found["b"]) == ("north", "harbor")
    assert found["likeness"]["lower"] <= found["likeness"]["value"] <= found["likeness"]["upper"]
    assert [each["verdict"] for each in found["item_groups"]][:2] == ["more", "fewer"]
    done = run("study", "north", "harbor", *SURELY, "--format", "csv")
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [float(each["difference"]) for each in lines] == [
        each["difference"] for each in found["item_groups"]
    ]
    assert "populations" in done.stderr
    assert "people counted" in run("study", "north", "harbor", "--counted", "--format", "csv").stderr


def test_items_beside_item_groups_and_by_themselves(study):
    (study.parent / "codes.txt").write_text("\ufeffI10\n\n S72 \nA09\n", encoding="utf-8")
    done = run("study", "north", "harbor", "--items", "codes.txt")
    assert done.exit_code == 0, done.output
    assert "more with Injuries" in done.output
    assert "3 items" in done.output
    found = json.loads(run("study", "north", "harbor", "--items", "codes.txt", "--format", "json").stdout)
    assert {each["item"] for each in found["items"]} == {"I10", "S72", "A09"}
    assert run("study", "north", "harbor", "--items", "codes.txt", "--format", "csv").exit_code == 2
    plain = al.Protocol(al.SparseJL(sketch_dim=256, seed="plain"), al.Votes(), epsilon=1, unit="one patient")
    events = {"person": ["a", "b"], "item": ["I10", "S72"], "group": ["north", "harbor"]}
    known = {"person": "person", "item": "item", "group": "group", "ledger": al.NO_LEDGER}
    al.release(plain, pa.table(events), public_groups=["north", "harbor"], **known).save("bare.parquet")
    only = run("bare.parquet", "north", "harbor", "--items", "codes.txt")
    assert only.exit_code == 0, only.output
    assert "3 items" in only.output
    assert "people with" not in only.output
    done = run("bare.parquet", "north", "harbor")
    assert done.exit_code == 2
    assert "without margins" in done.output
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
    assert "the typical party is without one: too few people" in done.stderr
