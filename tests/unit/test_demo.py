"""The demo: its data, its yardstick, and the whole run with few hospitals."""

import shlex
from itertools import pairwise

import numpy as np
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
    assert "groups in which no two are found to differ" in done.output
    assert "hospital 02 has more with" in done.output
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
