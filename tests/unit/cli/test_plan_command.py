"""`armslength plan` as it is typed."""

import csv
import io
import json
import shlex

import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from unit.cli.commands import run

COUNTS = ["plan", "--input-dim", "1000", "--epsilon", "1"]


def test_a_plan_about_counts():
    result = run(*COUNTS, "--distance", "32:700", "--contribution", "1")
    assert result.exit_code == 0
    assert "Recommended: SparseJL balanced, s=1" in result.output
    assert "distances of 32 to 700" in result.output.replace("\n", " ")
    assert result.stderr == ""


def test_the_protocol_is_written_and_loads(tmp_path):
    path = tmp_path / "protocol.json"
    result = run(*COUNTS, "--distance", "30:500", "--unit", "one patient", "-o", path)
    assert result.exit_code == 0
    protocol = al.Protocol.load(path)
    assert protocol.unit == "one patient"
    seed = protocol.transform.seed
    assert protocol == al.plan(1000, epsilon="1", distance=(30, 500), unit="one patient", seed=seed).protocol


def test_what_cannot_be_resolved_has_its_own_exit_code_and_writes_nothing(tmp_path):
    path = tmp_path / "protocol.json"
    result = run(*COUNTS, "--distance", "3", "--contribution", "1", "--unit", "one patient", "-o", str(path))
    assert result.exit_code == 3
    assert "Nothing would be seen" in result.output
    last = result.stderr.strip().splitlines()
    assert len(last) == 1
    assert "ε = " in last[0]
    assert "a distance of" in last[0]
    assert not path.exists()


def test_a_protocol_for_event_tables_must_say_who_is_protected(tmp_path):
    path = tmp_path / "protocol.json"
    people = (*COUNTS, "--distance", "40", "--contribution", "1")
    record = ("plan", "--record", "sex=F,M", "--epsilon", "1", "--people", "500")
    for asked in (people, record):
        assert run(*asked).exit_code == 0
        refused = run(*asked, "-o", str(path))
        assert refused.exit_code == 2
        assert "--unit" in refused.stderr
        assert not path.exists()
    assert run(*people, "--unit", "one patient", "-o", str(path)).exit_code == 0
    for_matrices = run(*COUNTS, "--distance", "500", "-o", str(path), "--overwrite")
    assert for_matrices.exit_code == 0
    assert "for arrays" in for_matrices.stderr


def test_json_and_csv_hold_all_settings():
    arguments = [*COUNTS, "--distance", 30]
    document = json.loads(run(*arguments, "--format", "json").output)
    assert document["seen_distance"] > 1
    assert document["refusal"] is None
    assert document["resolvable"] is True
    assert document["needs"] is None
    assert al.Protocol.from_document(document["protocol"]).transform.seed == document["seed"]
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").output)))
    assert len(rows) == len(document["settings"]) > 10
    assert list(rows[0]) == list(document["settings"][0])
    assert [float(row["relative_error"]) for row in rows] == [
        line["relative_error"] for line in document["settings"]
    ]
    refused = run(*COUNTS, "--distance", "1", "--format", "json")
    assert refused.exit_code == 3
    document = json.loads(refused.stdout)
    assert document["resolvable"] is False
    assert document["protocol"] is None
    assert document["needs"]["epsilon"] > 1
    assert "nothing would be seen" in document["refusal"]


def test_json_has_no_infinities():
    def refuse(constant):
        raise AssertionError(constant)

    result = run("plan --epsilon 1 --distance 9 --format json --input-dim 3")
    document = json.loads(result.stdout, parse_constant=refuse)
    assert None in [line["smallest_distance"] for line in document["settings"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--epsilon", "1", "--people", "many"],
        ["plan", "--epsilon", "1"],
        ["plan", "--epsilon", "1", "--people", "500", "--distance", "9"],
        ["plan", "--input-dim", "10", "--distance", "9"],
        [*COUNTS, "--distance", "near"],
    ],
)
def test_bad_input_is_exit_code_2_and_few_lines(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert result.stderr.strip()
    assert list(tmp_path.iterdir()) == []


def test_examples_of_the_help_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.strip() for line in run("plan", "--help").output.splitlines()]
    examples = [line for line in lines if line.startswith("armslength plan --")]
    assert len(examples) == 3
    assert [run(*shlex.split(example)[1:]).exit_code for example in examples] == [0] * 3


def test_the_help_fits_on_a_screen():
    """Ordinary options first; `protocol new` has the others."""
    shown = CliRunner().invoke(main, ["plan", "--help"], terminal_width=100)
    assert len(shown.output.splitlines()) <= 40
    options = [line.split()[0] for line in shown.output.splitlines() if line.startswith("  -")]
    assert len(options) <= 18
    assert options[:4] == ["--people", "--parties", "--epsilon", "--unit"]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_weak_promise_is_called_weak_in_every_form(form):
    weak = run("plan", "--input-dim", "1000", "--epsilon", "11", "--distance", "50", "--format", form)
    assert weak.exit_code == 0
    assert "weak promise" in (weak.stderr if form == "csv" else weak.stdout)
    assert "weak promise" not in run(*COUNTS, "--distance", "500", "--format", form).output


VOTES = [
    *("plan", "--parties", "9", "--people", "3000", "--items-per-person", "7", "--epsilon", "1"),
]


def test_a_plan_for_votes_says_what_will_be_seen_and_is_written(tmp_path):
    path = tmp_path / "protocol.json"
    result = run(*VOTES, "--unit", "one patient", "-o", str(path))
    assert result.exit_code == 0, result.output
    for words in ("you will see", "you will miss", "Recommended:", "share of ε for"):
        assert words in result.output.replace("\n", " ")
    protocol = al.Protocol.load(path)
    assert protocol.votes
    assert protocol.total_share > 0
    assert protocol.unit == "one patient"


def test_a_plan_for_votes_as_json_and_csv():
    document = json.loads(run(*VOTES, "--format", "json").stdout)
    assert document["resolvable"] is True
    assert document["about"] == "populations"
    assert 0.9 < document["seen"] <= document["chance"] < 1
    assert document["needs"]["people"] > 3000
    rows = list(csv.DictReader(io.StringIO(run(*VOTES, "--format", "csv").stdout)))
    assert [row["sketch_dim"] for row in rows] == [str(row["sketch_dim"]) for row in document["settings"]]


def test_a_plan_for_votes_that_would_show_nothing_has_its_own_exit_code(tmp_path):
    path = tmp_path / "protocol.json"
    few = ["20" if each == "3000" else each for each in VOTES]
    result = run(*few, "--unit", "one patient", "-o", str(path))
    assert result.exit_code == 3
    assert "people in each party" in result.stderr
    assert not path.exists()
    assert json.loads(run(*few, "--format", "json").stdout)["protocol"] is None


@pytest.mark.parametrize(
    "more", [["--distance", "9"], ["--contribution", "2"], ["--about", "counts"]], ids=str
)
def test_what_a_plan_for_votes_cannot_use_is_refused(more, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*VOTES, *more)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
