"""The interval that README.md prints: it holds the stated truth as often as it says, given the public seed that it names."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from armslength.estimates.intervals import Level
from statistical.limits import FALSE_ALARM
from statistical.test_coverage import estimates_of, rule_of

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
LEVEL, RUNS = 0.95, 2000


@pytest.fixture
def example(tmp_path, monkeypatch):
    """What the Python block of the page defines."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page
    return names


def test_the_truth_is_covered_as_often_as_the_interval_says(example):
    codes, protocol = example["codes"], example["protocol"]
    counts = np.array([np.bincount(row, minlength=codes.max() + 1) for row in codes])
    difference = counts[0] - counts[1]
    truth = float((difference**2).sum())
    assert f"the truth is {truth**0.5:.1f}" in README
    items = [str(code) for code in range(len(difference))]
    products = np.tile(protocol.transform.columns(items) @ difference, (RUNS, 1))
    estimates, level = estimates_of(protocol, products), Level.of(LEVEL, "asymptotic", 1)
    lower, upper = rule_of(protocol).interval(estimates, level)
    # These are the intervals that users get.
    one = example["distance"]
    ends = rule_of(protocol).interval(np.array([float(one) ** 2]), level)
    assert np.allclose([float(end[0, 0]) ** 2 for end in one.interval(LEVEL)], np.ravel(ends))
    covered = int(((lower <= truth) & (truth <= upper)).sum())
    assert covered >= binom.ppf(FALSE_ALARM, RUNS, LEVEL), f"{covered / RUNS:.3f} of {RUNS} runs"
