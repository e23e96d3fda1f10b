"""Was Alice in the data? The best possible test, against releases with more and less noise.

    python examples/attacks/membership.py

The attacker knows everything but the noise: the public matrix, the law of the noise, every other patient's record, and Alice's own. The only
question left is whether hers was counted. No real attacker knows that much, and differential privacy protects even then.

Every possible sketch has one probability with Alice and one without. The attacker computes the logarithm of their ratio and says "she was there"
if it is above a threshold. By the lemma of Neyman and Pearson, no test does better.

Result: for every threshold, the share of true alarms is at most e^ε times the share of false alarms (plus δ, with Gaussian noise). At ε = 0.1
that is as good as guessing. At ε = 3 the promise is weak. Without noise, one release reveals everything.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

import armslength as al
from armslength.laws import Law

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RELEASES = 200_000
CODES, SKETCH_DIM = 64, 16
FALSE_ALARMS = 0.01


def log_probabilities(law: Law, n: Integers) -> Floats:
    """ln P(N = n) of the noise, accurate in the tails too."""
    far = np.abs(n).astype(np.float64)
    if law.name == "laplace":
        return np.asarray(np.log(np.tanh(0.5 / law.scale)) - far / law.scale)
    # Φ(−(|n|−½)/σ) − Φ(−(|n|+½)/σ) = upper·(1 − lower/upper), in logarithms
    upper, lower = log_ndtr(-(far - 0.5) / law.scale), log_ndtr(-(far + 0.5) / law.scale)
    return np.asarray(upper + np.log(-np.expm1(lower - upper)))


def log_likelihoods(law: Law, values: Integers, center: int) -> Floats:
    """ln P(value) of each released value if the exact value was `center`.

    Args:
        law: The law of the noise.
        values: One coordinate in many releases.
        center: Its value without noise.
    """
    first, last = int(values.min()), int(values.max())
    if last - first >= len(values):  # a table would be longer than the list
        return log_probabilities(law, values - center)
    return log_probabilities(law, np.arange(first - center, last - center + 1))[values - first]


def log_ratios(released: al.Sketches, without: al.Sketches, with_her: al.Sketches) -> Floats:
    """The log-likelihood ratio of each released row, with her against without: the best possible statistic.

    Args:
        released: Rows released under one protocol.
        without: One row without her, in the clear.
        with_her: One row with her, in the clear.
    """
    protocol = released.protocols[0]
    ratios = np.zeros(len(released))
    for column in np.flatnonzero(without.values[0] != with_her.values[0]).tolist():
        values = np.ascontiguousarray(released.values[:, column])
        ratios += log_likelihoods(protocol.law, values, int(with_her.values[0, column]))
        ratios -= log_likelihoods(protocol.law, values, int(without.values[0, column]))
    if protocol.total_law is not None:
        for world, sign in ((with_her, 1), (without, -1)):
            if released.totals is None or world.totals is None:
                raise TypeError("totals must be in sketches whose protocol releases them")
            ratios += sign * log_likelihoods(protocol.total_law, released.totals, int(world.totals[0]))
    return ratios


def true_alarms(ratios_without: Floats, ratios_with: Floats, false_alarms: float) -> float:
    """The share of releases with her that the attacker detects, at this share of false alarms, randomizing between thresholds."""
    thresholds = np.unique(np.concatenate([ratios_without, ratios_with]))
    shares = [
        1 - np.searchsorted(np.sort(ratios), thresholds) / len(ratios)
        for ratios in (ratios_without, ratios_with)
    ]
    return float(np.interp(false_alarms, np.append(0, shares[0][::-1]), np.append(0, shares[1][::-1])))


def error_of_true_alarms(found: float, false_alarms: float, factor: float, releases: int) -> float:
    """An upper bound on the standard error of `true_alarms`: of the share itself and of the threshold.

    Args:
        found: The share of true alarms.
        false_alarms: The share of false alarms.
        factor: The likelihood ratio at the threshold, at most e^ε.
        releases: The number of releases with her, and without.
    """
    return math.sqrt((found * (1 - found) + factor**2 * false_alarms * (1 - false_alarms)) / releases)


def right_guesses(ratios_without: Floats, ratios_with: Floats) -> float:
    """The share of right guesses if a fair coin decides whether she is in the data."""
    return float((np.mean(ratios_with > 0) + np.mean(ratios_without <= 0)) / 2)


def attacked(protocol: al.Protocol, x: Integers, her: Integers, releases: int) -> tuple[Floats, Floats]:
    """(the attacker's statistic in releases without her, the same with her).

    Args:
        protocol: The protocol under attack.
        x: Counts of everyone else.
        her: Her counts.
        releases: The number of releases of each kind, as rows with independent noise.
    """
    worlds = x, x + her
    clear = [al.sketch_in_clear(protocol, world[None]) for world in worlds]
    without, with_her = (
        log_ratios(
            al.release(protocol, np.broadcast_to(world, (releases, len(world))).copy(), ledger=al.NO_LEDGER),
            *clear,
        )
        for world in worlds
    )
    return without, with_her


def clinic() -> tuple[Integers, Integers]:
    """(diagnosis counts of an invented clinic, Alice's one visit)."""
    generator = np.random.default_rng(7)  # for the generated data; noise has no seed
    counts = generator.poisson(20, CODES).astype(np.int64)
    her = np.zeros(CODES, dtype=np.int64)
    her[11] = 1
    return counts, her


def main() -> None:
    """Print what the attacker gains at each ε, and the most that ε allows."""
    counts, her = clinic()
    print(
        f"{RELEASES} releases with Alice's one visit and {RELEASES} without; sketches of {SKETCH_DIM} numbers.\n"
    )
    print("                  detected at 1% false alarms            right guesses at even odds")
    print("     noise     measured, ± error    at most            measured, ± error    at most")
    rows: list[tuple[str, Any, Any]] = [("none", None, None)]
    rows += [(f"ε = {epsilon}", epsilon, np.exp(epsilon)) for epsilon in (3, 1, 0.1)]
    for name, epsilon, factor in rows:
        transform = al.SparseJL(input_dim=CODES, sketch_dim=SKETCH_DIM, seed="membership")
        if epsilon is None:
            clear = al.sketch_in_clear(
                al.Protocol(transform, epsilon=1), np.stack([counts, counts + her])
            ).values
            found = right = float((clear[0] != clear[1]).any())  # comparing gives certainty
            most_found = most_right = 1.0
            errors = 0.0, 0.0
        else:
            protocol = al.Protocol(transform, epsilon=epsilon)
            without, with_her = attacked(protocol, counts, her, RELEASES)
            found, right = true_alarms(without, with_her, FALSE_ALARMS), right_guesses(without, with_her)
            most_found, most_right = min(1.0, factor * FALSE_ALARMS), factor / (1 + factor)
            errors = (
                error_of_true_alarms(found, FALSE_ALARMS, factor, RELEASES),
                math.sqrt(right * (1 - right) / (2 * RELEASES)),
            )
        print(
            f"  {name:>8}{found:>12.2%} ± {errors[0]:.2%}{most_found:>11.2%}{right:>20.2%} ± {errors[1]:.2%}{most_right:>11.2%}"
        )
    print(
        "\nEach share has its largest standard error beside it. By chance a share may exceed its bound by a few of them."
        "\nThis attacker knew everything but the noise; others find less. Repeated releases add up, so there is a ledger."
    )


if __name__ == "__main__":
    main()
