"""A protocol as a JSON document, and back: what is derived is written to be read, and never trusted."""

from collections.abc import Sequence
from typing import Any

from armslength.errors import CorruptFileError, IncompatibleSketchesError, ParameterError
from armslength.protocol import schema
from armslength.protocol.protocol import Protocol
from armslength.transforms.base import Transform


def document_of(protocol: Protocol) -> dict[str, Any]:
    """The document of a protocol."""
    limits = protocol.value_range
    return {
        "format": schema.FORMAT,
        "version": schema.VERSION,
        "transform": schema.transform_document(protocol.transform),
        "epsilon": schema.written(protocol.epsilon),
        "delta": schema.written(protocol.delta),
        "noise": protocol.noise,
        "radius": schema.written(protocol.radius),
        "resolution": float(protocol.resolution).hex(),
        "norm": protocol.norm,
        "relation": protocol.relation,
        "contribution": protocol.contribution,
        "unit": protocol.unit,
        "noise_site": protocol.noise_site,
        "on_grid": protocol.on_grid,
        "touched": protocol.touched,
        "value_range": None if limits is None else [schema.written(limit) for limit in limits],
        "dropped_bits": protocol.dropped_bits,
        "total_share": schema.written(protocol.total_share),
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


def protocols_of(documents: Sequence[Any]) -> tuple[Protocol, ...]:
    """The protocols of documents that must share one transform, whose matrix is scanned once for all of them."""
    first = protocol_of(documents[0])
    return (first, *(protocol_of(document, first.transform) for document in documents[1:]))


def protocol_of(document: Any, transform: Transform | None = None) -> Protocol:
    """The protocol of a document; refuses unknown versions, unknown fields, and derived values that differ.

    Args:
        document: What was read.
        transform: The transform that it must have; None takes any.
    """
    schema.check_document(document)
    if transform is not None and document["transform"] != schema.transform_document(transform):
        raise IncompatibleSketchesError("sketches must share one space, got different transforms in one file")
    fields = {name: document[name] for name in schema.FIELDS}
    try:
        fields["resolution"] = float.fromhex(fields["resolution"])
        if fields["contribution"] is not None:
            fields.pop("radius")
        built = schema.read_transform(document["transform"]) if transform is None else transform
        protocol = Protocol(built, **fields)
    except (ParameterError, ValueError, TypeError, OverflowError) as problem:
        raise CorruptFileError(f"a protocol must be valid, got: {problem}") from None
    again = protocol.document()
    if again != document:
        differing = sorted(name for name, value in again.items() if document[name] != value)
        raise CorruptFileError(
            f"a protocol must be as armslength writes it, got another {', '.join(differing)}"
        )
    return protocol
