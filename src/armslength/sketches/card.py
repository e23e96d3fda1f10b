"""The release card: what was released under which guarantee, as facts for machines and as text for a data-protection officer.

A card holds settings, never counts: no number in it depends on the data. Every text that states the guarantee takes its
conditions from `hypotheses`; tests compare them with theorem 1 in docs/privacy.md.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from armslength.errors import plural
from armslength.laws import Law
from armslength.privacy.exact_numbers import decimal_text, weakness
from armslength.protocol.margins import Margins
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import Protocol
from armslength.protocol.record import CATEGORY, PERIODS, Kind
from armslength.sketches.noises import Release
from armslength.sketches.parquet_footer import DamagedFileError
from armslength.version import __version__

IN_CLEAR = "NOT PRIVATE: rows of this file hold data without noise. It must not be published."
_LONGEST_LIST = 20  # categories of a column, names of item groups
_RELATIONS = {"add_remove": "adding or removing", "replace": "replacing"}
_LAWS = {"laplace": "Discrete Laplace noise", "gaussian": "Rounded normal noise"}
_SOURCES = {
    "events": "An event table.",
    "rows": "Rows that the party prepared.",
    "stream": "A stream of updates that the party prepared.",
    "unknown": "It is not known here whether events, prepared rows or a stream were released.",
}
_VOTE_IN_WORDS = (
    "The sketches describe this: take a person of the row at random, then one of that person's items at random. A person's only item weighs "
    "more than one of seven, and whether few or many items are recorded of each person is a difference, too."
)
_LABELS = {
    "events": "The list of groups is public. The party promises that it does not depend on the data.",
    "rows": "The number of rows and their labels are public. The party promises that they do not depend on the data.",
    "stream": "The label of the row is public. The party promises that it does not depend on the data.",
}


def release_card(releases: Sequence[Release], *, in_clear: bool, page: bool = False) -> dict[str, Any]:
    """The card of a file: facts and guarantee of each release, and `page` for an officer; no guarantee for clear data."""
    if in_clear:
        return {"armslength": __version__, "in_clear": True, "releases": [], "words": IN_CLEAR}
    return {
        "armslength": __version__,
        "in_clear": False,
        "releases": [
            {
                **release_facts(protocol, source),
                "words": guarantee_in_words(protocol, source),
                **({"page": dict(officer_page(protocol, source))} if page else {}),
            }
            for protocol, source in releases
        ],
        "verify": "armslength verify FILE --protocol PROTOCOL",
    }


def release_facts(protocol: Protocol, source: str) -> dict[str, Any]:
    """What a card states of a release, in exact numbers: decimals as text, floats in hexadecimal."""
    exact = protocol.released_delta, protocol.totals_epsilon, protocol.sketch_epsilon, protocol.resolution
    delta, totals_epsilon, sketch_epsilon, resolution = map(decimal_text, exact)
    document, transform = protocol.document(), protocol.transform
    derived = document["derived"]
    calibration = {
        "rule": "laplace: scale >= sensitivity / epsilon",
        "sensitivity": str(protocol.sensitivity),
    }
    if protocol.noise == "gaussian":
        rule = "analytic gaussian: delta(sensitivity / scale, epsilon) <= delta"
        calibration = {"rule": rule, "sensitivity_squared": str(protocol.sensitivity)}
    stated = ("unit", "relation", "radius", "epsilon", "noise", "noise_site")
    bounds = ("contribution", "value_range", "on_grid", "changed_entries")
    facts = {
        "protocol": protocol.fingerprint,
        "source": source,
        "space": protocol.space,
        **{name: document[name] for name in stated},
        "delta": delta,
        "totals_epsilon": totals_epsilon,
        "scale": derived["scale"],
        "mechanism": {
            "transform": transform.name,
            "input_dim": transform.input_dim,
            "sketch_dim": transform.sketch_dim,
            "totals_scale": derived.get("total_scale"),
            "spread_scale": derived.get("spread_scale"),
        },
        "calibration": {**calibration, "epsilon": sketch_epsilon},
        "bounds": {
            "resolution": resolution,
            **{name: document[name] for name in bounds if name in document},
        },
    }
    if protocol.margins is not None:  # the item groups themselves are in the protocol
        facts["margins"] = {
            "item_groups": len(protocol.margins.names),
            "rule": protocol.margins.rule,
            "contribution": protocol.margin_contribution,
            "epsilon": decimal_text(protocol.margins_epsilon),
            "sensitivity": str(protocol.margin_sensitivity),
            "scale": derived["margin_scale"],
        }
    return facts


def check_card(card: Any, releases: Sequence[Release]) -> None:
    """Refuses a card without the facts of the protocols beside it; its text and facts that a later version adds are ignored."""
    match card:
        case {"in_clear": True, "releases": []}:
            return
        case {"in_clear": False, "releases": list(stated)} if len(stated) == len(releases):
            expected = [release_facts(protocol, source).items() for protocol, source in releases]
            pairs = zip(stated, expected, strict=True)
            if all(isinstance(facts, dict) and items <= facts.items() for facts, items in pairs):
                return
    raise DamagedFileError("has a release card that does not match its protocols")


def guarantee_in_words(protocol: Protocol, source: str) -> str:
    """One paragraph with the whole guarantee and all of its conditions."""
    source = _source(protocol, source)
    epsilon, delta = decimal_text(protocol.epsilon), decimal_text(protocol.released_delta)
    privacy = epsilon if delta == "0" else f"({epsilon}, {delta})"
    site = " before its last step" if protocol.noise_site == "input" else ""
    sentences = [
        f"All rows of one release together are {privacy}-differentially private for {_change(protocol)}.",
        weakness(protocol.epsilon, protocol.released_delta),
        f"{_LAWS[protocol.noise]} of scale {_scale(protocol, protocol.law)} is drawn exactly, in integers.",
        f"It is added to an integer projection ({protocol.transform.name}){site}.",
    ]
    if protocol.total_law is not None:
        share, scale = decimal_text(protocol.totals_epsilon), _scale(protocol, protocol.total_law)
        spent, noise = "the total of each row", f"with noise of scale {scale}"
        if protocol.spread_law is not None:
            number, listed = _scalars(protocol)
            spent, noise = f"{number} more numbers of each row: {listed}", _noise_of_scalars(protocol)
        sentences.append(f"Of ε, {share} is spent on {spent}; {noise}.")
    if protocol.margins is not None and protocol.margin_law is not None:
        share, law = decimal_text(protocol.margins_epsilon), protocol.margin_law
        noise = f"{_in_a_sentence(_LAWS[law.name])} of scale {_scale(protocol, law)}"
        sentences.append(
            f"Of ε, {share} is spent on margins, with {noise}: for each row, how many of its people "
            f"have an item in each of {plural(len(protocol.margins.names), 'item group')}, and how much of that is missing."
        )
    sentences += [
        "This holds under these conditions.",
        *hypotheses(protocol, source).values(),
        "A person whose data is in several releases spends the budget of each.",
    ]
    return " ".join(filter(None, sentences))


def protection_in_words(protocol: Protocol, source: str) -> str:
    """Who is protected against what: the unit of protection, and how far it can move the data."""
    source = _source(protocol, source)
    words = hypotheses(protocol, source)
    # The limit on a person's events is all that an event table needs.
    grid = "" if source == "events" else f" {words['grid']}"
    return f"The guarantee is about {_change(protocol)}. {words['radius']}{grid}"


def officer_page(protocol: Protocol, source: str) -> tuple[tuple[str, str], ...]:
    """Headings and paragraphs for somebody who answers for the data and is no mathematician."""
    margins, source = [], _source(protocol, source)
    if protocol.margins is not None and protocol.margin_law is not None:
        margins = [("What the margins tell", _margins(protocol, protocol.margins, protocol.margin_law))]
    return (
        ("Who is protected", protection_in_words(protocol, source)),
        ("What anybody can learn at most", _largest_change_in_odds(protocol)),
        ("What was released", _contents(protocol, source)),
        *margins,
        ("How it is protected", _mechanism(protocol)),
        ("What must be true for this to hold", " ".join(hypotheses(protocol, source).values())),
        ("What adds up", _sum_over_releases(protocol)),
        ("What is not promised", _NOT_PROMISED),
        ("How to check this", _verification(protocol)),
    )


def hypotheses(protocol: Protocol, source: str) -> dict[str, str]:
    """All hypotheses of theorem 1, in its order: their names in docs/privacy.md, and who makes sure of them in a release.

    For an "unknown" source those of rows, unless only event tables can be released.
    """
    source = _source(protocol, source)
    return {
        "labels": _LABELS.get(source, _LABELS["rows"]),
        "radius": _radius(protocol, source),
        "grid": _grid(protocol, source),
        "settings": "The party promises that all settings and the public matrix were fixed without looking at the data.",
        "random bits": "The random bits are assumed to be ideal: the operating system's generator must be good, and AES-256 unbroken.",
    }


def _source(protocol: Protocol, source: str) -> str:
    """The source; that of votes is known before any release."""
    return "events" if protocol.votes else source


def _change(protocol: Protocol) -> str:
    """The change of the data that the guarantee is about."""
    return f"{_RELATIONS[protocol.relation]} {_unit(protocol)}"


def _unit(protocol: Protocol) -> str:
    return protocol.unit or "one unit of protection"


def _radius(protocol: Protocol, source: str) -> str:
    moves = f"{_change(protocol)} moves the data by at most {decimal_text(protocol.radius)} in l1 norm over all rows"
    if protocol.margins is not None:
        moves += f", and all margins together by at most {_votes(Fraction(protocol.margin_sensitivity or 0))} people"
    if source == "events":
        return (
            f"{_counting(protocol)}; the software enforces that. The table's identifiers decide who is one person, and the party promises "
            f"that one person's rows in it do not depend on another's. So {moves}."
        )
    promise = f"The party promises that {moves}; the software cannot check it"
    if source == "unknown" and protocol.contribution is not None:
        return f"{promise}, except for an event table, where it enforces a limit. There, {_in_a_sentence(_counting(protocol))}."
    return f"{promise}."


def _counting(protocol: Protocol) -> str:
    """What an event table counts of each person, and how much of it at most."""
    if not protocol.votes:
        return f"At most {protocol.contribution:,} of each person's events, by weight, are counted over all groups and items together"
    counted = "Each person has one vote, split evenly over all different items they have, in one group, which a secret key chooses among theirs"
    if protocol.margins is not None:
        counted += (
            f". In margins, up to {_item_groups(protocol)} of each person count in full, and all of somebody who has more count "
            "in proportion"
        )
    return counted


def _scale(protocol: Protocol, law: Law) -> str:
    """The scale of a noise, rounded down: in votes, or in integer units."""
    if not protocol.votes:
        return f"{float(Context(6, ROUND_FLOOR).create_decimal_from_float(law.scale)):g}"
    return f"{float(Context(3, ROUND_FLOOR).create_decimal_from_float(law.scale / VOTE)):g} votes"


def _noise_of_scalars(protocol: Protocol) -> str:
    """The noise of these numbers; that of the number of people is both noises, as it is a sum."""
    if protocol.total_law is None or protocol.spread_law is None:
        return ""
    first, others = (_scale(protocol, law) for law in (protocol.total_law, protocol.spread_law))
    each = "each of the last two has" if protocol.releases_norm else "the second has"
    return f"{each} noise of scale {others}, and the first less the second has noise of scale {first}"


def _scalars(protocol: Protocol) -> tuple[str, str]:
    """The numbers that votes release of each row beside their sketch: how many, and what they tell."""
    people, spread = "how many people it has", "how concentrated their votes are"
    if protocol.releases_norm:
        return "three", f"{people}, {spread}, and how alike people are"
    return "two", f"{people}, and {spread}"


def _in_a_sentence(words: str) -> str:
    return words[0].lower() + words[1:]


def _grid(protocol: Protocol, source: str) -> str:
    step = decimal_text(protocol.resolution)
    if source == "events":
        return f"{_event_grid(protocol, step)} No other bound is needed."
    if source == "stream":
        return f"Every update is a multiple of {step}; the software refuses others."
    if protocol.on_grid:
        return f"Every value is a multiple of {step}; the software makes sure of that."
    rounded = f"Values are rounded down to multiples of {step}."
    if protocol.changed_entries is None:
        return f"{rounded} Any entry may change, so the software allows one row only in a release of prepared rows."
    entries = f"{protocol.changed_entries:,} entr{'y' if protocol.changed_entries == 1 else 'ies'}"
    return (
        f"{rounded} This can move each changed entry by one step more. So the party also promises that "
        f"{_change(protocol)} changes at most {entries} over all rows; the software cannot check it."
    )


def _event_grid(protocol: Protocol, step: str) -> str:
    """What one event counts."""
    if protocol.votes:
        return "Parts of a vote are rounded down to multiples of 2^-20."
    others = "others are left out" if protocol.on_grid else "others are rounded down"
    return f"Every event counts a multiple of {step}; {others}."


def _largest_change_in_odds(protocol: Protocol) -> str:
    epsilon, delta, unit = protocol.epsilon, protocol.released_delta, _unit(protocol)
    known = weak = ""
    if protocol.relation == "add_remove":  # one unit's data for another: two steps
        more = f", and δ {_rounded_up(1 + _exp(epsilon))} times" if delta else ""
        known = f" For somebody who knows that {unit} is in the data, and asks what that data is, ε counts twice{more}."
    if weakness(epsilon, delta):
        weak = f" {weakness(epsilon, delta)}"
    return (
        f"{limit_in_words(whether(unit, protocol.relation), 'the release', epsilon, delta)}{delta_in_words(epsilon, delta)} This holds for all rows of the release together, and for "
        "everything that is ever computed from them alone, even by somebody who knows everybody else's data, the settings and the public "
        f"matrix.{known}{weak}"
    )


def whether(unit: str, relation: str) -> str:
    """The two cases that the guarantee compares."""
    return (
        f"Whether {unit} is in the data or not"
        if relation == "add_remove"
        else f"Whatever the data of {unit} is"
    )


def limit_in_words(change: str, results: str, epsilon: Fraction, delta: Fraction) -> str:
    """What ε and δ say of all results: P(S) ≤ e^ε·P'(S) + δ for every set S of them, in both directions."""
    if delta:
        return (
            f"{change}, the probability p of anything that {results} can show becomes at most e^ε·p + δ, with ε = {decimal_text(epsilon)} "
            f"and δ = {decimal_text(delta)}."
        )
    limit = (
        f"no result of {results} becomes more than {odds_in_words(epsilon)} times as likely or as unlikely"
    )
    return f"{change}, {limit}. That number is e^ε, rounded up, with ε = {decimal_text(epsilon)}."


def delta_in_words(epsilon: Fraction, delta: Fraction) -> str:
    """What δ is not, and how likely larger changes are; empty without a δ.

    Guarantee: results whose two probabilities differ by more than a factor of 2e^ε have a probability of at most (2 + e^−ε)·δ ≤ 3δ.
    Reference: docs/privacy.md, what δ means.
    """
    if not delta:
        return ""
    return (
        f" δ is not the probability of a failure: results that become more than {odds_in_words(epsilon)} times (e^ε) as likely or as "
        f"unlikely can occur more often than that. Those beyond {odds_in_words(epsilon, 2)} times have together a probability of at most 3δ."
    )


def odds_in_words(epsilon: Fraction, times: int = 1) -> str:
    """e^ε, or a multiple, as a number that says something."""
    return _rounded_up(times * _exp(epsilon))


def _exp(epsilon: Fraction) -> float:
    """e^ε, never too small; infinity if it is too large for a float."""
    return math.exp(epsilon) * (1 + 2**-40) if epsilon < 700 else math.inf


def _rounded_up(number: float) -> str:
    """Three digits, never less than the number."""
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(number)
    return f"{digits:,f}" if digits < 10**9 else "an astronomical number of"


def _contents(protocol: Protocol, source: str) -> str:
    transform = protocol.transform
    size = "any number of items" if transform.input_dim is None else f"{transform.input_dim:,} numbers"
    totals = ""
    if protocol.total_law is not None:
        share = decimal_text(protocol.totals_epsilon)
        totals = f" The total of each row is released, too, with noise of its own, for {share} of ε."
        if protocol.votes:
            number, listed = _scalars(protocol)
            totals = f" {number.capitalize()} more numbers of each row, with noise of their own, for {share} of ε: {listed}."
    if protocol.votes:
        totals += f" {_VOTE_IN_WORDS}"
    data = _SOURCES[source]
    if source == "events" and protocol.record is not None:
        columns = [f"{name} ({_kind_in_words(kind)})" for name, kind in protocol.record.columns]
        names = "; ".join([*columns, *map(" with ".join, protocol.record.pairs)])
        data = f"A table with rows about people. Columns became items by a public recipe: {names}."
    if protocol.value_range is not None:
        data += f" Values were clamped to {' to '.join(map(decimal_text, protocol.value_range))}."
    projection = f"a public projection ({transform.name})" if transform.projects else "a copy"
    part = protocol.sketch_epsilon
    spent = "" if part == protocol.epsilon else f", for {decimal_text(part)} of ε"
    return (
        f"{data} For each row, {transform.sketch_dim:,} integers: {projection} of {size}, "
        f"plus secret noise{spent}.{totals}"
    )


def _margins(protocol: Protocol, margins: Margins, law: Law) -> str:
    """What margins are, how exact they are, and what is promised to the people in them."""
    of_record = margins.rule == "record"
    names = margins.names if of_record else margins.names[:-1]  # the last is (other)
    others = "" if of_record else "; and how many have any other item"
    unit, share = _unit(protocol), protocol.margins_epsilon
    votes = _votes(Fraction(protocol.margin_sensitivity or 0, 1 if protocol.relation == "add_remove" else 2))
    having = f"with {names[0]}" if of_record else f"with an item in {names[0]}"
    twice = "" if protocol.relation == "add_remove" else " Replacing them can change twice as much."
    return (
        f"Margins are numbers of people. For each row: how many of its people have an item in each of these public item "
        f"groups: {_shortened(names)}{others}. Every number has secret noise of its own. The number of people "
        f"{having} is right to about ±{_margin_of_error(law):,.0f}, 19 times out of 20, apart from what is missing. So is each other number, in small rows as in large ones. "
        f"Somebody with more than {_item_groups(protocol)} counts less than 1 in each, and one more number says how much of each row is missing for that reason. "
        "People are another quantity than votes, so margins and sketches can point in different directions. "
        "Anybody can learn how common an item group is in a row, as exactly as that; this is what margins are for. "
        f"What is promised to the people in the data: {unit} changes all of these numbers together by at most {votes} people, "
        f"and the noise hides that.{twice} "
        f"{limit_in_words(whether(unit, protocol.relation), 'the margins', share, Fraction(0))} This part of ε is not in addition."
    )


def _votes(units: Fraction) -> str:
    """So many grid units as votes, rounded up."""
    return f"{Decimal(math.ceil(100 * units / VOTE)) / 100:f}"


def _item_groups(protocol: Protocol) -> str:
    return plural(protocol.margin_contribution or 0, "item group")


def _margin_of_error(law: Law) -> float:
    """The number of people x with P(|N| ≤ x) ≥ 0.95."""
    units = bisect_left(range(2**50), 0.975, key=lambda n: float(law.cdf(np.array([float(n)]))[0]))
    return math.ceil(units / VOTE)


def _kind_in_words(kind: Kind) -> str:
    """What becomes of a column of a record."""
    if isinstance(kind, str):
        words = {CATEGORY: "as it is", **{period: f"by {period}" for period in PERIODS}}
        return words.get(kind) or f"edges {kind.replace(',', ', ')}"
    return f"{_shortened(kind)}, or other"


def _shortened(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _LONGEST_LIST:,} more" if len(names) > _LONGEST_LIST else ""
    return f"{', '.join(names[:_LONGEST_LIST])}{more}"


def _mechanism(protocol: Protocol) -> str:
    site, rule = (
        "to every integer of the sketches",
        "the Laplace mechanism: at least sensitivity/ε, in exact fractions",
    )
    if protocol.noise_site == "input":
        site = "to every integer that goes into the last step of the projection"
    if protocol.noise == "gaussian":
        rule = "the analytic Gaussian mechanism (Balle & Wang 2018), with a proved bound on δ"
    others = ""
    if protocol.spread_law is not None:
        moved = _votes(Fraction(2 * VOTE + 1, 2) * (1 if protocol.relation == "add_remove" else 2))
        halves = "half of each of the last two" if protocol.releases_norm else "half of the second"
        others = (
            f" Of the other numbers of each row, {_noise_of_scalars(protocol)}. The noise covers that {_change(protocol)} moves the first less "
            f"the second, and {halves}, by at most {moved} votes together."
        )
    elif protocol.total_law is not None:
        others = f" The total of each row has noise of scale {_scale(protocol, protocol.total_law)}."
    if protocol.margin_law is not None:
        others += f" Each margin has noise of scale {_scale(protocol, protocol.margin_law).replace('votes', 'people')}."
    return (
        f"{_LAWS[protocol.noise]} of scale {_scale(protocol, protocol.law)} is added {site}.{others} The noise is drawn exactly, from a "
        "cipher with a fresh key of the operating system; no seed can repeat it. Its scale was computed from the public settings "
        f"alone, by {rule}. Rounding always goes toward more noise."
    )


def _sum_over_releases(protocol: Protocol) -> str:
    delta = "" if protocol.released_delta == 0 else " δ adds up in the same way."
    return (
        f"One such release costs {_unit(protocol)} at most ε = {decimal_text(protocol.epsilon)}; two of them, at one party or at two, at most "
        f"{decimal_text(2 * protocol.epsilon)}.{delta} A party adds up its own releases in its ledger (armslength ledger). Nobody adds them "
        "up across parties unless they arrange it: if the same people can be in the data of several parties, the sum over those parties counts. "
        "Comparing, searching and plotting cost nothing more."
    )


_NOT_PROMISED = (
    "What is true of large groups stays visible; that is the purpose. So somebody's habits may be inferred from groups they belong to, "
    "whether or not they took part. Where several who are protected go together, such as relatives, ε counts once for each of them, and a δ "
    "more often. The time that a release took, and error messages shown to the data holder, are not covered. No file can prove that a party "
    "added the noise, kept it secret, and released the data that it says. Implausible values are flagged, and that is all."
)


def _verification(protocol: Protocol) -> str:
    return (
        "Run armslength verify FILE --protocol PROTOCOL. It rechecks what is public: columns of the matrix, the sensitivity, whether the "
        "scale is enough, and this card. It finds damage and careless edits. A forger can recompute the digests. "
        f"The fingerprint of the protocol is {protocol.fingerprint}."
    )
