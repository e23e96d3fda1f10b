"""Was Alice in the data? The best test there is, against releases with more and less noise.

    python examples/attacks/membership.py

What the attacker knows: everything but the noise. The public matrix, the law of the noise, every other patient's record, and
Alice's own: the only question left is whether hers was counted. That is far more than any real attacker has, and it is
what differential privacy promises to stand up to.

What he does: both worlds, with Alice and without, give every possible sketch a probability. He computes the logarithm of their
ratio and says "she was there" where it is above a threshold. By the lemma of Neyman and Pearson no test does better, whatever it is.

What comes out: for every threshold, the share of true alarms is at most e^ε times the share of false alarms (plus δ, with Gaussian
noise). At ε = 0.1 that is as good as guessing. At ε = 3 it is a promise with little in it, and without noise one release tells all.
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
    """ln P(N = n) of the noise, with all digits in the tails too."""
    far = np.abs(n).astype(np.float64)
    if law.name == "laplace":
        return np.asarray(np.log(np.tanh(0.5 / law.scale)) - far / law.scale)
    # Φ(−(|n|−½)/σ) − Φ(−(|n|+½)/σ) = upper·(1 − lower/upper), in logarithms
    upper, lower = log_ndtr(-(far - 0.5) / law.scale), log_ndtr(-(far + 0.5) / law.scale)
    return np.asarray(upper + np.log(-np.expm1(lower - upper)))


def log_likelihoods(law: Law, values: Integers, center: int, dropped_bits: int = 0) -> Floats:
    """ln P(value) of each released value, if the exact one was `center`.

    Args:
        law: The law of the noise.
        values: What one coordinate was in many releases.
        center: What it would be without noise.
        dropped_bits: How many low bits were cleared: such a value stands for 2^bits integers.
    """
    step = 1 << dropped_bits
    first = int(values.min())
    places = (values - first) >> dropped_bits
    count = int(places.max()) + 1
    if dropped_bits == 0 and count > len(values):  # a table would be longer than the list
        return log_probabilities(law, values - center)
    table = log_probabilities(law, np.arange(first - center, first - center + count * step))
    return np.asarray(np.logaddexp.reduce(table.reshape(count, step), axis=1)[places])


def log_ratios(released: al.Sketches, without: al.Sketches, with_her: al.Sketches) -> Floats:
    """ln of how much likelier each released row is with her than without: the best statistic there is.

    Args:
        released: Rows that were released under one protocol.
        without: The one row of the world without her, in the clear.
        with_her: The one row of the world with her, in the clear.
    """
    protocol = released.protocols[0]
    bits = protocol.dropped_bits
    ratios = np.zeros(len(released))
    for column in np.flatnonzero(without.values[0] != with_her.values[0]).tolist():
        values = np.ascontiguousarray(released.values[:, column])
        ratios += log_likelihoods(protocol.law, values, int(with_her.values[0, column]), bits)
        ratios -= log_likelihoods(protocol.law, values, int(without.values[0, column]), bits)
    if protocol.total_law is not None:
        for world, sign in ((with_her, 1), (without, -1)):
            if released.totals is None or world.totals is None:
                raise TypeError("totals must be in sketches whose protocol releases them")
            ratios += sign * log_likelihoods(protocol.total_law, released.totals, int(world.totals[0]))
    return ratios


def true_alarms(ratios_without: Floats, ratios_with: Floats, false_alarms: float) -> float:
    """The share of releases with her that he finds, at this share of false alarms; between thresholds he tosses a coin."""
    thresholds = np.unique(np.concatenate([ratios_without, ratios_with]))
    shares = [
        1 - np.searchsorted(np.sort(ratios), thresholds) / len(ratios)
        for ratios in (ratios_without, ratios_with)
    ]
    return float(np.interp(false_alarms, np.append(0, shares[0][::-1]), np.append(0, shares[1][::-1])))


def error_of_true_alarms(found: float, false_alarms: float, factor: float, releases: int) -> float:
    """The standard error of `true_alarms`, at most: of the share itself, and of the threshold that gives the false alarms.

    Args:
        found: The share of true alarms.
        false_alarms: The share of false alarms.
        factor: How much likelier a release at the threshold is with her than without; e^ε at most.
        releases: How many there were of each world.
    """
    return math.sqrt((found * (1 - found) + factor**2 * false_alarms * (1 - false_alarms)) / releases)


def right_guesses(ratios_without: Floats, ratios_with: Floats) -> float:
    """How often he is right if she is in the data in one case of two."""
    return float((np.mean(ratios_with > 0) + np.mean(ratios_without <= 0)) / 2)


def attacked(protocol: al.Protocol, x: Integers, her: Integers, releases: int) -> tuple[Floats, Floats]:
    """(the attacker's statistic in many releases without her, and in as many with her).

    Args:
        protocol: What is attacked.
        x: Everybody else's counts.
        her: What she adds to them.
        releases: How many releases there are of each world; the rows of one release have independent noise.
    """
    worlds = x, x + her
    clear = [al.sketch_in_clear(protocol, world[None]) for world in worlds]
    without, with_her = (
        log_ratios(
            protocol.release(np.broadcast_to(world, (releases, len(world))).copy(), ledger=al.NO_LEDGER),
            *clear,
        )
        for world in worlds
    )
    return without, with_her


def clinic() -> tuple[Integers, Integers]:
    """(diagnosis counts of a clinic that does not exist, Alice's one visit)."""
    generator = np.random.default_rng(7)  # for the generated data; noise knows no seed
    counts = generator.poisson(20, CODES).astype(np.int64)
    her = np.zeros(CODES, dtype=np.int64)
    her[11] = 1
    return counts, her


def main() -> None:
    """Prints what the attacker gains at each ε, beside what he can gain at most."""
    counts, her = clinic()
    print(
        f"{RELEASES} releases with Alice's one visit and as many without; sketches of {SKETCH_DIM} numbers.\n"
    )
    print("                  found, at 1% false alarms              right, if it is one in two")
    print("     noise     measured, ± error    at most            measured, ± error    at most")
    rows: list[tuple[str, Any, Any]] = [("none", None, None)]
    rows += [(f"ε = {epsilon}", epsilon, np.exp(epsilon)) for epsilon in (3, 1, 0.1)]
    for name, epsilon, factor in rows:
        transform = al.SparseJL(input_dim=CODES, sketch_dim=SKETCH_DIM, seed="membership")
        if epsilon is None:
            clear = al.sketch_in_clear(
                al.Protocol(transform, epsilon=1), np.stack([counts, counts + her])
            ).values
            found = right = float((clear[0] != clear[1]).any())  # he compares, and is certain
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
        "\nBeside each share is its standard error, at most: by chance a share may lie above its bound by a few of them."
        "\nHe knew everything but the noise; who knows less finds less. Repeated releases add up, which is why there is a ledger."
    )


if __name__ == "__main__":
    main()
