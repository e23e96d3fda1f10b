"""The numbers behind a plan's plot: error against sketch size and against ε, for the leading configurations."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from armslength.planner.configuration import Configuration
from armslength.planner.families import HISTOGRAM, KENTHAPADI, PAPERS_OWN, Family
from armslength.planner.predict import Member, members, predict
from armslength.plots.plan_figure import Curve, PlanCurves
from armslength.privacy.parameters import written

if TYPE_CHECKING:
    from collections.abc import Callable

    from armslength.planner.plan import Plan
    from armslength.planner.situation import Situation

_EPSILONS = 25
_MORE_ENTRIES = "SparseJL block, s=8"
_REACH = 10.0  # times the ε of the plan, up and down


def curves_of(plan: "Plan") -> PlanCurves:
    """What the plot shows."""
    situation, low = plan.situation, plan.situation.distances.low
    center = float(situation.epsilon)
    steps = [_REACH ** (2 * i / (_EPSILONS - 1) - 1) for i in range(_EPSILONS)]
    epsilons = [Fraction(f"{center * step:.6g}") for step in steps]
    by_size, by_epsilon = [], []
    for line in _leading(plan):
        if line.member is None:
            continue
        sizes = members(line.member.family, situation)
        name = _short(line.member.family)
        by_size.append(_against_size(name, sizes, situation))
        by_epsilon.append(_against_epsilon(name, sizes, situation, epsilons))
    return PlanCurves(
        by_size=by_size,
        by_epsilon=by_epsilon,
        epsilon=center,
        sketch_dim=plan.recommended.sketch_dim,
        error=plan.recommended.relative_error,
        distance=low,
        title=f"{'open vocabulary' if situation.input_dim is None else f'{situation.input_dim:,} coordinates'}, "
        f"ε={written(situation.epsilon)}" + (f", δ={float(situation.delta):g}" if situation.delta else ""),
    )


def _leading(plan: "Plan") -> list[Configuration]:
    """The recommended one, more entries a column under the same law, and the baselines, each at its best law."""
    law = plan.recommended.noise
    others: tuple[Callable[[Configuration], bool], ...] = (
        lambda line: line.label == _MORE_ENTRIES and line.noise == law,
        lambda line: line.baseline == HISTOGRAM,
        lambda line: line.baseline == KENTHAPADI,
        lambda line: line.baseline == PAPERS_OWN,
        lambda line: line.member is not None and line.member.family.noise_site == "input",
    )
    found = [plan.recommended]
    for is_meant in others:
        first = next(filter(is_meant, plan.configurations), None)  # the most accurate comes first
        if first is not None and first.label != plan.recommended.label:
            found.append(first)
    return found


def _short(family: Family) -> str:
    return f"{family.baseline or family.label}, {family.noise.capitalize()}"


def _against_size(name: str, sizes: list[Member], situation: "Situation") -> Curve:
    points = [
        (float(member.transform.sketch_dim), prediction.relative_error(situation.distances.low))
        for member in sizes
        if (prediction := predict(member, situation, situation.epsilon)) is not None
    ]
    return Curve(name, points)


def _against_epsilon(
    name: str, sizes: list[Member], situation: "Situation", epsilons: list[Fraction]
) -> Curve:
    """The error at the best size for each ε."""
    points = []
    for epsilon in epsilons:
        predicted = (predict(member, situation, epsilon) for member in sizes)
        errors = [found.relative_error(situation.distances.low) for found in predicted if found is not None]
        if errors and math.isfinite(min(errors)):
            points.append((float(epsilon), min(errors)))
    return Curve(name, points)
