"""`armslength compare` as it is typed."""

import csv
import io
import json
import re
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from report_parties import with_margins

TRANSFORM = al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="compare command")
PROTOCOL = al.Protocol(TRANSFORM, al.Arrays(total_share="0.25"), epsilon=1)
LONG = "the hospital with the very long name in the north of the country"
LABELS = ["north", "south", "east", LONG]


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    x = np.full((4, 300), 40)
    x[2, :100] = 1500
    x[3, 100:200] = 900
    path = tmp_path_factory.mktemp("compare") / "sketches.parquet"
    al.release(PROTOCOL, x, labels=LABELS, ledger=al.NO_LEDGER).save(path)
    return path


def test_a_table_for_people(file):
    result = run(file, "--level", "0.999999")
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert lines[0].split() == ["left", "right", "distance", "from", "to"]
    assert len(lines) == 8
    assert lines[1].split()[:2] == ["north", "south"]
    assert lines[1].endswith("not resolved")
    assert "not resolved" not in lines[2]
    assert lines[-1].startswith("6 pairs, of which 5 differ; ")
    # aligned, and long names are cut in the middle
    assert "the hospital w…f the country" in lines[3]
    assert len({text.index("…") for text in lines if "…" in text}) == 1
    ends = {text.find(text.split()[-1]) + len(text.split()[-1]) for text in (lines[2], lines[3])}
    assert len(ends) == 1


def test_csv_holds_no_formula(tmp_path):
    labels = ['=HYPERLINK("x")', "+1", "-1", "@SUM(1)", "＝1", "＋1", "－1", "＠SUM(1)", "plain"]
    protocol = al.Protocol(
        al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="compare command"), epsilon=1
    )
    al.release(protocol, np.zeros((9, 300), int), labels=labels, ledger=al.NO_LEDGER).save(
        tmp_path / "s.parquet"
    )
    expected = ["'" + label for label in labels[:-1]] + ["plain"]
    compared = run(tmp_path / "s.parquet", "--quantity", "inner-product", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(compared)))
    assert {row["left"] for row in rows} | {row["right"] for row in rows} == set(expected)
    assert any(float(row["lower"]) < 0 for row in rows)  # negative numbers stay numbers
    listed = CliRunner().invoke(main, ["show", str(tmp_path / "s.parquet"), "--format", "csv"]).stdout
    assert [row["label"] for row in csv.DictReader(io.StringIO(listed))] == expected


@pytest.mark.parametrize("simultaneous", [False, True])
def test_scripts_get_every_digit(file, simultaneous):
    expected = al.distances(al.load(file)).to_arrow(simultaneous=simultaneous).to_pylist()
    flags = ["--simultaneous"] if simultaneous else []
    assert json.loads(run(file, "--format", "json", *flags).stdout) == expected
    rows = list(csv.DictReader(io.StringIO(run(file, "--format", "csv", *flags).stdout)))
    assert [(row["left"], float(row["lower"])) for row in rows] == [
        (row["left"], row["lower"]) for row in expected
    ]


def test_choices(file):
    top = json.loads(run(file, "--top", "2", "--farthest", "--format", "json").stdout)
    assert [row["value"] for row in top] == sorted((row["value"] for row in top), reverse=True)
    assert {top[0]["left"], top[0]["right"]} == {"east", LONG}
    against = json.loads(run(file, "--against", "south", "--format", "json").stdout)
    assert [(row["left"], row["right"]) for row in against] == [
        ("south", other) for other in ("north", "east", LONG)
    ]
    assert run(file, "--below", "1000").output.splitlines()[-1].startswith("1 pair, ")
    assert run(file, "--above", "1000").output.splitlines()[-1].startswith("5 pairs, ")
    assert json.loads(run(file, "--above", "1e9", "--format", "json").stdout) == []


def test_shapes_and_cosines_say_what_they_are(file):
    shapes = run(file, "--by", "shape")
    assert shapes.exit_code == 0
    assert shapes.output.splitlines()[-1].startswith("about the mixes")
    cosines = run(file, "--quantity", "cosine", "--format", "json")
    assert cosines.stderr.startswith("armslength: approximate")
    assert json.loads(cosines.stdout)[0]["value"] <= 1


def test_infinity_is_null_in_json_and_no_limit_for_people(file):
    known = ["--method", "guaranteed", "--level", "0.99"]
    assert json.loads(run(file, *known, "--format", "json").stdout)[1]["upper"] is None
    assert "no limit" in run(file, *known).output


def test_several_files_are_one_set(file, tmp_path):
    more = al.release(
        al.Protocol(TRANSFORM, epsilon=2), np.zeros((1, 300), dtype=int), labels=["west"], ledger=al.NO_LEDGER
    )
    more.save(tmp_path / "west.parquet")
    assert run(file, tmp_path / "west.parquet").output.splitlines()[-1].startswith("10 pairs")
    again = run(file, file)
    assert again.exit_code == 2
    assert "is twice in" in again.stderr


def test_wrong_input_is_one_line_and_prints_nothing(file, tmp_path):
    for arguments, message in [
        ((file, "--against", "nowhere"), "no sketch labelled"),
        ((file, "--farthest"), "--farthest needs --top"),
        ((file, "--level", "nan"), "--level must be"),
        ((file, "--quantity", "inner-product", "--by", "shape"), "--quantity must be a distance"),
        ((file, "--beyond-chance"), "--beyond-chance needs --by"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"armslength: {message}")
        assert result.stderr.count("\n") == 1
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(file.read_bytes()[:-200])
    assert run(damaged).exit_code == 5
    assert run(tmp_path / "missing.parquet").exit_code == 2
    other = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="elsewhere"), epsilon=1)
    al.release(other, np.zeros((1, 300), dtype=int), labels=["x"], ledger=al.NO_LEDGER).save(
        tmp_path / "other.parquet"
    )
    left_out = run(file, tmp_path / "other.parquet")
    assert left_out.exit_code == 0
    assert "other.parquet) left out: its seed differs" in left_out.stderr


def test_the_farthest_pair_comes_with_reasons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shares = [[0.1, 0.1, 0.3]] * 2 + [[0.1, 0.5, 0.3]]
    with_margins(shares, labels=["north", "south", "the coast"]).save("a.parquet")
    for options in (["--by", "shape"], ["--by", "shape", "--quantity", "cosine"], ["--against", "the coast"]):
        *_, last = run("a.parquet", *options).output.splitlines()
        assert re.match(r"Clearest difference of these: [a-z ]+ and [a-z ]+; [a-z ]+ has ", last)
        assert "more with Injuries (+" in last or "fewer with Injuries (−" in last
        command = shlex.split(last[last.index("armslength ") :])[1:]
        assert command[:2] == ["explain", "a.parquet"]
        assert "the coast" in command[2:]
        assert CliRunner().invoke(main, command).exit_code == 0
    nearest = run("a.parquet", "--by", "shape", "--beyond-chance", "--top", "1").output
    assert "explain" not in nearest  # the two are not told apart
    assert "explain" not in run("a.parquet", "--quantity", "inner-product").output


def test_files_without_margins_matter_only_if_their_party_is_farthest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shares = [[0.1, 0.1, 0.3]] * 2 + [[0.1, 0.5, 0.3]]
    for row in with_margins(shares, labels=["north", "south", "coast"]):
        bare = al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals, None, row.spread)
        (bare if row.labels == ("south",) else row).save(f"{row.labels[0]}.parquet")
    *_, last = run(
        "north.parquet", "south.parquet", "coast.parquet", "--by", "shape", "--against", "north"
    ).output.splitlines()
    assert re.search(r"coast has more with Injuries", last)
    *_, last = run(
        "north.parquet", "south.parquet", "coast.parquet", "--by", "shape", "--against", "south"
    ).output.splitlines()
    assert "the reasons are unknown" in last
    assert "armslength explain" not in last
