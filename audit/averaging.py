"""Averaging at full size: `examples/attacks/averaging.py` over many trials."""

import math
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from attacks.averaging import (
    BUDGET,
    EPSILON,
    ITEMS,
    allowed_guesses,
    error_of_mean,
    protocol_of,
    released_until_refused,
    right_guesses,
)

import armslength as al
from armslength.progress import progress
from audit.false_alarms import LIMIT, error_of_share
from audit.sections import Check, Section

_TIMES = (1, 4, 16, 64, 256)


class Measured(NamedTuple):
    """n releases: the error of their mean beside σ/√n, and right guesses beside what composition allows, of both laws."""

    times: int
    error: float
    expected_error: float
    guesses: tuple[float, float]
    allowed: tuple[float, float]
    trials: int


def audit(quick: bool) -> Section:
    """Without a ledger, then with one."""
    drawn, fewest = (40_000, 500) if quick else (2_000_000, 60_000)
    laws = protocol_of("laplace"), protocol_of("gaussian")
    found = []
    with progress("averaging", len(_TIMES), "sizes", show=True) as advance:
        for times in _TIMES:
            trials = max(drawn // times, fewest)
            error = error_of_mean(laws[0], np.arange(ITEMS), times, max(drawn // times // 20, 60))
            expected = math.sqrt(laws[0].law.second_moment / times)
            guesses = _in_blocks(laws[0], times, trials), _in_blocks(laws[1], times, trials)
            allowed = allowed_guesses(laws[0], times), allowed_guesses(laws[1], times)
            found.append(Measured(times, error, expected, guesses, allowed, 2 * trials))
            advance(1)
    with tempfile.TemporaryDirectory() as folder:
        released, refusals = released_until_refused(Path(folder))
    rows = tuple(
        (
            str(one.times),
            f"{one.error:.2f} ({one.expected_error:.2f})",
            f"{one.times * float(EPSILON):g}",
            *(
                f"{guess:.2%} ({allowed:.2%})"
                for guess, allowed in zip(one.guesses, one.allowed, strict=True)
            ),
            f"{one.trials:,}",
        )
        for one in found
    )
    return Section(
        "Averaging repeated releases",
        f"The same data is released n times at ε = {EPSILON} with fresh noise and without a ledger. The attacker knows "
        "everything except whether one person is there, and uses the likelihood of all n releases together. For Laplace "
        "noise, composition limits the share of right guesses to e^(nε)/(1+e^(nε)). For Gaussian noise, the attacker reaches "
        "the bound Φ(√n·μ/2). Parentheses show the predicted or allowed value. Limits are at 4.9 standard errors (1e-6).",
        (
            "n",
            "error of the mean",
            "nε",
            "right guesses, Laplace (at most)",
            "right guesses, Gaussian (exactly)",
            "trials",
        ),
        rows,
        (*_checks(found, quick=quick), *_ledger_checks(released, refusals)),
    )


def _in_blocks(protocol: al.Protocol, times: int, trials: int) -> float:
    """Right guesses, a part of the trials at a time: memory is bounded."""
    block = max(1, min(trials, 500_000 // times))
    parts = [min(block, trials - start) for start in range(0, trials, block)]
    return sum(right_guesses(protocol, times, part) * part for part in parts) / trials


def _checks(found: list[Measured], *, quick: bool) -> list[Check]:
    worst_error = max(abs(one.error / one.expected_error - 1) for one in found)
    gaussian = [
        abs(one.guesses[1] - one.allowed[1]) / error_of_share(one.allowed[1], one.trials) for one in found
    ]
    return [
        Check(
            "the error of the mean falls as 1/√n",
            worst_error < 0.1,
            f"within {worst_error:.1%} of σ/√n at every n",
        ),
        Check(
            "with Laplace noise, no guess is better than n·ε allows",
            all(
                one.guesses[0] <= one.allowed[0] + LIMIT * error_of_share(one.allowed[0], one.trials)
                for one in found
            ),
            f"{found[-1].guesses[0]:.1%} at n = {found[-1].times}, and at n = 1 {found[0].guesses[0]:.2%} of {found[0].allowed[0]:.2%}",
        ),
        Check(
            "with Gaussian noise, guesses are as good as composition predicts, not better or worse",
            max(gaussian) <= LIMIT,
            f"at most {max(gaussian):.1f} standard errors off",
        ),
        *(() if quick else (_teeth(found),)),  # a quick run cannot tell a tenth
    ]


def _teeth(found: list[Measured]) -> Check:
    """Whether the advantage over a coin is known well enough, at the size where it is known best."""
    sharpest = max(found, key=lambda one: (one.allowed[1] - 0.5) / error_of_share(one.allowed[1], one.trials))
    teeth = [
        abs(sharpest.guesses[1] - 0.5 - factor * (sharpest.allowed[1] - 0.5))
        > LIMIT * error_of_share(sharpest.allowed[1], sharpest.trials)
        for factor in (0.9, 1.1)
    ]
    return Check(
        f"0.9 or 1.1 times that advantage would not fit (n = {sharpest.times})",
        all(teeth),
        f"{sharpest.guesses[1]:.2%} of {sharpest.trials:,} trials",
    )


def _ledger_checks(released: list[str], refusals: list[str]) -> list[Check]:
    return [
        Check(
            "a ledger refuses a repeated label, and new labels once the budget is spent",
            released == ["first", "second", "third", "fourth"]
            and "was released before" in refusals[0]
            and "does not fit the budget" in refusals[1],
            f"{len(released)} releases of ε = {EPSILON} from a budget of {BUDGET}, {len(refusals)} refusals",
        )
    ]
