"""Medians of sensitivities that depend on the seed, against matrices that were made."""

import statistics

import pytest

import armslength as al
from armslength.transforms.typical_norms import typical_operator_norm_squared, typical_sensitivities


@pytest.mark.parametrize("d", [20, 3000])
@pytest.mark.parametrize("k", [4, 32, 300])
@pytest.mark.parametrize("kind", ["gaussian", "sign", "fast"])
def test_medians_over_seeds(kind, k, d):
    def make(seed):
        if kind == "gaussian":
            return al.GaussianJL(input_dim=d, sketch_dim=k, seed=str(seed))
        return (
            al.FastJL(input_dim=d, sketch_dim=k, seed=str(seed))
            if kind == "fast"
            else al.SignJL(input_dim=d, sketch_dim=k, seed=str(seed), construction="sparse")
        )

    made = [make(seed) for seed in range(15)]
    typical = typical_sensitivities(made[0])
    assert not typical.is_exact
    # Fifteen medians of a maximum scatter by a few percent; few rows scatter most.
    allowed = 0.12 if k < 10 else 0.06
    l2 = statistics.median(transform.l2_sensitivity_squared for transform in made)
    assert typical.l2_squared == pytest.approx(l2, rel=2 * allowed, abs=1)
    l1 = statistics.median(transform.l1_sensitivity for transform in made)
    assert typical.l1 == pytest.approx(l1, rel=allowed, abs=1)


@pytest.mark.parametrize(
    "transform",
    [
        al.SparseJL(input_dim=500, sketch_dim=60, sparsity=3, seed="x"),
        al.SparseJL(input_dim=500, sketch_dim=60, sparsity=3, seed="x", construction="graph"),
        al.SparseJL(input_dim=500, sketch_dim=60, sparsity=1, seed="x", construction="balanced"),
        al.HadamardJL(input_dim=500, sketch_dim=60, seed="x"),
        al.Identity(input_dim=500),
    ],
)
def test_formulas_are_the_transforms_own(transform):
    typical = typical_sensitivities(transform)
    assert typical.is_exact
    assert typical.l1 == transform.l1_sensitivity
    assert typical.l2_squared == transform.l2_sensitivity_squared


@pytest.mark.parametrize(
    ("make", "allowed"),
    [
        (lambda seed: al.SparseJL(input_dim=2000, sketch_dim=100, sparsity=1, seed=seed), 0.1),
        (
            lambda seed: al.SparseJL(
                input_dim=2000, sketch_dim=100, sparsity=1, seed=seed, construction="balanced"
            ),
            1e-12,
        ),
        (lambda seed: al.SparseJL(input_dim=2000, sketch_dim=100, sparsity=4, seed=seed), 0.1),
        (lambda seed: al.GaussianJL(input_dim=2000, sketch_dim=100, seed=seed), 0.05),
        (lambda seed: al.SignJL(input_dim=2000, sketch_dim=100, seed=seed), 0.05),
        (lambda seed: al.FastJL(input_dim=2000, sketch_dim=100, seed=seed), 0.3),
        (lambda seed: al.HadamardJL(input_dim=2000, sketch_dim=100, seed=seed), 1e-12),
    ],
)
def test_operator_norms(make, allowed):
    made = [make(str(seed)) for seed in range(5)]
    typical, is_exact = typical_operator_norm_squared(made[0])
    median = statistics.median(transform.operator_norm_squared for transform in made)
    assert typical == pytest.approx(median, rel=allowed)
    assert is_exact is (allowed < 1e-6)
