"""The release card in words: one paragraph for those who know, and a page for a data-protection officer."""

import math
from fractions import Fraction

from armslength.privacy.parameters import weakness, written
from armslength.protocol.hypotheses import hypotheses, protected_change
from armslength.protocol.protocol import Protocol
from armslength.transforms.identity import Identity

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
