"""The quality of a plan, measured: on a grid of cells, the recommended configuration errs no more than the best in its list.

A cell is (d, ε, δ, m, v): the difference has m coordinates of ±v, so its distance is v√m. Each configuration is simulated over
SEEDS fresh matrices with RELEASES pairs of noise each. The measured error has a standard error of SPREAD at most (checked), so
the error of one configuration is known to LIMIT·SPREAD = 2.5 percent and a ratio of two to 3.6, with a false alarm of 1e-6. A plan
allows itself 1 percent; a ratio above 1.05 is a plan that is wrong.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

import armslength as al
from armslength.noise.draw import draw
from armslength.planner.predictions import Setting, predict, unit_sigma
from statistical.limits import LIMIT

SEEDS, RELEASES = 4500, 16
FEWER_SEEDS = 700  # for factors of five, and for a first look at others
SPREAD = 0.0052
CELLS = [
    (200, "1", "1e-6", 100, 3),
    (2000, "1", "1e-6", 100, 2),
    (1000, "4", "1e-6", 400, 1),
    (500, "0.5", "1e-6", 225, 4),
    (60, "2", "1e-6", 50, 4),
    (None, "1", "1e-6", 150, 2),
    (300, "1", "0", 100, 3),
    (400, "1", "1e-3", 100, 2),
]
LARGEST = 1024
COMPETITORS = 1.5  # times the best error: what is predicted to be further off is not measured


def difference(d, m, v):
    z = np.zeros(m if d is None else d, dtype=np.int64)
    z[:m] = v * (1 - 2 * (np.arange(m) % 2))
    return z


def projected(transform, z, seeds):
    """S·z in integer units for fresh seeds."""
    rows = np.empty((seeds, transform.sketch_dim), dtype=np.int64)
    for number in range(seeds):
        transform = transform.with_seed(f"quality {number}")
        named = {} if transform.input_dim is not None else {"items": range(len(z))}
        rows[number] = transform.apply(z[None, :], threads=1, **named)[0]
    return rows


def measured(line, plan, z, seeds=SEEDS):
    """(root mean squared error of the squared distance, its relative standard error), from the real matrices and noise."""
    law = line.law(plan.situation.epsilon, plan.situation.delta)
    unit, k = float(line.transform.scale_squared), line.sketch_dim
    rows = projected(line.transform, z, seeds).astype(float)
    truth = float((z.astype(float) ** 2).sum())
    squares = np.empty((seeds, RELEASES))
    for release in range(RELEASES):
        noise = draw(law, rows.shape).astype(float) - draw(law, rows.shape)
        estimates = unit * (((rows + noise) ** 2).sum(axis=1) - 2 * k * law.cumulants.k2)
        squares[:, release] = (estimates - truth) ** 2
    by_seed = squares.mean(axis=1)  # releases of one seed share the matrix
    mean = by_seed.mean()
    return math.sqrt(mean), by_seed.std() / math.sqrt(seeds) / mean / 2


def best_of_kenthapadi(d, situation):
    """Gaussian noise on a normal projection, at its best size (Kenthapadi et al.)."""
    # Steps of a quarter lose at most 1.3 percent of the variance, A/k + B + C·k. Every matrix is made, for its sensitivity.
    sizes = tuple(
        sorted({round(1.25**step) for step in range(1, 40) if 1.25**step <= situation.max_sketch_dim})
    )
    transforms = [al.GaussianJL(input_dim=d, sketch_dim=size, seed="plan") for size in sizes]
    options = [Setting.of(situation.grid_radius, transform, "gaussian") for transform in transforms]
    lines = [line for line in predict(options, situation) if line.has_upper_end]
    return min(lines, key=lambda line: line.relative_error)


def papers_own(d, situation):
    """The paper's SJLT at its own k = ln(1/β)/α² and s = ln(1/β)/α for α = 0.2, β = 0.05, with every hidden constant 1."""
    s, k = 15, 75
    transform = al.SparseJL(input_dim=d, sketch_dim=k, sparsity=s, construction="block", seed="plan")
    options = [Setting.of(situation.grid_radius, transform, law) for law in situation.laws]
    yield from predict(options, situation)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_recommended_plan_errs_no_more_than_the_best_in_its_list(cell):
    d, epsilon, delta, m, v = cell
    z = difference(d, m, v)
    plan = al.plan(
        d, epsilon=epsilon, delta=delta, distance=v * math.sqrt(m), max_sketch_dim=LARGEST, seed="x"
    )
    assert plan.resolvable
    ours, spread = measured(plan.recommended, plan, z)
    assert spread < SPREAD
    # What was predicted is what is measured, and 0.9 and 1.1 of it are not; ‖z‖₄ is left out of predictions.
    best = plan.recommended.relative_error
    assert abs(ours / (best * v**2 * m) - 1) < LIMIT * SPREAD + 0.5 / m
    others = [
        line
        for line in plan.settings
        if line is not plan.recommended
        if line.relative_error < COMPETITORS * best and line.sketch_dim <= 4 * LARGEST
    ]
    for line in others:
        theirs, spread = measured(line, plan, z, FEWER_SEEDS)
        if ours < 1.05 * theirs * (1 - LIMIT * spread):
            continue  # surely no better, as most of them are
        theirs, spread = measured(line, plan, z)
        assert spread < SPREAD, line.label
        assert ours < 1.05 * theirs, line.label


@pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell[2] == "1e-6" and cell[0] is not None], ids=str
)
def test_five_times_less_variance_than_kenthapadi_and_less_than_the_papers_setting(cell):
    d, epsilon, delta, m, v = cell
    z = difference(d, m, v)
    plan = al.plan(
        d, epsilon=epsilon, delta=delta, distance=v * math.sqrt(m), max_sketch_dim=LARGEST, seed="x"
    )
    ours, _ = measured(plan.recommended, plan, z, FEWER_SEEDS)
    kenthapadi = best_of_kenthapadi(d, plan.situation)
    theirs, spread = measured(kenthapadi, plan, z, FEWER_SEEDS)
    assert spread < 0.03
    assert (theirs / ours) ** 2 > 5
    papers = min(papers_own(d, plan.situation), key=lambda line: line.relative_error)
    assert measured(papers, plan, z, FEWER_SEEDS)[0] > 1.5 * ours
    # Their size is their best: half and twice of it are predicted to be worse.
    assert 1 < kenthapadi.sketch_dim < LARGEST
    for size in (kenthapadi.sketch_dim // 2, 2 * kenthapadi.sketch_dim):
        other = replace(kenthapadi.transform, sketch_dim=size)
        option = Setting.of(plan.situation.grid_radius, other, "gaussian")
        (line,) = predict([option], plan.situation)
        assert line.relative_error > kenthapadi.relative_error


@pytest.mark.parametrize("d", [None, 30, 300, 5000, 70_000])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("times", [7, 10, 50, 1000])
def test_the_whole_useful_range_as_predicted(d, epsilon, times):
    # Useful: distances of 7ρ/ε and more, with room for the best size. Every prediction is held to its protocol elsewhere.
    plan = al.plan(d, epsilon=epsilon, delta=1e-6, distance=times / epsilon, max_sketch_dim=2**16)
    assert plan.resolvable
    # Kenthapadi et al. at no more than their average sensitivity, 1: 2D²/k + 8σ²D + 8kσ⁴ is 16σ²D at its best k = D/(2σ²).
    sigma, squared = unit_sigma(plan.situation.epsilon, plan.situation.delta), (times / epsilon) ** 2
    k = max(1.0, squared / (2 * sigma**2))
    theirs = 2 / k + 8 * sigma**2 / squared + 8 * k * sigma**4 / squared**2
    assert d is None or theirs > 5 * plan.recommended.relative_error**2  # they need a fixed input
    assert all(
        line.relative_error > plan.recommended.relative_error for line in papers_own(d, plan.situation)
    )
