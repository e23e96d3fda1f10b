"""A plan for distances of counts: every configuration ranked by its exact error, and one of them recommended, or a clear no."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from armslength.errors import NotResolvableError, plural
from armslength.estimates.item_intervals import typical_reach
from armslength.planner.needs import Needs, needs_of, offers
from armslength.planner.plan_page import WIDTH, AnyPlan, error_text, explained, number_text
from armslength.planner.predictions import Configuration, options, predict, smallest_resolved_distance
from armslength.planner.situation import ITEM_ERROR, SizeSituation
from armslength.plots import PlanCurves
from armslength.privacy.exact_numbers import decimal_text
from armslength.results import table_lines
from armslength.threads import cached_attribute

# Errors within a percent count as equal; then less data, less trust and less work decide.
_NEARLY_EQUAL = 1.01
_HARDLY_LARGER = 1.25
_MOST_LEADING = 6  # lines of the printed table, beside the best of each transform
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
class Plan(AnyPlan):
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
    def refusal(self) -> str | None:
        """Why the distances cannot be resolved, and what would be enough.

        None if the best standard error is below the squared distance, and the target is met if there is one.
        """
        if self.needs is None:
            return None
        best, target = self.recommended, self.situation.target
        low, name = number_text(self.situation.distances.low), self._in_words(best)
        if not best.has_upper_end:
            text = f"cannot be resolved: intervals of {name} would have no useful upper end, or, with more coordinates, too much noise"
        elif best.relative_error > 1 or target is None:
            text = (
                f"cannot be resolved: at distance {low} the best standard error of the squared distance is "
                f"{number_text(best.relative_error)} times the squared distance ({name})"
            )
        else:
            text = (
                f"cannot be promised: at distance {low} an error above {target.distortion:.3g} of the squared distance "
                f"has a proved probability of at most {best.failure_bound:.3g}, and {target.failure_probability:.3g} was asked for "
                f"({name}, standard error {error_text(best.relative_error)})"
            )
        needed = offers(self.needs.epsilon, self.needs.people)
        if self.needs.people is None and self.needs.distance is not None:
            needed.append(f"a distance of {number_text(self.needs.distance)}")
        if self.needs.sketch_dim is not None:
            needed.append(f"a sketch of up to {self.needs.sketch_dim:,} coordinates")
        return f"{text}; " + (
            f"it would take {' or '.join(needed)}" if needed else "no ε up to 1000 is enough"
        )

    @cached_attribute
    def told_apart(self) -> float:
        """The distance at which about half of all pairs are resolved at 95 percent (over all pairs), in data units."""
        return smallest_resolved_distance(self.protocol, self.situation.pairs)

    @cached_attribute
    def reasons(self) -> list[str]:
        """Why this configuration is recommended: its error, its law, its size, and how others compare."""
        situation, best = self.situation, self.recommended
        reasons = [self._error_reason()]
        if situation.explain is not None and self.usual is not None:
            price = (best.relative_error / self.usual.relative_error) ** 2
            where = f"at distance {number_text(situation.distances.low)}"
            reasons.append(
                f"{explained(situation.explain)}{self._seen_items(situation.explain)}; the price, {where}, is a variance of squared distances "
                f"{number_text(round(price, 2))} times that of {self._in_words(self.usual)}"
            )
        reasons += [*self._noise_reasons(), *self._size_reasons(), *self._histogram_reasons()]
        if self.resolvable and best.failure_bound is not None and situation.target is not None:
            reasons.append(
                f"an error above {situation.target.distortion:g} of the squared distance has a probability of at most "
                f"{best.failure_bound:.3g}, for every difference and over {plural(situation.pairs, 'pair')} "
                "(proved, from exact moments)"
            )
        return reasons

    @property
    def summary(self) -> str:
        """The page without its table: what was asked, what is recommended, and why."""
        recommended = [f"Recommended: {self._in_words(self.recommended)}"]
        bullet = textwrap.TextWrapper(WIDTH, initial_indent="  · ", subsequent_indent="    ")
        lines = [
            *textwrap.wrap(self._question(), WIDTH),
            "",
            *(textwrap.wrap(self.refusal, WIDTH) if self.refusal else recommended),
            *map(bullet.fill, self.reasons),
            *self._last_lines(),
        ]
        return "\n".join(lines)

    def to_arrow(self) -> pa.Table:
        """All configurations as an Arrow table, the most accurate first."""
        lines = [[getattr(line, name) for line in self.configurations] for name in _COLUMNS.names[:-1]]
        is_recommended = [line is self.recommended for line in self.configurations]
        return pa.table([*lines, is_recommended], schema=_COLUMNS)

    def __str__(self) -> str:
        table = table_lines(self._rows(), ("", "configuration", "noise"))
        return "\n".join([self.summary, "", *table, "", *textwrap.wrap(self._footnote(), WIDTH)])

    def _title(self) -> str:
        best = self.recommended
        verdict = "" if self.resolvable else ", cannot be resolved"
        error = f"{best.relative_error:.1%} error"
        return f"Plan: {best.label}, k={best.sketch_dim}, {best.noise}, {error}{verdict}"

    def _head(self, rows: int) -> tuple[pa.Table, int]:
        head, count = super()._head(rows)
        return head.select(_PRINTED), count

    @property
    def _histogram(self) -> Configuration | None:
        """The noisy histogram with its better noise, if another is recommended."""
        if self.recommended.is_histogram:
            return None
        return next((line for line in self.configurations if line.is_histogram), None)

    def _question(self) -> str:
        """What was asked."""
        situation, protocol, distances = self.situation, self.situation.protocol, self.situation.distances
        source = (
            "an open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
        )
        delta = f", δ={float(situation.delta):g}" if "gaussian" in situation.laws else " (pure)"
        low, high, assumption = distances.low, distances.high, distances.assumption
        reach = number_text(low) if low == high else f"{number_text(low)} to {number_text(high)}"
        share = protocol.total_share
        totals = f" (of which {decimal_text(situation.epsilon * share)} for totals)" if share else ""
        return (
            f"Plan for {source}, ε={decimal_text(situation.epsilon)}{delta}{totals}; "
            f"{protocol.unit or 'one unit of protection'} moves the data by at most {float(protocol.radius):g} "
            f"in l1 norm; distances of {reach}{f' ({assumption})' if assumption else ''}."
        )

    def _in_words(self, line: Configuration) -> str:
        """A configuration in one line."""
        delta = self.situation.delta_of(line.noise)
        guarantee = f"ε={decimal_text(self.situation.epsilon)}" + (f", δ={float(delta):g}" if delta else "")
        size = plural(line.sketch_dim, "coordinate")
        return f"{line.label}, {size}, {line.noise.capitalize()} noise, {guarantee}"

    def _error_reason(self) -> str:
        best, distances = self.recommended, self.situation.distances
        text = f"standard error of the squared distance: {error_text(best.relative_error)} at distance {number_text(distances.low)}"
        if distances.high != distances.low:
            text += f", {error_text(best.relative_error_high)} at {number_text(distances.high)}"
        if not self.resolvable:
            return text
        level = "" if self.situation.pairs == 1 else f" over {self.situation.pairs:,} pairs"
        text += f"; about half of all pairs are told apart from 0 at 95%{level} from distance {number_text(self.told_apart)} on"
        if self.told_apart > distances.low:
            text += ", which is more than the smallest distance of interest: expect many pairs there to stay unresolved"
        return text

    def _seen_items(self, count: int) -> str:
        """Which differences of listed items will be seen."""
        if not self.resolvable:
            return ""
        protocol, unit = self.protocol, float(self.protocol.resolution)
        low = self.situation.distances.low / unit
        reach = unit * typical_reach(protocol.transform, count, protocol.law, low, ITEM_ERROR)
        if math.isinf(reach):
            return ""
        counted = "units" if protocol.contribution is None else "events"
        return f": you will see most of those that differ by {number_text(float(f'{reach:.2g}'))} {counted}"

    def _noise_reasons(self) -> list[str]:
        """Why this noise."""
        situation, best = self.situation, self.recommended
        if best.noise == "gaussian":
            return ["Gaussian noise is more accurate here; with delta=0 the first Laplace line is the choice"]
        if "gaussian" in situation.laws:
            gaussian = (line.relative_error for line in self.configurations if line.noise == "gaussian")
            is_better = next(gaussian, math.inf) > best.relative_error
            verdict = "more accurate" if is_better else "as accurate, to a percent,"
            return [f"Laplace noise is {verdict} here, and pure: δ is not spent"]
        return []

    def _size_reasons(self) -> list[str]:
        """Whether the size limit was in the way of the most accurate size."""
        situation, best, limit = self.situation, self.recommended, self.situation.max_sketch_dim
        is_free = situation.explain is None and situation.target is None
        most_accurate = next(line for line in self.configurations if line.family == best.family)
        if best.is_histogram or not is_free or most_accurate.sketch_dim < limit:
            return []
        return [
            f"the limit of {limit:,} coordinates was reached: a larger max_sketch_dim may be more accurate"
        ]

    def _histogram_reasons(self) -> list[str]:
        """How the variance of the noisy histogram compares."""
        line, error = self._histogram, self.recommended.relative_error
        if line is None or error == 0:
            return []
        ratio, size = (line.relative_error / error) ** 2, f"{8 * line.sketch_dim:,} bytes"
        if ratio >= 1:
            return [f"the noisy histogram has {number_text(ratio)} times the variance ({size})"]
        too_large = "" if line.is_choice else ", beyond the size limit"
        return [f"the noisy histogram has {ratio:.2g} of the variance, at {size}{too_large}"]

    def _rows(self) -> list[dict[str, str]]:
        """The lines of the table: the best configurations, and the best one of each kind of transform."""
        rows: list[dict[str, str]] = []
        kinds = set()
        for line in self.configurations:
            is_recommended, kind = line is self.recommended, line.transform.name
            if is_recommended or kind not in kinds or len(rows) < _MOST_LEADING:
                row = {
                    "": "*" if is_recommended else "" if line.is_choice else "-",
                    "configuration": line.label,
                    "k": f"{line.sketch_dim:,}",
                    "noise": line.noise,
                    "error": error_text(line.relative_error),
                    "at high": error_text(line.relative_error_high),
                    "smallest": number_text(line.smallest_distance),
                    "bytes": f"{8 * line.sketch_dim:,}",
                }
                rows.append(row)
            kinds.add(kind)
        return rows

    def _footnote(self) -> str:
        low, high = self.situation.distances.low, self.situation.distances.high
        note = (
            f"* {'recommended' if self.resolvable else 'the best there is'}; - too large. "
            f"error: standard error of the squared distance at distance {number_text(low)}, at high: at {number_text(high)}. "
            f"smallest: the distance at which that error is 100%. {len(self.configurations)} configurations in all."
        )
        if self.situation.input_dim is None:
            note += " Transforms with a fixed input_dim are left out for an open vocabulary."
        if not self.situation.delta:
            note += " Gaussian noise needs a delta above 0."
        return note

    def _curves(self) -> PlanCurves:
        others = self._at_other_epsilons()
        by_size: dict[str, list[tuple[float, float]]] = {}
        by_epsilon: dict[str, list[tuple[float, float]]] = {}
        every_option = options(self.situation)
        for line in filter(None, (self.recommended, self._histogram)):
            name = f"{line.label}, {line.noise.capitalize()}"
            sizes = [option for option in every_option if option.family == line.family]
            by_size[name] = [
                (size.sketch_dim, size.relative_error) for size in predict(sizes, self.situation)
            ]
            by_epsilon[name] = [
                (float(other.epsilon), min(errors))
                for other in others
                if (errors := [size.relative_error for size in predict(sizes, other)])
            ]
        return PlanCurves(
            title=f"{self._figure_title()}, at distance {self.situation.distances.low:,.4g}",
            label="standard error of the squared distance,\nas a share of it",
            by_size=by_size,
            by_epsilon=by_epsilon,
            epsilon=float(self.situation.epsilon),
            sketch_dim=self.recommended.sketch_dim,
            value=self.recommended.relative_error,
        )


def size_plan(situation: SizeSituation, seed: str) -> Plan:
    """The plan."""
    every_option = options(situation)
    lines, usual = list(predict(every_option, situation)), None
    if not lines:
        raise NotResolvableError(
            "cannot be resolved: all noise would be out of range; take a larger epsilon or a coarser resolution",
            *("epsilon", "resolution"),
        )
    if situation.explain is not None:
        choices = [line for line in _best_of_each(lines, situation) if line.is_choice and line.has_upper_end]
        usual = min(choices, key=lambda line: line.relative_error, default=None)
        every_option = [option for option in every_option if situation.explains(option.transform)]
        lines = [line for line in lines if situation.explains(line.transform)]
        if not any(line.is_choice for line in lines):
            raise NotResolvableError(situation.cannot_explain)
    best = _best_of_each(lines, situation)
    recommended = recommended_of(best, lines)
    ranked = sorted([*best, recommended], key=lambda line: line.relative_error)
    needs = None if recommended.is_resolved else needs_of(situation, every_option)
    return Plan(situation, tuple(dict.fromkeys(ranked)), recommended, needs, seed, usual)


def recommended_of(best: Sequence[Configuration], lines: Sequence[Configuration]) -> Configuration:
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


def _best_of_each(lines: Sequence[Configuration], situation: SizeSituation) -> list[Configuration]:
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
