"""Estimates over fresh noise: unbiased, and of the variance stated, for every transform, law and noise site.

For a published matrix the estimate is unbiased for ‖Sz‖², with a variance that the noise alone makes; over the seed the
projection's own variance is added, which test_transforms.py holds to its formula. The kurtosis of an estimate over 32
coordinates of Laplace noise is below 8 (measured: 3.1 to 4.1), so 67,000 rows tell a variance from 0.9 and 1.1 of it.
"""

import numpy as np
import pytest

import armslength as al
from armslength.estimates.pair_noise import PairNoise
from armslength.estimates.variance import ErrorModel
from armslength.noise.draw import draw
from statistical.limits import check_mean, check_variance, draws_for_variance

D, K = 40, 32
ROWS = draws_for_variance(8)
x = np.arange(D) % 7
y = (np.arange(D) * 5) % 11

TRANSFORMS = {
    "block s=1": al.SparseJL(input_dim=D, sketch_dim=K, sparsity=1, seed="x"),
    "block s=4": al.SparseJL(input_dim=D, sketch_dim=K, sparsity=4, seed="x"),
    "graph": al.SparseJL(input_dim=D, sketch_dim=K, sparsity=3, seed="x", construction="graph"),
    "balanced": al.SparseJL(input_dim=D, sketch_dim=K, sparsity=2, seed="x", construction="balanced"),
    "hadamard": al.HadamardJL(input_dim=D, sketch_dim=K, seed="x"),
    "fast": al.FastJL(input_dim=D, sketch_dim=K, seed="x", density=0.3),
    "gaussian": al.GaussianJL(input_dim=D, sketch_dim=K, seed="x"),
    "sign": al.SignJL(input_dim=D, sketch_dim=K, seed="x"),
    "sign sparse": al.SignJL(input_dim=D, sketch_dim=K, seed="x", construction="sparse"),
    "identity": al.Identity(input_dim=D),
}


def repeated(protocol, vector):
    return al.release(protocol, np.broadcast_to(vector, (ROWS, D)), ledger=al.NO_LEDGER)


def projected(transform):
    """‖Sz‖² of the published matrix."""
    return float(transform.scale_squared) * float(
        (transform.apply((x - y)[None, :]).astype(float) ** 2).sum()
    )


def noise_moments(protocol, parties=2):
    unit = protocol.unit_squared
    return parties * protocol.law.cumulants.k2 * unit, parties * protocol.law.cumulants.k4 * unit**2


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_squared_distances_for_every_transform_and_law(name, noise):
    protocol = al.Protocol(TRANSFORMS[name], epsilon=2, delta=1e-6, noise=noise)
    estimates = al.squared_norms(repeated(protocol, x) - repeated(protocol, y)).value
    k2, k4 = noise_moments(protocol)
    mean, k = projected(protocol.transform), protocol.transform.sketch_dim
    variance = 4 * k2 * mean + k * (k4 + 2 * k2**2)
    check_mean(estimates, mean, variance)
    check_variance(estimates, mean, variance)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_squared_norms_and_inner_products(noise):
    protocol = al.Protocol(TRANSFORMS["block s=1"], epsilon=2, delta=1e-6, noise=noise)
    a, b = repeated(protocol, x), repeated(protocol, y)
    k2, k4 = noise_moments(protocol, parties=1)
    sx, sy = (protocol.transform.apply(v[None, :]).astype(float) * protocol.transform.scale for v in (x, y))
    norm = float((sx**2).sum())
    check_mean(al.squared_norms(a).value, norm, 4 * k2 * norm + K * (k4 + 2 * k2**2))
    check_variance(al.squared_norms(a).value, norm, 4 * k2 * norm + K * (k4 + 2 * k2**2))
    products = protocol.unit_squared * (a.values.astype(float) * b.values).sum(axis=1)
    variance = k2 * norm + k2 * float((sy**2).sum()) + K * k2**2
    check_mean(products, float((sx * sy).sum()), variance)
    check_variance(products, float((sx * sy).sum()), variance)


def test_unequal_epsilon_and_multiples():
    transform = al.SparseJL(input_dim=D, sketch_dim=K, sparsity=1, seed="x")
    fine, coarse = (
        al.Protocol(transform, epsilon="0.02"),
        al.Protocol(transform, epsilon="0.01", delta=1e-6, noise="gaussian"),
    )
    scale = 200
    a, b = repeated(fine, scale * x), repeated(coarse, scale * y)
    estimates = al.squared_norms(2 * a - 0.5 * b).value
    k2 = 4 * fine.law.cumulants.k2 + 0.25 * coarse.law.cumulants.k2
    k4 = 16 * fine.law.cumulants.k4 + 0.0625 * coarse.law.cumulants.k4
    z = transform.apply((2 * scale * x)[None, :]) - 0.5 * transform.apply((scale * y)[None, :])
    mean = float((z**2).sum())
    variance = 4 * k2 * mean + K * (k4 + 2 * k2**2)
    check_mean(estimates, mean, variance)
    check_variance(estimates, mean, variance)


def test_shared_noise_is_not_counted_twice():
    # (a+b) against (b+c): the noise of b cancels; counting it would bias by 4k·κ₂.
    protocol = al.Protocol(TRANSFORMS["block s=1"], epsilon=2)
    a, b, c = repeated(protocol, x), repeated(protocol, 3 * y), repeated(protocol, y)
    estimates = al.squared_norms((a + b) - (b + c)).value
    k2, k4 = noise_moments(protocol)
    mean = projected(protocol.transform)
    check_mean(estimates, mean, 4 * k2 * mean + K * (k4 + 2 * k2**2))
    # March − February against February − January: coefficients 1, −2, 1
    drift = al.squared_norms((a - b) - (b - c)).value
    k2, k4 = 3 * k2, (1 + 16 + 1) / 2 * k4
    z = protocol.transform.apply((x - 6 * y + y)[None, :]).astype(float)
    mean = float(protocol.transform.scale_squared) * float((z**2).sum())
    check_mean(drift, mean, 4 * k2 * mean + K * (k4 + 2 * k2**2))
    check_variance(drift, mean, 4 * k2 * mean + K * (k4 + 2 * k2**2))


def conditional_input_variance(transform, k2, k4, z):
    """Var of the estimate given the published P: 4κ₂‖Gζ‖² + 2κ₂²tr(G²) + κ₄ΣGⱼⱼ², G = PᵀP, times c⁴."""
    P = transform._published.toarray().astype(float)
    zeta = transform.hadamard_step(z[None, :])[0].astype(float)
    G = P.T @ P
    total = 4 * k2 * ((G @ zeta) ** 2).sum() + 2 * k2**2 * (G * G).sum() + k4 * (np.diag(G) ** 2).sum()
    return float(transform.scale_squared) ** 2 * total


def test_noise_on_the_input():
    transform = al.FastJL(input_dim=D, sketch_dim=K, seed="x", density=0.3)
    protocol = al.Protocol(transform, epsilon=4, delta=1e-3, noise_site="input")
    estimates = al.squared_norms(repeated(protocol, 9 * x) - repeated(protocol, 9 * y)).value
    k2, k4 = 2 * protocol.law.cumulants.k2, 2 * protocol.law.cumulants.k4
    mean = 81 * projected(transform)
    variance = conditional_input_variance(transform, k2, k4, 9 * (x - y))
    check_mean(estimates, mean, variance)
    check_variance(estimates, mean, variance)


def test_noise_on_the_input_over_the_seed():
    # E over P of the conditional variance, which is exact for each P, plus the projection's own: the stated curve.
    k2, k4, seeds = 7.0, 11.0, 4000
    z = (x - y).astype(float)
    d, l4 = float((z**2).sum()), float((z**4).sum())
    transforms = [al.FastJL(input_dim=D, sketch_dim=4, seed=f"seed {i}", density=0.3) for i in range(seeds)]
    parts = np.array([conditional_input_variance(t, k2, k4, x - y) for t in transforms])
    protocol = al.Protocol(transforms[0], epsilon=4, delta=1e-3, noise_site="input")
    cumulants = PairNoise.of([(protocol, 1.0)]).cumulants
    curve = ErrorModel.of(protocol).variance_curve(type(cumulants)(k2=k2, k4=k4))
    a, b = transforms[0].variance_coefficients
    stated = float(curve.at(d)) - max(a, a - b) * d**2  # the noise's share
    error = parts.std() / np.sqrt(seeds)
    assert abs(parts.mean() - stated) < 4.892 * error
    for factor in (0.9, 1.1):
        assert abs(parts.mean() - factor * stated) > 4.892 * error
    assert transforms[0].norm_variance(d, l4) > 0


def test_the_main_theorem_over_seed_and_noise():
    # SparseJL with s=2 and Laplace noise, everything at once; erratum 1's printed constant must fail.
    # The kurtosis of these estimates is below 5 (measured: 3.5 to 3.9).
    k, epsilon, seeds = 8, 2, draws_for_variance(5)
    protocol = al.Protocol(al.SparseJL(input_dim=12, sketch_dim=k, sparsity=2, seed="x"), epsilon=epsilon)
    z = np.array([3, -1, 4, -1, 5, -9, 2, 6, -5, 3, 5, -8])
    raw = np.stack(
        [
            al.SparseJL(
                input_dim=12, sketch_dim=k, sparsity=2, seed=f"main {i}", construction="block", independence=4
            ).apply(z[None, :], threads=1)[0]
            for i in range(seeds)
        ]
    )
    noise = draw(protocol.law, raw.shape) - draw(protocol.law, raw.shape)
    squares = protocol.unit_squared * ((raw + noise).astype(float) ** 2).sum(axis=1)
    k2, k4 = noise_moments(protocol)
    d, l4 = float((z**2).sum()), float((z.astype(float) ** 4).sum())
    variance = protocol.transform.norm_variance(d, l4) + 4 * k2 * d + k * (k4 + 2 * k2**2)
    estimates = squares - k * k2
    check_mean(estimates, d, variance)
    check_variance(estimates, d, variance)
    printed = squares - 2 * k * 2 / epsilon**2
    assert abs(printed.mean() - d) > 4.892 * np.sqrt(variance / seeds)
