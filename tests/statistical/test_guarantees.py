"""The guarantee that a plan states for a target (α, β), against the real thing: it is never missed more often.

Fresh columns are as good as a fresh seed: one matrix over an open vocabulary, with items of their own for every row, gives
independent projections of the same difference.
"""

import math

import numpy as np
import pytest
from scipy import sparse

import armslength as al
from armslength.estimates.variance import curve_of
from armslength.laws import Cumulants
from armslength.planner.failure_bounds import failure_bound, fourth_moment, pair_moments
from statistical.limits import LIMIT

ENTRIES = 600_000
SHAPES = {"two equal": [20, 20], "three": [20, 16, 12], "one": [28], "spread": [4] * 50}


def rows_for(z, sketch_dim):
    """How many rows are simulated: fewer where each has many entries or a long sketch (128 MB)."""
    return min(60_000, ENTRIES // len(z), 2**24 // sketch_dim)


def estimates_of(protocol, z):
    """Estimates of ‖z‖² from fresh projections and fresh noises of two parties."""
    m, rows = len(z), rows_for(z, protocol.transform.sketch_dim)
    entries = np.tile(np.array(z), rows), np.arange(rows * m), np.arange(0, rows * m + 1, m)
    X = sparse.csr_array(entries, shape=(rows, rows * m))
    nothing = sparse.csr_array((rows, 1), dtype=np.int64)
    a = al.release(protocol, X, items=range(rows * m), ledger=al.NO_LEDGER)
    b = al.release(protocol, nothing, items=[0], ledger=al.NO_LEDGER)
    return al.squared_norms(a - b).value


@pytest.mark.parametrize("sparsity", [1, 4])
@pytest.mark.parametrize("epsilon", ["0.5", "2", "8"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_errors_beyond_the_distortion_are_as_rare_as_stated(shape, epsilon, sparsity):
    z = SHAPES[shape]
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=128, sparsity=sparsity, seed="guarantee"), epsilon=epsilon, items="int64"
    )
    estimates, d = estimates_of(protocol, z), float(np.dot(z, z))
    noise = protocol.law.cumulants
    curve = curve_of(protocol.transform, "output", 1.0, Cumulants(2 * noise.k2, 2 * noise.k4))
    for distortion in (0.1, 0.3, 0.7, 1.5, 3.0):
        bound = failure_bound(protocol.transform, protocol.law, protocol.unit_squared, curve, d, distortion)
        missed = (np.abs(estimates - d) > distortion * d).mean()
        assert missed <= bound + LIMIT * math.sqrt(bound / len(estimates)) + LIMIT**2 / len(estimates)
    errors = (estimates - d) ** 4
    limit = fourth_moment(
        128, protocol.transform.error_moments(), pair_moments(protocol.law, protocol.unit_squared), d
    )
    assert errors.mean() - LIMIT * errors.std() / math.sqrt(len(estimates)) <= limit


def test_the_bound_has_teeth():
    # Two equal coordinates, little noise: they meet with probability 1/k, and then everything is lost. The fourth moment is
    # within a fifth of its bound, and an error of 0.99·D is as likely as the bound says, up to the same.
    k = 128
    protocol = al.Protocol(al.SparseJL(sketch_dim=k, sparsity=1, seed="teeth"), epsilon=20, items="int64")
    estimates, d = estimates_of(protocol, [1000, 1000]), 2e6
    limit = fourth_moment(
        k, protocol.transform.error_moments(), pair_moments(protocol.law, protocol.unit_squared), d
    )
    error = ((estimates - d) ** 4).std() / math.sqrt(len(estimates))
    measured = ((estimates - d) ** 4).mean()
    assert measured + LIMIT * error > 0.8 * limit
    assert measured - LIMIT * error < limit
    missed = (np.abs(estimates - d) > 0.99 * d).mean()
    assert abs(missed - 1 / k) < LIMIT * math.sqrt(1 / k / len(estimates))


def test_a_planned_target_is_met():
    plan = al.plan(
        None, epsilon=3, distance=60, distortion=0.5, failure_probability=0.05, items="int64", seed="met"
    )
    assert plan.resolvable
    bound = plan.recommended.failure_bound
    assert bound <= 0.05
    for z in ([36] * 2 + [24, 20, 14], [6] * 100, [60]):
        d = float(np.dot(z, z))
        assert d >= 3600
        estimates = estimates_of(plan.protocol, z)
        missed = (np.abs(estimates - d) > 0.5 * d).mean()
        assert missed <= bound + LIMIT * math.sqrt(bound / len(estimates))
