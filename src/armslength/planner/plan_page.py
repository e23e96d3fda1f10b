"""The page of a plan as text: what was asked, what is recommended and why, a table; and the curves of its plot."""

import math
import textwrap
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from armslength.estimates.item_intervals import typical_reach
from armslength.planner.families import HISTOGRAM, KENTHAPADI, PAPERS_OWN, families
from armslength.planner.needs import Needs
from armslength.planner.predictions import Configuration, Option, has_upper_end, options, predict
from armslength.planner.situation import ITEM_ERROR, USUAL_DELTA, share_kept
from armslength.plots import PlanCurves
from armslength.privacy.exact_numbers import WEAK_EPSILON, decimal_text
from armslength.results import table_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from armslength.planner.plan import Plan
    from armslength.planner.situation import Situation

WIDTH = 100
_MOST_LEADING = 6
_TEXT_COLUMNS = ("", "configuration", "noise", "guarantee")
_EPSILONS = 25
_MORE_ENTRIES = "SparseJL block, s=8"
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
        parts.append(f"Recommended: {configuration_text(plan.recommended)}")
    else:
        parts += textwrap.wrap(refusal(plan), WIDTH)
    bullet = textwrap.TextWrapper(WIDTH, initial_indent="  · ", subsequent_indent="    ")
    parts += map(bullet.fill, plan.reasons)
    if plan.weakness:
        parts += textwrap.wrap(f"WARNING: {plan.weakness}", WIDTH)
    if plan.resolvable:
        parts.append(f"  public seed: {plan.seed}")
    return "\n".join(parts)


def refusal(plan: "Plan") -> str:
    """Why the distances cannot be resolved, and what would be enough."""
    situation, best = plan.situation, plan.recommended
    low = situation.distances.low
    if not best.has_upper_end:
        text = (
            f"cannot be resolved: intervals of {configuration_text(best)} would have no useful upper end, or, with more coordinates, "
            "too much noise"
        )
    elif best.relative_error > 1 or situation.target is None or best.failure_bound is None:
        text = (
            f"cannot be resolved: at distance {number_text(low)} the best standard error of the squared distance is "
            f"{number_text(best.std_error)}, {number_text(best.relative_error)} times the squared distance {number_text(low**2)} "
            f"({configuration_text(best)})"
        )
    else:
        text = (
            f"cannot be promised: at distance {number_text(low)} an error above {situation.target.distortion:.3g} of the squared distance "
            f"has a proved probability of at most {best.failure_bound:.3g}, and {situation.target.failure_probability:.3g} was asked for "
            f"({configuration_text(best)}, standard error {error_text(best.relative_error)})"
        )
    offers = " or ".join([] if plan.needs is None else _offers(plan.needs, situation))
    return f"{text}; {f'it would take {offers}' if offers else 'no ε up to 1000 is enough'}"


def explained(count: int) -> str:
    """What a plan with listed items gives."""
    return f"differences of {count:,} listed item{'s' * (count > 1)} get intervals that hold together"


def _seen_items(plan: "Plan") -> str:
    """Which differences of listed items will be seen."""
    situation = plan.situation
    if not plan.resolvable or situation.explain is None:
        return ""
    protocol, unit = plan.protocol, situation.resolution
    low = situation.distances.low / unit
    reach = unit * typical_reach(protocol.transform, situation.explain, protocol.law, low, ITEM_ERROR)
    what = "units" if protocol.contribution is None else protocol.count
    if math.isinf(reach):
        return ""
    return f": you will see most of those that differ by {number_text(float(f'{reach:.2g}'))} {what}"


def price_text(ratio: float, where: str) -> str:
    """What that costs for distances."""
    return f"the price, {where}, is a variance of squared distances {number_text(round(ratio, 2))} times"


def reasons_for(plan: "Plan") -> list[str]:
    """Why this one is recommended: its error, its law, its size, and how others compare."""
    situation, best = plan.situation, plan.recommended
    reasons = [_error_reason(plan)]
    if situation.explain is not None and plan.usual is not None:
        price = (best.std_error / plan.usual.std_error) ** 2
        where = f"at distance {number_text(situation.distances.low)}"
        reasons.append(
            f"{explained(situation.explain)}{_seen_items(plan)}; {price_text(price, where)} that of {configuration_text(plan.usual)}"
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
    elif best.option is not None and best.option.family.max_norm is not None:
        reasons.append(_bound_reason(plan, best.option, best.option.family.max_norm))
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
    reasons += [*_size_reasons(plan), *_baseline_reasons(plan)]
    if plan.resolvable and best.failure_bound is not None and situation.target is not None:
        reasons.append(
            f"an error above {situation.target.distortion:g} of the squared distance has a probability of at most "
            f"{best.failure_bound:.3g}, for every difference and over {situation.pairs:,} pair{'s' * (situation.pairs > 1)} "
            "(proved, from exact moments)"
        )
    return reasons


def _bound_reason(plan: "Plan", option: Option, max_norm: Fraction) -> str:
    """Why a bound in the sketch, and what it leaves out."""
    protocol, transform = plan.situation.protocol, option.transform
    laplace = next((line for line in plan.configurations if line.noise == "laplace" and line.is_choice), None)
    less = ""
    if laplace is not None:
        ratio = (laplace.relative_error / plan.recommended.relative_error) ** 2
        less = f" has {number_text(ratio)} times less variance than Laplace noise, and"
    kept = math.floor(1e4 * share_kept(protocol, transform, max_norm)) / 100
    return (
        f"a bound on the length of each person's part of all sketches (max_norm {float(max_norm):g}), with Gaussian noise,{less} counts "
        f"{kept:g}% of the items of a person with {protocol.contribution:,} different ones (simulated); with delta=0 the first Laplace "
        "line is the choice"
    )


def _with_delta(plan: "Plan") -> list[str]:
    """What a bound in the sketch would gain, if δ were not 0."""
    there = replace(plan.situation, delta=USUAL_DELTA)
    bounded = [family for family in families(there) if family.max_norm is not None]
    sizes = [option for family in bounded for option in options(family, there)]
    errors = [
        (prediction.relative_error(there.distances.low), option.family.label)
        for option in sizes
        if option.transform.sketch_dim <= there.max_sketch_dim
        and (prediction := predict(option, there, there.epsilon)) is not None
        and has_upper_end(prediction.curve.a, there.pairs)
    ]
    error, label = min(errors, default=(math.inf, ""))
    ratio = (plan.recommended.relative_error / error) ** 2
    if plan.recommended.noise != "laplace" or ratio < _WORTH_A_DELTA:
        return []
    return [
        f"with delta={float(USUAL_DELTA):g}, {label} and Gaussian noise would have {number_text(ratio)} times less variance"
    ]


def curves_of(plan: "Plan") -> PlanCurves:
    """The curves of the plot: error against sketch size and against ε."""
    situation, low = plan.situation, plan.situation.distances.low
    center = float(situation.epsilon)
    steps = [_REACH ** (2 * i / (_EPSILONS - 1) - 1) for i in range(_EPSILONS)]
    epsilons = [Fraction(f"{center * step:.6g}") for step in steps]
    families = [line.option.family for line in _lines_in_plot(plan) if line.option is not None]
    curves = {
        f"{family.baseline or family.label}, {family.noise.capitalize()}": options(family, situation)
        for family in families
    }
    return PlanCurves(
        by_size={name: _size_curve(sizes, situation) for name, sizes in curves.items()},
        by_epsilon={name: _epsilon_curve(sizes, situation, epsilons) for name, sizes in curves.items()},
        epsilon=center,
        sketch_dim=plan.recommended.sketch_dim,
        error=plan.recommended.relative_error,
        distance=low,
        title=f"{'open vocabulary' if situation.input_dim is None else f'{situation.input_dim:,} coordinates'}, "
        f"ε={decimal_text(situation.epsilon)}"
        + (f", δ={float(situation.delta):g}" if situation.delta else ""),
    )


def _situation_text(situation: "Situation") -> str:
    """What was asked."""
    source = "an open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
    delta = f", δ={float(situation.delta):g}" if situation.delta else " (pure)"
    low, high = situation.distances.low, situation.distances.high
    reach = number_text(low) if low == high else f"{number_text(low)} to {number_text(high)}"
    unit = situation.fields["unit"] or "one unit of protection"
    share = situation.total_share
    totals = f" (of which {decimal_text(situation.epsilon * share)} for totals)" if share else ""
    text = (
        f"Plan for {source}, ε={decimal_text(situation.epsilon)}{delta}{totals}; {unit} moves the data by at most "
        f"{situation.radius:g} in {situation.neighbors.norm} norm; distances of {reach}"
    )
    if situation.distances.assumption:
        text += f" ({situation.distances.assumption})"
    return "\n".join(textwrap.wrap(text + ".", WIDTH))


def configuration_text(line: Configuration) -> str:
    """A configuration in one line."""
    size = f"{line.sketch_dim:,} coordinate{'s' * (line.sketch_dim > 1)}"
    return f"{line.label}, {size}, {line.noise.capitalize()} noise, {line.guarantee}"


def _offers(needs: Needs, situation: "Situation") -> list[str]:
    offers = []
    if needs.epsilon is not None:
        weak = " (a weak promise)" if needs.epsilon > WEAK_EPSILON else ""
        offers.append(f"ε={needs.epsilon:g}{weak}")
    if needs.people is not None:
        offers.append(f"{needs.people:,} people in a group")
    elif needs.distance is not None and not _is_within_radius(situation):
        offers.append(f"a distance of {number_text(needs.distance)}")
    if needs.sketch_dim is not None:
        offers.append(f"a sketch of up to {needs.sketch_dim:,} coordinates")
    return offers


def _is_within_radius(situation: "Situation") -> bool:
    """Whether one unit can move a vector as far as the groups are apart. Then they cannot be farther apart either."""
    return situation.neighbors.norm == "l2" and situation.distances.high <= situation.radius


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
    if best.option is None or best.baseline == HISTOGRAM or situation.neighbors.norm == "l2":
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


def _baseline_reasons(plan: "Plan") -> list[str]:
    """How the variance of the baselines compares."""
    recommended, reasons = plan.recommended, []
    names = {
        HISTOGRAM: "the noisy histogram",
        KENTHAPADI: "Kenthapadi et al. at its own best size",
        PAPERS_OWN: "the paper's own setting",
    }
    for baseline, name in names.items():
        best = next((line for line in plan.configurations if line.baseline == baseline), None)
        if best is None or recommended.baseline == baseline or recommended.relative_error == 0:
            continue
        ratio = (best.relative_error / recommended.relative_error) ** 2
        if ratio >= 1:
            reasons.append(f"{name} has {number_text(ratio)} times the variance ({best.bytes:,} bytes)")
        else:
            too_large = "" if best.is_choice else ", beyond the size limit"
            reasons.append(f"{name} has {ratio:.2g} of the variance, at {best.bytes:,} bytes{too_large}")
    response = next((line for line in plan.configurations if line.noise == "bits"), None)
    if response is not None and response.relative_error < recommended.relative_error:
        ratio = (response.relative_error / recommended.relative_error) ** 2
        reasons.append(
            f"randomized response on the bits has {ratio:.2g} of the variance at this distance: take that instead, "
            "with any tool that flips bits; armslength does not release it"
        )
    return reasons


def _lines_on_page(plan: "Plan") -> list[Configuration]:
    """The best configurations, and the baselines."""
    lines: list[Configuration] = []
    seen: set[str] = set()
    leading = 0
    for line in plan.configurations:
        on_page = "always" if line.option is None else line.option.family.on_page
        is_needed = line is plan.recommended or (on_page == "always" and line.label not in seen)
        if is_needed or (leading < _MOST_LEADING and on_page != "never"):
            leading += not is_needed
            lines.append(line)
        seen.add(line.label)
    return lines


def _cells(line: Configuration, *, is_recommended: bool) -> dict[str, str]:
    """One line of the table."""
    return {
        "": "*" if is_recommended else "" if line.is_choice else "-",
        "configuration": line.label + ("" if line.is_exact else " ~"),
        "k": f"{line.sketch_dim:,}",
        "noise": line.noise,
        "error": error_text(line.relative_error),
        "at high": error_text(line.relative_error_high),
        "smallest": number_text(line.smallest_distance),
        "bytes": f"{line.bytes:,}",
        "additions": f"{line.additions:,}" if line.additions is not None else "per item",
        "guarantee": line.guarantee,
    }


def _footnotes(plan: "Plan") -> list[str]:
    low, high = plan.situation.distances.low, plan.situation.distances.high
    notes = (
        f"* {'recommended' if plan.resolvable else 'the best there is'}; - not a choice (too large, or for comparison); ~ for a median "
        f"matrix, scanned exactly when it is made. error: standard error of the squared distance at distance {number_text(low)}, at high: at "
        f"{number_text(high)}. smallest: the distance at which that error is 100%. additions: for one vector. "
        f"{len(plan.configurations)} configurations in all."
    )
    if plan.situation.input_dim is None:
        notes += " Transforms with a fixed input_dim are left out for an open vocabulary."
    if not plan.situation.delta:
        notes += " Gaussian noise (Kenthapadi et al., noise on the input) needs a delta above 0."
    return textwrap.wrap(notes, WIDTH)


def _lines_in_plot(plan: "Plan") -> list[Configuration]:
    """The recommended one, one with more entries in a column, and the baselines, each at its best law."""
    law = plan.recommended.noise
    others: tuple[Callable[[Configuration], bool], ...] = (
        lambda line: line.label == _MORE_ENTRIES and line.noise == law,
        lambda line: line.baseline == HISTOGRAM,
        lambda line: line.baseline == KENTHAPADI,
        lambda line: line.baseline == PAPERS_OWN,
        lambda line: line.option is not None and line.option.family.noise_site == "input",
    )
    lines = [plan.recommended]
    for is_wanted in others:
        first = next(filter(is_wanted, plan.configurations), None)  # the most accurate comes first
        if first is not None and first.label != plan.recommended.label:
            lines.append(first)
    return lines


def _size_curve(sizes: list[Option], situation: "Situation") -> list[tuple[float, float]]:
    return [
        (float(option.transform.sketch_dim), prediction.relative_error(situation.distances.low))
        for option in sizes
        if (prediction := predict(option, situation, situation.epsilon)) is not None
    ]


def _epsilon_curve(
    sizes: list[Option], situation: "Situation", epsilons: list[Fraction]
) -> list[tuple[float, float]]:
    """The error at the best size for each ε."""
    points = []
    for epsilon in epsilons:
        predicted = (predict(option, situation, epsilon) for option in sizes)
        errors = [each.relative_error(situation.distances.low) for each in predicted if each is not None]
        if errors and math.isfinite(min(errors)):
            points.append((float(epsilon), min(errors)))
    return points


def number_text(number: float) -> str:
    """The number to four digits, without an exponent if it is easy to read."""
    return f"{number:,.0f}" if 1000 <= number < 1e9 else f"{number:,.4g}"


def error_text(share: float) -> str:
    """A relative error in percent, or as a multiple if it is large."""
    return f"{100 * share:,.3g}%" if share < 10 else f"{number_text(share)}x"
