"""Margins in `plan`, `protocol`, `check` and `release`."""

import json
import re
from pathlib import Path

import pytest

import armslength as al
from unit.cli.commands import run

NEW = ("protocol", "new", "--epsilon", 1, "--unit", "one patient")
NEW = (*NEW, "--sketch-dim", 16, "--total-share", "0.1", "-o", "protocol.json", "--overwrite")
MARGINS = ("--item-groups-share", "0.2", "--item-groups-limit", 2)
RELEASE = ("release", "visits.csv", "--person", "who", "--item", "what", "--label", "north", "--no-ledger")
RELEASE = (*RELEASE, "--no-check", "--protocol", "protocol.json", "-o", "sketches.parquet", "--overwrite")
PLAN = ("plan", "--people", 3000, "--items-per-person", 5, "--epsilon", 1)

FAULTY = {
    "empty.csv": "",
    "latin.csv": "prefix,group\nS,Schädel\n",
    "semicolons.csv": "prefix;group\nS;Injuries\n",
    "both.csv": "item,prefix,group\nS06,S,Injuries\n",
    "twice.csv": "prefix,group\nS,Injuries\nS,Heads\n",
    "unnamed.csv": "prefix,group\nS,Injuries\nT,\n",
    "blank.csv": "prefix,group\nA ,Infections\n",
    "ragged.csv": "prefix,group\nS,Injuries,more\n",
    "text.parquet": "prefix,group\nS,Injuries\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("who,what\na,S06\nb,I1\nb,x\n", encoding="utf-8")
    Path("prefixes.csv").write_text("prefix,group\nS,Injuries\nI,Heart\n", encoding="utf-8")
    for name, text in FAULTY.items():
        Path(name).write_text(text, encoding="latin-1")
    Path("items.csv").write_text("item,group\nS06,Injuries\nI1,Heart\n", encoding="utf-8")


def new(*options):
    made = run(*NEW, *options)
    assert made.exit_code == 0, made.output
    return made.output, al.Protocol.load("protocol.json")


@pytest.mark.parametrize("file", ["prefixes.csv", "items.csv"])
def test_a_file_of_item_groups(file):
    shown, protocol = new("--item-groups", file, *MARGINS)
    assert protocol.margins.names == ("Heart", "Injuries", "(other)")
    assert ("--item-groups items.csv" in shown) is (file == "items.csv")
    assert (protocol.margin_share * 5, protocol.margin_contribution) == (1, 2)
    again = run("show", "protocol.json")
    for text in (" ".join(output.split()) for output in (shown, again.output)):
        assert "margins: 3 item groups" in text
        assert "Of ε, 0.2 is spent on margins" in text
        assert "2 item groups" in text
    (as_json,) = json.loads(run("show", "protocol.json", "--format", "json").output)
    assert as_json["margins"] == protocol.margins.document()


def test_columns_of_a_record():
    record = (
        "--record",
        "age:18,40",
        "--record",
        "sex=F,M",
        "--item-group-column",
        "sex",
        "--item-group-column",
        "age",
    )
    made = run("protocol", "new", "--epsilon", 1, "--unit", "one patient", "--sketch-dim", 16, *record, "--item-groups-share", "0.2", "--total-share", "0.1", "-o", "record.json")  # fmt: skip
    assert made.exit_code == 0, made.output
    protocol = al.Protocol.load("record.json")
    assert protocol.margins.columns == ("age", "sex")
    assert protocol.margin_contribution == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--item-groups", "items.csv", "--item-group-column", "age", *MARGINS), "cannot be combined"),
        (("--item-groups", "visits.csv", *MARGINS), "has none of them"),
        (("--item-groups", "latin.csv", *MARGINS), "text in UTF-8"),
        (("--item-groups", "twice.csv", *MARGINS), "'S' is listed twice in --item-groups, in line 3"),
        (("--item-groups", "items.csv", "--item-groups-limit", 2), "--item-groups-share must be above 0"),
        (("--item-groups", "items.csv", "--item-groups-share", "0.2"), "--item-groups-limit is missing"),
        (("--item-group-column", "age", *MARGINS), "need a --record"),
    ],
)
def test_options_that_are_refused(options, words):
    made = run(*NEW, *options)
    assert made.exit_code != 0
    assert words in f"{made.output} {made.exception}".replace("\n", " ")
    assert not Path("protocol.json").exists()


def test_a_release_needs_the_table_of_items_alone():
    new("--item-groups", "items.csv", *MARGINS)
    for options in ((), ("--item-groups", "prefixes.csv"), ("--item-groups", "visits.csv")):
        done = run(*RELEASE, *options)
        assert done.exit_code != 0
        assert "item-groups" in f"{done.output} {done.exception}"
    new("--item-groups", "prefixes.csv", *MARGINS)
    done = run(*RELEASE, "--item-groups", "prefixes.csv")
    assert "leave --item-groups out" in f"{done.output} {done.exception}"
    assert not Path("sketches.parquet").exists()


@pytest.mark.parametrize(
    ("file", "again"), [("items.csv", ("--item-groups", "items.csv")), ("prefixes.csv", ())]
)
def test_a_release_has_margins(file, again):
    new("--item-groups", file, *MARGINS)
    done = run(*RELEASE, *again)
    assert done.exit_code == 0, done.output
    assert al.load("sketches.parquet").margins.shape == (1, 4)


def test_a_plan_says_what_item_groups_show():
    shown = run(*PLAN, "--item-groups", 20)
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert "points more or fewer of the people have" in text
    about = json.loads(run(*PLAN, "--item-groups", 20, "--format", "json").output)
    assert 0 < about["item_groups_chance"] < about["item_groups_seen"] < 0.4
    assert about["protocol"] is None


def test_a_plan_writes_the_protocol_with_margins():
    made = run(*PLAN, "--item-groups", "prefixes.csv", "--unit", "one patient", "-o", "protocol.json")
    assert made.exit_code == 0, made.output
    protocol = al.Protocol.load("protocol.json")
    assert protocol.margins.rule == "prefix"
    refused = run(*PLAN, "--item-groups", 5, "--unit", "one patient", "-o", "other.json")
    assert refused.exit_code != 0
    assert "-o needs a list of item groups" in refused.output
    assert not Path("other.json").exists()


def test_a_plan_whose_item_groups_show_nothing_is_refused():
    little = (*PLAN, "--people", 100, "--item-groups", "prefixes.csv")
    made = run(*little, "--unit", "one patient", "-o", "protocol.json")
    assert made.exit_code == 3, made.output
    assert re.search(r"[\d,]+ people in each party", " ".join(made.output.split()))
    assert not Path("protocol.json").exists()


def test_plans_about_counts_have_no_item_groups():
    refused = run("plan", "--distance", 300, "--contribution", 5, "--epsilon", 1, "--item-groups", 5)
    assert refused.exit_code == 2
    assert "--item-groups is for plans about populations" in refused.output
    missing = run(*PLAN, "--item-groups", "nothing.csv")
    assert missing.exit_code == 2
    assert "nothing.csv" in missing.output


def test_a_check_says_whether_the_item_groups_fit(monkeypatch):
    monkeypatch.setattr("armslength.cli.check.is_terminal", lambda _: True)
    check = ("check", *RELEASE[1:8], "--protocol", "protocol.json")
    new("--item-groups", "prefixes.csv", "--item-groups-share", "0.2", "--item-groups-limit", 1)
    done = run(*check)
    assert done.exit_code == 7, done.output  # two people are too few
    text = " ".join(done.output.split())
    assert "other capitals" not in text
    assert "25.0% of votes are (other)." in text  # half of one of two
    assert "A person typically has 1 item group; 90 % of people have at most 2." in text
    assert "50.0% of people have more than the 1 item group that count in full." in text
    assert "Shares of people may be up to 25.0 points larger than what is counted." in text
    assert "more than 5 points, so no difference between parties will be named" in text
    Path("visits.csv").write_text("who,what\na,s06\nb,i1\n", encoding="utf-8")
    done = run(*check)
    assert done.exit_code == 7
    text = " ".join(done.output.split())
    assert "100.0% of votes are (other). Are items written as in the list?" in text
    assert "only because the list has other capitals" in text
    assert "Injuries: nobody has an item in it." in text
    about = json.loads(run(*check, "--format", "json").output)
    assert about["margins"] == {
        "in_none": 1.0,
        "empty": ["Heart", "Injuries"],
        "per_person": {"median": 1, "most": 1},
        "people_over": 0,
        "missing": 0.0,
        "most_missing": 0.05,
        "spelled_otherwise": 1.0,
    }
