"""The interval that README.md prints: it holds the stated truth as often as it says, given the public seed that it names."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import armslength as al
from armslength.estimates.intervals import Level
from armslength.estimates.shapes import Shapes
from armslength.ingest.sums import Sums
from armslength.protocol.neighbors import VOTE
from armslength.releasing.release import finished, noised
from statistical.limits import FALSE_ALARM

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
LEVEL, RUNS, PEOPLE = 0.95, 1000, 3000
RATES = 0.01, 0.02  # of the two geometric laws on the page


@pytest.fixture
def example(tmp_path, monkeypatch):
    """What the Python block of the page defines."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page
    return names


def released(protocol, shares, generator):
    """Releases of as many people as on the page, each with one item, drawn anew for every row."""
    counts = generator.multinomial(PEOPLE, shares, RUNS)
    items = [str(number) for number in range(1, len(shares) + 1)]
    matrix = protocol.transform.columns(items)  # k x items, one entry 1 or -1 in each column
    values = np.ascontiguousarray((matrix @ counts.T).T.astype(np.int64) * VOTE)
    bins = (abs(matrix) @ counts.T).T
    norms = np.floor(np.sqrt((bins.astype(np.float64) ** 2).sum(axis=1)) * VOTE).astype(np.int64)
    people = np.full(RUNS, PEOPLE * VOTE)
    sums = Sums(values, people.copy(), "events", spread=np.column_stack([people, norms]))
    return finished(protocol, noised(protocol, sums), None, release=generator.bytes(16))


def test_the_truth_is_covered_as_often_as_the_interval_says(example):
    protocol, generator = example["protocol"], np.random.default_rng()
    numbers = np.arange(1, 3001)
    shares = [rate * (1 - rate) ** (numbers - 1) for rate in RATES]
    shares = [each / each.sum() for each in shares]
    truth = float(shares[0] @ shares[1] / np.sqrt((shares[0] @ shares[0]) * (shares[1] @ shares[1])))
    assert f"the populations' is {truth:.3f}" in README
    sides = [released(protocol, each, generator) for each in shares]
    shapes = Shapes(*sides, beyond_chance=True)
    rule = shapes.likeness(*shapes.rows, is_paired=True)
    lower, upper = (end[:, 0] for end in rule.interval(Level.of(LEVEL, "asymptotic", 1)))
    covered = int(((lower <= truth) & (truth <= upper)).sum())
    assert covered >= binom.ppf(FALSE_ALARM, RUNS, LEVEL), f"{covered / RUNS:.3f} of {RUNS} runs"
    # The page's own release is one of these.
    one = example["similarity"]
    page = Shapes(al.load("north.parquet"), example["b"], beyond_chance=True)
    ends = page.likeness(*page.rows, is_paired=True).interval(Level.of(LEVEL, "asymptotic", 1))
    assert np.allclose(np.ravel(one.interval(LEVEL)), np.ravel(ends))
    assert abs(float(one) - rule.value.mean()) < 6 * rule.value.std()
