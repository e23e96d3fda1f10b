"""The hypotheses of theorem 1 in docs/privacy.md as they apply to a release, in words: who sees to each of them.

A guarantee holds for those who know what it rests on. So every text that states the guarantee takes its hypotheses from here, and
the tests hold this list against the numbered list of the theorem.
"""

from dataclasses import dataclass

from armslength.privacy.parameters import written
from armslength.protocol.protocol import Protocol

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
    if protocol.touched is None:
        return f"{rounded}; any entry may change, and so the software lets a release of prepared rows have one row only."
    entries = f"{protocol.touched:,} entr{'y' if protocol.touched == 1 else 'ies'}"
    return (
        f"{rounded}, which can move each changed entry by one step more: the party promises that {protected_change(protocol)} changes at most "
        f"{entries} over all rows; the software cannot check it."
    )
