"""The release card: what was released under which guarantee, for machines and in words. Public facts only.

A card holds settings, never counts: no number in it depends on the data. It stands in the metadata of every sketch file, where
loading holds it against the protocols and sources beside it; `armslength card` shows it and `armslength verify` computes it anew.
"""

from collections.abc import Sequence
from typing import Any

from armslength.errors import CorruptFileError
from armslength.privacy.parameters import written
from armslength.protocol.card_words import guarantee_in_words, officer_page
from armslength.protocol.choice import gaussian_sensitivity_squared
from armslength.protocol.protocol import Protocol
from armslength.protocol.provenance import Release
from armslength.protocol.schema import transform_document
from armslength.version import __version__

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
            "touched": protocol.touched,
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
