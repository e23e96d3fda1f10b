"""The plan: every configuration ranked by its exact error, one recommended as a protocol, or a clear no."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from armslength.errors import NotResolvableError
from armslength.planner.families import families
from armslength.planner.needs import Needs, needs_of
from armslength.planner.plan_page import reasons_for, refusal, report, summary
from armslength.planner.predictions import (
    Configuration,
    Member,
    Prediction,
    configuration_of,
    failure_of,
    members,
    predict,
    randomized_response,
    told_apart_from,
)
from armslength.planner.situation import Situation, checked_situation
from armslength.privacy.exact_numbers import weakness
from armslength.protocol.protocol import Protocol
from armslength.randomness.seeds import checked_seed
from armslength.threads import lazy
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL

# Which size of a family, and which family: the smallest error first, then what is cheaper and asks for less trust.


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


@dataclass(frozen=True)
class Plan:
    """What `al.plan` found; printed, it is a page of text.

    Attributes:
        situation: What was asked.
        configurations: All of them, the most accurate first.
        recommended: The one to take, within a percent of the best: pure DP, then an exact sensitivity, then the smallest sketch.
            Where nothing can be resolved, the best there is.
        needs: What would be needed, where nothing can be resolved; else None.
        seed: The public seed of `protocol`.
    """

    situation: Situation
    configurations: tuple[Configuration, ...]
    recommended: Configuration
    needs: Needs | None
    seed: str

    @property
    def resolvable(self) -> bool:
        """Whether the best standard error is below the squared distance, and the target is met if there is one."""
        return self.needs is None

    @property
    def refusal(self) -> str | None:
        """Why not, and what would be needed; None where the distances can be resolved."""
        return None if self.resolvable else refusal(self)

    @property
    def weakness(self) -> str:
        """Why the promise of the recommended configuration would be weak; empty if it is not."""
        situation = self.situation
        delta = situation.delta if self.recommended.noise == "gaussian" else Fraction(0)
        return weakness(situation.epsilon, delta, situation.distances.people)

    @lazy
    def protocol(self) -> Protocol:
        """The recommended configuration as a protocol, ready to be saved; refused where nothing can be resolved."""
        if not self.resolvable:
            raise NotResolvableError(refusal(self))
        return self.recommended.protocol(self.situation, self.seed)

    @lazy
    def told_apart(self) -> float:
        """The distance at which about half of all pairs are told apart from 0 at 95 percent (over all pairs), in data units."""
        return told_apart_from(self.protocol, self.situation.pairs)

    @property
    def reasons(self) -> list[str]:
        """Why this one, in plain language."""
        return reasons_for(self)

    @property
    def summary(self) -> str:
        """What was asked, what is recommended and why, without the table; `str(plan)` is the whole page."""
        return summary(self)

    @property
    def table(self) -> pa.Table:
        """All configurations as an Arrow table, the most accurate first."""
        columns = [
            "label",
            "sketch_dim",
            "noise",
            "guarantee",
            "relative_error",
            "relative_error_high",
            "std_error",
            "std_error_high",
            "smallest_distance",
            "bytes",
            "additions",
            "set_up",
            "failure_bound",
            "is_choice",
            "is_exact",
        ]
        rows: dict[str, list[Any]] = {
            name: [getattr(line, name) for line in self.configurations] for name in columns
        }
        return pa.table(
            {**rows, "is_recommended": [line is self.recommended for line in self.configurations]}
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Error against sketch size and against ε, as a Matplotlib figure; or written to an .html, .svg or .png file."""
        from armslength.planner.plan_page import curves_of  # noqa: PLC0415  # only whoever plots pays for it
        from armslength.plots import plan_figure, write_figure  # noqa: PLC0415  # the same

        figure = plan_figure(curves_of(self))
        return figure if path is None else write_figure(figure, path, title="armslength plan", text=str(self))

    def __str__(self) -> str:
        return report(self)

    def __repr__(self) -> str:
        found = self.recommended
        verdict = "" if self.resolvable else ", cannot be resolved"
        return (
            f"<Plan: {found.label}, k={found.sketch_dim}, {found.noise}, {found.relative_error:.1%}{verdict}>"
        )


def plan(  # noqa: PLR0913  # one argument for each thing that may be known
    input_dim: int | None = None,
    *,
    epsilon: Any,
    delta: Any = 0,
    distance: Any = None,
    people: int | None = None,
    contribution: int | None = None,
    radius: Any = None,
    relation: str = "add_remove",
    norm: str = "l1",
    unit: str = "",
    resolution: Any = 1,
    on_grid: bool | None = None,
    changed_entries: int | None = None,
    value_range: Any = None,
    items: str = "string",
    vocabulary: Any = None,
    total_share: Any = 0,
    max_sketch_dim: int = 4096,
    distortion: float | None = None,
    failure_probability: float | None = None,
    density: float | None = None,
    pairs: int = 1,
    binary: bool = False,
    seed: str | None = None,
) -> Plan:
    """The settings for these distances, ranked by exact error; it touches no data and spends no privacy.

    Relative errors are largest at the smallest distance (V(D)/D² = a + b/D + c/D² falls), so minimizing the worst over a
    range is minimizing it there. Reference: docs/planning.md.

    Args:
        input_dim: How many coordinates; None for an open vocabulary.
        epsilon: ε of each release.
        delta: δ; 0 leaves pure DP alone.
        distance: The distances of interest, a number or (low, high), in data units.
        people: Instead of distance: how many people a group has; with `contribution`.
        contribution: The most items that one person contributes; it sets the radius.
        radius: How far one unit of protection moves the data, in data units.
        relation: "add_remove" or "replace".
        norm: "l1", or "l2" for whole vectors in a ball: replacing one of norm at most r is radius=2r.
        unit: The unit of protection in words, for the protocol.
        resolution: The grid: 1 for counts, a power of two, or "auto".
        on_grid: Whether data is promised to be multiples of the resolution.
        changed_entries: How many entries one unit can change, for data off the grid.
        value_range: The public range of a coordinate, for the protocol.
        items: "string" or "int64", for the protocol.
        vocabulary: The names of all coordinates, for the protocol.
        total_share: The share of ε for the total of each row, so that shapes can be compared.
        max_sketch_dim: The largest sketch to recommend.
        distortion: α of a Johnson-Lindenstrauss target |estimate − D| ≤ α·D for the squared distance D.
        failure_probability: β, how often that may fail, over all pairs.
        density: The share of coordinates that are not zero, for the predicted cost.
        pairs: How many pairs are to hold together.
        binary: Whether vectors are binary and one unit is one bit; adds randomized response.
        seed: The public seed of the protocol; None makes a fresh one.
    """
    situation = checked_situation(
        input_dim=input_dim,
        epsilon=epsilon,
        delta=delta,
        distance=distance,
        people=people,
        max_sketch_dim=max_sketch_dim,
        distortion=distortion,
        failure_probability=failure_probability,
        density=density,
        pairs=pairs,
        binary=binary,
        fields={
            "contribution": contribution,
            "radius": radius,
            "relation": relation,
            "norm": norm,
            "unit": unit,
            "resolution": resolution,
            "on_grid": on_grid,
            "changed_entries": changed_entries,
            "value_range": value_range,
            "items": items,
            "vocabulary": vocabulary,
            "total_share": total_share,
        },
    )
    public_seed = checked_seed(seed)
    sized = [members(family, situation) for family in families(situation)]
    best = [found for found in (best_size(sizes, situation) for sizes in sized) if found is not None]
    if not best:
        raise NotResolvableError(
            "cannot be resolved: every noise is out of range; take a larger epsilon or a coarser resolution"
        )
    lines = [configuration_of(*found, situation) for found in best]
    recommended = recommended_of(lines, sized, situation)
    others = [line for line in (randomized_response(situation),) if line is not None]
    ranked = sorted([*lines, *others, recommended], key=lambda line: line.relative_error)
    needs = None
    if recommended.relative_error > 1 or not meets(recommended, situation):
        needs = needs_of(situation, [member for sizes in sized for member in sizes])
    return Plan(situation, tuple(dict.fromkeys(ranked)), recommended, needs, public_seed)
