"""A plan in plain language: why this one, why not, and the page that `print(plan)` shows."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armslength.planner.configuration import Configuration
from armslength.protocol.schema import written

if TYPE_CHECKING:
    from armslength.planner.plan import Plan
    from armslength.planner.situation import Situation

_WIDTH = 100
_SHOWN = 8
HEADINGS = (
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


def report(plan: "Plan") -> str:
    """The whole page."""
    return "\n".join([summary(plan), "", *_table(plan), "", *_footnotes(plan)])


def summary(plan: "Plan") -> str:
    """What was asked, what is recommended, and why; or why not."""
    parts = [situation_in_words(plan.situation), ""]
    if plan.resolvable:
        found = plan.recommended
        parts.append(f"Recommended: {described(found)}")
        parts += [_bullet(reason) for reason in plan.reasons]
        parts.append(f"  public seed: {plan.seed}")
    else:
        parts += textwrap.wrap(refusal(plan), _WIDTH)
        parts += [_bullet(reason) for reason in plan.reasons]
    return "\n".join(parts)


def described(line: Configuration) -> str:
    """One configuration in a line."""
    return f"{line.label}, {line.sketch_dim:,} coordinates, {line.noise.capitalize()} noise, {line.guarantee}"


def situation_in_words(situation: "Situation") -> str:
    """What was asked, printed back."""
    source = "an open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
    delta = f", δ={float(situation.delta):g}" if situation.delta else " (pure)"
    low, high = situation.distances.low, situation.distances.high
    reach = f"{low:,.4g}" if low == high else f"{low:,.4g} to {high:,.4g}"
    text = (
        f"Plan for {source}, ε={written(situation.epsilon)}{delta}; one unit of protection moves the data by at most "
        f"{situation.radius:g} in {situation.neighbors.norm} norm; distances of {reach}"
    )
    if situation.distances.assumption:
        text += f" ({situation.distances.assumption})"
    return "\n".join(textwrap.wrap(text + ".", _WIDTH))


def refusal(plan: "Plan") -> str:
    """Why not, with the number, and what would be needed."""
    situation, best, needs = plan.situation, plan.recommended, plan.needs
    low = situation.distances.low
    text = f"cannot be resolved: at distance {low:,.4g} "
    if best.relative_error > 1:
        text += (
            f"the best standard error of the squared distance is {best.std_error:,.4g}, {best.relative_error:,.3g} times the "
            f"squared distance {low**2:,.4g} ({described(best)})"
        )
    elif situation.target is not None and best.failure_bound is not None:
        text += (
            f"an error of more than {situation.target.distortion:.3g} of the squared distance can be bounded by a probability of "
            f"{best.failure_bound:.3g} and not of {situation.target.failure_probability:.3g} ({described(best)})"
        )
    if needs is None:
        return text
    offers = []
    if needs.epsilon is not None:
        offers.append(f"ε={needs.epsilon:g}")
    if needs.people is not None:
        offers.append(f"{needs.people:,} people in a group")
    elif needs.distance is not None:
        offers.append(f"a distance of {needs.distance:,.4g}")
    if not offers:
        return f"{text}; no ε up to 1000 is enough with at most {situation.max_sketch_dim:,} coordinates"
    return f"{text}; needed would be {' or '.join(offers)}"


def reasons_for(plan: "Plan") -> list[str]:
    """Why this one: the error, the law, the size, and what the others would do."""
    situation, found = plan.situation, plan.recommended
    reasons = [_error(plan)]
    if situation.neighbors.norm == "l2":
        reasons.append(
            "under l2 neighbors a projection only compresses: its squared operator norm is at least d/k on average, so fewer "
            "coordinates mean more noise"
        )
        if situation.distances.high <= situation.radius:
            reasons.append(
                "the distances lie within the radius: one unit of protection can move a vector as far as the groups "
                "are apart, as with a single embedding; sum up many people in one vector instead"
            )
    elif found.noise == "laplace" and situation.delta > 0:
        gaussian = (line.relative_error for line in plan.configurations if line.noise == "gaussian")
        other = min(gaussian, default=math.inf)
        judged = "more accurate" if other > found.relative_error else "as accurate, to a percent,"
        reasons.append(f"Laplace noise is {judged} here, and pure: the δ that was offered is not spent")
    elif found.noise == "gaussian":
        reasons.append(
            "Gaussian noise is more accurate here; with delta=0 the first Laplace line is the choice"
        )
    reasons += [*_size(plan), *_compared(plan)]
    if found.failure_bound is not None and situation.target is not None:
        reasons.append(
            f"an error above {situation.target.distortion:g} of the squared distance has a probability of at most "
            f"{found.failure_bound:.3g}, for every difference and over {situation.pairs:,} pair{'s' * (situation.pairs > 1)} "
            "(proved, from exact moments)"
        )
    return reasons


def _error(plan: "Plan") -> str:
    found, distances = plan.recommended, plan.situation.distances
    text = f"standard error of the squared distance: {_percent(found.relative_error)} at distance {distances.low:,.4g}"
    if distances.high != distances.low:
        text += f", {_percent(found.relative_error_high)} at {distances.high:,.4g}"
    if not plan.resolvable:
        return text
    level = "" if plan.situation.pairs == 1 else f" over {plan.situation.pairs:,} pairs"
    text += f"; about half of all pairs are told apart from 0 at 95%{level} from distance {plan.told_apart:,.4g} on"
    if plan.told_apart > distances.low:
        text += ", which is more than the smallest distance of interest: expect many pairs there to stay unresolved"
    return text


def _size(plan: "Plan") -> list[str]:
    found, limit = plan.recommended, plan.situation.max_sketch_dim
    if found.member is None or found.label.startswith("Identity") or plan.situation.neighbors.norm == "l2":
        return []
    # The recommended size is the smallest within a percent; the best one tells whether the limit was in the way.
    sizes = [line for line in plan.configurations if line.label == found.label and line.noise == found.noise]
    best = min(sizes, key=lambda line: line.relative_error).sketch_dim
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
        "Identity (noisy histogram)": "the noisy histogram",
        "GaussianJL (Kenthapadi": "Kenthapadi et al. at its own best size",
        "the paper's own SJLT": "the paper's own setting",
    }
    for label, name in names.items():
        lines = [line for line in plan.configurations if line.label.startswith(label)]
        if not lines or found.label.startswith(label):
            continue
        best = min(lines, key=lambda line: line.relative_error)
        if found.relative_error == 0:
            continue
        ratio = (best.relative_error / found.relative_error) ** 2
        if ratio >= 1:
            reasons.append(f"{name} has {ratio:,.3g} times the variance ({best.bytes:,} bytes)")
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


def shown_lines(plan: "Plan", count: int = _SHOWN) -> list[Configuration]:
    """The leading configurations, and the baselines that are always shown."""
    always = ("Identity", "GaussianJL", "the paper", "FastJL", "HadamardJL", "randomized")
    shown: list[Configuration] = []
    seen: set[str] = set()
    for number, line in enumerate(plan.configurations):
        baseline = line.label.startswith(always) and line.label not in seen
        if number < count or baseline or line is plan.recommended:
            shown.append(line)
            seen.add(line.label)
    return shown


def cells(line: Configuration, *, is_recommended: bool) -> tuple[str, ...]:
    """One line of the table as text."""
    return (
        "*" if is_recommended else "" if line.is_choice else "-",
        line.label + ("" if line.is_exact else " ~"),
        f"{line.sketch_dim:,}",
        line.noise,
        _percent(line.relative_error),
        _percent(line.relative_error_high),
        f"{line.smallest_distance:,.4g}",
        f"{line.bytes:,}",
        f"{line.additions:,}" if line.additions is not None else "per item",
        line.guarantee,
    )


def _percent(share: float) -> str:
    return f"{100 * share:,.3g}%" if share < 100 else f"{share:,.0f}x"


def _table(plan: "Plan") -> list[str]:
    rows = [cells(line, is_recommended=line is plan.recommended) for line in shown_lines(plan)]
    return aligned([HEADINGS, *rows])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: text to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {0, 1, 3, 9}
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _footnotes(plan: "Plan") -> list[str]:
    low = plan.situation.distances.low
    notes = (
        f"* recommended; - not a choice (too large, or for comparison); ~ for a median matrix, scanned exactly when it is made. "
        f"error: standard error of the squared distance, at {low:,.4g}. smallest: the distance at which that error is 100%. "
        f"{len(plan.configurations)} configurations in all."
    )
    if plan.situation.input_dim is None:
        notes += " Transforms with a fixed input_dim are left out for an open vocabulary."
    if not plan.situation.delta:
        notes += " Gaussian noise (Kenthapadi et al., noise on the input) needs a delta above 0."
    return textwrap.wrap(notes, _WIDTH)


def _bullet(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  · ", subsequent_indent="    ")
