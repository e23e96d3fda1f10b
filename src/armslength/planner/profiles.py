"""What plans for votes predict: which differences of two profiles will be seen, with which sketch and which shares of ε."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from armslength.estimates.item_intervals import typical_reach
from armslength.laws import LARGEST_SCALE, DiscreteLaplace
from armslength.planner.item_groups import ItemGroups
from armslength.planner.needs import Needs, enough_epsilon, enough_people, rounded_up
from armslength.planner.predictions import Setting, has_upper_end
from armslength.planner.situation import ITEM_ERROR, Situation
from armslength.planner.typical_pair import Mix, TypicalPair, Votes
from armslength.protocol.neighbors import VOTE, scalar_laws
from armslength.protocol.record import Record
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import LARGEST_DEALT, SparseJL
from armslength.transforms.transform import Transform

SHARES = tuple(map(Fraction, ("0.1", "0.15", "0.2")))  # below, error rates were not measured
LEVEL = 0.95
_IN_SAMPLE = 50_000  # people of each party whose votes tell how far chance reaches
_NEARLY_EQUAL = 1.1  # of what is seen: then narrow intervals decide
_HARDLY_WIDER = 1.05  # of intervals: then the smaller sketch is better


@dataclass(frozen=True, kw_only=True)
class ProfileSituation(Situation):
    """What a plan about populations or people is made for."""

    people: int  # of a typical party
    smallest: int | None  # people of the smallest party, if parties differ
    largest: int
    items_per_person: float
    record: Record | None
    relation: str
    mix: Mix
    shares: tuple[Fraction, ...]  # of ε for the number of people, from which the plan chooses
    item_groups: ItemGroups | None

    @property
    def beyond_chance(self) -> bool:
        """Whether questions will be about the populations behind the people counted."""
        return self.about == "populations"

    @property
    def groups_share(self) -> Fraction:
        """The share of ε for item groups."""
        return Fraction(0) if self.item_groups is None else self.item_groups.share

    @property
    def spread_sample(self) -> Fraction:
        """The share of people of whom it is counted how far chance reaches."""
        return min(Fraction(1), rounded_up(_IN_SAMPLE / self.people, 2))

    @property
    def tail(self) -> float:
        """Of each end of an interval at 95 percent, over all pairs."""
        return (1 - LEVEL) / 2 / self.pairs

    def pair(self, votes: Votes | None, people: int | None = None) -> TypicalPair:
        """Two typical parties, or one of so many people and a typical one; without votes there is no noise."""
        sizes = self.people if people is None else people, self.people
        return TypicalPair(self.mix, sizes, self.tail, self.beyond_chance, votes)

    def groups_seen(self, total_share: Fraction) -> float | None:
        """The difference in prevalence that two typical parties show in nine of ten cases; None without item groups, or above 40 points."""
        if self.item_groups is None:
            return None
        return self.item_groups.seen((self.people, self.people), self.epsilon, total_share)

    def setting(self, transform: Transform, share: Fraction) -> "ProfileSetting | None":
        """This way to release; None if intervals would have no upper end, or if noise would be out of range."""
        if not has_upper_end(transform.variance_coefficients[0], self.pairs):
            return None
        option = Setting.of(self.grid_radius, transform, "laplace")
        law = option.law(self.epsilon * (1 - share - self.groups_share), Fraction(0))
        if not isinstance(law, DiscreteLaplace) or not 4 * VOTE / (self.epsilon * share) <= LARGEST_SCALE:
            return None
        scalars = scalar_laws(self.epsilon * share, self.relation)
        pair = self.pair(Votes(transform, law, *scalars, float(self.spread_sample)))
        return ProfileSetting(**vars(option), total_share=share, pair=pair, seen=pair.seen_from())

    def settings(self) -> Iterator["ProfileSetting"]:
        """All sizes, with all shares."""
        choices = product(self.transforms(), self.shares)
        return (setting for choice in choices if (setting := self.setting(*choice)) is not None)

    def transforms(self) -> list[Transform]:
        """All powers of two and one number for each item; those that can explain as many items as will be asked about."""
        d, limit, count = self.input_dim, self.max_sketch_dim, self.listed_items
        largest = limit if d is None else min(d, limit)
        sizes = {2**power for power in range(largest.bit_length())} | {largest}
        is_balanced = d is not None and d <= LARGEST_DEALT
        kinds = [("balanced" if is_balanced else "block", 1)]
        if count is not None:
            needed = math.ceil(count / ITEM_ERROR) + 1
            sizes |= {size for size in (needed, 2 * needed) if size <= largest}
            kinds += [("block", 1), ("block", 3)]
        transforms: list[Transform] = [
            SparseJL(
                input_dim=d, sketch_dim=size // s * s, sparsity=s, seed="plan", construction=construction
            )
            for (construction, s), size in product(dict.fromkeys(kinds), sorted(sizes))
            if size >= s and (size != d or s > 1)
        ]
        if d is not None and d <= limit:
            transforms.append(Identity(input_dim=d))
        return [transform for transform in transforms if self.explains(transform)]

    def curve_of(self, _: Setting) -> list[tuple[float, float]]:
        """The smallest difference seen with each size of a sketch, where any is."""
        gaps = dict[int, float]()
        for setting in self.settings():
            if setting.seen is not None:
                gaps[setting.sketch_dim] = min(setting.gap, gaps.get(setting.sketch_dim, math.inf))
        return sorted(gaps.items())


@dataclass(frozen=True, kw_only=True)
class ProfileSetting(Setting):
    """One way to release, and what it shows of two typical parties."""

    total_share: Fraction
    pair: TypicalPair
    seen: float | None  # the largest similarity of profiles that are found to differ in nine of ten cases

    @property
    def gap(self) -> float:
        """1 − seen: the smaller, the better."""
        return math.inf if self.seen is None else 1 - self.seen

    @property
    def votes(self) -> Votes:
        """How votes are released."""
        assert self.pair.votes is not None  # noqa: S101  # a setting has noise
        return self.pair.votes


def best_setting(settings: Iterable[ProfileSetting]) -> ProfileSetting:
    """Of each size that sees nearly as much as the best, the smallest share that does nearly as well; of these, narrow intervals, then the smallest sketch."""
    ordered = sorted(settings, key=lambda setting: setting.gap)
    best = ordered[0]
    if best.seen is None:
        return best
    by_size = dict[int, list[ProfileSetting]]()
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


def hidden_by_chance(situation: ProfileSituation, best: ProfileSetting) -> float | None:
    """What would be seen without any noise; None if chance hides everything."""
    if not situation.beyond_chance:
        return 1.0
    chance = situation.pair(None).seen_from()
    # both are approximate
    return chance if chance is None or best.seen is None else max(chance, best.seen)


def profile_needs(situation: ProfileSituation, similarity: float) -> Needs:
    """What would show profiles that are so similar."""

    def is_seen(**changes: Any) -> bool:
        return any(1 - each.gap >= similarity for each in replace(situation, **changes).settings())

    epsilon, people = enough_epsilon(situation.epsilon, is_seen), enough_people(situation.people, is_seen)
    return Needs(similarity=similarity, epsilon=epsilon, people=people)


def listed_items_seen(situation: ProfileSituation, best: ProfileSetting) -> float | None:
    """The difference of a listed item's share of all votes that is mostly seen, of parties whose profiles are just found to differ."""
    mix, people = situation.mix, situation.people
    squared = 2 * mix.concentration * best.gap * people**2 + 2 * people * mix.apart * situation.beyond_chance
    law, distance = best.votes.law, math.sqrt(squared) * VOTE
    reach = typical_reach(best.transform, situation.listed_items or 1, law, distance, ITEM_ERROR) / VOTE
    return reach / people if reach < people else None
