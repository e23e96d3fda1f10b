"""Plans in words."""

import math
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from armslength.errors import plural
from armslength.planner.counts import listed_counts_seen
from armslength.planner.needs import Needs, number_text
from armslength.planner.predictions import CountSetting, CountSituation
from armslength.planner.profiles import ProfileSetting, ProfileSituation, listed_items_seen
from armslength.privacy.exact_numbers import decimal_text
from armslength.results import table_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armslength.planner.plan import Plan

_WIDTH = 100
_NEAR = 8  # times the recommended size, or a share of it: such sizes are printed
_MOST_LEADING = 6  # lines of the table about counts, beside the best of each transform
_QUESTIONS = {
    "populations": "Do the populations differ, beyond chance?",
    "people": "Do the people who were counted differ?",
    "counts": "How far apart are the counts?",
}


def page(plan: "Plan") -> list[str]:
    """The question, what will be seen and missed, and what is recommended; or why nothing would be seen."""
    lines = textwrap.wrap(f"{_QUESTIONS[plan.about]} {_situation(plan)}", _WIDTH)
    entries = _count_entries(plan) if plan.about == "counts" else _profile_entries(plan)
    lines += ["", *(line for entry in entries for line in _entry(*entry))]
    lines += [""] if entries else []
    if plan.refusal is not None:
        return [*lines, *textwrap.wrap(f"{plan.refusal[0].upper()}{plan.refusal[1:]}.", _WIDTH)]
    lines += textwrap.wrap(f"Recommended: {_recommended(plan)}.", _WIDTH)
    lines += textwrap.wrap(f"WARNING: {plan.weakness}", _WIDTH) if plan.weakness else []
    return [*lines, f"  public seed: {plan.seed}"]


def tables(plan: "Plan") -> list[str]:
    """What other settings would show, and what the plan assumes."""
    if plan.about == "counts":
        return _count_table(plan)
    shown = ["", *_size_table(plan), *_groups_table(plan)] if plan.resolvable else []
    return [*shown, "", *textwrap.wrap(plan.assumption, _WIDTH)]


def title(plan: "Plan") -> str:
    """The plan in a line."""
    if not plan.resolvable:
        return f"Plan about {plan.about}: nothing would be seen"
    if plan.seen is not None:
        return f"Plan about {plan.about}: sees profiles that {_less_similar(plan.seen)}, with {_size(plan.recommended)}"
    return f"Plan about counts: sees half of all distances of {number_text(plan.seen_distance or 0)}, with {_size(plan.recommended)}"


def refusal(plan: "Plan") -> str:
    """Why nothing would be seen, and what would be enough."""
    situation, best = plan.situation, plan.recommended
    if isinstance(situation, ProfileSituation) and isinstance(best, ProfileSetting):
        if plan.seen is None:
            return (
                f"nothing would be seen: with {plural(situation.people, 'person', 'people')} in each party, even parties without a common "
                f"item would be found to differ in fewer than 9 of 10 cases; {_to_see(plan)}"
            )
        needs = Needs()
        if situation.item_groups is not None:
            needs = situation.item_groups.needs(situation.people, situation.epsilon, best.total_share)
        return (
            "nothing would be seen of item groups: noise hides all differences below 40 points; "
            f"to see 10 points takes {' or '.join(needs.offers) or 'more than any ε up to 1000'}; without item groups there is a plan"
        )
    return _count_refusal(plan, situation, best)  # type: ignore[arg-type]  # both are about counts


def assumption(plan: "Plan") -> str:
    """What is assumed about people, items and profiles; empty about counts."""
    situation = plan.situation
    if not isinstance(situation, ProfileSituation):
        return ""
    text = (
        f"No data was read. This assumes that people typically have {plural(round(situation.items_per_person), 'different item')}, "
        f"and that two votes of a party, drawn at random, are for the same item in 1 of {1 / situation.mix.concentration:,.0f} cases. "
        "Similarity is the cosine of two profiles: 1 for equal ones, 0 for those that share no item."
    )
    if situation.beyond_chance:
        text += " It is about populations: as if each party's people were an independent random sample of people like them."
    return text


def similarity(cosine: float) -> str:
    """The similarity, rounded down, with two digits of what is missing to 1."""
    gap = max(1 - cosine, 1e-12)
    digits = max(2, 1 - math.floor(math.log10(gap)))
    return f"{math.floor(cosine * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def points(difference: float) -> str:
    """A difference of shares, in points."""
    text = f"{100 * difference:.2g}"
    return f"{text} point{'s' * (text != '1')}"


def figure_words(plan: "Plan") -> dict[str, str]:
    """The title of the figure, and what its curves show."""
    situation = plan.situation
    source = "open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
    text = f"{source}, ε={decimal_text(situation.epsilon)}"
    if isinstance(situation, CountSituation):
        delta = f", δ={float(situation.delta):g}" if situation.delta else ""
        return {
            "title": f"{text}{delta}, at distance {situation.distances.low:,.4g}",
            "label": "standard error of the squared distance,\nas a share of it",
        }
    return {
        "title": f"{text}, {plural(situation.people, 'person', 'people')} in each party",
        "label": "smallest difference seen in 9 of 10 cases\n(1 − similarity of two profiles)",
    }


def _entry(name: str, text: str) -> list[str]:
    wrap = textwrap.TextWrapper(_WIDTH, initial_indent=f"  {name:<15} ", subsequent_indent=" " * 18)
    return wrap.wrap(text)


def _situation(plan: "Plan") -> str:
    """What was asked, beside the question."""
    situation = plan.situation
    together = (
        f", at 95 % confidence for all {situation.pairs:,} pairs"
        if situation.pairs > 1
        else ", at 95 % confidence"
    )
    if isinstance(situation, ProfileSituation):
        at = f"at each of {situation.parties:,} parties" if situation.parties else "at each party"
        people = f"about {plural(situation.people, 'person', 'people')} {at}"
        if situation.smallest is not None:
            people = f"{situation.smallest:,} to {situation.largest:,} people {at}, typically {situation.people:,},"
        return f"With {people} and ε = {decimal_text(situation.epsilon)}{together}:"
    source = "an open vocabulary" if situation.input_dim is None else f"{situation.input_dim:,} coordinates"
    delta = f", δ = {float(situation.delta):g}" if "gaussian" in situation.laws else ""
    moved = f"{float(situation.grid_radius * situation.resolution):g}"
    low, high = number_text(situation.distances.low), number_text(situation.distances.high)
    return (
        f"With {source}, ε = {decimal_text(situation.epsilon)}{delta}, and {situation.fields.get('unit') or 'one unit of protection'} moving the data "
        f"by at most {moved} in l1 norm; {f'a distance of {low}' if low == high else f'distances of {low} to {high}'}{together}:"
    )


def _recommended(plan: "Plan") -> str:
    """The recommended setting, and how ε is split."""
    situation, best = plan.situation, plan.recommended
    noise = f"{best.noise.capitalize()} noise"
    if isinstance(situation, CountSituation) or not isinstance(best, ProfileSetting):
        delta = f", δ = {float(situation.delta):g}" if best.noise == "gaussian" else " (pure)"
        return f"{best.label}, {_size(best)}, {noise}, ε = {decimal_text(situation.epsilon)}{delta}"
    shares = {
        "profile": 1 - situation.groups_share - best.total_share,
        "item groups": situation.groups_share,
        "number of people": best.total_share,
    }
    text = ", ".join(f"{100 * float(share):g} % {name}" for name, share in shares.items() if share)
    kind = "" if best.transform.projects else " without a projection"
    kind += "" if best.transform.column_entries == 1 else f", {best.transform.column_entries} for each item"
    text = f"{_size(best)}{kind}, {noise}; ε: {text}"
    if situation.item_groups is not None:
        count = plural(situation.item_groups.contribution, "item group")
        text += f". Up to {count} of a person count in full; people with more weigh less in each"
    return text


def _size(setting: ProfileSetting | CountSetting) -> str:
    size = setting.sketch_dim
    kilobytes = f"{size / 128:,.3g} KB" if size >= 128 else f"{8 * size} bytes"
    return f"{plural(size, 'number')} per party ({kilobytes})"


# Plans about populations and people.


def _profile_entries(plan: "Plan") -> list[tuple[str, str]]:
    """What will be seen and missed, what would show more, and how small a party may be."""
    situation, best = plan.situation, plan.recommended
    if (
        plan.seen is None
        or not isinstance(situation, ProfileSituation)
        or not isinstance(best, ProfileSetting)
    ):
        return []
    entries = [("you will see", f"parties whose profiles {_less_similar(plan.seen)}, in 9 of 10 cases")]
    if plan.item_groups_seen is not None:
        text = f"item groups that {points(plan.item_groups_seen)} more or fewer of the people have, where about a fifth have one"
        if plan.item_groups_chance:
            text += f" (chance alone hides {points(plan.item_groups_chance)})"
        entries.append(("", text))
    if situation.listed_items is not None:
        entries.append(("", _listed_items(situation, best)))
    return [
        *entries,
        ("you will miss", _missed(plan, situation.beyond_chance)),
        ("to see more", _to_see(plan)),
        *_smallest(plan, situation),
    ]


def _less_similar(cosine: float) -> str:
    """Which profiles are less similar than this."""
    text = similarity(cosine)
    return "have next to nothing in common" if text == "0.00" else f"are less than {text} similar"


def _missed(plan: "Plan", beyond_chance: bool) -> str:
    """What is hidden, by chance and by noise."""
    if not beyond_chance:
        return "smaller differences between the people counted: noise hides them"
    if plan.chance is None or plan.seen is None:
        return "smaller differences: chance hides them. More people would help, a larger ε would not"
    text = f"smaller differences. Chance alone hides anything above {similarity(plan.chance)}: more people would help, a larger ε would not"
    if 1 - plan.chance > 0.95 * (1 - plan.seen):
        text += ". Noise hides next to nothing more"
    return text


def _to_see(plan: "Plan") -> str:
    """What would show differences half as large, or half of all there are."""
    needs = plan.needs or Needs()
    text = f"profiles that are {needs.similarity:g} similar take "
    if not needs.offers:
        return f"{text}more than any ε up to 1000 or any number of people"
    return text + " or ".join(needs.offers) + ("" if needs.epsilon else "; no larger ε is enough")


def _smallest(plan: "Plan", situation: ProfileSituation) -> list[tuple[str, str]]:
    """What the smallest party will be able to see, and below which size a party should not take part."""
    smallest, seen, least = situation.smallest, plan.seen_of_smallest, plan.least_people or 0
    parts = []
    if smallest is not None and smallest >= least:
        sees = "nothing in 9 of 10 cases"
        if seen is not None:
            sees = f"typical parties whose profiles {_less_similar(seen)}"
        parts.append(f"with {plural(smallest, 'person', 'people')} it will see {sees}")
    if least > 1:
        should = "should not take part: they " if smallest is not None and smallest < least else ""
        parts.append(
            f"parties with fewer than about {least:,} people {should}will be inconclusive about nearly everything, even in a single pair"
        )
    return [("smallest party", "; ".join(parts))] if parts else []


def _listed_items(situation: ProfileSituation, best: ProfileSetting) -> str:
    """What is seen of listed items."""
    difference = listed_items_seen(situation, best)
    text = f"differences of {plural(situation.listed_items or 0, 'listed item')}"
    if difference is None:
        return text
    return f"{text}: most whose share of all votes differs by {points(difference)}"


def _size_table(plan: "Plan") -> list[str]:
    """What is seen with other sizes and shares."""
    best = plan.recommended
    near = [
        setting
        for setting in plan.settings
        if isinstance(setting, ProfileSetting)
        and best.sketch_dim / _NEAR <= setting.sketch_dim <= best.sketch_dim * _NEAR
    ]
    rows = dict[str, dict[str, str]]()
    is_one_kind = len({setting.label for setting in near}) == 1
    for setting in sorted(near, key=lambda each: (each.sketch_dim, each.label, each.total_share)):
        size = f"{setting.sketch_dim:,}{'' if is_one_kind else f', {setting.label}'}"
        seen = "-" if setting.seen is None else similarity(setting.seen)
        share = f"{100 * float(setting.total_share):g} %"
        rows.setdefault(size, {"numbers per party": size})[share] = f"{'*' * (setting is best)}{seen}"
    heading = "Profiles that are less similar than this are seen, by size of the sketch and share of ε for the number of people (-: none):"
    text_columns = () if is_one_kind else ("numbers per party",)
    return [*textwrap.wrap(heading, _WIDTH), *table_lines(list(rows.values()), text_columns)]


def _groups_table(plan: "Plan") -> list[str]:
    """What is seen with other shares of ε for item groups, or without them."""
    situation, best = plan.situation, plan.recommended
    if not isinstance(situation, ProfileSituation) or not isinstance(best, ProfileSetting):
        return []
    groups = situation.item_groups
    if groups is None:
        return []
    rows = []
    for each in (None, *(replace(groups, share=share) for share in groups.shares)):
        other = replace(situation, item_groups=each)
        setting = other.setting(best.transform, best.total_share)
        difference = other.groups_seen(best.total_share)
        row = {
            "share of ε": "0 %" if each is None else f"{'*' * (each == groups)}{100 * float(each.share):g} %",
            "item groups": "-" if difference is None else points(difference),
            "profiles": "-" if setting is None or setting.seen is None else similarity(setting.seen),
        }
        rows.append(row)
    heading = "The differences of item groups, and the profiles, that are seen with this sketch, by share of ε for item groups (-: none):"
    return ["", *textwrap.wrap(heading, _WIDTH), *table_lines(rows, ())]


# Plans about counts.


def _count_refusal(plan: "Plan", situation: CountSituation, best: CountSetting) -> str:
    target, name = situation.target, f"{best.label}, {_size(best)}, {best.noise.capitalize()} noise"
    low = number_text(situation.distances.low)
    if not best.has_upper_end:
        text = f"nothing would be seen: intervals of {name} would have no useful upper end, or, with more numbers, too much noise"
    elif best.relative_error > 1 or target is None:
        text = (
            f"nothing would be seen: at distance {low} the best standard error of the squared distance is "
            f"{number_text(best.relative_error)} times the squared distance ({name})"
        )
    else:
        text = (
            f"the target cannot be promised: at distance {low} an error above {target.distortion:.3g} of the squared distance "
            f"has a proved probability of at most {best.failure_bound:.3g}, and {target.failure_probability:.3g} was asked for "
            f"({name}, standard error {_error(best.relative_error)})"
        )
    offers = plan.needs.offers if plan.needs else []
    return f"{text}; " + (f"it would take {' or '.join(offers)}" if offers else "no ε up to 1000 is enough")


def _error(share: float) -> str:
    """A relative error in percent, or as a multiple if it is large."""
    return f"{100 * share:,.3g} %" if share < 10 else f"{number_text(share)} times"


def _count_entries(plan: "Plan") -> list[tuple[str, str]]:
    """What will be seen and missed, how large errors are, and how others compare."""
    situation, best = plan.situation, plan.recommended
    if (
        not isinstance(situation, CountSituation)
        or not isinstance(best, CountSetting)
        or plan.seen_distance is None
    ):
        return []
    low, high, seen = situation.distances.low, situation.distances.high, plan.seen_distance
    entries = [("you will see", f"that rows differ: about half of all pairs at distance {number_text(seen)}")]
    if situation.listed_items is not None:
        difference = listed_counts_seen(situation, best)
        text = f"differences of {plural(situation.listed_items, 'listed item')}"
        text += (
            "" if difference is None else f": most that differ by {number_text(float(f'{difference:.2g}'))}"
        )
        entries.append(("", text))
    if seen > low:
        text = f"many differences at distance {number_text(low)}: expect them to be inconclusive"
        entries.append(("you will miss", text))
    text = f"{_error(best.relative_error)} of the squared distance at distance {number_text(low)}"
    text += "" if low == high else f", {_error(best.relative_error_high)} at {number_text(high)}"
    entries.append(("standard error", text))
    if situation.target is not None and best.failure_bound is not None:
        text = (
            f"an error above {situation.target.distortion:g} of the squared distance has a probability of at most {best.failure_bound:.3g}, "
            f"for every difference and over {plural(situation.pairs, 'pair')} (proved, from exact moments)"
        )
        entries.append(("target", text))
    return entries


def _count_table(plan: "Plan") -> list[str]:
    """The best settings, and the best one of each kind of transform."""
    rows: list[dict[str, str]] = []
    kinds = set[str]()
    lines: Sequence[Any] = plan.settings
    for line in lines:
        is_best = line is plan.recommended
        if is_best or line.transform.name not in kinds or len(rows) < _MOST_LEADING:
            row = {
                "": "*" if is_best else "" if line.is_choice else "-",
                "configuration": line.label,
                "numbers": f"{line.sketch_dim:,}",
                "noise": line.noise,
                "error": _error(line.relative_error),
                "at high": _error(line.relative_error_high),
                "smallest": number_text(line.smallest_distance),
            }
            rows.append(row)
        kinds.add(line.transform.name)
    note = (
        f"* {'recommended' if plan.resolvable else 'the best there is'}; - too large. "
        "error: standard error of the squared distance, as a share of it, at the smallest distance; at high: at the largest. "
        f"smallest: the distance at which that error is 100 %. {len(lines)} settings in all."
    )
    return ["", *table_lines(rows, ("", "configuration", "noise")), "", *textwrap.wrap(note, _WIDTH)]
