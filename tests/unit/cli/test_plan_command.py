"""`armslength plan` as it is typed."""

import csv
import io
import json
import shlex

import pytest

import armslength as al
from unit.cli.commands import run

COUNTS = ["plan", "--input-dim", "1000", "--epsilon", "1"]


def test_a_plan_for_people():
    result = run(*COUNTS, "--people", "500", "--contribution", "1", "--seed", "x")
    assert result.exit_code == 0
    assert "Recommended: SparseJL balanced, s=1" in result.output
    assert "two groups of 500 people with 1 item each" in result.output.replace("\n", " ")
    assert result.stderr == ""


def test_the_protocol_is_written_and_loads(tmp_path):
    path = tmp_path / "protocol.json"
    known = ("--distance", "30:500", "--delta", "1e-6", "--unit", "one patient", "--seed", "x")
    result = run(*COUNTS, *known, "-o", path)
    assert result.exit_code == 0
    protocol = al.Protocol.load(path)
    assert protocol.unit == "one patient"
    expected = al.plan(
        1000, epsilon="1", delta="1e-6", distance=(30, 500), unit="one patient", seed="x"
    ).protocol
    assert protocol == expected


def test_what_cannot_be_resolved_has_its_own_exit_code_and_writes_nothing(tmp_path):
    path = tmp_path / "protocol.json"
    result = run(*COUNTS, "--people", "3", "--contribution", "1", "--unit", "one patient", "-o", str(path))
    assert result.exit_code == 3
    assert "cannot be resolved" in result.output
    last = result.stderr.strip().splitlines()
    assert len(last) == 1
    assert "ε = " in last[0]
    assert "people in each party" in last[0]
    assert not path.exists()


def test_a_protocol_for_event_tables_must_say_who_is_protected(tmp_path):
    path = tmp_path / "protocol.json"
    people = (*COUNTS, "--people", "500", "--contribution", "1")
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


def test_json_and_csv_hold_all_configurations():
    arguments = [*COUNTS, "--distance", 30, "--distortion", 0.3, "--failure-probability", 0.5, "--seed", "x"]
    document = json.loads(run(*arguments, "--format", "json").output)
    assert document["recommended"]["is_recommended"]
    assert document["told_apart"] > 1
    assert document["refusal"] is None
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").output)))
    assert document["resolvable"] is True
    assert document["needed"] is None
    assert al.Protocol.from_document(document["protocol"]).transform.seed == "x"
    assert len(rows) == len(document["configurations"]) > 10
    assert [row["label"] for row in rows] == [line["label"] for line in document["configurations"]]
    assert [float(row["relative_error"]) for row in rows] == [
        line["relative_error"] for line in document["configurations"]
    ]
    refused = run(*COUNTS, "--distance", "1", "--format", "json")
    assert refused.exit_code == 3
    document = json.loads(refused.stdout)
    assert document["resolvable"] is False
    assert document["protocol"] is None
    assert document["needed"]["epsilon"] > 1
    assert "cannot be resolved" in document["refusal"]


def test_json_has_no_infinities():
    def refuse(constant):
        raise AssertionError(constant)

    result = run("plan --open-vocabulary --epsilon 1 --distance 9 --max-sketch-dim 2 --format json")
    document = json.loads(result.stdout, parse_constant=refuse)
    assert None in [line["smallest_distance"] for line in document["configurations"]]


def test_a_plot_is_written(tmp_path):
    path = tmp_path / "plan.svg"
    result = run(*COUNTS, "--distance", "30", "--plot", str(path))
    assert result.exit_code == 0
    assert "<svg" in path.read_text(encoding="utf-8")


def test_a_vocabulary_goes_into_the_protocol(tmp_path):
    names, path = tmp_path / "names.txt", tmp_path / "protocol.json"
    names.write_text("a\nb\nç\n", encoding="utf-8")
    result = run(
        *("plan", "--input-dim", "3", "--epsilon", "1", "--distance", "90"),
        *("--vocabulary", str(names), "-o", str(path)),
    )
    assert result.exit_code == 0, result.output
    expected = al.Protocol(al.Identity(input_dim=3), epsilon=1, vocabulary=["a", "b", "ç"])
    assert al.Protocol.load(path).vocabulary == expected.vocabulary


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--input-dim", "10", "--open-vocabulary", "--epsilon", "1", "--distance", "9"],
        ["plan", "--input-dim", "10", "--distance", "9"],
        [*COUNTS, "--distance", "near"],
        [*COUNTS, "--distance", "9", "--plot", "figure.pdf"],
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
    assert len(examples) == 7
    assert [run(*shlex.split(example)[1:]).exit_code for example in examples] == [0] * 7


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_weak_promise_is_called_weak_in_every_form(form):
    weak = run("plan", "--input-dim", "1000", "--epsilon", "11", "--distance", "50", "--format", form)
    assert weak.exit_code == 0
    assert "weak promise" in (weak.stderr if form == "csv" else weak.stdout)
    assert "weak promise" not in run(*COUNTS, "--distance", "500", "--format", form).output


VOTES = [
    *("plan", "--parties", "9", "--people", "3000", "--items-per-person", "7", "--epsilon", "1"),
    *("--seed", "x"),
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
    assert document["resolvable"] is document["beyond_chance"] is True
    assert 0.9 < document["seen"] <= document["hidden_by_chance"] < 1
    assert document["needed"]["people"] > 3000
    assert al.Protocol.from_document(document["protocol"]).transform.seed == "x"
    rows = list(csv.DictReader(io.StringIO(run(*VOTES, "--format", "csv").stdout)))
    assert [row["sketch_dim"] for row in rows] == [
        str(row["sketch_dim"]) for row in document["configurations"]
    ]


def test_a_plan_for_votes_that_would_show_nothing_has_its_own_exit_code(tmp_path):
    path = tmp_path / "protocol.json"
    few = ["20" if each == "3000" else each for each in VOTES]
    result = run(*few, "--unit", "one patient", "-o", str(path))
    assert result.exit_code == 3
    assert "people in each party" in result.stderr
    assert not path.exists()
    assert json.loads(run(*few, "--format", "json").stdout)["protocol"] is None


@pytest.mark.parametrize("more", [["--distance", "9"], ["--delta", "1e-6"], ["--radius", "2"]], ids=str)
def test_what_a_plan_for_votes_cannot_use_is_refused(more, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*VOTES, *more)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
