"""The protocol as a document: what its JSON holds, and how it is read back without trusting it."""

import hashlib
from collections.abc import Mapping
from typing import Any

from armslength.checks import one_of, short_repr
from armslength.errors import CorruptFileError, UnsupportedVersionError, unsupported
from armslength.files import canonical_json
from armslength.transforms.dense_jl import GaussianJL, SignJL
from armslength.transforms.hadamard_jl import FastJL, HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import Transform

FORMAT = "armslength protocol"
VERSION = 2

# Every field beside "format", "version", "transform" and "derived", in its order.
_PRIVACY = ("epsilon", "delta", "noise", "radius", "resolution", "relation", "contribution", "unit")
_DATA = ("noise_site", "on_grid", "changed_entries", "value_range", "total_share")
FIELDS = (*_PRIVACY, *_DATA, "items", "vocabulary")
# Left out of the document where they are not set.
RECIPE = ("record", "record_pairs")  # what an item means
OPTIONAL = (*RECIPE, "margins", "margin_share", "margin_contribution", "spread_sample")
TRANSFORMS: Mapping[str, type[Transform]] = {
    transform.name: transform for transform in (FastJL, GaussianJL, HadamardJL, Identity, SignJL, SparseJL)
}


def transform_document(transform: Transform) -> dict[str, Any]:
    """A transform as a document; floats as hexadecimal text."""
    parameters = transform.parameters().items()
    exact = {name: value.hex() if isinstance(value, float) else value for name, value in parameters}
    return {"name": transform.name, "parameters": exact}


def read_transform(document: Any) -> Transform:
    """The transform of a document; every rule of its class is checked again."""
    if not isinstance(document, Mapping) or set(document) != {"name", "parameters"}:
        raise CorruptFileError("transform of a protocol must have a name and parameters")
    parameters = document["parameters"]
    if not isinstance(parameters, Mapping):
        raise CorruptFileError("parameters of a transform must be an object")
    if "density" in parameters:
        parameters = {**parameters, "density": _float(parameters["density"])}
    return build_transform(document["name"], parameters)


def build_transform(name: Any, parameters: Any) -> Transform:
    """The transform of that name from its `parameters()`; every rule of its class is checked again."""
    return TRANSFORMS[one_of("transform", name, tuple(TRANSFORMS))].from_parameters(parameters)


def _float(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float.fromhex(value)
    except (ValueError, OverflowError):
        raise CorruptFileError(
            f"numbers of a transform must be hexadecimal floats, got {short_repr(value)}"
        ) from None


def fingerprint(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a document, in hexadecimal."""
    return hashlib.sha256(canonical_json(document)).hexdigest()


def differences(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The names of the fields in which two documents differ, such as "epsilon", "transform seed" or the derived "scale"."""
    names = []
    for name in sorted(first.keys() | second.keys()):
        a, b = first.get(name, ...), second.get(name, ...)  # a field that is None is there
        is_nested = name in ("transform", "parameters", "derived")
        if is_nested and isinstance(a, Mapping) and isinstance(b, Mapping):
            names += differences(a, b, "transform " if name == "transform" else prefix)
        elif a != b:
            names.append(prefix + name)
    return names


def check_document(document: Any) -> None:
    """Refuses what is not a protocol of this version, field by field."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise CorruptFileError(f'not a protocol: it does not say "format": "{FORMAT}"')
    version = document.get("version")
    if type(version) is not int:
        raise CorruptFileError(f"version of a protocol must be a whole number, got {short_repr(version)}")
    if version != VERSION:
        raise UnsupportedVersionError(unsupported("a protocol", version, VERSION))
    expected = {"format", "version", "transform", "derived", *FIELDS}
    unknown, missing = sorted(set(document) - expected - set(OPTIONAL)), sorted(expected - set(document))
    if unknown or missing:
        names = [f"unknown {name!r}" for name in unknown[:3]] + [f"missing {name!r}" for name in missing[:3]]
        raise CorruptFileError(f"the protocol has not the fields of version {version}: {', '.join(names)}")
