"""The paper's errata (docs/paper.md numbers them): each printed form fails, and the right one holds.

Errata 1, 4, 6, 8, 10 and 11 have their tests beside the code they concern: statistical/test_estimates.py, unit/test_laws.py,
statistical/test_transforms.py, unit/privacy, unit/protocol, statistical/test_transforms.py. Errata 9, 12, 14 and 15 are about
wording, cost and a step of a proof.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import armslength as al
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants


def test_erratum_2_entries_have_variance_one_over_k():
    transform = al.GaussianJL(input_dim=50, sketch_dim=16, seed="x")
    entry = transform.scale_squared * transform._table.second_moment
    assert entry == Fraction(1, 16)  # printed: 1, which would make E‖Pz‖² = k‖z‖²


def test_erratum_3_the_output_noise_estimator_has_no_factor_one_over_k():
    k, rows = 32, 20_000
    transform = al.FastJL(input_dim=40, sketch_dim=k, seed="x", density=0.3)
    protocol = al.Protocol(transform, epsilon=4, delta=1e-3, noise="gaussian")
    z = np.arange(40) % 5
    a = al.release(protocol, np.broadcast_to(z, (rows, 40)), ledger=al.NO_LEDGER)
    b = al.release(protocol, np.zeros((rows, 40), dtype=int), ledger=al.NO_LEDGER)
    truth = float(transform.scale_squared) * float((transform.apply(z[None, :]).astype(float) ** 2).sum())
    ours = al.squared_norms(a - b).value
    spread = ours.std() / math.sqrt(rows)
    assert abs(ours.mean() - truth) < 5 * spread
    # Printed, with Φ = √k·S and σ from Δ₂(Φ): (1/k)‖Φx+η−Φy−μ‖² − 2kσ²
    sigma_phi_squared = k * protocol.law.cumulants.k2 * protocol.unit_squared
    raw = protocol.unit_squared * ((a.values - b.values).astype(float) ** 2).sum(axis=1)
    printed = raw - 2 * k * sigma_phi_squared
    assert abs(printed.mean() - truth) > 100 * spread


@pytest.mark.parametrize(("d", "q", "k"), [(64, 0.3, 8), (1024, 0.05, 100)])
def test_erratum_5_variance_with_noise_on_the_input(d, q, k):
    transform = al.FastJL(input_dim=d, sketch_dim=k, seed="x", density=q)
    protocol = al.Protocol(transform, epsilon=1, delta=1e-6, noise_site="input")
    q = transform.density
    sigma_squared, distance = 3.0, 7.0  # σ² of one party's input coordinate, ‖z‖²
    curve = ErrorModel.of(protocol).variance_curve(Cumulants(k2=2 * sigma_squared * d))
    # The erratum subtracts 2dσ²; we subtract the published ‖P‖²_F·2σ², which takes this much away:
    kappa2 = 2 * sigma_squared * d
    saved = (3 / q - 1) * kappa2 * (2 * distance + kappa2) / (d * k)
    linear = sigma_squared * distance * (8 + (8 * d + 36 / q - 20) / k)
    constant = sigma_squared**2 * (8 * d + (8 * d**2 - 20 * d + 36 * d / q) / k)
    ours = float(curve.at(distance)) - curve.a * distance**2 + saved
    assert ours == pytest.approx(linear + constant, rel=1e-5)  # the rounded normal's kurtosis differs by 4e-7
    printed = 8 * d * sigma_squared * distance  # an O(dσ²‖z‖²) that grows with d
    assert linear < printed / 2


@pytest.mark.parametrize("d", [16, 1024, 2**17])
def test_erratum_7_the_bound_needs_a_dense_enough_matrix(d):
    enough = al.FastJL(input_dim=d, sketch_dim=10, seed="x", density=9 / (d + 9))
    assert enough.norm_variance(1.0) <= 3 / 10 * (1 + 1e-6)
    less = al.FastJL(input_dim=d, sketch_dim=10, seed="x", density=4.5 / (d + 9))
    assert less.norm_variance(1.0) > 3 / 10


@pytest.mark.parametrize(("s", "epsilon", "distance"), [(1, 1, 300.0), (4, 1, 900.0)])
def test_erratum_13_the_best_sketch_dimension(s, epsilon, distance):
    # On a fine grid, so that the noise is the paper's continuous one.
    def variance(k):
        unit = 2.0**-16
        law = al.Protocol(
            al.SparseJL(input_dim=10, sketch_dim=s, sparsity=s, seed="x"),
            al.Arrays(resolution=unit),
            epsilon=epsilon,
        ).law.cumulants
        c2 = unit**2 / s
        k2, k4 = 2 * law.k2 * c2, 2 * law.k4 * c2**2
        return 2 / k * distance**4 + 4 * k2 * distance**2 + k * (k4 + 2 * k2**2)

    best = minimize_scalar(variance, bounds=(1, 1e7), method="bounded", options={"xatol": 1e-3}).x
    assert best == pytest.approx(epsilon**2 * distance**2 / (math.sqrt(28) * s), rel=1e-3)
    assert math.sqrt(28) == pytest.approx(5.29, abs=0.005)
