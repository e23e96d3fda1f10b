"""The configurations of a plan as a table of text, and the page that `print(plan)` shows."""

import math
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from armslength.planner.families import HISTOGRAM, KENTHAPADI, PAPERS_OWN, Family
from armslength.planner.needs import Needs
from armslength.planner.predictions import Configuration, Member, is_bounded, members, predict
from armslength.plots import Curve, PlanCurves
from armslength.privacy.exact_numbers import WEAK_EPSILON, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from armslength.planner.plan import Plan
    from armslength.planner.situation import Situation


# A plan in plain language: what was asked, why this one, or why not.


WIDTH = 100


def _totals(situation: "Situation") -> str:
    """What totals take of ε."""
    share = situation.total_share
    return f" (of which {written(situation.epsilon * share)} for totals)" if share else ""


def summary(plan: "Plan") -> str:
    """What was asked, what is recommended, and why; or why not."""
    parts = [situation_in_words(plan.situation), ""]
    if plan.resolvable:
        parts.append(f"Recommended: {described(plan.recommended)}")
    else:
        parts += textwrap.wrap(refusal(plan), WIDTH)
    parts += [_bullet(reason) for reason in plan.reasons]
    if plan.weakness:
        parts += textwrap.wrap(f"WARNING: {plan.weakness}", WIDTH)
    if plan.resolvable:
        parts.append(f"  public seed: {plan.seed}")
    return "\n".join(parts)


def described(line: Configuration) -> str:
    """One configuration in a line."""
    size = f"{line.sketch_dim:,} coordinate{'s' * (line.sketch_dim > 1)}"
    return f"{line.label}, {size}, {line.noise.capitalize()} noise, {line.guarantee}"


def situation_in_words(situation: "Situation") -> str:
    """What was asked, printed back."""
    source = "an open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
    delta = f", δ={float(situation.delta):g}" if situation.delta else " (pure)"
    low, high = situation.distances.low, situation.distances.high
    reach = readable(low) if low == high else f"{readable(low)} to {readable(high)}"
    unit = situation.fields["unit"] or "one unit of protection"
    text = (
        f"Plan for {source}, ε={written(situation.epsilon)}{delta}{_totals(situation)}; {unit} moves the data by at most "
        f"{situation.radius:g} in {situation.neighbors.norm} norm; distances of {reach}"
    )
    if situation.distances.assumption:
        text += f" ({situation.distances.assumption})"
    return "\n".join(textwrap.wrap(text + ".", WIDTH))


def refusal(plan: "Plan") -> str:
    """Why not, with the number, and what would be needed."""
    situation, best = plan.situation, plan.recommended
    low = situation.distances.low
    if best.relative_error > 1 or situation.target is None or best.failure_bound is None:
        text = (
            f"cannot be resolved: at distance {readable(low)} the best standard error of the squared distance is "
            f"{readable(best.std_error)}, {readable(best.relative_error)} times the squared distance {readable(low**2)} "
            f"({described(best)})"
        )
    else:
        text = (
            f"cannot be promised: at distance {readable(low)} an error above {situation.target.distortion:.3g} of the squared distance "
            f"has a proved probability of at most {best.failure_bound:.3g}, and {situation.target.failure_probability:.3g} was asked for "
            f"({described(best)}, standard error {percent(best.relative_error)})"
        )
    offers = [] if plan.needs is None else _offers(plan.needs, situation)
    return f"{text}; {'needed would be ' + ' or '.join(offers) if offers else 'no ε up to 1000 is enough'}"


def _offers(needs: Needs, situation: "Situation") -> list[str]:
    offers = []
    if needs.epsilon is not None:
        weak = " (a weak promise)" if needs.epsilon > WEAK_EPSILON else ""
        offers.append(f"ε={needs.epsilon:g}{weak}")
    if needs.people is not None:
        offers.append(f"{needs.people:,} people in a group")
    elif needs.distance is not None and not _within_the_radius(situation):
        offers.append(f"a distance of {readable(needs.distance)}")
    if needs.sketch_dim is not None:
        offers.append(f"a sketch of up to {needs.sketch_dim:,} coordinates")
    return offers


def _within_the_radius(situation: "Situation") -> bool:
    """Whether one unit can move a vector as far as the groups are apart: then they cannot be further apart either."""
    return situation.neighbors.norm == "l2" and situation.distances.high <= situation.radius


def reasons_for(plan: "Plan") -> list[str]:
    """Why this one: the error, the law, the size, and what the others would do."""
    situation, found = plan.situation, plan.recommended
    reasons = [_error(plan)]
    if situation.neighbors.norm == "l2":
        reasons.append(
            "under l2 neighbors a projection only compresses: its squared operator norm is at least d/k on average, so fewer "
            "coordinates mean more noise"
        )
        if _within_the_radius(situation):
            reasons.append(
                "the distances lie within the radius: one unit of protection can move a vector as far as the groups "
                "are apart, as with a single embedding; sum up many people in one vector instead"
            )
    elif found.noise == "laplace" and situation.delta > 0:
        gaussian = (line.relative_error for line in plan.configurations if line.noise == "gaussian")
        better = min(gaussian, default=math.inf) > found.relative_error
        judged = "more accurate" if better else "as accurate, to a percent,"
        reasons.append(f"Laplace noise is {judged} here, and pure: the δ that was offered is not spent")
    elif found.noise == "gaussian":
        reasons.append(
            "Gaussian noise is more accurate here; with delta=0 the first Laplace line is the choice"
        )
    reasons += [*_size(plan), *_compared(plan)]
    if plan.resolvable and found.failure_bound is not None and situation.target is not None:
        reasons.append(
            f"an error above {situation.target.distortion:g} of the squared distance has a probability of at most "
            f"{found.failure_bound:.3g}, for every difference and over {situation.pairs:,} pair{'s' * (situation.pairs > 1)} "
            "(proved, from exact moments)"
        )
    if plan.resolvable and not is_bounded(plan.protocol, situation.distances.high, situation.pairs):
        reasons.append(
            "so few coordinates tell parties apart, and not how far: intervals of large distances have no upper end at 95%"
            f"{'' if situation.pairs == 1 else ' over so many pairs'}; plan for the larger distances if those matter"
        )
    return reasons


def _error(plan: "Plan") -> str:
    found, distances = plan.recommended, plan.situation.distances
    text = f"standard error of the squared distance: {percent(found.relative_error)} at distance {readable(distances.low)}"
    if distances.high != distances.low:
        text += f", {percent(found.relative_error_high)} at {readable(distances.high)}"
    if not plan.resolvable:
        return text
    level = "" if plan.situation.pairs == 1 else f" over {plan.situation.pairs:,} pairs"
    text += f"; about half of all pairs are told apart from 0 at 95%{level} from distance {readable(plan.told_apart)} on"
    if plan.told_apart > distances.low:
        text += ", which is more than the smallest distance of interest: expect many pairs there to stay unresolved"
    return text


def _size(plan: "Plan") -> list[str]:
    found, situation = plan.recommended, plan.situation
    if found.member is None or found.baseline == HISTOGRAM or situation.neighbors.norm == "l2":
        return []
    if situation.target is not None:
        return ["size and sparsity are chosen for the target: a smaller sketch may err less and promise less"]
    # The recommended size is the smallest within a percent; the best one tells whether the limit was in the way.
    sizes = [line for line in plan.configurations if line.label == found.label and line.noise == found.noise]
    best = min(sizes, key=lambda line: line.relative_error).sketch_dim
    limit = situation.max_sketch_dim
    if best == found.member.family.sizes[-1] == limit:
        return [
            f"the limit of {limit:,} coordinates was reached: a larger max_sketch_dim may be more accurate"
        ]
    more = "" if best == found.sketch_dim else f" than {best:,}"
    return [f"more coordinates{more} would carry more noise, fewer would lose more to the projection"]


def _compared(plan: "Plan") -> list[str]:
    """The variance of the baselines against the recommended one."""
    found, reasons = plan.recommended, []
    names = {
        HISTOGRAM: "the noisy histogram",
        KENTHAPADI: "Kenthapadi et al. at its own best size",
        PAPERS_OWN: "the paper's own setting",
    }
    for baseline, name in names.items():
        lines = [line for line in plan.configurations if line.baseline == baseline]
        if not lines or found.baseline == baseline or found.relative_error == 0:
            continue
        best = min(lines, key=lambda line: line.relative_error)
        ratio = (best.relative_error / found.relative_error) ** 2
        if ratio >= 1:
            reasons.append(f"{name} has {readable(ratio)} times the variance ({best.bytes:,} bytes)")
        else:
            too_large = "" if best.is_choice else ", beyond the size limit"
            reasons.append(f"{name} has {ratio:.2g} of the variance, at {best.bytes:,} bytes{too_large}")
    response = next((line for line in plan.configurations if line.noise == "bits"), None)
    if response is not None and response.relative_error < found.relative_error:
        ratio = (response.relative_error / found.relative_error) ** 2
        reasons.append(
            f"randomized response on the bits has {ratio:.2g} of the variance at this distance: take that instead, "
            "with any tool that flips bits; armslength does not release it"
        )
    return reasons


def readable(number: float) -> str:
    """Three or four digits, without an exponent where a person can do without."""
    return f"{number:,.0f}" if 1000 <= number < 1e9 else f"{number:,.4g}"


def percent(share: float) -> str:
    """A share in percent, a large one as a multiple."""
    return f"{100 * share:,.3g}%" if share < 10 else f"{readable(share)}x"


def _bullet(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  · ", subsequent_indent="    ")


_SHOWN = 6
_HEADINGS = (
    "",
    "configuration",
    "k",
    "noise",
    "error",
    "at high",
    "smallest",
    "bytes",
    "additions",
    "guarantee",
)
_TEXT_COLUMNS = (0, 1, 3, 9)


def report(plan: "Plan") -> str:
    """The whole page."""
    rows = [_cells(line, is_recommended=line is plan.recommended) for line in shown_lines(plan)]
    return "\n".join([summary(plan), "", *_aligned([_HEADINGS, *rows]), "", *_footnotes(plan)])


def shown_lines(plan: "Plan") -> list[Configuration]:
    """The leading configurations, and the baselines that are always shown."""
    shown: list[Configuration] = []
    seen: set[str] = set()
    leading = 0
    for line in plan.configurations:
        listed = "always" if line.member is None else line.member.family.listed
        if line is plan.recommended or (listed == "always" and line.label not in seen):
            shown.append(line)
        elif leading < _SHOWN and listed != "never":
            leading += 1
            shown.append(line)
        seen.add(line.label)
    return shown


def _cells(line: Configuration, *, is_recommended: bool) -> tuple[str, ...]:
    """One line of the table as text."""
    return (
        "*" if is_recommended else "" if line.is_choice else "-",
        line.label + ("" if line.is_exact else " ~"),
        f"{line.sketch_dim:,}",
        line.noise,
        percent(line.relative_error),
        percent(line.relative_error_high),
        readable(line.smallest_distance),
        f"{line.bytes:,}",
        f"{line.additions:,}" if line.additions is not None else "per item",
        line.guarantee,
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: text to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in _TEXT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _footnotes(plan: "Plan") -> list[str]:
    low, high = plan.situation.distances.low, plan.situation.distances.high
    notes = (
        f"* {'recommended' if plan.resolvable else 'the best there is'}; - not a choice (too large, or for comparison); ~ for a median "
        f"matrix, scanned exactly when it is made. error: standard error of the squared distance at distance {readable(low)}, at high: at "
        f"{readable(high)}. smallest: the distance at which that error is 100%. additions: for one vector. "
        f"{len(plan.configurations)} configurations in all."
    )
    if plan.situation.input_dim is None:
        notes += " Transforms with a fixed input_dim are left out for an open vocabulary."
    if not plan.situation.delta:
        notes += " Gaussian noise (Kenthapadi et al., noise on the input) needs a delta above 0."
    return textwrap.wrap(notes, WIDTH)


# The numbers behind a plan's plot: error against sketch size and against ε, for the leading configurations.


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
