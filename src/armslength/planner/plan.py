"""Plans: every configuration ranked by its exact error, and one of them recommended as a protocol, or a clear no."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import groupby
from typing import Any, Literal, overload

import pyarrow as pa

from armslength.checks import one_of, short_repr
from armslength.errors import NotResolvableError, ParameterError
from armslength.planner.families import families
from armslength.planner.needs import Needs, needs_of
from armslength.planner.plan_page import curves_of, page_text, reasons_for, refusal, summary
from armslength.planner.predictions import Configuration, options, predict, smallest_resolved_distance
from armslength.planner.shape_plan import ShapePlan, shape_plan, shape_situation
from armslength.planner.situation import (
    SizeSituation,
    checked_explain,
    checked_pairs,
    checked_people,
    checked_target,
    distances_of_interest,
    smallest_transform,
)
from armslength.plots import plan_figure, write_figure
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.protocol import Protocol
from armslength.randomness.seeds import checked_seed
from armslength.results import Result
from armslength.threads import cached_attribute
from armslength.transforms.transform import checked_input_dim

# Errors within a percent count as equal; then less data, less trust and less work decide.
_NEARLY_EQUAL = 1.01
_HARDLY_LARGER = 1.25
_CHOSEN = frozenset(("transform", "noise", "noise_site", "max_norm", "dropped_bits", "item_weights"))
_SETTINGS = frozenset(signature(Protocol).parameters) - _CHOSEN
_PRINTED = ["label", "sketch_dim", "noise", "relative_error", "smallest_distance", "is_recommended"]
_COLUMNS = pa.schema(
    {
        "label": pa.string(),
        "sketch_dim": pa.int64(),
        "noise": pa.string(),
        **dict.fromkeys(("relative_error", "relative_error_high"), pa.float64()),
        **dict.fromkeys(("smallest_distance", "failure_bound"), pa.float64()),
        **dict.fromkeys(("is_choice", "is_recommended"), pa.bool_()),
    }
)


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """The result of `al.plan`; printed, it is a page of text.

    Attributes:
        situation: What was asked.
        configurations: All configurations, the most accurate first.
        recommended: The recommended one. Among those within a percent of the best, pure DP comes first, then the
            smallest sketch. If nothing can be resolved, it is the best one.
        needs: What would be enough, if nothing can be resolved; else None.
        seed: The public seed of `protocol`.
        usual: The best one for distances alone, if it must explain items too; else None.
    """

    situation: SizeSituation
    configurations: tuple[Configuration, ...]
    recommended: Configuration
    needs: Needs | None
    seed: str
    usual: Configuration | None = None

    @property
    def resolvable(self) -> bool:
        """Whether the best standard error is below the squared distance, and the target is met if there is one."""
        return self.needs is None

    @property
    def refusal(self) -> str | None:
        """Why the distances cannot be resolved, and what would be enough; None if they can."""
        return None if self.resolvable else refusal(self)

    @property
    def weakness(self) -> str:
        """Why the promise of the recommended configuration would be weak; empty if it is not."""
        return self.situation.weakness(self.recommended.noise)

    @cached_attribute
    def protocol(self) -> Protocol:
        """The recommended configuration as a protocol. Raises `NotResolvableError` if nothing can be resolved."""
        if not self.resolvable:
            raise NotResolvableError(refusal(self))
        return self.recommended.protocol(self.situation, self.seed)

    @cached_attribute
    def told_apart(self) -> float:
        """The distance at which about half of all pairs are resolved at 95 percent (over all pairs), in data units."""
        return smallest_resolved_distance(self.protocol, self.situation.pairs)

    @cached_attribute
    def reasons(self) -> list[str]:
        """Why this configuration is recommended."""
        return reasons_for(self)

    @property
    def summary(self) -> str:
        """The page without its table: what was asked, what is recommended, and why."""
        return summary(self)

    def to_arrow(self) -> pa.Table:
        """All configurations as an Arrow table, the most accurate first."""
        lines = [[getattr(line, name) for line in self.configurations] for name in _COLUMNS.names[:-1]]
        is_recommended = [line is self.recommended for line in self.configurations]
        return pa.table([*lines, is_recommended], schema=_COLUMNS)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Error against sketch size and against ε, as a Matplotlib figure; or written to an .svg or .png file."""
        figure = plan_figure(curves_of(self))
        return figure if path is None else write_figure(figure, path)

    def __str__(self) -> str:
        return page_text(self)

    def _title(self) -> str:
        best = self.recommended
        verdict = "" if self.resolvable else ", cannot be resolved"
        error = f"{best.relative_error:.1%} error"
        return f"Plan: {best.label}, k={best.sketch_dim}, {best.noise}, {error}{verdict}"

    def _head(self, rows: int) -> tuple[pa.Table, int]:
        head, count = super()._head(rows)
        return head.select(_PRINTED), count


@overload
def plan(input_dim: int | None = None, *, by: Literal["size"] = "size", **known: Any) -> Plan: ...


@overload
def plan(input_dim: int | None = None, *, by: Literal["shape"], **known: Any) -> ShapePlan: ...


def plan(  # type: ignore[misc]  # noqa: PLR0913  # one argument for each thing that may be known; the types above name one
    input_dim: int | None = None,
    *,
    epsilon: Any,
    delta: Any = 0,
    distance: Any = None,
    people: int | None = None,
    margins: Any = None,
    item_groups: int | None = None,
    margin_share: Any = 0,
    margin_contribution: int | None = None,
    max_sketch_dim: int | None = None,
    distortion: float | None = None,
    failure_probability: float | None = None,
    parties: int | None = None,
    pairs: int | None = None,
    by: str = "size",
    beyond_chance: bool = False,
    concentration: float | None = None,
    explain: int | None = None,
    seed: str | None = None,
    **settings: Any,
) -> Plan | ShapePlan:
    """The best settings for these distances, by exact error. It needs no data and spends no privacy.

    The relative error is largest at the smallest distance (V(D)/D² = a + b/D + c/D² falls), so the plan minimizes it there.
    Reference: docs/planning.md.

    Args:
        input_dim: How many coordinates; None for an open vocabulary.
        epsilon: ε of each release.
        delta: δ; 0 for pure DP alone.
        distance: The distances of interest, a number or (low, high), in data units.
        people: How many people a group has, instead of distance; needs `contribution`.
        margins: With by="shape": public groups of items, as for the protocol.
        item_groups: Instead: how many there will be, with (other), where they are not listed yet. Then there is no protocol.
        margin_share: The share of ε for margins; 0 lets the plan choose it.
        margin_contribution: How many item groups of one person count; None lets the plan choose it.
        max_sketch_dim: The largest sketch to recommend; None for 4096, or as many numbers as `explain` takes, up to 65,536.
        distortion: α of a Johnson-Lindenstrauss target |estimate − D| ≤ α·D for the squared distance D.
        failure_probability: β, how often that may fail, over all pairs.
        parties: How many parties are compared, all pairs together.
        pairs: How many pairs must hold together, instead of parties; 1 if neither is given.
        by: "size" for distances of counts, "shape" for those of mixes: then the result is a `ShapePlan`, from `people` and
            `contribution`, and total_share=0 lets the plan choose the share.
        beyond_chance: With by="shape": whether questions will be about the populations behind the people counted.
        concentration: With by="shape": how often two records of a party, drawn at random, are of the same item. None assumes
            Zipf's law over `input_dim` items, or over 1,000 items of an open vocabulary.
        explain: How many listed items `al.explain_items` will be asked about: the sketch is made for that, and the plan says what it
            costs for distances.
        seed: The public seed of the protocol; None makes a new one.
        settings: What else the protocol has, as for `al.Protocol`: contribution, or radius, relation, norm ("l2" for whole vectors
            in a ball: replacing one of norm at most r is radius=2r) and resolution; count, one_group, unit, items, vocabulary,
            record, record_pairs, total_share, on_grid, changed_entries, value_range.
    """
    for name in settings.keys() - _SETTINGS:
        raise ParameterError(
            f"{name} must be left out of a plan, which chooses it or cannot predict it, got one"
            if name in _CHOSEN
            else f"arguments of a plan must be its own or settings of al.Protocol, got {short_repr(name)}; see help(al.plan)"
        )
    dimension = None if input_dim is None else checked_input_dim(input_dim)
    protocol = Protocol(
        smallest_transform(dimension, settings.get("norm")), epsilon=epsilon, delta=delta, **settings
    )
    listed, largest = checked_explain(explain, max_sketch_dim, dimension)
    known: dict[str, Any] = {
        "input_dim": dimension,
        "protocol": protocol,
        "epsilon": protocol.epsilon,
        "delta": protocol.delta,
        "people": None if people is None else checked_people(people),
        "pairs": checked_pairs(parties, pairs),
        "max_sketch_dim": largest,
        "explain": listed,
        "fields": settings,
    }
    about_margins = {
        "margins": margins,
        "item_groups": item_groups,
        "margin_share": margin_share,
        "margin_contribution": margin_contribution,
    }
    if one_of("by", by, ("size", "shape")) == "shape":
        unused = {"distance": distance, "distortion": distortion, "failure_probability": failure_probability}
        for name in (name for name, value in unused.items() if value is not None):
            raise ParameterError(
                f'{name} must be left out with by="shape", got one; pass people and contribution'
            )
        mixes = shape_situation(known, concentration, about_margins, beyond_chance=beyond_chance)
        return shape_plan(mixes, checked_seed(seed))
    if (
        beyond_chance
        or exact_number("margin_share", margin_share)
        or any(value is not None for value in (concentration, margins, item_groups, margin_contribution))
    ):
        raise ParameterError(
            'by must be "shape" with beyond_chance, concentration or margins, got "size"; add --by shape'
        )
    distances = distances_of_interest(distance, known["people"], protocol.contribution, dimension)
    situation = SizeSituation(
        **known, distances=distances, target=checked_target(distortion, failure_probability)
    )
    return _size_plan(situation, checked_seed(seed))


def _size_plan(situation: SizeSituation, seed: str) -> Plan:
    every_option = [option for family in families(situation) for option in options(family, situation)]
    lines, usual = list(predict(every_option, situation)), None
    if not lines:
        raise NotResolvableError(
            "cannot be resolved: all noise would be out of range; take a larger epsilon or a coarser resolution"
        )
    if situation.explain is not None:
        choices = [line for line in _best_of_each(lines, situation) if line.is_choice and line.has_upper_end]
        usual = min(choices, key=lambda line: line.relative_error, default=None)
        every_option = [option for option in every_option if situation.explains(option.transform)]
        lines = [line for line in lines if situation.explains(line.option.transform)]
        if not any(line.is_choice for line in lines):
            raise NotResolvableError(situation.cannot_explain)
    best = _best_of_each(lines, situation)
    recommended = recommended_of(best, lines, situation)
    ranked = sorted([*best, recommended], key=lambda line: line.relative_error)
    needs = None if recommended.is_resolved else needs_of(situation, every_option)
    return Plan(situation, tuple(dict.fromkeys(ranked)), recommended, needs, seed, usual)


def recommended_of(
    best: Sequence[Configuration], lines: Sequence[Configuration], situation: SizeSituation
) -> Configuration:
    """Among those within a percent of the best: pure DP, then the smallest sketch, then the least work.

    Args:
        best: The best line of each family.
        lines: All lines.
        situation: What was asked.
    """
    choices = [line for line in best if line.is_choice]
    choices = [line for line in choices if line.has_upper_end] or choices
    if any(line.meets_target for line in choices):
        choices = [line for line in choices if line.meets_target]
        least_error = min(line.relative_error for line in choices)
        # A smaller sketch must not make resolvable distances unresolvable.
        enough = min(_NEARLY_EQUAL * least_error, max(least_error, 1.0))
        near = [line for line in choices if line.relative_error <= enough]
    else:
        near = [min(choices, key=lambda line: (line.failure_bound or 0.0, line.relative_error))]
        enough = near[0].relative_error
    good = [
        line for line in lines if line.relative_error <= enough and line.has_upper_end and line.meets_target
    ]
    smallest = [
        next(
            (each for each in good if _family(each) == _family(line) and each.sketch_dim < line.sketch_dim),
            line,
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
            not line.option.transform.cheap_per_event,
            line.sketch_dim,
            sum(line.option.transform.setup_operations(situation.neighbors.norm, "output").values()),
            line.relative_error,
        ),
    )


def _family(line: Configuration) -> tuple[str, str]:
    return line.label, line.noise


def _best_of_each(lines: Sequence[Configuration], situation: SizeSituation) -> list[Configuration]:
    """Of each family the line with the smallest error; of those with upper ends that meet the target, if any do."""
    best = []
    for _, group in groupby(lines, _family):
        sizes = list(group)
        sizes = [line for line in sizes if line.has_upper_end] or sizes
        if situation.target is not None:
            least = min(line.failure_bound or 0.0 for line in sizes)
            limit = max(situation.target.failure_probability, least)
            sizes = [line for line in sizes if (line.failure_bound or 0.0) <= limit]
        best.append(min(sizes, key=lambda line: line.relative_error))
    return best
