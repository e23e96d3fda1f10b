"""From which distance on two parties under a protocol are told from equal ones."""

import math

import numpy as np

from armslength.estimates.intervals import IntervalRule, Level, interval_rule
from armslength.estimates.noise_models import PairNoise, Part
from armslength.planner.moments import pair_moments, usual_median
from armslength.protocol.protocol import Protocol

# An end is missing where q·√a ≥ 1, with a of about 2/k; no level that is allowed has a q of 10.
_SURELY_BOUNDED = 200


def is_bounded(protocol: Protocol, distance: float, pairs: int = 1) -> bool:
    """Whether an estimate of this distance has an upper end at 95 percent (over all pairs): too coarse a projection has none."""
    if protocol.transform.sketch_dim > _SURELY_BOUNDED:
        return True
    rule = _rule(protocol)
    _, upper = rule.interval(np.array([distance**2]), Level.of(0.95, "spread", pairs))
    return bool(np.isfinite(upper[0]))


def _rule(protocol: Protocol) -> IntervalRule:
    """How estimates of two parties under this protocol become intervals."""
    part = Part(protocol.law.name, protocol.law.scale, protocol.dropped_bits, 1.0)
    return interval_rule(protocol, PairNoise((part, part), (protocol.law, protocol.law)))


def told_apart_from(protocol: Protocol, pairs: int = 1) -> float:
    """The distance at which about half of all pairs are told apart from 0 at 95 percent (over all pairs), in data units."""
    rule = _rule(protocol)
    needed = rule.smallest_resolved(Level.of(0.95, "spread", pairs))
    if protocol.noise_site == "input":
        return math.sqrt(needed)
    noise, k = pair_moments(protocol.law, protocol.unit_squared), protocol.transform.sketch_dim
    low, high = needed, 4 * needed
    for _ in range(40):
        middle = (low + high) / 2
        below = usual_median(k, rule.curve, noise, middle) < needed
        low, high = (middle, high) if below else (low, middle)
    return math.sqrt(high)
