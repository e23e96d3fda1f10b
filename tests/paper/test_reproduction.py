"""docs/paper.md and its figures are what `make paper` measured, and what it measured is what the formulas say."""

import json
import math
from pathlib import Path

import pytest
from reproduction.crossing import crossing
from reproduction.limits import best_ratios
from reproduction.methods import METHODS, SWEEPS, Setting, measured
from reproduction.page import page

from statistical.limits import LIMIT, WRONG

ROOT = Path(__file__).parents[2]
REPORT = json.loads((ROOT / "benchmarks" / "reproduction" / "measured.json").read_text(encoding="utf-8"))


def test_the_page_is_made_from_the_numbers():
    assert (ROOT / "docs" / "paper.md").read_text(encoding="utf-8") == page(REPORT)
    assert "{{" not in page(REPORT)


def test_every_figure_is_shown():
    figures = {path.name for path in (ROOT / "docs" / "figures").iterdir()} - {"overview.svg"}  # README
    text = page(REPORT)
    assert len(figures) == 8
    assert all(f"](figures/{name})" in text for name in figures)


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_measured_points_lie_on_the_lines_of_theory(method):
    points = [
        point
        for sweep in REPORT["sweeps"].values()
        for each in sweep
        if each["method"] == method
        for point in each["points"]
    ]
    assert len(points) >= 10
    ratios = [point["variance"] / point["theory"] for point in points]
    errors = [point["error"] / point["theory"] for point in points]
    assert all(abs(ratio - 1) < LIMIT * error for ratio, error in zip(ratios, errors, strict=True))
    mean, error = sum(ratios) / len(ratios), math.hypot(*errors) / len(errors)
    assert abs(mean - 1) < LIMIT * error
    assert all(abs(mean - wrong) > LIMIT * error for wrong in WRONG)


def test_every_method_and_axis_is_there():
    assert set(REPORT["sweeps"]) == set(SWEEPS)
    for name in ("epsilon", "delta", "sketch_dim", "distance"):
        assert [each["method"] for each in REPORT["sweeps"][name]] == [method.name for method in METHODS]


def test_theory_is_computed_anew_and_agrees_with_the_report():
    # The numbers in the repository are those of this code: a formula that changes needs a new run.
    _, stations, change = SWEEPS["epsilon"]
    for method, each in zip(METHODS, REPORT["sweeps"]["epsilon"], strict=True):
        point = each["points"][2]
        assert point["at"] == stations[2]
        assert method.variance(change(Setting(), stations[2])) == pytest.approx(point["theory"], rel=1e-9)


def test_crossings_and_best_sizes_are_computed_anew():
    for row in REPORT["crossings"][::3]:
        assert crossing(row["sparsity"], 0.0) == pytest.approx(row["small"], rel=1e-6)
        assert crossing(row["sparsity"], 1e12) == pytest.approx(row["large"], rel=1e-6)
        assert row["small"] < row["large"] < row["printed"]
    assert best_ratios() == pytest.approx(REPORT["best_ratios"], rel=1e-6)
    for row in REPORT["best_sizes"]:
        assert row["formula"] == pytest.approx(row["exact"], rel=0.25)
        assert row["measured"] == pytest.approx(row["exact"], rel=0.6)


def test_measured_errors_are_above_the_lower_bounds():
    for row in REPORT["hamming"]:
        assert all(error > row["bound"] for error in row["errors"].values())
        assert row["bound"] == pytest.approx(math.sqrt(row["input_dim"]) / 2 / math.cosh(0.5) ** 2)
    for row in REPORT["central"]:
        assert row["error"] == pytest.approx(1 / row["epsilon"], rel=0.03)
        assert row["bound"] < row["error"]


def test_a_quick_measurement_here_and_now():
    method = next(each for each in METHODS if each.name == "randomized response")
    variance, error = measured(method, Setting(), "test")
    theory = method.variance(Setting())
    assert abs(variance - theory) < LIMIT * error
    assert all(abs(variance - wrong * theory) > LIMIT * error for wrong in WRONG)
