"""`armslength check`, and the offer of it in `armslength release`: private, and before anything is spent."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.cli import check as check_file
from armslength.cli import release as release_file
from armslength.planner.least_people import least_people
from unit.cli.commands import run

PERSONS = ["zq-7", "zq-007", "ZQ-7", "zq-8", None, "zq-9"]
EVENTS = pa.table(
    {
        "patient": PERSONS,
        "code": ["zq-flu", "zq-cold", "zq-flu", "zq-cough", "zq-flu", None],
        "hospital": ["north", "north", "south", "south", "north", "north"],
    }
)
BANNER = "PRIVATE: for you, the data holder. Nothing was spent. Do not share this output."
COLUMNS = ("visits.parquet", "--person", "patient", "--item", "code", "--protocol", "protocol.json")
GROUPS = ("--group", "hospital", "--public-groups")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(EVENTS, "visits.parquet")
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"), al.Votes(total_share="0.2"), epsilon=1, unit="one patient"
    )
    protocol.save("protocol.json")
    return tmp_path


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(check_file, "is_terminal", lambda _: True)
    monkeypatch.setattr(release_file, "is_terminal", lambda _: True)


def test_a_file_or_a_pipe_gets_nothing(folder):
    done = run("check", *COLUMNS, *GROUPS, "north,south")
    assert done.exit_code == 2
    assert "--format json" in done.output
    assert BANNER not in done.output
    assert {path.name for path in folder.iterdir()} == {"visits.parquet", "protocol.json"}


def test_json_has_the_banner_and_the_numbers():
    done = run("check", *COLUMNS, *GROUPS, "north,Soth", "--format", "json")
    assert done.exit_code == 7
    document = json.loads(done.stdout)
    assert document["banner"] == BANNER
    assert document["needs_a_look"] is True
    assert document["rows"] == 6
    assert document["left_out"] == {"person": 1, "group": 2, "item": 1, "weight": 0}
    assert document["empty_groups"] == ["Soth"]
    assert document["unlisted_groups"] == {"south": 2}
    assert document["likely_groups"] == {"Soth": "south"}
    assert document["votes"] == {"several_groups": 0, "per_person": {"median": 1, "most": 1}, "without": 0}
    assert (document["share_kept"], document["margins"]) == (None, None)
    assert "zq" not in done.output.lower()


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_words_and_no_ids():
    done = run("check", *COLUMNS, *GROUPS, "north,Soth")
    assert done.exit_code == 7
    assert done.stdout.splitlines()[0] == BANNER
    words = " ".join(done.stdout.split())
    for part in ("Soth is listed", "Did you mean south?", "south has 2 rows", "1 without a person"):
        assert part in words
    assert "zq" not in done.output.lower()


@pytest.mark.usefixtures("terminal")
def test_ids_written_in_two_ways_are_found():
    done = run("check", *COLUMNS, "--label", "all")
    words = " ".join(done.stdout.split())
    assert done.exit_code == 7
    assert words.endswith("(exit code 7)")
    assert "1 person may be counted twice" in words
    assert "capital letters" in words
    assert "zq" not in done.output.lower()


@pytest.mark.usefixtures("terminal")
def test_a_party_with_too_few_people_is_told():
    done = run("check", *COLUMNS, "--label", "all")
    assert f"4 people: with fewer than about {least_people(al.Protocol.load('protocol.json'))}" in " ".join(
        done.stdout.split()
    )
    table = {"patient": [*range(31)], "code": ["a"] * 31, "hospital": ["north"] * 30 + ["south"]}
    pq.write_table(pa.table(table), "visits.parquet")
    done = run("check", *COLUMNS, *GROUPS, "north,south", "--format", "json")
    assert done.exit_code == 7
    document = json.loads(done.stdout)
    assert document["people_of_groups"] == {"north": 30, "south": 1}
    assert document["least_people"] > 30
    assert document["small_groups"] == {"north": 30, "south": 1}


@pytest.mark.usefixtures("terminal")
def test_spellings_of_items_and_swapped_columns_are_told_without_a_value():
    ranks = np.arange(1, 401)
    codes = np.repeat([f"zq{rank}" for rank in ranks], 4000 // ranks)
    people = np.random.default_rng(0).permutation(len(codes)) % 3000
    table = {
        "patient": codes,
        "code": [f"{'Zq' if i == 1 else 'zq'}-{p}" for i, p in enumerate(people)],
        "hospital": ["n"] * len(codes),
    }
    pq.write_table(pa.table(table), "visits.parquet")
    done = run("check", *COLUMNS, "--label", "all")
    words = " ".join(done.stdout.split())
    assert done.exit_code == 7
    assert "1 item has several spellings" in words
    assert "patient looks like items" in words
    assert "zq" not in done.output.lower()


@pytest.mark.usefixtures("terminal")
def test_a_good_table_has_exit_code_0():
    write_good_table()
    done = run("check", *COLUMNS, *GROUPS, "north,south")
    assert done.exit_code == 0, done.output
    assert "90 % of people have at most 2" in done.stdout
    assert "100 people are in several groups" in done.stdout
    assert "exit code" not in done.stdout


def write_good_table():
    """2,000 people with two of three items each, and another 100 with one in both hospitals."""
    people = [f"p{number}" for number in range(2000)] * 2 + [f"q{number}" for number in range(100)] * 2
    codes = ["a"] * 2000 + ["b", "c"] * 1000 + ["b"] * 200
    hospitals = ["north", "south"] * 2000 + ["north"] * 100 + ["south"] * 100
    table = {"patient": people, "code": codes, "hospital": hospitals}
    pq.write_table(pa.table(table), "visits.parquet")


@pytest.mark.usefixtures("terminal")
def test_votes_and_item_groups_are_told_in_words():
    write_good_table()
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"),
        al.Votes(
            total_share="0.2",
            item_groups=al.ItemGroups({"prefix": ["a", "b"], "group": ["A", "B"]}, share="0.3", limit=1),
        ),
        epsilon=1,
        unit="one patient",
    )
    protocol.save("protocol.json")
    done = run("check", *COLUMNS, *GROUPS, "north,south")
    words = " ".join(done.stdout.split())
    assert done.exit_code == 7
    for part in (
        "2,100",
        "typically has 2 different items",
        "100 people are in several groups",
        "typically has 2 item groups",
        "95.2% of people have more than the 1 item group that count",
        "47.6 points larger",
        "no difference between parties will be named",
    ):
        assert part in words, part


@pytest.mark.usefixtures("terminal")
def test_amounts_are_told_with_what_the_contribution_keeps():
    write_good_table()
    protocol = al.Protocol(al.SparseJL(sketch_dim=16, seed="t"), al.Counts(1), epsilon=1, unit="one patient")
    protocol.save("protocol.json")
    words = " ".join(run("check", *COLUMNS, *GROUPS, "north,south").stdout.split())
    assert "50% of events at 1 a person; 2,100 people have more." in words
    assert "vote" not in words


@pytest.mark.usefixtures("terminal")
def test_a_name_cannot_act_on_the_terminal():
    odd = pa.table({"patient": ["p"], "code": ["a"], "hospital": ["\x1b[2Jnorth\n"]})
    pq.write_table(odd, "visits.parquet")
    done = run("check", *COLUMNS, *GROUPS, "north")
    assert "\x1b" not in done.stdout
    assert "\x1b" not in run("check", *COLUMNS, *GROUPS, "north", "--format", "json").stdout


RELEASE = (
    "release",
    *COLUMNS,
    *GROUPS,
    "north,south",
    "--population",
    "v",
    "--new-ledger",
    "-o",
    "s.parquet",
)


@pytest.mark.usefixtures("terminal")
def test_a_release_in_a_terminal_offers_the_check(folder):
    done = run(*RELEASE, input="y\nn\n")
    assert done.exit_code == 7, done.output
    assert BANNER in done.stdout
    assert not (folder / "s.parquet").exists()
    assert not (folder / "ledger.sqlite").exists()
    done = run(*RELEASE, input="y\ny\n")
    assert done.exit_code == 0, done.output
    assert (folder / "s.parquet").exists()


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("flags", "typed"), [((), "n\n"), (("--no-check",), "")])
def test_the_offer_can_be_declined(flags, typed):
    done = run(*RELEASE, *flags, input=typed)
    assert done.exit_code == 0, done.output
    assert BANNER not in done.stdout


def test_a_release_without_a_terminal_asks_nothing(folder):
    assert not sys.stdin.isatty() or not sys.stdout.isatty()
    refused = run(*RELEASE, "--check")
    assert refused.exit_code == 2
    assert not (folder / "ledger.sqlite").exists()
    done = run(*RELEASE)
    assert done.exit_code == 0, done.output
    assert BANNER not in done.output
