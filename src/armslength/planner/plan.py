"""Plans: the best settings before any data is seen, or a clear no."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from armslength.checks import integer, number, one_of, short_repr
from armslength.errors import NotResolvableError, ParameterError
from armslength.estimates.questions import QUESTIONS
from armslength.planner import counts, plan_words
from armslength.planner.item_groups import planned_groups
from armslength.planner.least_people import least_people_of
from armslength.planner.needs import Needs
from armslength.planner.predictions import (
    CountSetting,
    CountSituation,
    options,
    predict,
    smallest_resolved_distance,
)
from armslength.planner.profiles import (
    SHARES,
    ProfileSetting,
    ProfileSituation,
    best_setting,
    hidden_by_chance,
    profile_needs,
)
from armslength.planner.situation import (
    checked_distances,
    checked_people,
    checked_sizes,
    checked_target,
)
from armslength.planner.typical_pair import ITEMS_PER_PERSON, typical_mix
from armslength.plots import PlanCurves, plan_figure, write_figure
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, exact_number, weakness
from armslength.protocol.contribution import VOTES, contribution_of
from armslength.protocol.neighbors import VOTE, check_shares
from armslength.protocol.protocol import Protocol
from armslength.protocol.record import checked_record, record_input_dim
from armslength.randomness.seeds import checked_seed
from armslength.results import Result
from armslength.threads import cached_attribute
from armslength.transforms.transform import checked_input_dim

_EVERY = {"relation", "unit", "items", "vocabulary", "total_share"}
_OF_PEOPLE = {"record", "record_pairs"}
_OF_COUNTS = {"contribution", "radius", "resolution", "on_grid", "changed_entries", "value_range"}
_CHOSEN = {"transform", "noise", "noise_site", "spread_sample"}
_EPSILONS = 25  # points of the plot, from a tenth to ten times the plan's own
_COLUMNS = {
    ProfileSetting: {
        "label": pa.string(),
        "sketch_dim": pa.int64(),
        "total_share": pa.float64(),
        "seen": pa.float64(),
    },
    CountSetting: {
        "label": pa.string(),
        "sketch_dim": pa.int64(),
        "noise": pa.string(),
        **dict.fromkeys(("relative_error", "relative_error_high"), pa.float64()),
        **dict.fromkeys(("smallest_distance", "failure_bound"), pa.float64()),
        "is_choice": pa.bool_(),
    },
}
_IN_DOCUMENT = (
    *("about", "resolvable", "refusal", "seen", "chance", "seen_of_smallest", "least_people"),
    *("item_groups_seen", "item_groups_chance", "seen_distance", "weakness", "assumption", "seed"),
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Plan(Result):
    """The result of `al.plan`; printed, it says what you will see, what you will miss, and what is recommended.

    What does not apply to the question is None.

    Attributes:
        situation: What was asked.
        settings: All ways to release that were compared.
        recommended: The recommended one; the best there is, if nothing would be seen.
        needs: What would show differences of profiles half as large; about counts, what would be enough if nothing is seen.
        seed: The public seed of `protocol`.
        seen: Two typical parties whose profiles are less similar are found to differ in nine of ten cases.
        chance: The same without any noise: the rest is hidden by chance.
        seen_of_smallest: The same of the smallest party and a typical one.
        least_people: Parties with fewer people should not take part: they would be inconclusive about nearly everything, even in a
            single pair; 0 if that cannot be predicted. `armslength show` says the same of the protocol.
        item_groups_seen: The difference in prevalence that two typical parties show in nine of ten cases; None above 40 points.
        item_groups_chance: The same without any noise.
        seen_distance: About counts: the distance from which on about half of all pairs are found to differ, in data units.
    """

    situation: ProfileSituation | CountSituation
    settings: tuple[ProfileSetting, ...] | tuple[CountSetting, ...]
    recommended: ProfileSetting | CountSetting
    needs: Needs | None
    seed: str
    seen: float | None = None
    chance: float | None = None
    seen_of_smallest: float | None = None
    least_people: int | None = None
    item_groups_seen: float | None = None
    item_groups_chance: float | None = None
    seen_distance: float | None = None

    @property
    def about(self) -> str:
        """The question: "populations", "people" or "counts"."""
        return self.situation.about

    @property
    def resolvable(self) -> bool:
        """Whether anything would be seen."""
        if isinstance(self.situation, CountSituation):
            return self.needs is None
        groups = self.situation.item_groups
        return self.seen is not None and (groups is None or self.item_groups_seen is not None)

    @cached_attribute
    def refusal(self) -> str | None:
        """Why nothing would be seen, and what would be enough; None if something is."""
        return None if self.resolvable else plan_words.refusal(self)

    @property
    def weakness(self) -> str:
        """Why the promise of what is recommended would be weak; empty if it is not."""
        return weakness(self.situation.epsilon, self.situation.delta_of(self.recommended.noise))

    @property
    def assumption(self) -> str:
        """What is assumed about people, items and profiles; empty about counts."""
        return plan_words.assumption(self)

    @cached_attribute
    def protocol(self) -> Protocol:
        """What is recommended, as a protocol. Raises `NotResolvableError` if nothing would be seen."""
        if self.refusal is not None:
            raise NotResolvableError(self.refusal)
        return protocol_of(self.situation, self.recommended, self.seed)

    @property
    def has_protocol(self) -> bool:
        """Whether `protocol` can be made: something is seen, and item groups are listed."""
        groups = self.situation.item_groups if isinstance(self.situation, ProfileSituation) else None
        return self.resolvable and (groups is None or groups.listed is not None)

    def power(self, similarity: float) -> float:
        """How often two typical parties whose profiles are so similar are found to differ."""
        if not isinstance(self.recommended, ProfileSetting):
            raise ParameterError("power() is for plans about populations or people, not about counts")
        return self.recommended.pair.power(number("similarity", similarity, above=-1.0, at_most=1.0))

    def to_arrow(self) -> pa.Table:
        """All settings; the recommended one first, or about counts the most accurate first."""
        fields = _COLUMNS[type(self.recommended)]
        rows = [
            {name: getattr(setting, name) for name in fields}
            | {"is_recommended": setting is self.recommended}
            for setting in self.settings
        ]
        for row in rows:
            if isinstance(row.get("total_share"), Fraction):
                row["total_share"] = float(row["total_share"])
        return pa.Table.from_pylist(rows, schema=pa.schema({**fields, "is_recommended": pa.bool_()}))

    def document(self) -> dict[str, Any]:
        """The plan as a JSON document: its attributes, the rows of `to_arrow`, and the protocol."""
        return {
            **{name: getattr(self, name) for name in _IN_DOCUMENT},
            "needs": None if self.needs is None else vars(self.needs),
            "protocol": self.protocol.document() if self.has_protocol else None,
            "settings": self.to_arrow().to_pylist(),
        }

    @property
    def summary(self) -> str:
        """The page without its tables."""
        return "\n".join(plan_words.page(self))

    def __str__(self) -> str:
        return "\n".join([*plan_words.page(self), *plan_words.tables(self)])

    def _title(self) -> str:
        return plan_words.title(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """What is predicted against sketch size and against ε, as a Matplotlib figure; or written to an .svg or .png file."""
        figure = plan_figure(self._curves())
        return figure if path is None else write_figure(figure, path)

    def _curves(self) -> PlanCurves:
        """The contents of the figure."""
        situation, best = self.situation, self.recommended
        value = best.relative_error if isinstance(best, CountSetting) else best.gap
        epsilons = (situation.epsilon * 10 ** (2 * i / (_EPSILONS - 1) - 1) for i in range(_EPSILONS))
        others = [replace(situation, epsilon=Fraction(f"{epsilon:.6g}")) for epsilon in epsilons]
        curves = [(float(each.epsilon), each.curve_of(best)) for each in others]  # type: ignore[arg-type]  # of one kind
        name = f"{best.noise.capitalize()} noise"
        return PlanCurves(
            **plan_words.figure_words(self),
            by_size={name: situation.curve_of(best)},  # type: ignore[arg-type]  # the same
            by_epsilon={name: [(epsilon, min(y for _, y in curve)) for epsilon, curve in curves if curve]},
            epsilon=float(situation.epsilon),
            sketch_dim=best.sketch_dim,
            value=value,
        )


def plan(  # noqa: PLR0913  # one argument for each thing that may be known
    input_dim: int | None = None,
    *,
    epsilon: Any,
    people: Any = None,
    parties: int | None = None,
    items_per_person: float | None = None,
    item_groups: Any = None,
    item_groups_per_person: float | None = None,
    item_groups_share: Any = 0,
    item_groups_limit: int | None = None,
    listed_items: int | None = None,
    max_sketch_dim: int | None = None,
    about: str | None = None,
    seed: str | None = None,
    distance: Any = None,
    delta: Any = 0,
    distortion: float | None = None,
    failure_probability: float | None = None,
    **settings: Any,
) -> Plan:
    """The best settings before any data is seen, and what they will show. It needs no data and spends no privacy.

    With `people`, the plan is about populations: every person has one vote, and profiles are compared. With `distance`, it is about
    counts or arrays, by the exact error of squared distances.
    Reference: docs/planning.md.

    Args:
        input_dim: How many different items, or coordinates; None for an open vocabulary, or for those of a record that lists all categories.
        epsilon: ε of each release.
        people: How many people a party has: a number, or a range (low, high).
        parties: How many parties are compared, all pairs together; None plans for one pair.
        items_per_person: How many different items a person typically has; a guess is enough. None takes 5, or those of the record.
        item_groups: Public groups of items: a mapping, a table or a file with item (or prefix) and group, or a list of columns of the record.
            Or how many there will be, with (other); then there is no protocol yet.
        item_groups_per_person: In how many item groups a person typically has items; None if that is not known.
        item_groups_share: The share of ε for item groups; 0 lets the plan choose it.
        item_groups_limit: How many item groups of one person count in full; None takes so many that nearly everybody has fewer.
        listed_items: How many items `al.explain` will be asked about; the sketch is made large enough to tell them apart.
        max_sketch_dim: The largest sketch to recommend; None for 4096, or as many numbers as `listed_items` take, up to 65,536.
        about: The question: "populations", or "people" for the people counted alone, or "counts". None: populations with `people`, else counts.
        seed: The public seed of the protocol; None makes a new one.
        distance: About counts: the distances of interest, a number or (low, high), in data units.
        delta: About counts: δ; 0 for pure DP alone.
        distortion: About counts: α of a Johnson-Lindenstrauss target |estimate − D| ≤ α·D for the squared distance D.
        failure_probability: About counts: β, how often that may fail, over all pairs.
        settings: What else the protocol has, as for `al.Protocol`: relation, unit, items, vocabulary, total_share, record, record_pairs; about
            counts contribution, or radius, resolution, on_grid, changed_entries and value_range.
    """
    for name in settings.keys() - _EVERY - _OF_PEOPLE - _OF_COUNTS:
        raise ParameterError(
            f"plan() chooses the transform and the noise; remove {name}="
            if name in _CHOSEN
            else f"plan() has no argument {short_repr(name)}; see help(al.plan)"
        )
    of_people = {
        "people": people,
        "items_per_person": items_per_person,
        "item_groups": item_groups,
        "item_groups_per_person": item_groups_per_person,
        "item_groups_share": exact_number("item_groups_share", item_groups_share) or None,
        "item_groups_limit": item_groups_limit,
        **{name: settings.get(name) or None for name in sorted(_OF_PEOPLE)},
    }
    of_counts = {
        "distance": distance,
        "delta": checked_delta(delta) or None,
        "distortion": distortion,
        "failure_probability": failure_probability,
        **{name: settings.get(name) for name in sorted(_OF_COUNTS)},
    }
    about = _question(about, of_people, of_counts)
    record = checked_record(settings.get("record"), settings.get("record_pairs", ()))
    input_dim = record_input_dim(record, input_dim=input_dim, open_vocabulary=False)
    dimension = None if input_dim is None else checked_input_dim(input_dim)
    if parties is not None:
        parties = integer("parties", parties, at_least=2, at_most=10**5)
    count, largest = checked_sizes(listed_items, max_sketch_dim, dimension)
    is_table = about != "counts" or settings.get("contribution") is not None
    if dimension is not None and is_table and record is None and settings.get("vocabulary") is None:
        settings["items"] = "int64"  # a table's items are the numbers of these coordinates
    shared: dict[str, Any] = {
        "about": about,
        "input_dim": dimension,
        "epsilon": checked_epsilon(epsilon),
        "delta": checked_delta(delta),
        "parties": parties,
        "max_sketch_dim": largest,
        "listed_items": count,
        "fields": settings,
    }
    total_share = exact_number("total_share", settings.get("total_share", 0))
    check_shares(total_share, Fraction(0))
    relation = one_of("relation", settings.get("relation", "add_remove"), ("add_remove", "replace"))
    if about == "counts":
        target = checked_target(distortion, failure_probability)
        neighbors = _neighbors_of_counts(settings, dimension, relation)
        distances = checked_distances(distance)
        made = _count_plan(
            CountSituation(
                **shared, **neighbors, total_share=total_share, distances=distances, target=target
            ),
            checked_seed(seed),
        )
    else:
        made = _profile_plan(
            _profile_situation(shared, of_people, record, total_share, relation), checked_seed(seed)
        )
    if made.has_protocol:
        _ = made.protocol  # settings that no protocol can have are refused now
    return made


def protocol_of(situation: ProfileSituation | CountSituation, setting: Any, seed: str) -> Protocol:
    """The protocol of a setting, calibrated exactly. A matrix without a formula is scanned now."""
    chosen: dict[str, Any] = {"noise": setting.noise, "delta": situation.delta_of(setting.noise)}
    if isinstance(situation, ProfileSituation):
        chosen |= {"contribution": VOTES, "spread_sample": situation.spread_sample}
        chosen["total_share"] = setting.total_share
        groups = situation.item_groups
        if groups is not None and groups.listed is None:
            raise ParameterError(
                "a protocol needs the list of item groups, not only their number", "item_groups"
            )
        if groups is not None:
            chosen |= {"margins": groups.listed, "margin_share": groups.share}
            chosen["margin_contribution"] = groups.contribution
    fields = {**situation.fields, **chosen}
    data = contribution_of(fields)
    return Protocol(setting.transform.with_seed(seed), data, epsilon=situation.epsilon, **fields)


def _question(about: Any, of_people: Mapping[str, Any], of_counts: Mapping[str, Any]) -> str:
    """What the plan is about, as asked for or by what else is given; refuses what only other plans have."""
    for_people, for_counts = (
        [name for name, value in each.items() if value is not None] for each in (of_people, of_counts)
    )
    if about is None:
        if for_people and for_counts:
            raise ParameterError(
                f"{for_people[0]} is for plans about populations, and {for_counts[0]} for plans about counts; leave one of them out",
                for_people[0],
                for_counts[0],
            )
        about = "counts" if for_counts else "populations"
    about = one_of("about", about, QUESTIONS)
    needed, refused = ("distance", for_people) if about == "counts" else ("people", for_counts)
    if refused:
        others = "populations or people" if about == "counts" else "counts"
        raise ParameterError(f"leave out {refused[0]}: it is for plans about {others}", refused[0])
    if needed not in (*for_people, *for_counts):
        raise ParameterError(
            "distance is missing: say how far apart the counts or arrays are"
            if about == "counts"
            else "people is missing: say how many people each party has; or, for counts and arrays, say their distance",
            *("people", "distance"),
        )
    return str(about)


def _neighbors_of_counts(settings: Mapping[str, Any], input_dim: int | None, relation: str) -> dict[str, Any]:
    """How far one unit of protection can move the data: the radius, or what the contribution makes it."""
    data = contribution_of({name: settings.get(name) for name in _OF_COUNTS})
    resolution, grid_radius = data.grid_of(relation, input_dim)
    return {"contribution": data.contribution, "resolution": resolution, "grid_radius": grid_radius}


def _profile_situation(
    shared: dict[str, Any], asked: Mapping[str, Any], record: Any, total_share: Fraction, relation: str
) -> ProfileSituation:
    """What a plan about populations or people is made for, checked."""
    smallest, typical, largest = checked_people(asked["people"])
    items = asked["items_per_person"]
    if items is not None:
        items = max(number("items_per_person", items, above=0.0, at_most=float(VOTE)), 1.0)
    if record is not None and items is not None:
        raise ParameterError(
            "leave out items_per_person: rows of a record have one item for each column", "items_per_person"
        )
    typical_items = items or (float(record.items_per_row) if record is not None else ITEMS_PER_PERSON)
    shares = (total_share,) if total_share else SHARES
    groups = planned_groups(
        asked["item_groups"],
        asked["item_groups_share"] or 0,
        asked["item_groups_limit"],
        asked["item_groups_per_person"],
        record=record,
        relation=relation,
        people=typical,
        epsilon=shared["epsilon"],
        total_share=shares[0],
        items_per_person=typical_items,
        beyond_chance=shared["about"] == "populations",
    )
    return ProfileSituation(
        **shared,
        grid_radius=VOTE if relation == "add_remove" else 2 * VOTE,
        people=typical,
        smallest=smallest if smallest < largest else None,
        largest=largest,
        items_per_person=typical_items,
        record=record,
        relation=relation,
        mix=typical_mix(record, shared["input_dim"], items),
        shares=tuple(share for share in shares if groups is None or share + groups.share < 1),
        item_groups=groups,
    )


def _profile_plan(situation: ProfileSituation, seed: str) -> Plan:
    """The plan about populations or people."""
    settings = list(situation.settings())
    if not situation.transforms():
        raise NotResolvableError(situation.cannot_explain)
    if not settings:
        raise NotResolvableError(
            "nothing would be seen: intervals would have no upper end, or all noise would be out of range; "
            "take a larger max_sketch_dim or epsilon",
            *("max_sketch_dim", "epsilon"),
        )
    best = best_setting(settings)
    # differences half as large, or half of all there are
    target = 0.5 if best.seen is None else float(plan_words.similarity(1 - best.gap / 2))
    groups, typical = situation.item_groups, (situation.people, situation.people)
    smallest_pair = situation.pair(best.votes, situation.smallest)
    usual_mix = typical_mix(situation.record, situation.input_dim)  # as far as a protocol knows
    law = None if groups is None else groups.law(situation.epsilon)
    return Plan(
        situation=situation,
        settings=tuple(sorted(settings, key=lambda setting: setting is not best)),
        recommended=best,
        needs=profile_needs(situation, target),
        seed=seed,
        seen=best.seen,
        chance=hidden_by_chance(situation, best),
        seen_of_smallest=best.seen if situation.smallest is None else smallest_pair.seen_from(),
        least_people=least_people_of(best.votes, usual_mix, law, 0 if groups is None else groups.count),
        item_groups_seen=situation.groups_seen(best.total_share),
        item_groups_chance=None if groups is None else groups.chance(typical),
    )


def _count_plan(situation: CountSituation, seed: str) -> Plan:
    """The plan about counts."""
    every_option = options(situation)
    lines = list(predict(every_option, situation))
    if not lines:
        raise NotResolvableError(
            "nothing would be seen: all noise would be out of range; take a larger epsilon or a coarser resolution",
            *("epsilon", "resolution"),
        )
    if situation.listed_items is not None:
        every_option = [option for option in every_option if situation.explains(option.transform)]
        lines = [line for line in lines if situation.explains(line.transform)]
        if not any(line.is_choice for line in lines):
            raise NotResolvableError(situation.cannot_explain)
    best = counts.best_of_each(lines, situation)
    recommended = counts.recommended_of(best, lines)
    ranked = sorted([*best, recommended], key=lambda line: line.relative_error)
    made = Plan(
        situation=situation,
        settings=tuple(dict.fromkeys(ranked)),
        recommended=recommended,
        needs=None if recommended.is_seen else counts.count_needs(situation, every_option),
        seed=seed,
    )
    if not made.resolvable:
        return made
    return replace(made, seen_distance=smallest_resolved_distance(made.protocol, situation.pairs))
