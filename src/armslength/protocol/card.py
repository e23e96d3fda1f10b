"""The release card: what was released under which guarantee, for machines and in words. Public facts only."""

from typing import Any

from armslength.protocol.protocol import Protocol
from armslength.protocol.schema import written
from armslength.version import __version__

_RELATIONS = {
    "add_remove": "adding or removing",
    "replace": "replacing",
}


def guarantee_in_words(protocol: Protocol) -> str:
    """One paragraph that a data-protection officer can read."""
    unit = protocol.unit or "one unit of protection"
    epsilon, delta = written(protocol.epsilon), written(protocol.released_delta)
    privacy = (
        f"{epsilon}-differentially private"
        if delta == "0"
        else f"({epsilon}, {delta})-differentially private"
    )
    law = "discrete Laplace noise" if protocol.noise == "laplace" else "rounded normal noise"
    return (
        f"All rows of one release together are {privacy} for {_RELATIONS[protocol.relation]} {unit}, "
        f"which moves the data by at most {written(protocol.radius)} in {protocol.norm} norm over all rows. "
        f"Integer {law} of scale {protocol.law.scale:g} is drawn exactly and added to an integer projection "
        f"({protocol.transform.name}). {_totals_in_words(protocol)}People whose data is in several releases spend the budget of each."
    )


def _totals_in_words(protocol: Protocol) -> str:
    if protocol.total_law is None:
        return ""
    return (
        f"Of ε, {written(protocol.totals_epsilon)} goes to the total of each row, "
        f"with discrete Laplace noise of scale {protocol.total_law.scale:g}. "
    )


def protection_in_words(protocol: Protocol) -> str:
    """Who is protected against what, in one sentence: the unit of protection printed back."""
    unit = protocol.unit or "one unit of protection"
    if protocol.contribution is None:
        reach = f"which moves the data by at most {written(protocol.radius)} in {protocol.norm} norm over all rows"
    else:
        reach = f"of whose events at most {protocol.contribution:,} count, by weight, over all groups and items together"
    return f"Protected is {_RELATIONS[protocol.relation]} {unit}, {reach}."


def release_card(protocols: tuple[Protocol, ...], *, in_clear: bool) -> dict[str, Any]:
    """The card of a file: for each protocol its fingerprint and its guarantee in words; no guarantee for clear data."""
    if in_clear:
        words = "NOT PRIVATE: rows of this file hold data without noise. It must not be published."
        return {"armslength": __version__, "in_clear": True, "releases": [], "words": words}
    return {
        "armslength": __version__,
        "in_clear": False,
        "releases": [
            {
                "protocol": protocol.fingerprint,
                "unit": protocol.unit,
                "relation": protocol.relation,
                "norm": protocol.norm,
                "radius": written(protocol.radius),
                "epsilon": written(protocol.epsilon),
                "delta": written(protocol.released_delta),
                "noise": protocol.noise,
                "noise_site": protocol.noise_site,
                "scale": protocol.law.scale.hex(),
                "totals_epsilon": written(protocol.totals_epsilon),
                "words": guarantee_in_words(protocol),
            }
            for protocol in protocols
        ],
    }
