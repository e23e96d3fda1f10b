"""Measured trade-off curves: does a test between two neighbors ever do better than (ε, δ) allows?

For every event S, P₁(S) ≤ e^ε·P₀(S) + δ, and the same with the worlds exchanged. The events are {L ≥ t} and {L < t} of a statistic L at
thresholds t that are fixed before anything is measured. Each probability gets an exact (Clopper-Pearson) bound, and all bounds
of an audit hold together but for a stated false alarm.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FALSE_ALARM = 1e-6  # of a whole part of the audit
_STEPS = 32  # thresholds for each ε
_WIDTH = 1.5  # of ε, to both sides
_HAIR = 1e-9  # of ε: a ratio that is ε but for its rounding belongs to those of at least ε


@dataclass(frozen=True)
class Promise:
    """What a release promises: no test does better than this."""

    epsilon: float
    delta: float

    @property
    def thresholds(self) -> Floats:
        """Where the curve is measured: from −1.5ε to 1.5ε, ±ε among them; from the promise alone."""
        steps = np.arange(-int(_WIDTH * _STEPS), int(_WIDTH * _STEPS) + 1)
        return np.asarray((steps / _STEPS - np.where(steps > 0, _HAIR, -_HAIR)) * self.epsilon)

    @property
    def tight_events(self) -> tuple[int, int]:
        """The thresholds whose events reach the bound if any do: t = −ε and t = ε."""
        middle = int(_WIDTH * _STEPS)
        return middle - _STEPS, middle + _STEPS


@dataclass(frozen=True)
class Counts:
    """How many of all values of the statistic were at least each threshold."""

    above: Integers
    total: int

    @classmethod
    def of(cls, statistic: Floats, promise: Promise) -> "Counts":
        """The counts of these values."""
        thresholds = promise.thresholds
        below = np.searchsorted(thresholds, statistic, side="right")
        reached = np.bincount(below, minlength=len(thresholds) + 1)[::-1].cumsum()[::-1]
        return cls(reached[1:].astype(np.int64), len(statistic))

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.above + other.above, self.total + other.total)

    def bounds(self, alarm: float) -> tuple[Floats, Floats]:
        """(lower, upper) Clopper-Pearson bounds, each of which fails with probability `alarm` at most."""
        hits, misses = self.above.astype(np.float64), self.total - self.above.astype(np.float64)
        lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, alarm), 0.0)
        upper = np.where(misses > 0, betainccinv(hits + 1, np.maximum(misses, 1), alarm), 1.0)
        return lower, upper


@dataclass(frozen=True)
class TradeOff:
    """What a measured curve says of a promise.

    Attributes:
        epsilon: The ε that the two events of ±ε show, both directions taken together; −∞ where δ alone covers them, ∞ where they
            never happen in the other world.
        epsilon_low: A lower bound on the true ε at the promised δ, at the stated confidence.
        delta: The δ that the same two events show at the promised ε.
        delta_error: Its standard error.
        delta_low: A lower bound on the true δ at the promised ε.
        crosses: Whether the promise is refuted, at the stated confidence.
    """

    epsilon: float
    epsilon_low: float
    delta: float
    delta_error: float
    delta_low: float
    crosses: bool


def trade_off(without: Counts, with_one: Counts, promise: Promise, alarm: float) -> TradeOff:
    """The curve between the counts of two worlds, beside the promise.

    Args:
        without: The counts of the first world.
        with_one: The counts of the second world, for whose sake the statistic is large.
        promise: What must hold.
        alarm: The probability, at most, that a true promise is said to be crossed.
    """
    each = alarm / (4 * len(without.above))
    low0, high0 = without.bounds(each)
    low1, high1 = with_one.bounds(each)
    # P₁(S) against P₀(S) and P₀(S) against P₁(S), for S = {L ≥ t} and its complement
    likely = np.concatenate([low1, low0, 1 - high0, 1 - high1])
    rare = np.concatenate([high0, high1, 1 - low1, 1 - low0])
    delta_low = float((likely - math.exp(promise.epsilon) * rare).max())
    shares = [
        (with_one.above[t] / with_one.total, without.above[t] / without.total)
        if t == promise.tight_events[1]
        else (1 - without.above[t] / without.total, 1 - with_one.above[t] / with_one.total)
        for t in promise.tight_events
    ]
    smallest = min(without.total, with_one.total)
    errors = [
        math.sqrt((p * (1 - p) + math.exp(2 * promise.epsilon) * q * (1 - q)) / smallest) for p, q in shares
    ]
    return TradeOff(
        epsilon=_epsilon(sum(p for p, _ in shares) - 2 * promise.delta, sum(q for _, q in shares)),
        epsilon_low=max(
            _epsilon(p - promise.delta, q) for p, q in zip(likely.tolist(), rare.tolist(), strict=True)
        ),
        delta=float(np.mean([p - math.exp(promise.epsilon) * q for p, q in shares])),
        delta_error=math.hypot(*errors) / 2,
        delta_low=max(0.0, delta_low),
        crosses=delta_low > promise.delta,
    )


def _epsilon(likely: float, rare: float) -> float:
    """ln(likely/rare); −∞ where nothing is likely, ∞ where what is likely is never seen in the other world."""
    if likely <= 0:
        return -math.inf
    return math.log(likely / rare) if rare > 0 else math.inf
