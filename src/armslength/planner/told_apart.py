"""From which distance on two parties under a protocol are told from equal ones."""

import math

from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.noise_models import PairNoise, Part
from armslength.planner.moments import pair_moments, usual_median
from armslength.protocol.protocol import Protocol


def told_apart_from(protocol: Protocol, pairs: int = 1) -> float:
    """The distance at which about half of all pairs are told apart from 0 at 95 percent (over all pairs), in data units."""
    part = Part(protocol.law.name, protocol.law.scale, protocol.dropped_bits, 1.0)
    rule = interval_rule(protocol, PairNoise((part, part), (protocol.law, protocol.law)))
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
