"""The methods that are compared, each with its exact variance and with itself, run.

All of them see the same two binary vectors, so that those which need bits can take part. Ours run as a user would run them:
`al.release` twice and `squared_norms`, over fresh public seeds.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from comparators import (
    central,
    cropped_second_moment,
    formulas,
    noisy_histogram,
    randomized_response,
    secret_projection,
)
from numpy.typing import NDArray

import armslength as al
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants
from armslength.transforms.transform import Transform

SEEDS, RELEASES = 600, 20
_SCANNED_SEEDS = 40


@dataclass(frozen=True)
class Setting:
    """Where a comparison is made.

    Attributes:
        input_dim: d, a power of two, so that nothing is padded.
        squared_distance: D: so many bits differ.
        epsilon: ε.
        delta: δ, for what needs one.
        sketch_dim: k.
        sparsity: s of the paper's SJLT.
    """

    input_dim: int = 1024
    squared_distance: int = 400
    epsilon: float = 1.0
    delta: float = 1e-6
    sketch_dim: int = 96
    sparsity: int = 8

    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Two binary vectors with so many differing bits, half of them in each."""
        x = np.arange(self.input_dim) % 2
        y = x.copy()
        places = np.linspace(0, self.input_dim - 1, self.squared_distance).astype(int)
        y[places] = 1 - y[places]
        return x, y


@dataclass(frozen=True)
class Method:
    """One way to the squared distance.

    Attributes:
        name: As the figures label it.
        variance: Exact, at a setting.
        run: Estimates under a label that names their randomness: as many rows as independent groups, as many columns as share a
            public matrix.
        has: Which of "delta", "sketch_dim", "sparsity" its variance depends on, beside ε and the distance.
        is_local: Whether each party can do it alone.
    """

    name: str
    variance: Callable[[Setting], float]
    run: Callable[[Setting, str], NDArray[np.float64]]
    has: tuple[str, ...] = ()
    is_local: bool = True


def measured(method: Method, setting: Setting, label: str) -> tuple[float, float]:
    """(mean squared error, its standard error) over seeds and noise; no two labels share their randomness."""
    squares = (method.run(setting, f"{label} {method.name} {setting}") - setting.squared_distance) ** 2
    groups = squares.mean(axis=1)
    return float(groups.mean()), float(groups.std(ddof=1) / math.sqrt(len(groups)))


def _protocol(setting: Setting, transform: Transform, noise: str, site: str) -> al.Protocol:
    delta = setting.delta if noise == "gaussian" else 0
    return al.Protocol(transform, epsilon=setting.epsilon, delta=delta, noise=noise, noise_site=site)


def _ours(
    name: str,
    build: Callable[[Setting, str], Transform],
    noise: str,
    site: str = "output",
    has: tuple[str, ...] = (),
    seeds: int = SEEDS,
) -> Method:
    """A method of this library."""

    def variance(setting: Setting) -> float:
        scanned = isinstance(build(setting, "x"), (al.GaussianJL, al.FastJL)) and site == "output"
        # A scanned sensitivity, and with it the noise, is the published matrix's own (erratum 9): a mean over seeds.
        each = [of_seed(setting, f"theory {seed}") for seed in range(_SCANNED_SEEDS if scanned else 1)]
        return math.fsum(each) / len(each)

    def of_seed(setting: Setting, seed: str) -> float:
        protocol = _protocol(setting, build(setting, seed), noise, site)
        cumulants = protocol.law.cumulants
        curve = ErrorModel.of(protocol).variance_curve(Cumulants(2 * cumulants.k2, 2 * cumulants.k4))
        d = float(setting.squared_distance)
        a, b = protocol.transform.variance_coefficients
        # Every coordinate of the difference is ±1, so its fourth norm is known: ‖z‖₄⁴ = D.
        return curve.at_point(d) - (curve.a - a) * d**2 - b * d if site == "output" else curve.at_point(d)

    def run(setting: Setting, label: str) -> NDArray[np.float64]:
        rows = [np.broadcast_to(vector, (RELEASES, setting.input_dim)) for vector in setting.vectors()]
        estimates = np.empty((seeds, RELEASES))
        for seed in range(seeds):
            protocol = _protocol(setting, build(setting, f"{hash_of(label)} {seed}"), noise, site)
            a, b = (al.release(protocol, each, ledger=al.NO_LEDGER) for each in rows)
            estimates[seed] = al.squared_norms(a - b).value
        return estimates

    return Method(name, variance, run, has + (("delta",) if noise == "gaussian" else ()))


def _other(
    name: str,
    variance: Callable[[Setting], float],
    run: Callable[[Setting, np.random.Generator], NDArray[np.float64]],
    *,
    has: tuple[str, ...] = (),
    is_local: bool = True,
) -> Method:
    """A method of others: nothing but noise is random, so every estimate is a group of its own."""

    def grouped(setting: Setting, label: str) -> NDArray[np.float64]:
        return run(setting, np.random.default_rng(hash_of(label))).reshape(-1, 1)

    return Method(name, variance, grouped, has, is_local)


def hash_of(label: str) -> int:
    """A number for each label."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:6], "big")


_DRAWS = SEEDS * RELEASES


def _run_response(setting: Setting, generator: np.random.Generator) -> NDArray[np.float64]:
    a, b = (
        randomized_response.release(bits == 1, setting.epsilon, _DRAWS, generator)
        for bits in setting.vectors()
    )
    return randomized_response.squared_distances(a, b, setting.epsilon)


def _run_histogram(setting: Setting, generator: np.random.Generator) -> NDArray[np.float64]:
    a, b = (
        noisy_histogram.release(vector.astype(float), setting.epsilon, 1.0, _DRAWS, generator)
        for vector in setting.vectors()
    )
    return noisy_histogram.squared_distances(a, b, setting.epsilon, 1.0)


def _run_central(setting: Setting, generator: np.random.Generator) -> NDArray[np.float64]:
    x, y = (vector.astype(float) for vector in setting.vectors())
    noisy = central.release(x, y, setting.epsilon, 1.0, _DRAWS, generator)
    return central.squared_distances(noisy, setting.epsilon, 1.0)


@cache
def _secret(setting: Setting) -> formulas.SecretProjection:
    return formulas.SecretProjection(setting.sketch_dim, setting.epsilon, setting.delta)


def _run_secret(setting: Setting, generator: np.random.Generator) -> NDArray[np.float64]:
    vectors, method = np.stack(setting.vectors()).astype(float), _secret(setting)
    return np.array(
        [
            secret_projection.squared_distance(
                secret_projection.release(vectors, method, generator), method, 0, 1
            )
            for _ in range(_DRAWS // 10)
        ]
    )


def _run_cropped(setting: Setting, generator: np.random.Generator) -> NDArray[np.float64]:
    x, y = setting.vectors()
    bits = cropped_second_moment.release((x - y).astype(float), 1.0, setting.epsilon, _DRAWS, generator)
    return cropped_second_moment.cropped_moments(bits, 1.0, setting.epsilon)


def _cropped_variance(setting: Setting) -> float:
    d, differing = setting.input_dim, setting.squared_distance
    method = formulas.CroppedSecondMoment(d, 1.0, setting.epsilon)
    return method.exact_variance([1.0] * differing + [0.0] * (d - differing))


_SIZED = ("sketch_dim",)

METHODS = (
    _ours(
        "SJLT, s=1, Laplace",
        lambda at, seed: al.SparseJL(input_dim=at.input_dim, sketch_dim=at.sketch_dim, sparsity=1, seed=seed),
        "laplace",
        has=_SIZED,
    ),
    _ours(
        "SJLT, paper's s, Laplace",
        lambda at, seed: al.SparseJL(
            input_dim=at.input_dim, sketch_dim=at.sketch_dim, sparsity=at.sparsity, seed=seed
        ),
        "laplace",
        has=("sketch_dim", "sparsity"),
    ),
    _ours(
        "SJLT, Gaussian",
        lambda at, seed: al.SparseJL(
            input_dim=at.input_dim, sketch_dim=at.sketch_dim, sparsity=at.sparsity, seed=seed
        ),
        "gaussian",
        has=_SIZED,
    ),
    _ours(
        "Kenthapadi et al.",
        lambda at, seed: al.GaussianJL(input_dim=at.input_dim, sketch_dim=at.sketch_dim, seed=seed),
        "gaussian",
        has=_SIZED,
        seeds=SEEDS // 4,  # a dense matrix takes its time
    ),
    _ours(
        "FJLT, output noise",
        lambda at, seed: al.FastJL(input_dim=at.input_dim, sketch_dim=at.sketch_dim, seed=seed),
        "gaussian",
        has=_SIZED,
    ),
    _ours(
        "FJLT, input noise",
        lambda at, seed: al.FastJL(input_dim=at.input_dim, sketch_dim=at.sketch_dim, seed=seed),
        "gaussian",
        "input",
        has=_SIZED,
    ),
    _other(
        "noisy histogram",
        lambda at: formulas.NoisyHistogram(at.input_dim, at.epsilon).variance(at.squared_distance),
        _run_histogram,
    ),
    _other(
        "randomized response",
        lambda at: formulas.RandomizedResponse(at.input_dim, at.epsilon).variance(at.squared_distance),
        _run_response,
    ),
    _other(
        "central curator",
        lambda at: formulas.Central(at.epsilon).variance(at.squared_distance),
        _run_central,
        is_local=False,
    ),
    _other(
        "secret projection",
        lambda at: _secret(at).variance(at.squared_distance),
        _run_secret,
        has=("delta", "sketch_dim"),
        is_local=False,
    ),
    _other("cropped second moment", _cropped_variance, _run_cropped, is_local=False),
)

SWEEPS: dict[str, tuple[str, list[float], Callable[[Setting, float], Setting]]] = {
    "epsilon": (
        "ε of each release",
        [0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
        lambda at, value: replace(at, epsilon=value),
    ),
    "delta": (
        "δ",
        [1e-12, 1e-9, 1e-6, 1e-4, 1e-2],
        lambda at, value: replace(at, delta=value),
    ),
    "sketch_dim": (
        "sketch size k",
        [8, 24, 64, 160, 400, 1024],
        lambda at, value: replace(at, sketch_dim=int(value)),
    ),
    "sparsity": (
        "sparsity s",
        [1, 2, 4, 8, 16, 32],
        lambda at, value: replace(at, sparsity=int(value)),
    ),
    "distance": (
        "distance √D",
        [math.sqrt(d) for d in (16, 64, 200, 500, 1024)],
        lambda at, value: replace(at, squared_distance=round(value**2)),
    ),
}
