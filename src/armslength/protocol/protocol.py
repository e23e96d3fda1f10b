"""The protocol: what all parties agree on before any data is seen."""

import copy
import json
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from armslength.checks import check_local, one_line, one_of, short_repr
from armslength.errors import (
    CorruptFileError,
    IncompatibleSketchesError,
    InputError,
    ParameterError,
    UnknownNameError,
)
from armslength.files import atomic_write, read_json, read_limited
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, decimal_text
from armslength.protocol import schema
from armslength.protocol.contribution import Arrays, Contribution, Counts, Votes, contribution_of
from armslength.protocol.margins import margins_of_document
from armslength.protocol.neighbors import (
    calibrated_law,
    choose_noise,
    margin_law,
    margin_sensitivity,
    scalar_laws,
    total_law,
)
from armslength.protocol.public_lists import is_hash, list_hash, nfc
from armslength.protocol.record import Record
from armslength.randomness.seeds import canonical_text
from armslength.results import Result
from armslength.threads import cached_attribute
from armslength.transforms.transform import Transform

if TYPE_CHECKING:
    import pyarrow as pa

    from armslength.laws import DiscreteLaplace

LARGEST_PROTOCOL_FILE = 64 * 2**20
MOST_WITH_NORM = 4096  # coordinates: the norm of chance takes k² numbers
ARRAYS = Arrays()


class Protocol(Result):
    """An immutable agreement: a transform, what one person contributes, the privacy parameters, and how items are named.

    Guarantee: what `al.release` gives out is ε-DP with Laplace noise, (ε, δ)-DP with Gaussian noise, for two inputs if
    (H1) they have the same number of rows and the same labels, which are public;
    (H2) ‖x − x'‖₁ ≤ radius over all rows of one release;
    (H3) both lie on the grid (`on_grid`), or they differ in at most `changed_entries` entries over all rows (None: in any entries of
    the one row that a release may then have);
    (H4) all fields, the matrix included, were chosen without looking at the data; and (H5) random bits are ideal.
    For event tables the software enforces H2 and H3, for one vote or a contribution of each person. Otherwise H2, and off the grid H3, are promises of the data holder that
    nothing can check. Sensitivity and scale are computed here, from the public fields alone, and again whenever a protocol is loaded.
    Reference: docs/privacy.md, theorem 1.

    Args:
        transform: The public matrix.
        data: What one person contributes: `al.Votes`, `al.Counts` or `al.Arrays`.
        epsilon: ε, the decimal that is written.
        delta: δ; 0 means pure DP.
        noise: "laplace", "gaussian", or "auto" for the law with the smaller exact variance.
        noise_site: "output", or "input" for `FastJL` with Gaussian noise.
        relation: "add_remove" or "replace": neighbors differ by one person more or less, or by another person; with votes and counts, the
            radius is that of one person or of two.
        unit: The unit of protection in words, such as "one patient".
        items: "string" or "int64": what names the coordinates of an open vocabulary.
        vocabulary: The ordered names of all coordinates, or their hash; columns of a data frame must be these. None: those of the record, if it
            lists them and the vocabulary is fixed.

    Attributes:
        totals_epsilon: The part of ε that totals spend; `margins_epsilon` is that of item groups, and `sketch_epsilon` the rest.
        radius: How far one unit of protection moves the data in ℓ1 norm, in data units; `grid_radius` is that in grid units.
        sensitivity: How far one unit of protection moves all sketches where their noise is added, in integer units: in ℓ1 norm for Laplace
            noise, in squared ℓ2 norm for Gaussian noise.
        votes: Whether each person has one vote.
        total_law: The noise of each total, in grid units. Of votes, it is that of people less `spread`, and `spread_law` that of the spread.
        margin_sensitivity: How far one unit of protection moves all margins, in ℓ1 norm and in grid units; None without item groups.
        released_delta: The δ of what is released: 0 with Laplace noise.

    Example:
        >>> import armslength as al
        >>> transform = al.SparseJL(sketch_dim=512, seed="trial-2026")
        >>> al.Protocol(transform, al.Votes(total_share=0.1), epsilon=1, unit="one patient").noise
        'laplace'
    """

    def __init__(  # noqa: PLR0913  # each is a decision of its own
        self,
        transform: Transform,
        data: Contribution = ARRAYS,
        *,
        epsilon: Any,
        delta: Any = 0,
        noise: str = "auto",
        noise_site: str = "output",
        relation: str = "add_remove",
        unit: str = "",
        items: str = "string",
        vocabulary: Any = None,
    ) -> None:
        if not isinstance(transform, Transform):
            raise ParameterError(
                f"transform must be a transform such as al.SparseJL, got {short_repr(transform)}", "transform"
            )
        if not isinstance(data, Votes | Counts | Arrays):
            raise ParameterError(
                f"data must be al.Votes, al.Counts or al.Arrays, got {short_repr(data)}", "data"
            )
        noise = one_of("noise", noise, ("auto", "laplace", "gaussian"))
        self.transform, self.data = transform, data
        self.relation = one_of("relation", relation, ("add_remove", "replace"))
        self.noise_site = one_of("noise_site", noise_site, ("output", "input"))
        self.items = one_of("items", items, ("string", "int64"))
        self.unit = one_line("unit", unit)
        self.epsilon, self.delta = checked_epsilon(epsilon), checked_delta(delta)
        self._take(data)
        if self.contribution is not None:
            _check_for_tables(transform, data, noise, items)
            noise = "laplace"
        if vocabulary is None and self.record is not None and transform.input_dim is not None:
            vocabulary = _names_of_record(self.record, transform.input_dim)
        self.vocabulary = checked_vocabulary(vocabulary, transform.input_dim)

        # neighbors: how far one unit of protection moves the data, on the public grid
        self.radius = data.radius_of(relation)
        self.resolution, self.grid_radius = data.grid_of(relation, transform.input_dim)
        self._calibrate(noise)
        self._frozen = True

    def _take(self, data: Contribution) -> None:
        """Sets the fields of the document that say what one person contributes."""
        self.votes = isinstance(data, Votes)
        self.contribution, self.total_share = data.contribution, data.total_share
        self.spread_sample, self.record = data.spread_sample, data.record
        self.on_grid, self.changed_entries = data.on_grid, data.changed_entries
        self.value_range = data.value_range
        groups, self.margins = data.item_groups, data.margins
        self.margin_share = Fraction(0) if groups is None else groups.share
        self.margin_contribution = None if groups is None else groups.limit

    def _calibrate(self, noise: str) -> None:
        """Sets the parts of ε, and how much noise covers what one unit of protection moves."""
        self.totals_epsilon = self.epsilon * self.total_share
        self.margins_epsilon = self.epsilon * self.margin_share
        self.sketch_epsilon = self.epsilon - self.totals_epsilon - self.margins_epsilon
        if self.noise_site == "input":
            noise = _noise_on_input(noise, self.transform)
        if noise == "auto":
            noise = choose_noise(self.transform, self.grid_radius, self.sketch_epsilon, self.delta)
        self.noise = noise
        self.law, self.sensitivity = calibrated_law(
            noise, self.transform, self.grid_radius, self.sketch_epsilon, self.delta, self.noise_site
        )
        self.total_law: DiscreteLaplace | None = None
        self.spread_law: DiscreteLaplace | None = None
        if self.total_share and self.votes:
            self.total_law, self.spread_law = scalar_laws(self.totals_epsilon, self.relation)
        elif self.total_share:
            self.total_law = total_law(self.grid_radius, self.totals_epsilon)
        self.margin_sensitivity: int | None = None
        self.margin_law: DiscreteLaplace | None = None
        if self.margins is not None and self.margin_contribution is not None:
            groups = len(self.margins.names)
            self.margin_sensitivity = margin_sensitivity(self.margin_contribution, groups, self.relation)
            self.margin_law = margin_law(self.margin_sensitivity, self.margins_epsilon)
        self.released_delta = self.delta if noise == "gaussian" else Fraction(0)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_frozen" in self.__dict__:
            raise AttributeError(f"a protocol cannot be changed; make a new one to change {name}")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Protocol) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def to_arrow(self) -> "pa.Table":
        """One line for each field of the document that is set, and for what is derived from them: field, value."""
        import pyarrow as pa  # noqa: PLC0415  # a protocol by itself needs no tables

        fields = {**self.document(), "transform": self.transform}
        fields |= fields.pop("derived")
        if self.margins is not None:
            fields["margins"] = self.margins
        for name in {"resolution", "scale", "total_scale", "spread_scale", "margin_scale"} & fields.keys():
            fields[name] = f"{float.fromhex(fields[name]):.6g}"
        texts = {name: str(value) for name, value in fields.items() if value not in (None, "")}
        columns = {"field": list(texts), "value": list(texts.values())}
        return pa.table(columns, metadata={"fingerprint": self.fingerprint})

    def _head(self, rows: int) -> "tuple[pa.Table, int]":
        return super()._head(max(rows, 100))  # all fields

    def _title(self) -> str:
        delta = f", delta={decimal_text(self.delta)}" if self.delta else ""
        noise = f"noise={self.noise!r}, scale={self.law.scale:.6g}"
        return f"Protocol({self.transform!r}, epsilon={decimal_text(self.epsilon)}{delta}, {noise})"

    __repr__ = _title

    @property
    def releases_norm(self) -> bool:
        """Whether a release tells the norm of chance, F, beside the number of people: votes with at most 4,096 coordinates."""
        return self.spread_law is not None and self.transform.sketch_dim <= MOST_WITH_NORM

    @property
    def unit_squared(self) -> float:
        """γ²c²: turns squared integer units into squared data units."""
        return float(self.resolution**2 * self.transform.scale_squared)

    def document(self) -> dict[str, Any]:
        """The protocol as a JSON document; derived values are there for readers, and computed again on load."""
        return copy.deepcopy(self._document)

    @cached_attribute
    def _document(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in schema.FIELDS}
        optional = {
            **({} if self.record is None else self.record.document()),
            "margins": None if self.margins is None else self.margins.document(),
            "margin_share": self.margin_share or None,
            "margin_contribution": self.margin_contribution,
            "spread_sample": None if self.spread_sample == 1 else self.spread_sample,
        }
        derived = {
            "grid_radius": self.grid_radius,
            "scale": self.law.scale.hex(),
            "total_scale": None if self.total_law is None else self.total_law.scale.hex(),
            "spread_scale": None if self.spread_law is None else self.spread_law.scale.hex(),
            "margin_scale": None if self.margin_law is None else self.margin_law.scale.hex(),
        }
        fields |= {name: value for name, value in optional.items() if value is not None}
        for name, value in fields.items():
            if isinstance(value, Fraction):
                fields[name] = decimal_text(value)
        if self.value_range is not None:
            fields["value_range"] = list(map(decimal_text, self.value_range))
        return {
            "format": schema.FORMAT,
            "version": schema.VERSION,
            "transform": schema.transform_document(self.transform),
            **fields,
            "resolution": float(self.resolution).hex(),
            "derived": {name: str(value) for name, value in derived.items() if value is not None},
        }

    @cached_attribute
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of the document."""
        return schema.fingerprint(self._document)

    @cached_attribute
    def space(self) -> str:
        """The fingerprint of what must agree for sketches to be compared."""
        return schema.fingerprint(self.space_fields())

    def space_fields(self) -> dict[str, Any]:
        """What must agree for sketches to be compared; ε, δ and the law may differ."""
        shared = ("transform", "resolution", "items", "vocabulary", "noise_site", *schema.RECIPE)
        return {name: self._document[name] for name in shared if name in self._document}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the document, whole or not at all."""
        with atomic_write(path) as file:
            file.write((json.dumps(self._document, indent=1, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Protocol":
        """The protocol in a file; sensitivity and scale are computed anew.

        Args:
            path: The file.
        """
        check_local(path)
        data = read_limited(path, LARGEST_PROTOCOL_FILE, "a protocol")
        name = os.fspath(path)
        (protocol,) = protocols_of([read_json(data, f"a protocol ({name})")])
        return protocol

    @classmethod
    def from_document(cls, document: Any) -> "Protocol":
        """The protocol of a document; refuses unknown versions, unknown fields, and derived values that differ.

        Args:
            document: As `document` gives it.
        """
        (protocol,) = protocols_of([document])
        return protocol


def _check_for_tables(transform: Transform, data: Contribution, noise: str, items: str) -> None:
    """Refuses what does not go with votes or counts."""
    kind = "votes" if isinstance(data, Votes) else "event tables"
    if isinstance(data, Votes) and transform.column_entries is None:
        raise ParameterError(
            f"transform must be SparseJL or Identity for votes, got {transform.name}: others touch every number for each item",
            "transform",
        )
    if noise == "gaussian":
        raise ParameterError(f"noise must be 'laplace' for {kind}, got 'gaussian'", "noise")
    for name, part in {"record": data.record, "item_groups": data.item_groups}.items():
        if part is not None and items != "string":
            raise ParameterError(f"{name} cannot be combined with items='int64'", name, "items")


def _names_of_record(record: Record, input_dim: int) -> list[str]:
    """All items of a record, which are the coordinates of a fixed vocabulary."""
    names = record.items()
    if names is None:
        raise ParameterError(
            "input_dim needs a record that lists all categories, such as {'sex': ['F', 'M']}; "
            "list them, or leave it out for an open vocabulary",
            "input_dim",
        )
    if len(names) != input_dim:
        raise ParameterError(
            f"input_dim must be {len(names)}, the number of al.record_items, got {input_dim}", "input_dim"
        )
    return names


def _noise_on_input(noise: str, transform: Transform) -> str:
    """The law of noise on the input, if the transform can have it there."""
    transform.check_noise_on_input()
    if noise == "laplace":
        raise ParameterError("noise_site='input' needs noise='gaussian'", "noise_site", "noise")
    return "gaussian"


def vocabulary_hash(names: Sequence[str]) -> str:
    """The hash of names in their order."""
    return list_hash("vocabulary", [nfc("vocabulary", name) for name in names])


def checked_vocabulary(value: Any, input_dim: int | None) -> str | None:
    """The hash of a list of names, or a hash as it is; None for no vocabulary."""
    if value is None:
        return None
    if input_dim is None:
        raise ParameterError("vocabulary needs a fixed input_dim", "vocabulary", "input_dim")
    if is_hash(value):
        return str(value)
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != input_dim:
        rule = f"vocabulary must list {input_dim} names, one for each coordinate, or be its hash"
        raise ParameterError(f"{rule}, got {short_repr(value)}", "vocabulary")
    hashed = vocabulary_hash(value)
    if len({canonical_text(name) for name in value}) != len(value):
        raise ParameterError("vocabulary must list each name once", "vocabulary")
    return hashed


def check_columns(names: Sequence[str], vocabulary: str | None) -> None:
    """Refuses a data frame whose columns are not the vocabulary, in its order."""
    if vocabulary is not None and vocabulary_hash(names) != vocabulary:
        raise InputError("the columns are not the protocol's vocabulary in its order; reorder or rename them")


def protocols_of(documents: Sequence[Any], known: Transform | None = None) -> tuple[Protocol, ...]:
    """The protocols of documents that must share one transform, whose matrix is scanned once for all of them.

    Refuses unknown versions, unknown fields and derived values that differ. Transforms limit their sizes, so that a scan takes seconds;
    an equal one that is `known` is not scanned again.
    """
    for document in documents:
        schema.check_document(document)
        if document["transform"] != documents[0]["transform"]:
            raise IncompatibleSketchesError("the file has protocols with different transforms")
    try:
        transform = schema.read_transform(documents[0]["transform"])
        transform = known if known == transform else transform
        return tuple(_protocol_of(document, transform) for document in documents)
    except (ParameterError, UnknownNameError, ValueError, TypeError, OverflowError) as problem:
        raise CorruptFileError(f"the protocol is not valid: {problem}") from None


def _protocol_of(document: Any, transform: Transform) -> Protocol:
    """The protocol of a document with this transform."""
    fields = {name: document[name] for name in (*schema.FIELDS, *schema.OPTIONAL) if name in document}
    fields["resolution"] = float.fromhex(fields["resolution"])
    if "margins" in fields:
        fields["margins"] = margins_of_document(fields["margins"])
    if fields["contribution"] is not None:
        fields.pop("radius")
    protocol = Protocol(transform, contribution_of(fields), **fields)
    differing = schema.differences(protocol.document(), document)
    if differing:
        raise CorruptFileError(
            f"the protocol was edited by hand: its other fields give another {', '.join(differing)}; "
            "make a new one with al.Protocol or `armslength protocol new`"
        )
    return protocol
