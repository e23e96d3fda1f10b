"""What plans about counts choose: the configuration with the smallest exact error, or what would be enough for one."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from armslength.estimates.item_intervals import typical_reach
from armslength.planner.needs import Needs, enough_epsilon, rounded_up, smallest
from armslength.planner.predictions import CountSetting, CountSituation, Setting, options, predict
from armslength.planner.situation import ITEM_ERROR, LARGEST_DISTANCE, Distances

# Errors within a percent count as equal; then less data, less trust and less work decide.
_NEARLY_EQUAL = 1.01
_HARDLY_LARGER = 1.25
_STEP = 4  # every fourth size is close enough
_LARGEST_LIMIT = 2**20


def best_of_each(lines: Sequence[CountSetting], situation: CountSituation) -> list[CountSetting]:
    """Of each family the line with the smallest error; of those with upper ends that meet the target, if any do."""
    best = []
    for _, group in groupby(lines, lambda line: line.family):
        sizes = list(group)
        sizes = [line for line in sizes if line.has_upper_end] or sizes
        if situation.target is not None:
            least = min(line.failure_bound or 0.0 for line in sizes)
            limit = max(situation.target.failure_probability, least)
            sizes = [line for line in sizes if (line.failure_bound or 0.0) <= limit]
        best.append(min(sizes, key=lambda line: line.relative_error))
    return best


def recommended_of(best: Sequence[CountSetting], lines: Sequence[CountSetting]) -> CountSetting:
    """Among those within a percent of the best: pure DP, then the smallest sketch.

    Args:
        best: The best line of each family.
        lines: All lines.
    """
    choices = [line for line in best if line.is_choice]
    choices = [line for line in choices if line.has_upper_end] or choices
    if any(line.meets_target for line in choices):
        choices = [line for line in choices if line.meets_target]
        least_error = min(line.relative_error for line in choices)
        # A smaller sketch must not make visible distances invisible.
        enough = min(_NEARLY_EQUAL * least_error, max(least_error, 1.0))
        near = [line for line in choices if line.relative_error <= enough]
    else:
        near = [min(choices, key=lambda line: (line.failure_bound or 0.0, line.relative_error))]
        enough = near[0].relative_error
    good = [
        line for line in lines if line.relative_error <= enough and line.has_upper_end and line.meets_target
    ]
    smallest = [
        min(
            (line, *(other for other in good if other.family == line.family)),
            key=lambda line: line.sketch_dim,
        )
        for line in near
    ]
    least = min(line.sketch_dim for line in smallest)
    return min(
        smallest,
        key=lambda line: (
            line.noise != "laplace",
            # No projection is simpler than one that hardly compresses.
            not (line.is_histogram and line.sketch_dim <= _HARDLY_LARGER * least),
            not line.transform.cheap_per_event,
            line.sketch_dim,
            line.relative_error,
        ),
    )


def count_needs(situation: CountSituation, every_option: Sequence[Setting]) -> Needs:
    """What would be enough, by bisection: errors fall as ε and the distance grow."""
    limit = situation.max_sketch_dim
    choices = [option for option in every_option if option.sketch_dim <= limit]
    largest = {option.family: option.sketch_dim for option in choices}
    sample = [
        option
        for number, option in enumerate(choices)
        if number % _STEP == 0 or option.sketch_dim == largest[option.family]
    ]

    def is_seen(**changes: Any) -> bool:
        return any(line.is_seen for line in predict(sample, replace(situation, **changes)))

    low = situation.distances.low
    distance = smallest(low, LARGEST_DISTANCE, lambda value: is_seen(distances=Distances(value, value)))
    return Needs(
        epsilon=enough_epsilon(situation.epsilon, is_seen),
        distance=None if distance is None else float(rounded_up(distance, 3)),
        sketch_dim=_larger_limit(situation),
    )


def _larger_limit(situation: CountSituation) -> int | None:
    """The next larger size limit that would be enough; None if none is up to 2^20."""
    limit = situation.max_sketch_dim
    largest = min(_LARGEST_LIMIT, situation.input_dim or _LARGEST_LIMIT)
    while limit < largest:
        before, limit = limit, min(2 * limit, largest)
        larger = replace(situation, max_sketch_dim=limit)
        if any(line.is_seen and line.is_choice for line in predict(options(larger, above=before), larger)):
            return limit
    return None


def listed_counts_seen(situation: CountSituation, best: CountSetting) -> float | None:
    """The difference of a listed item that is mostly seen, of parties at the smallest distance of interest."""
    unit = float(situation.resolution)
    law = best.law(situation.epsilon * (1 - situation.total_share), situation.delta)
    if law is None:
        return None
    distance = situation.distances.low / unit
    reach = unit * typical_reach(best.transform, situation.listed_items or 1, law, distance, ITEM_ERROR)
    return reach if math.isfinite(reach) else None
