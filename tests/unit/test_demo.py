"""The demo: its data, its yardstick, and the whole run with few hospitals."""

import re
import shlex
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy.spatial.distance import cdist

import armslength as al
from armslength import demo
from armslength.cli.main import main


def test_hospitals_differ_by_region_and_some_patients_have_very_many_events():
    made = demo.generated_hospitals()
    assert len(made) == 24
    assert sorted({hospital.region for hospital in made}) == [0, 1, 2, 3]
    sizes = np.cumsum([0, *(hospital.visits.num_rows for hospital in made)])
    codes = np.concatenate([hospital.visits.column("code").to_numpy() for hospital in made])
    numbers = np.unique(codes, return_inverse=True)[1]
    shares = [
        np.bincount(numbers[first:last], minlength=demo.CODES) / (last - first)
        for first, last in pairwise(sizes)
    ]
    truth = cdist(shares, shares)
    regions = np.array([hospital.region for hospital in made])
    same = regions[:, None] == regions
    np.fill_diagonal(truth, np.nan)
    assert np.nanmax(truth[same]) < np.nanmin(truth[~same])
    largest = max(
        np.unique(hospital.visits.column("patient").to_numpy(), return_counts=True)[1].max()
        for hospital in made
    )
    assert largest > 100


def test_two_chapters_of_each_region_are_more_common():
    made = demo.generated_hospitals(4, (2000, 2000))
    shares = [
        np.unique([code[0] for code in hospital.visits.column("code").to_pylist()], return_counts=True)
        for hospital in made
    ]
    share_of = [dict(zip(*each, strict=True)) for each in shares]
    for region, chapters in enumerate(demo.REGIONS):
        for chapter in demo.CHAPTERS:
            is_largest = max(range(4), key=lambda number: share_of[number][chapter]) == region
            assert is_largest or chapter not in chapters


def test_the_demo_runs_from_tables_to_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "HOSPITALS", 8)
    done = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    assert re.search(r"^  A  hospital \d\d, hospital \d\d", done.output, re.MULTILINE)
    assert re.search(r"^\w[\w ]+( +\d+\.\d %){2} +[+−]\d+\.\d ", done.output, re.MULTILINE)
    page = tmp_path / "demo" / "report.html"
    assert str(page) in done.output
    assert "hospital 08" in page.read_text(encoding="utf-8")
    files = sorted((tmp_path / "demo" / "sketches").iterdir())
    sketches = al.load(files)
    assert sketches.labels == tuple(f"hospital {number:02d}" for number in range(1, 9))
    ledger = al.Ledger(tmp_path / "demo" / "hospital-03" / "ledger.sqlite")
    assert [entry.population for entry in ledger.entries()] == ["hospital 03"]
    commands = [
        shlex.split(line)[1:] for line in done.output.splitlines() if line.startswith("   armslength ")
    ]
    assert [command[0] for command in commands] == [
        "plan",
        "release",
        "compare",
        "cluster",
        "explain",
        "report",
    ]
    for command in commands:
        if command[0] == "plan":  # each plan has a seed of its own, and these sketches have the first one's
            command[-1] = str(tmp_path / "again.json")
        again = CliRunner().invoke(main, command)
        assert again.exit_code == 0, (command, again.output)


def demo_tables(*names):
    return CliRunner().invoke(main, ["demo", *(part for name in names for part in ("--table", str(name)))])


def test_tables_of_the_tutorial_are_the_same_in_every_run(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        done = demo_tables(folder / "march.parquet", folder / "april.parquet")
        assert done.exit_code == 0, done.output
        assert "march.parquet: 101,462 diagnoses of 29,500 patients in a month" in done.output
    names = ["april.parquet", "chapters.csv", "hospitals.txt", "march.parquet"]
    assert sorted(path.name for path in first.iterdir()) == names
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    march = pq.read_table(first / "march.parquet")
    assert march.slice(0, 1).to_pylist() == [{"patient": "north-3265", "code": "M005", "hospital": "north"}]
    hospitals = (first / "hospitals.txt").read_text(encoding="utf-8").split()
    assert set(march.column("hospital").to_pylist()) == set(hospitals) == set(demo.PATIENTS)
    prefixes = {line[0] for line in (first / "chapters.csv").read_text(encoding="utf-8").splitlines()[1:]}
    assert {code[0] for code in march.column("code").to_pylist()} == prefixes


def test_one_table_is_the_first_month(tmp_path):
    assert demo_tables(tmp_path / "march.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "march.parquet").equals(demo.generated_months()[0])
    assert demo_tables(tmp_path / "again.parquet").exit_code == 0  # beside the same lists


def test_in_the_second_month_only_the_bay_has_another_profile():
    shares = []
    for month in demo.generated_months():
        places, codes = (month.column(name).to_numpy() for name in ("hospital", "code"))
        letters = codes.astype("U1")
        shares.append(
            np.array(
                [
                    [np.mean(letters[places == name] == letter) for letter in "ACEIJKMNPS"]
                    for name in demo.PATIENTS
                ]
            )
        )
    moved = dict(zip(demo.PATIENTS, abs(shares[0] - shares[1]).max(axis=1), strict=True))
    assert moved.pop("bay") > 2 * max(moved.values())


@pytest.mark.parametrize("name", ["march.parquet", "hospitals.txt", "chapters.csv"])
def test_no_file_is_replaced_by_a_made_up_one(tmp_path, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    done = demo_tables(tmp_path / "march.parquet")
    assert done.exit_code == 2
    assert f"{name} already exists" in done.output
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--table", "a.csv"], "name tables like march.parquet"),
        (["--table", "a.parquet", "--table", "a.parquet"], "two different ones"),
        (["--table", "a.parquet", "--table", "b.parquet", "--table", "c.parquet"], "there are 2 months"),
        (["--table", "a.parquet", "--folder", "b"], "leave out --folder"),
    ],
)
def test_tables_that_cannot_be_written(tmp_path, monkeypatch, options, problem):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["demo", *options])
    assert done.exit_code == 2
    assert problem in done.output
    assert not list(tmp_path.iterdir())
