"""The demo: its data, its yardstick, and the whole run with few hospitals."""

import shlex

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

import armslength as al
from armslength import demo
from armslength.cli.main import main
from armslength.demo import adjusted_rand_index


@pytest.mark.parametrize("seed", range(5))
def test_the_adjusted_rand_index_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    found, truth = rng.integers(0, 4, (2, 30))
    assert adjusted_rand_index(found, truth) == pytest.approx(adjusted_rand_score(truth, found))
    assert adjusted_rand_index(truth, truth) == 1
    everything_together = np.zeros(30, dtype=np.int64)
    assert adjusted_rand_index(everything_together, everything_together) == 1


def test_hospitals_differ_by_region_and_some_patients_have_very_many_events():
    made = demo.generated_hospitals()
    assert len(made) == 24
    assert sorted({hospital.region for hospital in made}) == [0, 1, 2, 3]
    truth = demo.true_shape_distances(made)
    regions = np.array([hospital.region for hospital in made])
    same = regions[:, None] == regions
    np.fill_diagonal(truth, np.nan)
    assert np.nanmax(truth[same]) < np.nanmin(truth[~same])
    largest = max(
        np.unique(hospital.visits.column("patient").to_numpy(), return_counts=True)[1].max()
        for hospital in made
    )
    assert largest > 100


def test_the_demo_runs_from_tables_to_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "HOSPITALS", 8)
    done = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    assert "adjusted Rand index" in done.output
    page = tmp_path / "demo" / "report.html"
    assert str(page) in done.output
    assert "hospital 08" in page.read_text(encoding="utf-8")
    files = sorted((tmp_path / "demo" / "sketches").iterdir())
    sketches = al.load(files)
    assert sketches.labels == tuple(f"hospital {number:02d}" for number in range(1, 9))
    ledger = al.Ledger(tmp_path / "demo" / "hospital-03" / "ledger.sqlite")
    assert [entry.population for entry in ledger.entries()] == ["hospital 03"]
    commands = [
        shlex.split(line)[1:] for line in done.output.splitlines() if line.strip().startswith("armslength ")
    ]
    assert [command[0] for command in commands] == ["plan", "release", "compare", "cluster", "report"]
    assert done.output.count("armslength ") == len(commands)
    for command in commands:
        again = CliRunner().invoke(main, command)
        assert again.exit_code == 0, (command, again.output)
