"""A plan for votes: which differences of two profiles will be seen, with which sketch and which shares of ε."""

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa

from armslength.checks import integer, number, short_repr
from armslength.errors import NotResolvableError, ParameterError, plural
from armslength.estimates.item_intervals import typical_reach
from armslength.laws import LARGEST_SCALE, DiscreteLaplace
from armslength.planner.least_people import least_people_of
from armslength.planner.margin_plan import MarginPlan, margin_plan, points
from armslength.planner.needs import enough_epsilon, enough_people, offers, rounded_up
from armslength.planner.plan_page import WIDTH, AnyPlan, explained, share_table
from armslength.planner.predictions import Option, has_upper_end
from armslength.planner.situation import ITEM_ERROR, LARGEST_COUNT, USUAL_LARGEST, Situation
from armslength.planner.typical_pair import ITEMS_PER_PERSON, Mix, TypicalPair, Votes, typical_mix
from armslength.plots import PlanCurves
from armslength.privacy.exact_numbers import decimal_text
from armslength.protocol.neighbors import VOTE, check_shares, scalar_laws
from armslength.results import table_lines
from armslength.threads import cached_attribute
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import LARGEST_DEALT, SparseJL
from armslength.transforms.transform import Transform

SHARES = tuple(map(Fraction, ("0.1", "0.15", "0.2")))  # below, error rates were not measured
_IN_SAMPLE = 50_000  # people of each party whose votes tell how far chance reaches
_NEARLY_EQUAL = 1.1  # of what is seen: then narrow intervals decide
_HARDLY_WIDER = 1.05  # of intervals: then the smaller sketch is better
_NEAR = 8  # times the recommended size, or a share of it: such sizes are printed
_LEVEL = 0.95
_COLUMNS = pa.schema(
    {
        "label": pa.string(),
        "sketch_dim": pa.int64(),
        "total_share": pa.float64(),
        "seen": pa.float64(),
        "is_recommended": pa.bool_(),
    }
)


@dataclass(frozen=True)
class ShapeSituation(Situation):
    """What a plan for votes is made for."""

    people: int  # of a typical party
    smallest: int | None  # people of the smallest party, if parties differ
    largest: int
    items_per_person: float
    mix: Mix
    beyond_chance: bool
    shares: tuple[Fraction, ...]  # of ε for the number of people, from which the plan chooses
    margins: MarginPlan | None

    @property
    def margin_share(self) -> Fraction:
        """The share of ε for margins."""
        return Fraction(0) if self.margins is None else self.margins.share

    @property
    def spread_sample(self) -> Fraction:
        """The share of people of whom it is counted how far chance reaches."""
        return min(Fraction(1), rounded_up(_IN_SAMPLE / self.people, 2))

    @property
    def tail(self) -> float:
        """Of each end of an interval at 95 percent, over all pairs."""
        return (1 - _LEVEL) / 2 / self.pairs

    def pair(self, votes: Votes | None, people: int | None = None) -> TypicalPair:
        """Two typical parties, or one of so many people and a typical one; without votes there is no noise."""
        sizes = self.people if people is None else people, self.people
        return TypicalPair(self.mix, sizes, self.tail, self.beyond_chance, votes)

    def margins_seen(self, total_share: Fraction) -> float | None:
        """The difference in prevalence that two typical parties show in nine of ten cases; None without margins, or above 40 points."""
        if self.margins is None:
            return None
        return self.margins.seen((self.people, self.people), self.epsilon, total_share)

    def setting(self, transform: Transform, share: Fraction) -> "ShapeSetting | None":
        """This way to release; None if intervals would have no upper end, or if noise would be out of range."""
        if not has_upper_end(transform.variance_coefficients[0], self.pairs):
            return None
        option = Option.of(self.protocol, transform, "laplace")
        law = option.law(self.epsilon * (1 - share - self.margin_share), Fraction(0))
        if not isinstance(law, DiscreteLaplace) or not 4 * VOTE / (self.epsilon * share) <= LARGEST_SCALE:
            return None
        scalars = scalar_laws(self.epsilon * share, self.protocol.relation)
        pair = self.pair(Votes(transform, law, *scalars, float(self.spread_sample)))
        return ShapeSetting(**vars(option), total_share=share, pair=pair, seen=pair.seen_from())


def shape_situation(
    shared: dict[str, Any],
    people: Any,
    items_per_person: Any,
    concentration: Any,
    margins: dict[str, Any],
    *,
    beyond_chance: Any,
) -> ShapeSituation:
    """What a plan for votes is made for, checked.

    Args:
        shared: The fields of `Situation`, without people.
        people: Of each party: a number, or a range (low, high).
        items_per_person: How many different items a person typically has.
        concentration: How often two votes of a party are for the same item; None for the usual.
        margins: The last arguments of `margin_plan`, about item groups.
        beyond_chance: Whether questions will be about populations.
    """
    input_dim, protocol = shared["input_dim"], shared["protocol"]
    if not isinstance(beyond_chance, bool):
        raise ParameterError("beyond_chance must be True or False", "beyond_chance")
    smallest, typical, largest = _checked_people(people)
    if concentration is not None:
        concentration = number("concentration", concentration, above=1e-6, at_most=1.0)
    if items_per_person is not None:
        items_per_person = max(
            number("items_per_person", items_per_person, above=0.0, at_most=float(VOTE)), 1.0
        )
    typical_items = items_per_person or ITEMS_PER_PERSON
    if protocol.record is not None:
        if items_per_person is not None:
            raise ParameterError(
                "leave out items_per_person: rows of a record have one item for each column",
                "items_per_person",
            )
        typical_items = float(protocol.record.items_per_row)
    mix = typical_mix(protocol, input_dim, items_per_person, concentration)
    shares = (protocol.total_share,) if protocol.total_share else SHARES
    of_margins = margin_plan(protocol, typical, shares[0], typical_items, **margins)
    if of_margins is not None:
        check_shares(shares[0], of_margins.share)
        shares = tuple(share for share in shares if share + of_margins.share < 1)
    return ShapeSituation(
        **shared,
        people=typical,
        smallest=smallest if smallest < largest else None,
        largest=largest,
        items_per_person=typical_items,
        mix=mix,
        beyond_chance=beyond_chance,
        shares=shares,
        margins=of_margins,
    )


def _checked_people(people: Any) -> tuple[int, int, int]:
    """(smallest, typical, largest) number of people; of a range, the typical one is its geometric middle."""
    ends = people if isinstance(people, (tuple, list)) else (people, people)
    if len(ends) != 2:
        raise ParameterError(
            f"people must be a number or a range (low, high), got {short_repr(people)}", "people"
        )
    low, high = (integer("people", end, at_least=1, at_most=LARGEST_COUNT) for end in ends)
    if low > high:
        raise ParameterError(
            f"people must be a range (low, high) with low <= high, got {short_repr(people)}", "people"
        )
    return low, round(math.sqrt(low * high)), high


@dataclass(frozen=True, kw_only=True)
class ShapeSetting(Option):
    """One way to release, and what it shows of two typical parties."""

    total_share: Fraction
    pair: TypicalPair
    seen: float | None  # the largest cosine of profiles that are told apart in nine of ten cases

    @property
    def gap(self) -> float:
        """1 − seen: the smaller, the better."""
        return math.inf if self.seen is None else 1 - self.seen


@dataclass(frozen=True)
class ShapeNeeds:
    """What would show profiles that are so similar, each with everything else unchanged; None if nothing does."""

    cosine: float
    epsilon: float | None
    people: int | None


@dataclass(frozen=True, repr=False)
class ShapePlan(AnyPlan):
    """A plan for votes, by `al.plan`; printed, it says what will be seen.

    Attributes:
        situation: What was asked.
        settings: All sizes and shares for the number of people. Those whose intervals may have no upper end are left out.
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
        """Two typical parties whose profiles have a smaller cosine are told apart in nine of ten cases; None if none are."""
        return self.recommended.seen

    def power(self, similarity: float) -> float:
        """How often two typical parties whose profiles are so similar are told apart."""
        return self.recommended.pair.power(number("similarity", similarity, above=-1.0, at_most=1.0))

    @cached_attribute
    def seen_of_smallest(self) -> float | None:
        """The same of the smallest party and a typical one."""
        smallest = self.situation.smallest
        if smallest is None:
            return self.seen
        return self.situation.pair(self.recommended.pair.votes, smallest).seen_from()

    @cached_attribute
    def least_people(self) -> int:
        """With fewer people, a party should not take part: it would be inconclusive about nearly everything; 0 if that is not known."""
        margins = self.situation.margins
        limits = self.situation.epsilon, self.recommended.total_share
        return least_people_of(
            self.recommended.pair,
            None if margins is None else lambda sizes: margins.seen(sizes, *limits),
        )

    @cached_attribute
    def margins_seen(self) -> float | None:
        """The difference in prevalence that is seen in nine of ten cases, of two typical parties; None without margins, or above 40 points."""
        return self.situation.margins_seen(self.recommended.total_share)

    @cached_attribute
    def refusal(self) -> str | None:
        """Why nothing would be seen of profiles, or of margins, and what would be enough; None if something is."""
        situation, margins = self.situation, self.situation.margins
        if self.seen is None:
            return (
                f"cannot be resolved: with {plural(situation.people, 'person', 'people')} in each party, even parties without a common item are told "
                f"apart in fewer than nine of ten cases; to see profiles that are {self.needs.cosine:g} similar takes {_needs_text(self.needs)}"
            )
        if margins is None or self.margins_seen is not None:
            return None
        needed = margins.needs(situation.people, situation.epsilon, self.recommended.total_share)
        return (
            "cannot be resolved: margins would show no differences of item groups below 40 points: noise hides them. "
            f"To see 10 points takes {needed}. Leave them out for a plan without them"
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
        others = ((float(each.epsilon), _smallest_gaps(each)) for each in self._at_other_epsilons())
        return PlanCurves(
            title=f"{self._figure_title()}, {plural(self.situation.people, 'person', 'people')} in each party",
            label="smallest difference seen in 9 of 10 cases\n(1 − similarity of two profiles)",
            by_size={"Laplace noise": sorted(_smallest_gaps(self.situation).items())},
            by_epsilon={"Laplace noise": [(epsilon, min(gaps.values())) for epsilon, gaps in others if gaps]},
            epsilon=float(self.situation.epsilon),
            sketch_dim=self.recommended.sketch_dim,
            value=self.recommended.gap,
        )

    @property
    def assumption(self) -> str:
        """What is assumed about people, items and profiles, in words."""
        situation, mix = self.situation, self.situation.mix
        text = (
            f"No data was read. This assumes that people typically have {plural(round(situation.items_per_person), 'different item')}, "
            f"and that two votes of a party, drawn at random, are for the same item in 1 of {1 / mix.concentration:,.0f} cases. "
            "Similarity is the cosine of two profiles: 1 for equal ones, 0 for those that share no item."
        )
        if situation.beyond_chance:
            text += " It is about populations: as if each party's people were an independent random sample of people like them."
        return text

    def _chosen_fields(self) -> dict[str, Any]:
        margins = self.situation.margins
        return {
            "total_share": self.recommended.total_share,
            "spread_sample": self.situation.spread_sample,
            **({} if margins is None else margins.protocol_fields),
        }

    @property
    def summary(self) -> str:
        """The page without its table."""
        return "\n".join(self._page())

    def __str__(self) -> str:
        tables = ["", *self._table(), *self._margin_table()] if self.resolvable else []
        return "\n".join([*self._page(), *tables, "", *textwrap.wrap(self.assumption, WIDTH)])

    def _title(self) -> str:
        if self.seen is None:
            return "Plan: nothing would be seen"
        return f"Plan: sees profiles that {_unlike(self.seen)}, with {self._setting_text()}"

    def _page(self) -> list[str]:
        """What will be seen and what will be missed, what it would take to see more, and the recommended setting."""
        lines = textwrap.wrap(self._question(), WIDTH)
        if self.seen is None:
            return [*lines, "", *textwrap.wrap(self.refusal or "", WIDTH)]
        entries = [
            ("you will see", f"parties whose profiles {_unlike(self.seen)}, in 9 of 10 cases"),
            *self._margin_entries(),
            ("you will miss", self._missed()),
            (f"to see {self.needs.cosine:g}", _needs_text(self.needs)),
            ("smallest party", self._smallest()),
        ]
        if self.situation.explain is not None:
            cost = self._cost("listed items", explain=None, max_sketch_dim=USUAL_LARGEST)
            text = f"{explained(self.situation.explain)}{self._seen_items(self.situation.explain)}. {cost[0].upper()}{cost[1:]}"
            entries.append(("items", text))
        lines += ["", *(line for name, text in entries if text for line in _entry(name, text))]
        if self.refusal:
            return [*lines, "", *textwrap.wrap(self.refusal, WIDTH)]
        recommended = f"Recommended: {self._setting_text()}; {self._shares_text()}."
        return [*lines, "", *textwrap.wrap(recommended, WIDTH), *self._last_lines()]

    def _question(self) -> str:
        situation = self.situation
        parties = (1 + math.isqrt(1 + 8 * situation.pairs)) // 2
        is_all = parties * (parties - 1) == 2 * situation.pairs
        at = f"at each of {parties:,} parties" if is_all else "at each party"
        people = f"about {plural(situation.people, 'person', 'people')} {at}"
        if situation.smallest is not None:
            people = f"{situation.smallest:,} to {situation.largest:,} people {at}, typically {situation.people:,},"
        together = f" for all {situation.pairs:,} pairs" if situation.pairs > 1 else ""
        return f"With {people} and ε = {decimal_text(situation.epsilon)}, at 95 % confidence{together}:"

    def _margin_entries(self) -> list[tuple[str, str]]:
        """What is seen of item groups."""
        margins, seen, people = self.situation.margins, self.margins_seen, self.situation.people
        if margins is None or seen is None:
            return []
        chance = margins.chance((people, people))
        hidden = "" if chance is None else f"; chance alone would hide {points(chance)}"
        text = f"item groups that {points(seen)} more or fewer of the people have (where about a fifth have one{hidden})"
        return [("", text), ("", self._cost("item groups", margins=None))]

    def _cost(self, feature: str, **changes: Any) -> str:
        """What would be seen without item groups, or without listed items."""
        without = _recommended(_settings(replace(self.situation, **changes)))
        seen = _unlike(max(1 - without.gap, 0.0))
        if seen == _unlike(max(1 - self.recommended.gap, 0.0)):
            return f"the {feature} cost nothing that you would see"
        return f"without {feature} you would see profiles that {seen}"

    def _seen_items(self, count: int) -> str:
        """Which differences of listed items will be seen, of parties whose profiles are just told apart."""
        best, situation = self.recommended, self.situation
        mix, people = situation.mix, situation.people
        squared = (
            2 * mix.concentration * best.gap * people**2 + 2 * people * mix.apart * situation.beyond_chance
        )
        votes = best.pair.votes
        if votes is None:
            return ""
        reach = typical_reach(votes.transform, count, votes.law, math.sqrt(squared) * VOTE, ITEM_ERROR) / VOTE
        if not reach < people:
            return ""
        return f": you will see most of those whose share of all votes differs by {points(reach / people)}"

    def _missed(self) -> str:
        """What is hidden, by chance and by noise."""
        if not self.situation.beyond_chance:
            return "smaller differences between the people counted: noise hides them"
        if self.chance is None:
            return "smaller differences: chance hides them. More people would help, a larger ε would not"
        text = f"smaller differences. Chance alone hides anything above {_likeness(self.chance)}: more people would help, a larger ε would not"
        if (1 - self.chance) / self.recommended.gap > 0.95:
            text += ". Noise hides next to nothing more"
        return text

    def _smallest(self) -> str:
        """What the smallest party will be able to see, and below which size a party should not take part."""
        smallest, seen, least = self.situation.smallest, self.seen_of_smallest, self.least_people
        parts = []
        if smallest is not None and smallest >= least:
            sees = "nothing in 9 of 10 cases"
            if seen is not None:
                sees = f"typical parties whose profiles {_unlike(seen)}"
            parts.append(f"with {plural(smallest, 'person', 'people')} it will see {sees}")
        if least > 1:
            parties = f"parties with fewer than about {least:,} people"
            should = "should not take part: they " if smallest is not None and smallest < least else ""
            parts.append(f"{parties} {should}will be inconclusive about nearly everything")
        return "; ".join(parts)

    def _setting_text(self) -> str:
        size = self.recommended.sketch_dim
        kilobytes = f"{size / 128:,.3g} KB" if size >= 128 else f"{8 * size} bytes"
        return f"{plural(size, 'number')} per party ({kilobytes}), {self.recommended.label}, Laplace noise"

    def _shares_text(self) -> str:
        """How ε is split."""
        margins, total = self.situation.margin_share, self.recommended.total_share
        shares = {"profile": 1 - margins - total, "item groups": margins, "number of people": total}
        text = ", ".join(f"{100 * float(share):g} % {name}" for name, share in shares.items() if share)
        if self.situation.margins is not None:
            count = plural(self.situation.margins.contribution, "item group")
            text += f". Up to {count} of a person count in full; people with more weigh less in each, and intervals allow for that"
        return f"ε: {text}"

    def _table(self) -> list[str]:
        """What is seen with other sizes and shares."""
        cells, best = [], self.recommended.sketch_dim
        for setting in self.settings:
            if best / _NEAR <= setting.sketch_dim <= best * _NEAR:
                sparsity = setting.transform.column_entries
                size = f"{setting.sketch_dim:,}{'' if sparsity == 1 else f', s={sparsity}'}"
                seen = "-" if setting.seen is None else _likeness(setting.seen)
                cells.append((size, setting.total_share, seen, setting is self.recommended))
        return share_table(
            "Profiles that are less similar than this are seen, by size of the sketch and share of ε for the number of people (-: none):",
            "numbers per party",
            cells,
        )

    def _margin_table(self) -> list[str]:
        """What is seen with other shares of ε for item groups."""
        margins, best = self.situation.margins, self.recommended
        if margins is None or len(margins.shares) == 1:
            return []
        lines = []
        for share in margins.shares:
            other = replace(self.situation, margins=replace(margins, share=share))
            setting = other.setting(best.transform, best.total_share)
            difference = other.margins_seen(best.total_share)
            profile = None if setting is None else setting.seen
            cells = [f"{'*' * (share == margins.share)}{100 * float(share):g} %"]
            cells += [
                "-" if difference is None else points(difference),
                "-" if profile is None else _likeness(profile),
            ]
            lines.append(dict(zip(("share of ε", "item groups", "profiles"), cells, strict=True)))
        title = "The differences of item groups, and the profiles, that are seen with this sketch, by share of ε for item groups (-: none):"
        return ["", *textwrap.wrap(title, WIDTH), *table_lines(lines, ())]


def shape_plan(situation: ShapeSituation, seed: str) -> ShapePlan:
    """The plan."""
    settings = tuple(_settings(situation))
    if not _transforms(situation):
        raise NotResolvableError(situation.cannot_explain)
    if not settings:
        raise NotResolvableError(
            "cannot be resolved: intervals would have no upper end, or all noise would be out of range; "
            "take a larger max_sketch_dim or epsilon",
            *("max_sketch_dim", "epsilon"),
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
    """All sizes, with all shares."""
    choices = product(_transforms(situation), situation.shares)
    return (setting for choice in choices if (setting := situation.setting(*choice)) is not None)


def _smallest_gaps(situation: ShapeSituation) -> dict[int, float]:
    """The smallest difference seen with each size of a sketch, where any is."""
    gaps = dict[int, float]()
    for setting in _settings(situation):
        if setting.seen is not None:
            gaps[setting.sketch_dim] = min(setting.gap, gaps.get(setting.sketch_dim, math.inf))
    return gaps


def _recommended(settings: Iterable[ShapeSetting]) -> ShapeSetting:
    """Of each size that sees nearly as much as the best, the smallest share that does nearly as well; of these, narrow intervals, then the smallest sketch."""
    ordered = sorted(settings, key=lambda setting: setting.gap)
    best = ordered[0]
    if best.seen is None:
        return best
    by_size = dict[int, list[ShapeSetting]]()
    for setting in ordered:
        by_size.setdefault(setting.sketch_dim, []).append(setting)
    near = {
        size: min(
            (each for each in same if each.gap <= _NEARLY_EQUAL * same[0].gap),
            key=lambda each: each.total_share,
        )
        for size, same in by_size.items()
        if same[0].gap <= _NEARLY_EQUAL * best.gap
    }
    widths = {size: 1 - setting.pair.likeness(best.seen)[0] for size, setting in near.items()}
    enough = _HARDLY_WIDER * min(widths.values())
    return near[min(size for size, width in widths.items() if width <= enough)]


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


def _unlike(cosine: float) -> str:
    """Which profiles are less alike than this."""
    text = _likeness(cosine)
    return "have next to nothing in common" if text == "0.00" else f"are less than {text} similar"


def _likeness(cosine: float) -> str:
    """The cosine, rounded down, with two digits of what is missing to 1."""
    gap = max(1 - cosine, 1e-12)
    digits = max(2, 1 - math.floor(math.log10(gap)))
    return f"{math.floor(cosine * 10**digits + 1e-9) / 10**digits:.{digits}f}"
