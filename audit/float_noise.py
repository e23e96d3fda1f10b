"""Low bits at full size: `examples/attacks/low_bits.py` over millions of releases."""

import numpy as np
from attacks.low_bits import (
    CANNOT_TELL,
    EPSILON,
    SPARSITY,
    allowed_accuracy,
    attack,
    broken_release,
    in_data_units,
    likely_guess,
    our_release,
)
from numpy.typing import NDArray

from audit.false_alarms import LIMIT, error_of_share, limit_of_largest
from audit.sections import Check, Section

_RARE = 1000  # integers that came out less often, under both entries together, say nothing about a ratio


def audit(quick: bool) -> Section:
    """Float noise, which is broken, and ours."""
    count = 100_000 if quick else 2_000_000
    generator = np.random.default_rng(3)
    broken = [attack(broken_release(entry, count, generator)) for entry in (0, 1)]
    told = [float((guesses != CANNOT_TELL).mean()) for guesses in broken]
    wrong = sum(int((guesses == 1 - entry).sum()) for entry, guesses in enumerate(broken))

    ours = [our_release(entry, count) for entry in (0, 1)]
    claimed = [attack(in_data_units(seen[:, 0])) for seen in ours]
    claims = sum(int((guesses != CANNOT_TELL).sum()) for guesses in claimed)
    right_claims = sum(int((guesses == entry).sum()) for entry, guesses in enumerate(claimed))
    best = float(np.mean([(likely_guess(seen) == entry).mean() for entry, seen in enumerate(ours)]))
    allowed = allowed_accuracy(EPSILON)
    rows = (
        ("float noise", f"{2 * count:,}", f"{np.mean(told):.1%}", f"all but {wrong}", ""),
        (
            *("armslength", f"{2 * count:,}", f"{claims / (2 * count):.1%}"),
            *(f"{right_claims / claims:.1%}" if claims else "", f"{best:.1%}"),
        ),
    )
    checks = (
        Check(
            "float noise reveals the entry with certainty in most releases",
            min(told) > 0.5 and wrong == 0,
            f"{told[0]:.1%} and {told[1]:.1%}; {wrong} wrong",
        ),
        judged_claims(right_claims, claims),
        Check(
            "the most likely guess from all coordinates is right no more often either",
            best <= allowed + LIMIT * error_of_share(allowed, 2 * count),
            f"{best:.2%}",
        ),
        judged_excess(*largest_excess(ours[0][:, 0], ours[1][:, 0])),
    )
    return Section(
        "Floating point",
        f"An entry is 0 or 1, protected at ε = {EPSILON} in {SPARSITY} coordinates. The broken release adds NumPy's float "
        "Laplace noise to a float. The attacker asks which entry can produce exactly the observed float in one coordinate, "
        f"and claims to know the entry if only one can. Each entry was released {count:,} times. Limits are at 4.9 standard "
        "errors (1e-6). The limit for the largest of several deviations is higher, so that 1e-6 covers all of them together.",
        ("noise", "releases", "claims to know", "and is right", "most likely guess is right"),
        rows,
        checks,
    )


def judged_claims(right: int, claims: int) -> Check:
    """Where the attack believes to know our entry; one that never does so was not tried."""
    allowed = allowed_accuracy(EPSILON)
    return Check(
        "the same attack on armslength is right no more often than ε allows",
        claims > 0 and right / claims <= allowed + LIMIT * error_of_share(allowed, claims),
        f"{right / claims:.2%} of {claims:,} claims; ε allows {allowed:.1%}"
        if claims
        else "it made no claim",
    )


def judged_excess(excess: float, tried: int) -> Check:
    """The largest excess over e^(ε/3), against the limit for so many."""
    limit = limit_of_largest(max(tried, 1))
    return Check(
        "in one coordinate, no integer occurs more than e^(ε/3) times as often under one entry as under the other",
        tried > 0 and excess <= limit,
        f"at most {excess:.1f} standard errors above; {limit:.1f} is the limit for the largest of {tried}",
    )


def largest_excess(zero: NDArray[np.int64], one: NDArray[np.int64]) -> tuple[float, int]:
    """By how many standard errors a ratio of frequencies exceeds e^(ε/3) at worst, and of how many ratios.

    Integers are chosen by how often they came out under both entries together, which says nothing about their ratio: one
    that comes out under one entry alone is tried, too.
    """
    worst, tried = -np.inf, 0
    bound = np.exp(EPSILON / SPARSITY)
    low, high = min(zero.min(), one.min()), max(zero.max(), one.max())
    counts = [np.bincount(side - low, minlength=high - low + 1) for side in (zero, one)]
    for ours, theirs in (counts, counts[::-1]):
        often = ours + theirs >= _RARE
        spread = np.sqrt(bound * (ours + theirs)[often])  # where the ratio is the bound
        worst = max(worst, float(((ours - bound * theirs)[often] / spread).max(initial=-np.inf)))
        tried += int(often.sum())
    return worst, tried
