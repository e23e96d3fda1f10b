"""`armslength rehearse`: a grid of settings on public or made-up data, and outputs that nobody takes for a release."""

import csv
import io
import json
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength import demo, rehearsal
from armslength.protocol.neighbors import VOTE
from armslength.rehearsal import BANNER, Rehearsal, made_up, protocol_of
from unit.cli import commands

run = partial(commands.run, "rehearse")

COLUMNS = ("--public", "--person", "who", "--item", "what", "--group", "where")
ONE_POINT = ("--epsilon", "8", "--sketch-dim", "64")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rehearsal, "RUNS", 2)
    return tmp_path


def events(mixes, people=400):
    """A table in which each person of a party has the next item of its mix."""
    rows = [
        (f"{party}-{person}", mix[person % len(mix)], party)
        for party, mix in mixes.items()
        for person in range(people)
    ]
    return pa.table(dict(zip(("who", "what", "where"), map(list, zip(*rows, strict=True)), strict=True)))


MIXES = {"north": "ab", "south": "ab", "east": "cd", "west": "cd"}


def test_made_up_parties_need_no_file_and_leave_one_page(folder):
    done = run("--parties", 8, "--people", 300, "--seed", 5, *ONE_POINT)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(BANNER)
    assert "In truth 24 of 28 pairs differ, and there are 4 groups." in done.stdout
    assert [path.name for path in folder.iterdir()] == ["rehearsal.html"]
    page = (folder / "rehearsal.html").read_text(encoding="utf-8")
    assert BANNER in page
    assert "<title>Rehearsal: ε = 8, k = 64</title>" in page
    assert "hospital 08" in page


def test_every_row_of_json_and_csv_is_marked():
    given = "--parties", 4, "--people", 50, *ONE_POINT, "--epsilon", "0.5"
    document = json.loads(run(*given, "--format", "json").stdout)
    assert document["rehearsal"] is True
    assert [point["epsilon"] for point in document["points"]] == [None, "8", "0.5"]
    assert all(point["rehearsal"] is True for point in document["points"])
    done = run(*given, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["rehearsal"] for row in rows] == ["True"] * 3
    assert BANNER in done.stderr


def test_a_release_that_is_refused_an_answer_has_no_groups_and_ends_nothing(monkeypatch):
    def refuse(*_, **__):
        raise al.NotResolvableError("too few people to say anything")

    monkeypatch.setattr(al, "cluster", refuse)
    done = run("--parties", 4, "--people", 300, *ONE_POINT, "--format", "json")
    assert done.exit_code == 0, done.output
    assert [point["groups"] for point in json.loads(done.stdout)["points"]] == [0, 0]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_public_table_is_compared_with_itself_without_noise(ending, folder):
    table = events(MIXES)
    writer = pq.write_table if ending == "parquet" else pyarrow.csv.write_csv
    writer(table, folder / f"events.{ending}")
    # With 4,096 bins, all items of two mixes collide in one run of ten million.
    point = "--epsilon", "8", "--sketch-dim", "4096"
    done = run(f"events.{ending}", *COLUMNS, "--public-groups", ",".join(MIXES), *point, "--format", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["pairs"], document["differ"]) == (6, 4)
    without_noise, with_noise = document["points"]
    assert without_noise["right"] == without_noise["found"] == 4
    assert with_noise["right"] == 4


def test_a_listed_party_without_events_does_not_stop_the_others(folder):
    pq.write_table(events(MIXES), folder / "events.parquet")
    done = run(
        *("events.parquet", *COLUMNS, "--public-groups", "nobody,north,east,west,south", *ONE_POINT),
        *("--format", "json"),
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["differ"] == 4


def test_parties_with_one_mix_need_more_people_and_not_more_epsilon(folder):
    pq.write_table(events(dict.fromkeys(MIXES, "abcd")), folder / "events.parquet")
    done = run("events.parquet", *COLUMNS, "--public-groups", ",".join(MIXES), *ONE_POINT)
    assert done.exit_code == 0, done.output
    assert "A larger ε would not help" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["events.parquet", *COLUMNS[1:], "--public-groups", "north,east"], "--public"),
        (
            ["events.parquet", *COLUMNS, "--public-groups", "north,east", "--people", "5"],
            "cannot be combined",
        ),
        (["events.parquet", *COLUMNS, "--public-groups", "north"], "2 to 1000 parties"),
        (["--people", "1000000000"], "at most"),
        (["--epsilon", "nan"], "epsilon must"),
        (["-o", "report.html"], "rehearsal.html"),
        (["-o", "rehearsal.parquet"], "rehearsal.html"),
    ],
)
def test_bad_input_is_refused_before_any_release(arguments, message, folder, monkeypatch):
    pq.write_table(events(MIXES, people=2), folder / "events.parquet")
    monkeypatch.setattr(rehearsal, "_answers", lambda _: pytest.fail("released"))
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert [path.name for path in folder.iterdir()] == ["events.parquet"]


def test_the_seed_is_for_the_data_and_never_for_the_noise():
    first, again, other = (made_up(2, 50, 3, seed) for seed in (1, 1, 2))
    assert first.source.equals(again.source)
    assert not first.source.equals(other.source)
    protocol = protocol_of("1", 64, "0.1")
    assert not np.array_equal(first.release(protocol).values, first.release(protocol).values)


def test_without_epsilon_there_is_next_to_no_noise():
    protocol = protocol_of(None, 64, "0.1")
    for law in (protocol.law, protocol.total_law, protocol.spread_law):
        assert law.scale < 0.0006 * VOTE
    data = made_up(3, 40, items_per_person=1)
    # at least 30 of its scales
    assert np.abs(al.totals(data.release(protocol)).value - 40).max() < 0.02


def test_made_up_people_have_about_as_many_items_as_asked():
    for items in (1, 3, 8):
        (hospital,) = demo.generated_hospitals(1, (20_000, 20_000), items)
        # the mean of the Pareto law is heavy in its tail, which is clipped
        assert 0.9 * items <= hospital.visits.num_rows / 20_000 <= 1.3 * items


def point(epsilon, sketch_dim, right, groups=0.0):
    counts = {"found": right, "right": right, "groups": groups, "right_groups": groups}
    return {"epsilon": epsilon, "sketch_dim": sketch_dim, **counts}


def test_the_smallest_epsilon_and_sketch_that_show_enough_are_chosen():
    points = [
        point(None, 4096, 10.0, 2.0),
        point("0.5", 64, 8.9),
        point("10", 64, 10.0, 2.0),
        point("2", 512, 10.0),
        point("2", 64, 9.0),
    ]
    result = Rehearsal(points, 15, 10, 2)
    assert result.chosen is points[4]
    assert result.advice.startswith("Choose ε = 2, k = 64")
    assert "need ε = 10, k = 64" in result.advice


def test_where_nothing_is_enough_the_best_is_shown_and_named_as_that():
    points = [point(None, 4096, 10.0), point("0.5", 64, 3.0), point("1", 64, 8.0), point("1", 512, 5.0)]
    result = Rehearsal(points, 15, 10, 0)
    assert result.chosen is points[2]
    assert "No point of this grid shows enough" in result.advice
    assert "larger ε" in result.advice
