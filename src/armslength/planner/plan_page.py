"""The page of a plan as text: what was asked, what is recommended and why, a table; and the curves of its plot."""

import math
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from armslength.errors import plural
from armslength.estimates.item_intervals import typical_reach
from armslength.planner.families import families
from armslength.planner.needs import Needs, offers
from armslength.planner.predictions import Configuration, options, predict
from armslength.planner.situation import ITEM_ERROR, KEPT, USUAL_DELTA
from armslength.plots import PlanCurves
from armslength.privacy.exact_numbers import decimal_text
from armslength.results import table_lines

if TYPE_CHECKING:
    from armslength.planner.plan import Plan
    from armslength.planner.situation import SizeSituation

WIDTH = 100
_MOST_LEADING = 6
_TEXT_COLUMNS = ("", "configuration", "noise")
_EPSILONS = 25
_WORTH_A_DELTA = 1.1
_REACH = 10.0  # times the ε of the plan, up and down


def page_text(plan: "Plan") -> str:
    """The whole page, as `str(plan)` shows it."""
    rows = [_cells(line, is_recommended=line is plan.recommended) for line in _lines_on_page(plan)]
    return "\n".join([summary(plan), "", *table_lines(rows, _TEXT_COLUMNS), "", *_footnotes(plan)])


def summary(plan: "Plan") -> str:
    """What was asked, and what is recommended and why, or why nothing is."""
    parts = [_situation_text(plan.situation), ""]
    if plan.resolvable:
        parts.append(f"Recommended: {_configuration_text(plan, plan.recommended)}")
    else:
        parts += textwrap.wrap(refusal(plan), WIDTH)
    bullet = textwrap.TextWrapper(WIDTH, initial_indent="  · ", subsequent_indent="    ")
    parts += map(bullet.fill, plan.reasons)
    parts += textwrap.wrap(f"WARNING: {plan.weakness}", WIDTH) if plan.weakness else []
    parts += [f"  public seed: {plan.seed}"] if plan.resolvable else []
    return "\n".join(parts)


def refusal(plan: "Plan") -> str:
    """Why the distances cannot be resolved, and what would be enough."""
    situation, best = plan.situation, plan.recommended
    low, name = number_text(situation.distances.low), _configuration_text(plan, best)
    if not best.has_upper_end:
        text = f"cannot be resolved: intervals of {name} would have no useful upper end, or, with more coordinates, too much noise"
    elif best.relative_error > 1 or situation.target is None or best.failure_bound is None:
        text = (
            f"cannot be resolved: at distance {low} the best standard error of the squared distance is "
            f"{number_text(best.relative_error)} times the squared distance ({name})"
        )
    else:
        text = (
            f"cannot be promised: at distance {low} an error above {situation.target.distortion:.3g} of the squared distance "
            f"has a proved probability of at most {best.failure_bound:.3g}, and {situation.target.failure_probability:.3g} was asked for "
            f"({name}, standard error {error_text(best.relative_error)})"
        )
    needed = " or ".join([] if plan.needs is None else _offers(plan.needs, situation))
    return f"{text}; {f'it would take {needed}' if needed else 'no ε up to 1000 is enough'}"


def explained(count: int) -> str:
    """What a plan with listed items gives."""
    return f"differences of {plural(count, 'listed item')} get intervals that hold together"


def _seen_items(plan: "Plan") -> str:
    """Which differences of listed items will be seen."""
    situation = plan.situation
    if not plan.resolvable or situation.explain is None:
        return ""
    protocol, unit = plan.protocol, float(plan.protocol.resolution)
    low = situation.distances.low / unit
    reach = unit * typical_reach(protocol.transform, situation.explain, protocol.law, low, ITEM_ERROR)
    what = "units" if protocol.contribution is None else protocol.count
    if math.isinf(reach):
        return ""
    return f": you will see most of those that differ by {number_text(float(f'{reach:.2g}'))} {what}"


def reasons_for(plan: "Plan") -> list[str]:
    """Why this one is recommended: its error, its law, its size, and how others compare."""
    situation, best = plan.situation, plan.recommended
    reasons = [_error_reason(plan)]
    if situation.explain is not None and plan.usual is not None:
        price = (best.relative_error / plan.usual.relative_error) ** 2
        where = f"at distance {number_text(situation.distances.low)}"
        reasons.append(
            f"{explained(situation.explain)}{_seen_items(plan)}; the price, {where}, is a variance of squared distances "
            f"{number_text(round(price, 2))} times that of {_configuration_text(plan, plan.usual)}"
        )
    if situation.neighbors.norm == "l2":
        reasons.append(
            "under l2 neighbors a projection only compresses: its squared operator norm is at least d/k on average, so fewer "
            "coordinates mean more noise"
        )
        if _is_within_radius(situation):
            reasons.append(
                "the distances lie within the radius: one unit of protection can move a vector as far as the groups "
                "are apart, as with a single embedding; add up many people in one vector instead"
            )
    elif best.option.family.max_norm is not None:
        reasons.append(_bound_reason(plan, best.option.family.max_norm))
    elif best.noise == "laplace" and situation.delta > 0:
        gaussian = (line.relative_error for line in plan.configurations if line.noise == "gaussian")
        is_better = next(gaussian, math.inf) > best.relative_error
        verdict = "more accurate" if is_better else "as accurate, to a percent,"
        reasons.append(f"Laplace noise is {verdict} here, and pure: δ is not spent")
    elif best.noise == "gaussian":
        reasons.append(
            "Gaussian noise is more accurate here; with delta=0 the first Laplace line is the choice"
        )
    else:
        reasons += _with_delta(plan)
    reasons += [*_size_reasons(plan), *_histogram_reasons(plan)]
    if plan.resolvable and best.failure_bound is not None and situation.target is not None:
        reasons.append(
            f"an error above {situation.target.distortion:g} of the squared distance has a probability of at most "
            f"{best.failure_bound:.3g}, for every difference and over {plural(situation.pairs, 'pair')} "
            "(proved, from exact moments)"
        )
    return reasons


def _bound_reason(plan: "Plan", max_norm: Fraction) -> str:
    """Why a bound in the sketch, and what it leaves out."""
    laplace = next((line for line in plan.configurations if line.noise == "laplace" and line.is_choice), None)
    less = ""
    if laplace is not None:
        ratio = (laplace.relative_error / plan.recommended.relative_error) ** 2
        less = f" has {number_text(ratio)} times less variance than Laplace noise, and"
    return (
        f"a bound on the length of each person's part of all sketches (max_norm {float(max_norm):g}), with Gaussian noise,{less} {KEPT}; "
        "with delta=0 the first Laplace line is the choice"
    )


def _with_delta(plan: "Plan") -> list[str]:
    """What a bound in the sketch would gain, if δ were not 0."""
    there = replace(plan.situation, delta=USUAL_DELTA)
    bounded = [family for family in families(there) if family.max_norm is not None]
    lines = predict((option for family in bounded for option in options(family, there)), there)
    errors = [(line.relative_error, line.label) for line in lines if line.is_choice and line.has_upper_end]
    error, label = min(errors, default=(math.inf, ""))
    ratio = (plan.recommended.relative_error / error) ** 2
    if plan.recommended.noise != "laplace" or ratio < _WORTH_A_DELTA:
        return []
    return [
        f"with delta={float(USUAL_DELTA):g}, {label} and Gaussian noise would have {number_text(ratio)} times less variance"
    ]


def curves_of(plan: "Plan") -> PlanCurves:
    """The curves of the plot: error against sketch size and against ε."""
    situation, center = plan.situation, float(plan.situation.epsilon)
    steps = [_REACH ** (2 * i / (_EPSILONS - 1) - 1) for i in range(_EPSILONS)]
    others = [replace(situation, epsilon=Fraction(f"{center * step:.6g}")) for step in steps]
    histogram = [] if (line := _histogram(plan)) is None else [line]
    by_size: dict[str, list[tuple[float, float]]] = {}
    by_epsilon: dict[str, list[tuple[float, float]]] = {}
    for family in (line.option.family for line in (plan.recommended, *histogram)):
        name = f"{family.label}, {family.noise.capitalize()}"
        sizes = options(family, situation)
        by_size[name] = [(line.sketch_dim, line.relative_error) for line in predict(sizes, situation)]
        errors = [[line.relative_error for line in predict(sizes, there)] for there in others]
        # at the best size for each ε
        points = (
            (float(there.epsilon), min(each, default=math.inf))
            for there, each in zip(others, errors, strict=True)
        )
        by_epsilon[name] = [point for point in points if math.isfinite(point[1])]
    return PlanCurves(
        by_size=by_size,
        by_epsilon=by_epsilon,
        epsilon=center,
        sketch_dim=plan.recommended.sketch_dim,
        error=plan.recommended.relative_error,
        distance=situation.distances.low,
        title=f"{'open vocabulary' if situation.input_dim is None else f'{situation.input_dim:,} coordinates'}, "
        f"ε={decimal_text(situation.epsilon)}"
        + (f", δ={float(situation.delta):g}" if situation.delta else ""),
    )


def _situation_text(situation: "SizeSituation") -> str:
    """What was asked."""
    source = "an open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
    delta = f", δ={float(situation.delta):g}" if situation.delta else " (pure)"
    low, high = situation.distances.low, situation.distances.high
    reach = number_text(low) if low == high else f"{number_text(low)} to {number_text(high)}"
    unit = situation.protocol.unit or "one unit of protection"
    share = situation.protocol.total_share
    totals = f" (of which {decimal_text(situation.epsilon * share)} for totals)" if share else ""
    text = (
        f"Plan for {source}, ε={decimal_text(situation.epsilon)}{delta}{totals}; {unit} moves the data by at most "
        f"{float(situation.protocol.radius):g} in {situation.neighbors.norm} norm; distances of {reach}"
    )
    if situation.distances.assumption:
        text += f" ({situation.distances.assumption})"
    return "\n".join(textwrap.wrap(text + ".", WIDTH))


def _configuration_text(plan: "Plan", line: Configuration) -> str:
    """A configuration in one line."""
    epsilon, delta = decimal_text(plan.situation.epsilon), plan.situation.delta_of(line.noise)
    guarantee = f"ε={epsilon}" + (f", δ={float(delta):g}" if delta else "")
    size = plural(line.sketch_dim, "coordinate")
    return f"{line.label}, {size}, {line.noise.capitalize()} noise, {guarantee}"


def _offers(needs: Needs, situation: "SizeSituation") -> list[str]:
    texts = offers(needs.epsilon, needs.people)
    if needs.people is None and needs.distance is not None and not _is_within_radius(situation):
        texts.append(f"a distance of {number_text(needs.distance)}")
    if needs.sketch_dim is not None:
        texts.append(f"a sketch of up to {needs.sketch_dim:,} coordinates")
    return texts


def _is_within_radius(situation: "SizeSituation") -> bool:
    """Whether one unit can move a vector as far as the groups are apart. Then they cannot be farther apart either."""
    return situation.neighbors.norm == "l2" and situation.distances.high <= situation.protocol.radius


def _error_reason(plan: "Plan") -> str:
    best, distances = plan.recommended, plan.situation.distances
    text = f"standard error of the squared distance: {error_text(best.relative_error)} at distance {number_text(distances.low)}"
    if distances.high != distances.low:
        text += f", {error_text(best.relative_error_high)} at {number_text(distances.high)}"
    if not plan.resolvable:
        return text
    level = "" if plan.situation.pairs == 1 else f" over {plan.situation.pairs:,} pairs"
    text += f"; about half of all pairs are told apart from 0 at 95%{level} from distance {number_text(plan.told_apart)} on"
    if plan.told_apart > distances.low:
        text += ", which is more than the smallest distance of interest: expect many pairs there to stay unresolved"
    return text


def _size_reasons(plan: "Plan") -> list[str]:
    best, situation = plan.recommended, plan.situation
    if best.is_histogram or situation.neighbors.norm == "l2":
        return []
    if situation.explain is not None:
        return ["size and sparsity are the best for distances of those that can explain the items"]
    if situation.target is not None:
        return ["size and sparsity are chosen for the target: a smaller sketch may err less and promise less"]
    # The recommended size is the smallest within a percent; the most accurate one shows whether the limit was in the way.
    same = (line for line in plan.configurations if (line.label, line.noise) == (best.label, best.noise))
    most_accurate, limit = next(same).sketch_dim, situation.max_sketch_dim
    if most_accurate == best.option.family.sizes[-1] == limit:
        return [
            f"the limit of {limit:,} coordinates was reached: a larger max_sketch_dim may be more accurate"
        ]
    more = "" if most_accurate == best.sketch_dim else f" than {most_accurate:,}"
    return [f"more coordinates{more} would carry more noise, fewer would lose more to the projection"]


def _histogram(plan: "Plan") -> Configuration | None:
    """The noisy histogram with its better noise, if another is recommended."""
    if plan.recommended.is_histogram:
        return None
    return next((line for line in plan.configurations if line.is_histogram), None)


def _histogram_reasons(plan: "Plan") -> list[str]:
    """How the variance of the noisy histogram compares."""
    line, error = _histogram(plan), plan.recommended.relative_error
    if line is None or error == 0:
        return []
    ratio, size = (line.relative_error / error) ** 2, f"{8 * line.sketch_dim:,} bytes"
    if ratio >= 1:
        return [f"the noisy histogram has {number_text(ratio)} times the variance ({size})"]
    too_large = "" if line.is_choice else ", beyond the size limit"
    return [f"the noisy histogram has {ratio:.2g} of the variance, at {size}{too_large}"]


def _lines_on_page(plan: "Plan") -> list[Configuration]:
    """The best configurations, and the best one of each kind of transform."""
    lines: list[Configuration] = []
    kinds = set()
    for line in plan.configurations:
        kind = line.option.transform.name
        if line is plan.recommended or kind not in kinds or len(lines) < _MOST_LEADING:
            lines.append(line)
        kinds.add(kind)
    return lines


def _cells(line: Configuration, *, is_recommended: bool) -> dict[str, str]:
    """One line of the table."""
    return {
        "": "*" if is_recommended else "" if line.is_choice else "-",
        "configuration": line.label,
        "k": f"{line.sketch_dim:,}",
        "noise": line.noise,
        "error": error_text(line.relative_error),
        "at high": error_text(line.relative_error_high),
        "smallest": number_text(line.smallest_distance),
        "bytes": f"{8 * line.sketch_dim:,}",
    }


def _footnotes(plan: "Plan") -> list[str]:
    low, high = plan.situation.distances.low, plan.situation.distances.high
    notes = (
        f"* {'recommended' if plan.resolvable else 'the best there is'}; - too large. "
        f"error: standard error of the squared distance at distance {number_text(low)}, at high: at {number_text(high)}. "
        f"smallest: the distance at which that error is 100%. {len(plan.configurations)} configurations in all."
    )
    if plan.situation.input_dim is None:
        notes += " Transforms with a fixed input_dim are left out for an open vocabulary."
    if not plan.situation.delta:
        notes += " Gaussian noise needs a delta above 0."
    return textwrap.wrap(notes, WIDTH)


def share_table(title: str, name: str, cells: Iterable[tuple[str, Fraction, str, bool]]) -> list[str]:
    """A table with a column for each share of ε, of (row, share, text, whether it is recommended)."""
    rows = dict[str, dict[str, Any]]()
    for row, share, text, is_recommended in cells:
        column = f"{100 * float(share):g} %"
        rows.setdefault(row, {name: row})[column] = f"{'*' * is_recommended}{text}"
    return [*textwrap.wrap(title, WIDTH), *table_lines(list(rows.values()), ())]


def number_text(number: float) -> str:
    """The number to four digits, without an exponent if it is easy to read."""
    return f"{number:,.0f}" if 1000 <= number < 1e9 else f"{number:,.4g}"


def error_text(share: float) -> str:
    """A relative error in percent, or as a multiple if it is large."""
    return f"{100 * share:,.3g}%" if share < 10 else f"{number_text(share)}x"
