"""A protocol as a JSON document, and back: what is derived is written to be read, and never trusted."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from armslength.errors import CorruptFileError, IncompatibleSketchesError, ParameterError
from armslength.privacy.parameters import written
from armslength.protocol import schema
from armslength.protocol.protocol import Protocol
from armslength.protocol.work import WorkBudget
from armslength.transforms.base import Transform


def document_of(protocol: Protocol) -> dict[str, Any]:
    """The document of a protocol."""
    limits = protocol.value_range
    return {
        "format": schema.FORMAT,
        "version": schema.VERSION,
        "transform": schema.transform_document(protocol.transform),
        "epsilon": written(protocol.epsilon),
        "delta": written(protocol.delta),
        "noise": protocol.noise,
        "radius": written(protocol.radius),
        "resolution": float(protocol.resolution).hex(),
        "norm": protocol.norm,
        "relation": protocol.relation,
        "contribution": protocol.contribution,
        "unit": protocol.unit,
        "noise_site": protocol.noise_site,
        "on_grid": protocol.on_grid,
        "touched": protocol.touched,
        "value_range": None if limits is None else [written(limit) for limit in limits],
        "dropped_bits": protocol.dropped_bits,
        "total_share": written(protocol.total_share),
        "items": protocol.items,
        "vocabulary": protocol.vocabulary,
        "derived": _derived(protocol),
    }


def _derived(protocol: Protocol) -> dict[str, str]:
    neighbors = protocol.neighbors
    radius = (
        {"grid_radius": str(neighbors.radius)}
        if protocol.norm == "l1"
        else {"grid_radius_squared": str(neighbors.radius_squared)}
    )
    totals = {} if protocol.total_law is None else {"total_scale": protocol.total_law.scale.hex()}
    return {**radius, "scale": protocol.law.scale.hex(), **totals}


def protocols_of(documents: Sequence[Any], budget: WorkBudget, where: str) -> tuple[Protocol, ...]:
    """The protocols of documents that must share one transform, whose matrix is scanned once for all of them.

    Refuses unknown versions, unknown fields, derived values that differ, and, before anything is computed, too much work.

    Args:
        documents: What was read.
        budget: The work that reading them may be.
        where: The file, for messages.
    """
    for document in documents:
        schema.check_document(document)
        if document["transform"] != documents[0]["transform"]:
            raise IncompatibleSketchesError(
                "sketches must share one space, got different transforms in one file"
            )
    with _refusing_invalid():
        transform = budget.shared(schema.read_transform(documents[0]["transform"]))
    budget.charge_protocols(transform, documents, where)
    return tuple(_protocol_of(document, transform) for document in documents)


def _protocol_of(document: Any, transform: Transform) -> Protocol:
    """The protocol of a document with this transform."""
    fields = {name: document[name] for name in schema.FIELDS}
    with _refusing_invalid():
        fields["resolution"] = float.fromhex(fields["resolution"])
        if fields["contribution"] is not None:
            fields.pop("radius")
        protocol = Protocol(transform, **fields)
    again = protocol.document()
    if again != document:
        differing = sorted(name for name, value in again.items() if document[name] != value)
        if differing == ["derived"] and isinstance(document["derived"], Mapping):
            derived = document["derived"]
            differing = [name for name, value in again["derived"].items() if derived.get(name) != value]
        named = ", ".join(differing) or "derived"
        raise CorruptFileError(
            f"a protocol must be as armslength writes it, got another {named} than the other fields give: "
            "this protocol was edited by hand; make a new one with `armslength protocol new` or al.Protocol"
        )
    return protocol


@contextmanager
def _refusing_invalid() -> Iterator[None]:
    """Turns what an argument from a document breaks into one line about the protocol."""
    try:
        yield
    except (ParameterError, ValueError, TypeError, OverflowError) as problem:
        raise CorruptFileError(f"a protocol must be valid, got: {problem}") from None
