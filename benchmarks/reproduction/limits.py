"""The lower bounds that the paper cites, beside measured errors; and the best size, beside the measured one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from comparators import central, noisy_histogram, randomized_response
from comparators.formulas import count_lower_bound, hamming_lower_bound

import armslength as al
from armslength.planner.plan import protocol_of
from reproduction.methods import METHODS, Method, Setting, measured

_TRIALS = 400
LENGTHS = (64, 256, 1024, 4096, 16384)
EPSILONS = (0.1, 0.3, 1.0, 3.0)


def hamming_errors(epsilon: float = 1.0) -> list[dict[str, Any]]:
    """Root mean squared error of the Hamming distance of two uniform random binary vectors, and the bound for any method."""
    generator = np.random.default_rng(2)
    found = []
    for d in LENGTHS:
        x, y = generator.integers(0, 2, (2, _TRIALS, d))
        truth = (x != y).sum(axis=1)
        response = [
            randomized_response.squared_distances(
                randomized_response.release(a == 1, epsilon, 1, generator),
                randomized_response.release(b == 1, epsilon, 1, generator),
                epsilon,
            )[0]
            for a, b in zip(x, y, strict=True)
        ]
        histogram = [
            noisy_histogram.squared_distances(
                noisy_histogram.release(a.astype(float), epsilon, 1.0, 1, generator),
                noisy_histogram.release(b.astype(float), epsilon, 1.0, 1, generator),
                epsilon,
                1.0,
            )[0]
            for a, b in zip(x, y, strict=True)
        ]
        plan = al.plan(d, epsilon=epsilon, distance=math.sqrt(d / 2), max_sketch_dim=d, seed="bound")
        sketch = _planned_estimates(plan, x, y)
        errors = {
            name: math.sqrt(float(((np.array(values) - truth) ** 2).mean()))
            for name, values in (
                ("randomized response", response),
                ("noisy histogram", histogram),
                ("our best sketch", sketch),
            )
        }
        found.append(
            {
                "input_dim": d,
                "errors": errors,
                "bound": math.sqrt(hamming_lower_bound(d, epsilon)),
                "k": plan.recommended.sketch_dim,
            }
        )
    return found


def _planned_estimates(plan: al.Plan, x: Any, y: Any) -> list[float]:
    """One estimate for each pair of vectors, each under a public seed of its own."""
    found = []
    for trial, (a, b) in enumerate(zip(x, y, strict=True)):
        protocol = protocol_of(plan.situation, plan.recommended, f"bound {trial}")
        u, v = (al.release(protocol, vector[None, :], ledger=al.NO_LEDGER) for vector in (a, b))
        found.append(float(al.squared_norms(u - v).value[0]))
    return found


def central_errors() -> list[dict[str, Any]]:
    """Mean absolute error of one noisy distance, and the bound for any ε-DP answer that one person moves by 1."""
    generator = np.random.default_rng(3)
    x, y = np.array([3.0]), np.array([0.0])
    found = []
    for epsilon in EPSILONS:
        noisy = central.release(x, y, epsilon, 1.0, 100_000, generator)
        found.append(
            {
                "epsilon": epsilon,
                "error": float(np.abs(noisy - 3.0).mean()),
                "bound": count_lower_bound(epsilon),
            }
        )
    return found


def best_sizes() -> list[dict[str, Any]]:
    """For several ε: the k of the paper's formula (as corrected), the exact best one, and the measured best of a few."""
    method = next(each for each in METHODS if each.name == "SJLT, s=1, Laplace")
    found = []
    for epsilon in (0.5, 1.0, 2.0):
        setting = replace(Setting(), epsilon=epsilon)
        formula = epsilon**2 * setting.squared_distance / 5.29
        sizes = sorted({max(2, round(formula * 2**step)) for step in (-3, -2, -1, 0, 1, 2, 3)})
        exact = min(
            range(1, setting.input_dim + 1),
            key=lambda k: method.variance(replace(setting, sketch_dim=k)),
        )
        tried = {k: measured(method, replace(setting, sketch_dim=k), "best size")[0] for k in sizes}
        found.append(
            {
                "epsilon": epsilon,
                "formula": formula,
                "exact": exact,
                "measured": min(tried, key=lambda k: tried[k]),
                "tried": tried,
            }
        )
    return found


def best_ratios() -> dict[str, float]:
    """Variance against the SJLT with s = 1 and Laplace noise, each at its own best size, at ε = 1."""
    best = {method.name: _best_variance(method) for method in METHODS if method.is_local}
    return {name: variance / best["SJLT, s=1, Laplace"] for name, variance in best.items()}


def _best_variance(method: Method) -> float:
    """The smallest variance over all sizes: it falls and then rises, so sizes beyond a clear rise are not tried."""
    best = math.inf
    for step in range(15):
        variance = method.variance(replace(Setting(), sketch_dim=8 * round(2 ** (step / 2))))
        if variance > 1.25 * best:
            break
        best = min(best, variance)
    return best
