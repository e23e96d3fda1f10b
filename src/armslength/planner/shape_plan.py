"""A plan for shapes: which differences of two mixes will be seen, with which sketch and which share of ε for totals."""

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa

from armslength.checks import number
from armslength.errors import NotResolvableError, ParameterError, plural
from armslength.estimates.item_intervals import typical_reach
from armslength.laws import LARGEST_SCALE, DiscreteLaplace, Law
from armslength.planner.margin_plan import NO_NOISE, MarginPlan, margin_plan, points
from armslength.planner.needs import enough_epsilon, enough_people, offers
from armslength.planner.plan_page import WIDTH, AnyPlan, explained, number_text, share_table
from armslength.planner.predictions import Option, has_upper_end
from armslength.planner.situation import ITEM_ERROR, USUAL_LARGEST, Situation
from armslength.planner.typical_pair import Mix, TypicalPair
from armslength.plots import PlanCurves
from armslength.privacy.exact_numbers import decimal_text
from armslength.protocol.neighbors import check_shares, total_law
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import LARGEST_DEALT, SparseJL
from armslength.transforms.transform import Transform

SHARES = tuple(map(Fraction, ("0.02", "0.05", "0.1", "0.15", "0.2", "0.3", "0.5")))
_NEARLY_EQUAL = 1.1  # of what is seen: then narrow intervals decide
_HARDLY_WIDER = 1.05  # of intervals: then the smaller sketch is better
_LEVEL = 0.95
_ITEMS = 1000  # of an open vocabulary
_MOST_ITEMS = 100_000  # more of them hardly matter
_COLUMNS = pa.schema(
    {
        "label": pa.string(),
        "sketch_dim": pa.int64(),
        "noise": pa.string(),
        "total_share": pa.float64(),
        "seen": pa.float64(),
        "is_recommended": pa.bool_(),
    }
)


@dataclass(frozen=True)
class ShapeSituation(Situation):
    """What a plan by shape is made for."""

    people: int  # of each party
    contribution: int
    mix: Mix
    beyond_chance: bool
    shares: tuple[Fraction, ...]
    margins: MarginPlan | None

    @property
    def margin_share(self) -> Fraction:
        """The share of ε for margins."""
        return Fraction(0) if self.margins is None else self.margins.recommended.share

    def pair(
        self, transform: Transform | None, law: Law = NO_NOISE, totals: DiscreteLaplace | None = None
    ) -> TypicalPair:
        """A typical pair of parties, with this noise; None for the transform is without any."""
        tail = (1 - _LEVEL) / 2 / self.pairs  # of each end of an interval at 95 percent, over all pairs
        sizes = self.people, self.contribution, tail
        return TypicalPair(self.mix, *sizes, self.beyond_chance, transform, law, totals)

    def setting(self, transform: Transform, noise: str, share: Fraction) -> "ShapeSetting | None":
        """This way to release; None if intervals would have no upper end, or if noise would be out of range."""
        of_totals = self.epsilon * share
        if not has_upper_end(transform.variance_coefficients[0], self.pairs):
            return None
        option = Option.of(self.protocol, transform, noise)
        delta = self.delta * (1 - self.margin_share)  # margins may take their share of it
        law = option.law(self.epsilon * (1 - share - self.margin_share), delta)
        if law is None or not self.protocol.grid_radius / of_totals <= LARGEST_SCALE:
            return None
        pair = self.pair(transform, law, total_law(self.protocol.grid_radius, of_totals))
        return ShapeSetting(**vars(option), total_share=share, pair=pair, seen=pair.seen_from())


def shape_situation(
    shared: dict[str, Any], concentration: Any, margins: tuple[Any, ...], *, beyond_chance: Any
) -> ShapeSituation:
    """What a plan by shape is made for, checked.

    Args:
        shared: The fields of `Situation`.
        concentration: How often two records of a party are of the same item; None for Zipf's law.
        margins: The last arguments of `margin_plan`, about item groups.
        beyond_chance: Whether questions will be about populations.
    """
    input_dim, protocol = shared["input_dim"], shared["protocol"]
    contribution = protocol.contribution
    if contribution is None or protocol.resolution != 1:
        raise ParameterError('contribution must be given, and resolution 1, with by="shape"')
    if not isinstance(beyond_chance, bool):
        raise ParameterError("beyond_chance must be True or False, got something else")
    if beyond_chance and protocol.count != "people":
        raise ParameterError('count must be "people" beyond chance, got "events"')
    items = min(input_dim or _ITEMS, _MOST_ITEMS)
    if concentration is None:
        mix = Mix.zipf(items, contribution)
    else:
        share = number("concentration", concentration, above=1e-6, at_most=1.0)
        if input_dim is None:
            items = max(items, math.ceil(2 / share))
        if share * items < 1:
            raise ParameterError(
                f"concentration must be at least one over the number of items, got {share:g}"
            )
        mix = Mix.of_concentration(share, min(items, _MOST_ITEMS), contribution)
    shares = (protocol.total_share,) if protocol.total_share else SHARES
    of_margins = margin_plan(protocol, shared["people"], *margins)
    if of_margins is not None:
        check_shares(shares[0], of_margins.recommended.share)
        shares = tuple(share for share in shares if share + of_margins.recommended.share < 1)
    return ShapeSituation(
        **shared,
        contribution=contribution,
        mix=mix,
        beyond_chance=beyond_chance,
        shares=shares,
        margins=of_margins,
    )


@dataclass(frozen=True, kw_only=True)
class ShapeSetting(Option):
    """One way to release, and what it shows."""

    total_share: Fraction
    pair: TypicalPair
    seen: float | None  # the largest cosine of mixes that are told apart in nine of ten cases

    @property
    def gap(self) -> float:
        """1 − seen: the smaller, the better."""
        return math.inf if self.seen is None else 1 - self.seen


@dataclass(frozen=True)
class ShapeNeeds:
    """What would show mixes that are so much alike, each with everything else unchanged; None if nothing does."""

    cosine: float
    epsilon: float | None
    people: int | None


@dataclass(frozen=True, repr=False)
class ShapePlan(AnyPlan):
    """The result of `al.plan(..., by="shape")`; printed, it says what will be seen.

    Attributes:
        situation: What was asked.
        settings: All sizes, laws and shares for totals. Those whose intervals may have no upper end are left out.
        recommended: The smallest sketch among those that see nearly as much as the best.
        chance: What would be seen without any noise; the rest is hidden by chance.
        needs: What would show differences half as large.
        seed: The public seed of `protocol`.
    """

    situation: ShapeSituation
    settings: tuple[ShapeSetting, ...]
    recommended: ShapeSetting
    chance: float | None
    needs: ShapeNeeds
    seed: str

    @property
    def seen(self) -> float | None:
        """Two parties whose mixes have a smaller cosine are told apart in nine of ten cases; None if none are."""
        return self.recommended.seen

    @property
    def refusal(self) -> str | None:
        """Why nothing would be seen of mixes, or of margins, and what would be enough; None if something is."""
        margins = self.situation.margins
        if self.seen is not None:
            if margins is None or margins.recommended.seen is not None:
                return None
            return f"cannot be resolved: margins would show {margins.text}. Leave them out for a plan without them"
        return (
            f"cannot be resolved: with {plural(self.situation.people, 'person', 'people')} in each party, even mixes without a common item are told apart "
            f"in fewer than nine of ten cases; to see mixes that are {self.needs.cosine:g} alike takes {_needs_text(self.needs)}"
        )

    def to_arrow(self) -> pa.Table:
        """All settings, and what is seen with each; the recommended one first."""
        lines = [
            {name: getattr(setting, name) for name in _COLUMNS.names[:-1]}
            | {"total_share": float(setting.total_share), "is_recommended": setting is self.recommended}
            for setting in sorted(self.settings, key=lambda setting: setting is not self.recommended)
        ]
        return pa.Table.from_pylist(lines, schema=_COLUMNS)

    def _curves(self) -> PlanCurves:
        noise = self.recommended.noise
        name = f"{noise.capitalize()} noise"
        others = ((float(each.epsilon), _smallest_gaps(each, noise)) for each in self._at_other_epsilons())
        return PlanCurves(
            title=f"{self._figure_title()}, {plural(self.situation.people, 'person', 'people')} in each party",
            label="smallest difference seen in 9 of 10 cases\n(1 − cosine of two mixes)",
            by_size={name: sorted(_smallest_gaps(self.situation, noise).items())},
            by_epsilon={name: [(epsilon, min(gaps.values())) for epsilon, gaps in others if gaps]},
            epsilon=float(self.situation.epsilon),
            sketch_dim=self.recommended.sketch_dim,
            value=self.recommended.gap,
        )

    @property
    def assumption(self) -> str:
        """What is assumed about people, items and mixes, in words."""
        situation, mix = self.situation, self.situation.mix
        if situation.protocol.one_group:
            people = "every person counts in one party (--one-group)"
        else:
            people = "no person is in two parties. Where some are, their parties look more alike, and differences are harder to see"
        text = (
            f"This assumes that {people}. It assumes that {plural(situation.contribution, 'item')} of every person count; where people "
            "have fewer, plan for fewer people. Two records of a party, drawn at random, are of the same item in 1 of "
            f"{number_text(round(1 / mix.concentration, 1))} cases, as under Zipf's law with {mix.items:,} items "
            f"(--concentration {mix.concentration:.2g}). No data was read."
        )
        if situation.beyond_chance:
            text += " It is about populations: as if each party's people were an independent random sample of people like them."
        return f"{text} Alike: the cosine of two mixes, 1 for equal ones, 0 for those that share no item."

    def _chosen_fields(self) -> dict[str, Any]:
        margins = self.situation.margins
        return {
            "total_share": self.recommended.total_share,
            **({} if margins is None else margins.protocol_fields),
        }

    @property
    def summary(self) -> str:
        """The page without its table."""
        return "\n".join(self._page())

    def __str__(self) -> str:
        table = ["", *self._table()] if self.resolvable else []
        if self.situation.margins is not None and self.resolvable:
            table += ["", *self.situation.margins.table()]
        return "\n".join([*self._page(), *table, "", *textwrap.wrap(self.assumption, WIDTH)])

    def _title(self) -> str:
        if self.seen is None:
            return "Plan by shape: nothing would be seen"
        return f"Plan by shape: sees mixes less than {_likeness(self.seen)} alike, {_setting_text(self.recommended)}"

    def _page(self) -> list[str]:
        """What will be seen and what will be missed, what it would take to see more, and the recommended setting."""
        situation, best, seen = self.situation, self.recommended, self.seen
        lines = textwrap.wrap(
            f"With {plural(situation.people, 'person', 'people')} in each party, {plural(situation.contribution, 'item')} counted of each "
            f"person, ε = {decimal_text(situation.epsilon)}, and {plural(situation.pairs, 'pair')} of parties compared at 95 %"
            f"{' together' if situation.pairs > 1 else ''}:",
            WIDTH,
        )
        if seen is None:
            return [*lines, "", *textwrap.wrap(self.refusal or "", WIDTH)]
        factor = math.sqrt((1 - seen) / (1 + seen))
        parts = {
            "you will see": f"two parties whose mixes are less than {_likeness(seen)} alike, in 9 of 10 cases. For example mixes in which "
            f"every item is {100 * factor:.2g} % more common in one and less common in the other than on average",
            "it will show": f"such mixes as {_interval(best.pair.likeness(seen))} alike, and equal mixes as "
            f"{_interval(best.pair.likeness(1.0))} alike (95 % intervals)",
            "you will miss": self._missed(),
            f"to see {self.needs.cosine:g}": _needs_text(self.needs),
        }
        if situation.explain is not None:
            cost = self._cost("listed items", explain=None, max_sketch_dim=USUAL_LARGEST)
            parts["items"] = f"{explained(situation.explain)}{self._seen_items(situation.explain)}. {cost}"
        if situation.margins is not None:
            parts["item groups"] = f"you will see {situation.margins.text}"
            if self.resolvable:
                parts["item groups"] += f" {self._cost('margins', margins=None)}"
        for name, text in parts.items():
            lines += ["", *_entry(name, text)] if name == "you will see" else _entry(name, text)
        if not self.resolvable:
            return [*lines, "", "Nothing is recommended: change one of these, or leave margins out."]
        margins = "" if situation.margins is None else f", {situation.margins.setting_text}"
        recommended = f"Recommended: {_setting_text(best)}{margins}."
        return [*lines, "", *textwrap.wrap(recommended, WIDTH), *self._last_lines()]

    def _cost(self, feature: str, **changes: Any) -> str:
        """What would be seen without margins, or without listed items."""
        without = _recommended(_settings(replace(self.situation, **changes)))
        seen = _likeness(max(1 - without.gap, 0.0))
        if seen == _likeness(1 - self.recommended.gap):
            return f"The {feature} cost nothing that you would see"
        return f"Without {feature} you would see mixes less than {seen} alike"

    def _seen_items(self, count: int) -> str:
        """Which differences of listed items will be seen, of parties whose mixes are just told apart."""
        best, situation = self.recommended, self.situation
        total = best.pair.total
        squared = 2 * situation.mix.concentration * best.gap * total**2 + 2 * total * situation.beyond_chance
        reach = typical_reach(best.transform, count, best.pair.law, math.sqrt(squared), ITEM_ERROR) / total
        if not reach < 1:
            return ""
        return f": you will see most of those whose share of all that was counted differs by {points(reach)}"

    def _missed(self) -> str:
        """What is hidden, by chance and by noise."""
        if not self.situation.beyond_chance:
            return "smaller differences of the people counted: noise hides them. Chance is not taken away: --beyond-chance asks about populations"
        if self.chance is None:
            return "smaller differences: chance hides them. More people would help, a larger ε would not"
        is_all = (1 - self.chance) / self.recommended.gap > 0.95
        noise = "next to nothing more" if is_all else f"the rest, up to {_likeness(self.seen or 0.0)}"
        return (
            f"smaller differences. Chance alone hides those above {_likeness(self.chance)}: more people would help there, "
            f"a larger ε would not. Noise hides {noise}"
        )

    def _table(self) -> list[str]:
        """What is seen with other sizes and shares."""
        cells = []
        for setting in self.settings:
            if setting.noise == self.recommended.noise:
                sparsity = setting.transform.column_entries
                size = f"{setting.sketch_dim:,}{'' if sparsity == 1 else f', s={sparsity}'}"
                seen = "-" if setting.seen is None else _likeness(setting.seen)
                cells.append((size, setting.total_share, seen, setting is self.recommended))
        return share_table(
            "Mixes that are less alike than this are seen, by size of the sketch and share of ε for totals (-: none, or totals too coarse):",
            "numbers a party",
            cells,
        )


def shape_plan(situation: ShapeSituation, seed: str) -> ShapePlan:
    """The plan."""
    settings = tuple(_settings(situation))
    if not _transforms(situation):
        raise NotResolvableError(situation.cannot_explain)
    if not settings:
        raise NotResolvableError(
            "cannot be resolved: intervals would have no upper end, or all noise would be out of range; "
            "take a larger max_sketch_dim or epsilon"
        )
    chance = situation.pair(None).seen_from() if situation.beyond_chance else 1.0
    best = _recommended(settings)
    if chance is not None and best.seen is not None:
        chance = max(chance, best.seen)  # both are approximate
    # Differences half as large, or half of all there are.
    target = float(_likeness(1 - best.gap / 2)) if best.seen is not None else 0.5
    return ShapePlan(situation, settings, best, chance, _needs(situation, target), seed)


def _transforms(situation: ShapeSituation) -> list[Transform]:
    """All powers of two and one number for each item; those that can explain as many items as will be asked about."""
    d, limit, count = situation.input_dim, situation.max_sketch_dim, situation.explain
    largest = limit if d is None else min(d, limit)
    sizes = {2**power for power in range(largest.bit_length())} | {largest}
    is_balanced = d is not None and d <= LARGEST_DEALT
    kinds = [("balanced" if is_balanced else "block", 1)]
    if count is not None:
        needed = math.ceil(count / ITEM_ERROR) + 1
        sizes |= {size for size in (needed, 2 * needed) if size <= largest}
        kinds += [("block", 1), ("block", 3)]
    transforms: list[Transform] = [
        SparseJL(input_dim=d, sketch_dim=size // s * s, sparsity=s, seed="plan", construction=construction)
        for (construction, s), size in product(dict.fromkeys(kinds), sorted(sizes))
        if size >= s and (size != d or s > 1)
    ]
    if d is not None and d <= limit:
        transforms.append(Identity(input_dim=d))
    return [transform for transform in transforms if situation.explains(transform)]


def _settings(situation: ShapeSituation) -> Iterator[ShapeSetting]:
    """All sizes, with all laws and shares."""
    choices = product(_transforms(situation), situation.laws, situation.shares)
    return (setting for choice in choices if (setting := situation.setting(*choice)) is not None)


def _smallest_gaps(situation: ShapeSituation, noise: str) -> dict[int, float]:
    """The smallest difference seen with each size of a sketch, where any is."""
    gaps = dict[int, float]()
    for setting in _settings(situation):
        if setting.noise == noise and setting.seen is not None:
            size = setting.sketch_dim
            gaps[size] = min(setting.gap, gaps.get(size, math.inf))
    return gaps


def _recommended(settings: Iterable[ShapeSetting]) -> ShapeSetting:
    """Of those that see nearly as much as the best: pure DP, then narrow intervals, then the smallest sketch."""
    best, *others = sorted(settings, key=lambda setting: setting.gap)
    if best.seen is None:
        return best
    near = [setting for setting in (best, *others) if setting.gap <= _NEARLY_EQUAL * best.gap]
    near = [setting for setting in near if setting.noise == "laplace"] or near
    by_size: dict[int, ShapeSetting] = {}  # each with its best share
    for setting in near:
        by_size.setdefault(setting.sketch_dim, setting)
    widths = {size: 1 - setting.pair.likeness(best.seen)[0] for size, setting in by_size.items()}
    enough = _HARDLY_WIDER * min(widths.values())
    return by_size[min(size for size, width in widths.items() if width <= enough)]


def _needs(situation: ShapeSituation, cosine: float) -> ShapeNeeds:
    def is_seen(**changes: Any) -> bool:
        return any(1 - setting.gap >= cosine for setting in _settings(replace(situation, **changes)))

    epsilon, people = enough_epsilon(situation.epsilon, is_seen), enough_people(situation.people, is_seen)
    return ShapeNeeds(cosine, epsilon, people)


def _needs_text(needs: ShapeNeeds) -> str:
    text = " or ".join(offers(needs.epsilon, needs.people))
    if text and needs.epsilon is None:
        return f"{text}; no larger ε is enough"
    return text or "no ε up to 1000 and no number of people is enough"


def _entry(name: str, text: str) -> list[str]:
    wrap = textwrap.TextWrapper(WIDTH, initial_indent=f"  {name:<15} ", subsequent_indent=" " * 18)
    return wrap.wrap(text)


def _setting_text(setting: ShapeSetting) -> str:
    size = f"{plural(setting.sketch_dim, 'number')} a party ({8 * setting.sketch_dim:,} bytes)"
    return f"{setting.label}, {size}, {setting.noise.capitalize()} noise, {100 * float(setting.total_share):g} % of ε for totals"


def _interval(ends: tuple[float, float]) -> str:
    lower, upper = ends
    return f"{max(lower, 0.0):.2f} to {math.floor(1000 * upper) / 1000:.2f}"


def _likeness(cosine: float) -> str:
    """The cosine, rounded down, with two digits of what is missing to 1."""
    gap = max(1 - cosine, 1e-12)
    digits = max(2, 1 - math.floor(math.log10(gap)))
    return f"{math.floor(cosine * 10**digits + 1e-9) / 10**digits:.{digits}f}"
