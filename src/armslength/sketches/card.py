"""The release card: what was released under which guarantee, for machines and in words. Public facts only.

A card holds settings, never counts: no number in it depends on the data. It stands in the metadata of every sketch file, where
loading holds it against the protocols and sources beside it; `armslength card` shows it and `armslength verify` computes it anew.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armslength.errors import CorruptFileError
from armslength.privacy.exact_numbers import weakness, written
from armslength.protocol.neighbors import gaussian_sensitivity_squared
from armslength.protocol.protocol import Protocol
from armslength.protocol.schema import transform_document
from armslength.sketches.noises import Release
from armslength.transforms.identity import Identity
from armslength.version import __version__

# The hypotheses of theorem 1 in docs/privacy.md as they apply to a release, in words: who sees to each of them.
#
# A guarantee holds for those who know what it rests on. So every text that states the guarantee takes its hypotheses from here, and
# the tests hold this list against the numbered list of the theorem.


_RELATIONS = {"add_remove": "adding or removing", "replace": "replacing"}


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of the theorem.

    Attributes:
        name: Its name in docs/privacy.md.
        words: What it says of a release, in a sentence or two.
    """

    name: str
    words: str


def hypotheses(protocol: Protocol, source: str) -> tuple[Hypothesis, ...]:
    """All hypotheses of theorem 1, in its order.

    Args:
        protocol: The protocol of the release.
        source: What was released: "events", "rows", "stream" or "unknown", which claims no more than rows do.
    """
    return (
        Hypothesis("labels", _labels(source)),
        Hypothesis("radius", _radius(protocol, source)),
        Hypothesis("grid", _grid(protocol, source)),
        Hypothesis(
            "settings",
            "The party promises that all settings and the public matrix were fixed without looking at the data.",
        ),
        Hypothesis(
            "random bits",
            "The random bits are taken for ideal: the operating system's generator must be good, and AES-256 unbroken.",
        ),
    )


def protected_change(protocol: Protocol) -> str:
    """What nobody can tell from a release: a change of the data by one unit of protection."""
    return f"{_RELATIONS[protocol.relation]} {protocol.unit or 'one unit of protection'}"


def _labels(source: str) -> str:
    if source == "events":
        return "Which groups have a row is public: the party promises that the list of groups does not depend on the data."
    rows = (
        "The label of the one row is"
        if source == "stream"
        else "How many rows there are and what they are called is"
    )
    return f"{rows} public: the party promises that it does not depend on the data."


def _radius(protocol: Protocol, source: str) -> str:
    distance = f"at most {written(protocol.radius)} in {protocol.norm} norm over all rows"
    if source == "events":
        return (
            f"At most {protocol.contribution:,} of each person's events, by weight, are counted over all groups and items together; the software "
            f"enforces that, for persons as the table identifies them, so that {protected_change(protocol)} moves the data by {distance}."
        )
    promise = f"The party promises that {protected_change(protocol)} moves the data by {distance}; the software cannot check it"
    if source == "unknown" and protocol.contribution is not None:
        return f"{promise}, except when it releases an event table, where it enforces it."
    return f"{promise}."


def _grid(protocol: Protocol, source: str) -> str:
    step = written(protocol.resolution)
    if source == "events":
        others = "others are left out" if protocol.on_grid else "others are rounded down"
        return f"Every event counts a multiple of {step}, {others}, so that no other bound is needed."
    if source == "stream":
        return f"Every update is a multiple of {step}: the software takes no others."
    if protocol.on_grid:
        return f"Every value is a multiple of {step}: the software sees to that."
    rounded = f"Values are rounded down to multiples of {step}"
    if protocol.changed_entries is None:
        return f"{rounded}; any entry may change, and so the software lets a release of prepared rows have one row only."
    entries = f"{protocol.changed_entries:,} entr{'y' if protocol.changed_entries == 1 else 'ies'}"
    return (
        f"{rounded}, which can move each changed entry by one step more: the party promises that {protected_change(protocol)} changes at most "
        f"{entries} over all rows; the software cannot check it."
    )


# The release card in words: one paragraph for those who know, and a page for a data-protection officer.


_SOURCES = {
    "events": "An event table.",
    "rows": "Rows that the party prepared.",
    "stream": "A stream of updates that the party prepared.",
    "unknown": "Whether events, prepared rows or a stream were released is not known here.",
}
_LAWS = {"laplace": "discrete Laplace noise", "gaussian": "rounded normal noise"}


def guarantee_in_words(protocol: Protocol, source: str) -> str:
    """One paragraph with the whole guarantee and everything that it rests on.

    Args:
        protocol: The protocol of the release.
        source: What was released, as in `NoiseSource`.
    """
    epsilon, delta = written(protocol.epsilon), written(protocol.released_delta)
    privacy = (
        f"{epsilon}-differentially private"
        if delta == "0"
        else f"({epsilon}, {delta})-differentially private"
    )
    return (
        f"All rows of one release together are {privacy} for {protected_change(protocol)}. {_weak(protocol)}"
        f"Integer {_LAWS[protocol.noise]} of scale {protocol.law.scale:g} is drawn exactly and added to an integer projection "
        f"({protocol.transform.name}){_before_the_last_step(protocol)}. {_totals(protocol)}This holds under these conditions. "
        f"{rests_on(protocol, source)} People whose data is in several releases spend the budget of each."
    )


def rests_on(protocol: Protocol, source: str) -> str:
    """Every hypothesis of the theorem, in words."""
    return " ".join(each.words for each in hypotheses(protocol, source))


def protection_in_words(protocol: Protocol, source: str) -> str:
    """Who is protected against what: the unit of protection printed back, and how far it can move the data."""
    known = {each.name: each.words for each in hypotheses(protocol, source)}
    grid = (
        "" if source == "events" else f" {known['grid']}"
    )  # where every event is bounded, there is nothing to add
    return f"Protected is {protected_change(protocol)}. {known['radius']}{grid}"


def officer_page(protocol: Protocol, source: str) -> tuple[tuple[str, str], ...]:
    """Headings and paragraphs for somebody who answers for the data and is no mathematician.

    Args:
        protocol: The protocol of the release.
        source: What was released, as in `NoiseSource`.
    """
    return (
        ("Who is protected", protection_in_words(protocol, source)),
        ("What anybody can learn at most", _learned(protocol)),
        ("What was released", _released(protocol, source)),
        ("How it is protected", _protected(protocol)),
        ("Which limits were set beforehand", _limits(protocol)),
        ("What this rests on", rests_on(protocol, source)),
        ("What adds up", _adds_up(protocol)),
        ("What is not promised", _not_promised()),
        ("How to check this", _checked(protocol)),
    )


def _weak(protocol: Protocol) -> str:
    weak = weakness(protocol.epsilon, protocol.released_delta)
    return f"{weak} " if weak else ""


def _unit(protocol: Protocol) -> str:
    return protocol.unit or "one unit of protection"


def _totals(protocol: Protocol) -> str:
    if protocol.total_law is None:
        return ""
    return (
        f"Of ε, {written(protocol.totals_epsilon)} goes to the total of each row, "
        f"with discrete Laplace noise of scale {protocol.total_law.scale:g}. "
    )


def odds_in_words(epsilon: Fraction) -> str:
    """e^ε as a number that says something."""
    exact = float(epsilon)
    return f"{math.exp(exact):.3g}" if exact < 20 else "an astronomical number of"


def _learned(protocol: Protocol) -> str:
    delta = protocol.released_delta
    except_for = "" if delta == 0 else f", but for a probability of at most δ = {written(delta)}"
    both = (
        f"whether {_unit(protocol)} is in the data or not"
        if protocol.relation == "add_remove"
        else f"whatever the data of {_unit(protocol)} is"
    )
    weak = weakness(protocol.epsilon, protocol.released_delta)
    return (
        f"With ε = {written(protocol.epsilon)}, {both}, no result of the release becomes more than e^ε ≈ "
        f"{odds_in_words(protocol.epsilon)} times as likely or as unlikely{except_for}. That holds for all rows of the release together, for "
        f"everything that is ever computed from them, and against somebody who knows everything else, the settings and the public matrix "
        f"included.{' ' * bool(weak)}{weak}"
    )


def _before_the_last_step(protocol: Protocol) -> str:
    return ", before its last step" if protocol.noise_site == "input" else ""


def _released(protocol: Protocol, source: str) -> str:
    transform = protocol.transform
    size = "any number of items" if transform.input_dim is None else f"{transform.input_dim:,} numbers"
    made = "a copy" if isinstance(transform, Identity) else f"a public projection ({transform.name})"
    totals = (
        ""
        if protocol.total_law is None
        else f" Beside it stands the total of the row, with noise of its own, for {written(protocol.totals_epsilon)} of ε."
    )
    return f"{_SOURCES[source]} For each row, {transform.sketch_dim:,} integers: {made} of {size}, plus secret noise.{totals}"


def _protected(protocol: Protocol) -> str:
    site = (
        "To every integer"
        if protocol.noise_site == "output"
        else "Before the projection's last step, to every integer that goes into it"
    )
    rule = (
        "the Laplace mechanism: at least sensitivity/ε"
        if protocol.noise == "laplace"
        else "the analytic Gaussian mechanism (Balle & Wang 2018), with a proved bound on δ"
    )
    return (
        f"{site}, {_LAWS[protocol.noise]} of scale {protocol.law.scale:g} is added. It is drawn exactly, from a cipher that the operating "
        f"system keys anew, without a seed. Its scale was computed from the public settings alone, in exact arithmetic, by {rule}; whatever is rounded is "
        "rounded toward more noise."
    )


def _limits(protocol: Protocol) -> str:
    said = [
        f"a contribution of at most {protocol.contribution:,}, by weight, from each person"
        if protocol.contribution is not None
        else f"a radius of {written(protocol.radius)} in {protocol.norm} norm",
        "no limit on single values"
        if protocol.value_range is None
        else f"values clamped to {written(protocol.value_range[0])} to {written(protocol.value_range[1])}",
        f"a grid of {written(protocol.resolution)}, {'on which the data lies' if protocol.on_grid else 'to which values are rounded down'}",
    ]
    if protocol.dropped_bits:
        said.append(f"{protocol.dropped_bits} low bits dropped after the noise")
    return f"These are settings, not counts: {'; '.join(said)}."


def _adds_up(protocol: Protocol) -> str:
    twice = written(2 * protocol.epsilon)
    delta = "" if protocol.released_delta == 0 else ", and δ is added up in the same way"
    return (
        f"Somebody whose data is in one such release has spent ε = {written(protocol.epsilon)}; in two, at one party or at two, {twice}{delta}. "
        "A party adds up its own releases in its ledger (armslength ledger). Nobody can add them up across parties: if the same people can be "
        "in the data of several parties, the sum over those parties is what counts. Comparing, searching and plotting cost nothing more."
    )


def _not_promised() -> str:
    return (
        "What is true of large groups stays visible: that is the purpose. Somebody's habits may be inferred from groups they "
        "belong to, whether or not they took part. How long a release took, and error messages shown to the data holder, lie outside. "
        "Whether a party that says it added this noise, and released what it says, did so, no file can prove: implausible values are flagged, and that is all."
    )


def _checked(protocol: Protocol) -> str:
    return (
        "armslength verify FILE --protocol PROTOCOL computes all that is public anew: matrix, sensitivity, scale, this card, and whether the file was edited (but for a forger, who can match everything). "
        f"The fingerprint of the protocol is {protocol.fingerprint}."
    )


IN_CLEAR = "NOT PRIVATE: rows of this file hold data without noise. It must not be published."


def release_card(releases: Sequence[Release], *, in_clear: bool, page: bool = False) -> dict[str, Any]:
    """The card of a file: for each release its facts and its guarantee in words; no guarantee for clear data.

    Args:
        releases: The protocols of all rows, each with what was released under it.
        in_clear: Whether any row holds data without noise.
        page: Whether to add the page for a data-protection officer, which files leave out.
    """
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
    limits = protocol.value_range
    return {
        "protocol": protocol.fingerprint,
        "source": source,
        "space": protocol.space,
        "unit": protocol.unit,
        "relation": protocol.relation,
        "norm": protocol.norm,
        "radius": written(protocol.radius),
        "epsilon": written(protocol.epsilon),
        "delta": written(protocol.released_delta),
        "totals_epsilon": written(protocol.totals_epsilon),
        "noise": protocol.noise,
        "noise_site": protocol.noise_site,
        "scale": protocol.law.scale.hex(),
        "mechanism": {
            "transform": transform_document(protocol.transform)["name"],
            "input_dim": protocol.transform.input_dim,
            "sketch_dim": protocol.transform.sketch_dim,
            "totals_scale": None if protocol.total_law is None else protocol.total_law.scale.hex(),
        },
        "calibration": _calibration(protocol),
        "bounds": {
            "contribution": protocol.contribution,
            "value_range": None if limits is None else [written(limit) for limit in limits],
            "resolution": written(protocol.resolution),
            "on_grid": protocol.on_grid,
            "changed_entries": protocol.changed_entries,
            "dropped_bits": protocol.dropped_bits,
        },
    }


def _calibration(protocol: Protocol) -> dict[str, str]:
    """What the scale was computed from, as exact integers; epsilon here is what the sketches have of it."""
    epsilon = written(protocol.sketch_epsilon)
    if protocol.noise == "laplace":
        return {
            "rule": "laplace: scale >= sensitivity / epsilon",
            "epsilon": epsilon,
            "sensitivity": str(protocol.neighbors.l1_sensitivity(protocol.transform)),
        }
    squared = gaussian_sensitivity_squared(protocol.transform, protocol.neighbors, protocol.noise_site)
    return {
        "rule": "analytic gaussian: delta(sensitivity / scale, epsilon) <= delta",
        "epsilon": epsilon,
        "sensitivity_squared": str(squared),
    }


def check_card(card: Any, releases: Sequence[Release], where: str) -> None:
    """Refuses a card that does not belong to the protocols and sources beside it.

    Facts must be there and agree; what else a later version adds is let be. What the card says in words a later version may put
    better: `armslength verify` compares it.

    Args:
        card: The card as it was read.
        releases: The protocols of the file, each with what was released under it.
        where: The file, for messages.
    """
    if not isinstance(card, dict) or not isinstance(card.get("releases"), list):
        raise _other_card(where)
    if card.get("in_clear") is True:
        if card["releases"]:
            raise _other_card(where)
        return
    facts = [release_facts(*release) for release in releases]
    if card.get("in_clear") is not False or len(card["releases"]) != len(facts):
        raise _other_card(where)
    for found, expected in zip(card["releases"], facts, strict=True):
        if not isinstance(found, dict) or any(
            name not in found or found[name] != value for name, value in expected.items()
        ):
            raise _other_card(where)


def _other_card(where: str) -> CorruptFileError:
    return CorruptFileError(f"{where} must have the release card of its protocols, got another")
