"""`armslength compare` as it is typed."""

import csv
import io
import json
import shlex
from functools import partial

import numpy as np
import pytest

import armslength as al
from report_parties import chapters, counted, with_margins
from unit.cli import commands

run = partial(commands.run, "compare")

TRANSFORM = al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="compare command")
PROTOCOL = al.Protocol(TRANSFORM, al.Arrays(total_share="0.25"), epsilon=1)
LONG = "the hospital with the very long name in the north of the country"
LABELS = ["north", "south", "east", LONG]
COUNTS = ("--about", "counts")
SURELY = ("--level", "0.999999")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """North and south are equal."""
    x = np.full((4, 300), 40)
    x[2, :100] = 1500
    x[3, 100:200] = 900
    path = tmp_path_factory.mktemp("compare") / "sketches.parquet"
    al.release(PROTOCOL, x, labels=LABELS, ledger=al.NO_LEDGER).save(path)
    return path


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Three parties with item groups: the coast differs, north and south are alike."""
    rows = with_margins([[0.1, 0.1, 0.3]] * 2 + [[0.1, 0.5, 0.3]], labels=["north", "south", "the coast"])
    path = tmp_path_factory.mktemp("compare") / "votes.parquet"
    rows.save(path)
    return path


def table(*arguments):
    done = run(*arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_table_for_people(file):
    done = run(file, *COUNTS, *SURELY)
    assert done.exit_code == 0
    question, summary, _, heading, *lines = done.output.splitlines()
    assert "all 6 pairs together" in question
    assert "99.9999 %" in question
    assert "5 of 6 pairs differ" in summary
    assert heading.split() == ["left", "right", "verdict", "distance"]
    assert [line for line in lines if "inconclusive" in line] == [
        line for line in lines if line.startswith("north  ") and " south " in line
    ]
    # long names are cut in the middle, and columns are aligned
    assert any("the hospital w…f the country" in line for line in lines)
    assert (
        len({line.index(word) for line in lines for word in ("differ ", "inconclusive ") if word in line})
        == 1
    )


def test_every_pair_has_one_verdict_and_numbers_that_agree_with_it(votes):
    rows = {(row["left"], row["right"]): row for row in table(votes, "--alike", 0.9)}
    assert rows["north", "the coast"]["verdict"] == rows["south", "the coast"]["verdict"] == "differ"
    assert rows["north", "south"]["verdict"] == "alike"
    assert rows["north", "south"]["lower"] >= 0.9
    assert all(row["lower"] <= row["similarity"] <= row["upper"] for row in rows.values())
    assert all((row["distance_lower"] > 0) >= (row["verdict"] == "differ") for row in rows.values())
    # alike wins: both parties differ a little at most, and this is enough to be alike
    assert {row["verdict"] for row in table(votes, "--alike", 0.01)} == {"alike"}


def test_the_question_is_said_and_never_replaced(file, votes):
    assert run(votes).output.splitlines()[0] == run(votes, "--about", "populations").output.splitlines()[0]
    firsts = [
        run(votes, "--about", about).output.splitlines()[0] for about in ("populations", "people", "counts")
    ]
    assert len(set(firsts)) == 3
    assert run(file).output.splitlines()[0] == run(file, "--about", "people").output.splitlines()[0]
    refused = run(file, "--about", "populations")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--about" in refused.stderr


def test_one_level_for_all_pairs_together_or_for_each(votes):
    def width(*flags):
        row = table(votes, *flags)[-1]
        return row["upper"] - row["lower"]

    assert width("--each") < width()
    assert width("--level", 1 - 0.05 / 3, "--each") == pytest.approx(width(), rel=1e-6)
    assert width("--fdr") == width()  # of similarities; discoveries are by distances
    done = run(votes, "--fdr", "--each")
    assert done.exit_code == 2
    assert "--fdr cannot be combined with --each" in done.stderr


def test_false_discoveries_are_at_another_level(file):
    together = {(row["left"], row["right"]): row for row in table(file, *COUNTS)}
    found = table(file, *COUNTS, "--fdr")
    assert sum(row["verdict"] == "differ" for row in found) >= 5
    assert all(row["lower"] >= together[row["left"], row["right"]]["lower"] for row in found)
    assert "false discovery" in run(file, *COUNTS, "--fdr").output


def test_csv_holds_no_formula(tmp_path):
    labels = ['=HYPERLINK("x")', "+1", "-1", "@SUM(1)", "＝1", "＋1", "－1", "＠SUM(1)", "plain"]
    protocol = al.Protocol(TRANSFORM, epsilon=1)
    al.release(protocol, np.zeros((9, 300), int), labels=labels, ledger=al.NO_LEDGER).save(
        tmp_path / "s.parquet"
    )
    expected = ["'" + label for label in labels[:-1]] + ["plain"]
    rows = list(csv.DictReader(io.StringIO(run(tmp_path / "s.parquet", "--format", "csv").stdout)))
    assert {row["left"] for row in rows} | {row["right"] for row in rows} == set(expected)
    listed = commands.run("show", tmp_path / "s.parquet", "--format", "csv").stdout
    assert [row["label"] for row in csv.DictReader(io.StringIO(listed))] == expected


@pytest.mark.parametrize("flags", [(), ("--each",), ("--about", "counts")], ids=str)
def test_scripts_get_every_digit(file, flags):
    known = {"each": "--each" in flags, "about": "counts" if COUNTS[1] in flags else None}
    expected = al.compare(al.load(file), **known).to_arrow().to_pylist()
    assert table(file, *flags) == expected
    rows = list(csv.DictReader(io.StringIO(run(file, *flags, "--format", "csv").stdout)))
    assert [(row["left"], float(row["lower"])) for row in rows] == [
        (row["left"], row["lower"]) for row in expected
    ]


def test_choices(file):
    top = table(file, *COUNTS, "--top", "2", "--farthest")
    assert [row["distance"] for row in top] == sorted((row["distance"] for row in top), reverse=True)
    assert {top[0]["left"], top[0]["right"]} == {"east", LONG}
    against = table(file, "--against", "south")
    assert [(row["left"], row["right"]) for row in against] == [
        ("south", other) for other in ("north", "east", LONG)
    ]
    for verdict, count in (("differ", 5), ("inconclusive", 1), ("alike", 0)):
        rows = table(file, *COUNTS, *SURELY, "--verdict", verdict)
        assert [row["verdict"] for row in rows] == [verdict] * count
    assert "1 of 6 pairs" in run(file, *COUNTS, *SURELY, "--verdict", "inconclusive").output.splitlines()[1]
    near = table(file, *COUNTS, "--level", "0.9", "--alike", "5000", "--verdict", "alike")
    assert [(row["left"], row["right"]) for row in near] == [("north", "south")]


def test_infinity_is_null_in_json_and_no_limit_for_people(tmp_path):
    rng = np.random.default_rng(2)
    rows = counted(chapters(), ["one", "two"], [5, 5000], [[1] * 5, [700] * 5], rng)
    rows.save(tmp_path / "few.parquet")
    (pair,) = table(tmp_path / "few.parquet", "--about", "people", "--against", "one")
    assert pair["verdict"] == "inconclusive"
    assert pair["distance_upper"] is None or pair["distance_upper"] < np.inf
    assert (pair["lower"], pair["upper"]) == (0, 1)


def test_several_files_are_one_set(file, tmp_path):
    more = al.release(
        al.Protocol(TRANSFORM, al.Arrays(total_share="0.25"), epsilon=2),
        np.ones((1, 300), dtype=int),
        labels=["west"],
        ledger=al.NO_LEDGER,
    )
    more.save(tmp_path / "west.parquet")
    assert len(table(file, tmp_path / "west.parquet", *COUNTS)) == 10
    again = run(file, file)
    assert again.exit_code == 2
    assert "is twice in" in again.stderr


def test_wrong_input_is_one_line_and_prints_nothing(file, tmp_path):
    for arguments, message in [
        ((file, "--against", "nowhere"), "no sketch labelled"),
        ((file, "--farthest"), "--farthest needs --top"),
        ((file, "--level", "nan"), "--level must be"),
        ((file, "--alike", "2"), "--alike must be"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"armslength: {message}")
        assert result.stderr.count("\n") == 1
    assert run(file, "--verdict", "perhaps").exit_code == 2
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(file.read_bytes()[:-200])
    assert run(damaged).exit_code == 5
    assert run(tmp_path / "missing.parquet").exit_code == 2
    other = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="elsewhere"), epsilon=1)
    al.release(other, np.zeros((1, 300), dtype=int), labels=["x"], ledger=al.NO_LEDGER).save(
        tmp_path / "other.parquet"
    )
    left_out = run(file, tmp_path / "other.parquet", *COUNTS)
    assert left_out.exit_code == 0
    assert "other.parquet) left out: its seed differs" in left_out.stderr


def test_the_command_that_explains_the_most_different_pair_works(votes, monkeypatch):
    monkeypatch.chdir(votes.parent)
    for options in ((), ("--against", "the coast")):
        *_, last = run("votes.parquet", *options).output.splitlines()
        command = shlex.split(last[last.index("armslength ") :])[1:]
        assert command[:2] == ["explain", "votes.parquet"]
        assert "the coast" in command[2:]
        done = commands.run(*command)
        assert done.exit_code == 0
        assert "Injuries" in done.output
    assert "explain" not in run("votes.parquet", "--top", "1").output  # these two do not differ


def test_no_explanation_is_offered_where_there_are_no_item_groups(file, votes, tmp_path):
    assert "explain" not in run(file).output
    for row in al.load(votes):
        bare = al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals, None, row.spread)
        (bare if row.labels == ("the coast",) else row).save(tmp_path / f"{row.labels[0]}.parquet")
    done = run(*tmp_path.glob("*.parquet"))
    assert "2 of 3 pairs differ" in done.output
    assert "explain" not in done.output


def test_a_small_party_is_not_the_most_different_by_chance():
    rng = np.random.default_rng(5)
    people = [200, 40_000, 40_000]
    shares = np.array([[0.02, 0.3, 0.05, 0.1, 0.2]] * 2 + [[0.02, 0.1, 0.05, 0.4, 0.2]])
    rows = counted(
        chapters(), ["tiny", "north", "bay"], people, rng.binomial(np.array(people)[:, None], shares), rng
    )
    for keep in (False, True):
        assert al.compare(rows, keep=keep).most_different() == ("north", "bay")
    found = al.compare(rows, keep=True).to_arrow().to_pylist()
    first, *_ = sorted(found, key=lambda row: row["similarity"])
    assert (first["left"], first["right"], first["verdict"]) == ("tiny", "bay", "inconclusive")


def test_no_number_is_cut(votes):
    """Alike, and with a difference beyond chance, which is the longest text of a pair."""
    for row in table(votes, "--alike", 0.01):
        text = run(votes, "--alike", 0.01, "--only", f"{row['left']},{row['right']}").output
        assert ("not identical" in text) == (row["distance_lower"] > 0)
        assert "…" not in text
