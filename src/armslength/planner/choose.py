"""Which size of a family, and which family: the smallest error first, then what is cheaper and asks for less trust."""

from collections.abc import Sequence

from armslength.planner.configuration import Configuration, configuration_of
from armslength.planner.predict import Member, Prediction, failure_of, predict
from armslength.planner.situation import Situation
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL

# Errors within a percent are as good as equal: then less data, less trust and less work decide.
_NEARLY = 1.01
_HARDLY = 1.25


def best_size(sizes: Sequence[Member], situation: Situation) -> tuple[Member, Prediction] | None:
    """The size with the smallest error at the smallest distance; of those that meet the target, if any does."""
    predicted = [(member, predict(member, situation, situation.epsilon)) for member in sizes]
    known = [(member, prediction) for member, prediction in predicted if prediction is not None]
    if not known:
        return None
    low = situation.distances.low
    if situation.target is not None:
        failures = [failure_of(member, prediction, situation) or 0.0 for member, prediction in known]
        least = min(failures)
        within = max(situation.target.failure_probability, least)
        known = [found for found, failure in zip(known, failures, strict=True) if failure <= within]
    return min(known, key=lambda found: found[1].relative_error(low))


def meets(line: Configuration, situation: Situation) -> bool:
    """Whether a line meets the target, if there is one."""
    target = situation.target
    return target is None or target.is_promised(line.failure_bound, is_exact=line.is_exact)


def recommended_of(
    lines: Sequence[Configuration], sized: Sequence[Sequence[Member]], situation: Situation
) -> Configuration:
    """Of all within a percent of the best: pure DP, then an exact sensitivity, then the smallest sketch, then the least work."""
    choices = [line for line in lines if line.is_choice]
    if any(meets(line, situation) for line in choices):
        choices = [line for line in choices if meets(line, situation)]
        best = min(line.relative_error for line in choices)
        # What can be resolved is not given away for a smaller sketch.
        enough = min(_NEARLY * best, max(best, 1.0))
        near = [line for line in choices if line.relative_error <= enough]
    else:
        exact = [line for line in choices if line.is_exact] or choices
        near = [min(exact, key=lambda line: (line.failure_bound or 0.0, line.relative_error))]
        enough = near[0].relative_error
    smallest = [_smallest_size(line, sized, enough, situation) for line in near]
    least = min(line.sketch_dim for line in smallest)
    return min(
        smallest,
        key=lambda line: (
            line.noise != "laplace",
            not line.is_exact,
            # No projection at all is simpler than one that hardly compresses.
            not (line.is_of(Identity) and line.sketch_dim <= _HARDLY * least),
            not line.is_of(SparseJL),
            line.sketch_dim,
            line.set_up + (line.additions or 0),
            line.relative_error,
        ),
    )


def _smallest_size(
    line: Configuration, sized: Sequence[Sequence[Member]], enough: float, situation: Situation
) -> Configuration:
    """The smallest size of the line's family whose error is no more than enough."""
    family = None if line.member is None else line.member.family
    for member in (member for sizes in sized if sizes[0].family is family for member in sizes):
        if member.transform.sketch_dim >= line.sketch_dim:
            break
        prediction = predict(member, situation, situation.epsilon)
        if prediction is None or prediction.relative_error(situation.distances.low) > enough:
            continue
        smaller = configuration_of(member, prediction, situation)
        if meets(smaller, situation):
            return smaller
    return line
