"""The protocol: what all parties agree on before any data is seen."""

import copy
import json
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from armslength.checks import check_local, integer, number, one_line, one_of, short_repr
from armslength.errors import (
    CorruptFileError,
    IncompatibleSketchesError,
    InputError,
    ParameterError,
    UnknownNameError,
)
from armslength.files import atomic_write, read_json, read_limited
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, decimal_text, exact_number
from armslength.protocol import schema
from armslength.protocol.margins import checked_margin_bounds, checked_margins, margins_of_document
from armslength.protocol.neighbors import (
    VOTE,
    calibrated_law,
    check_shares,
    checked_range,
    checked_resolution,
    choose_noise,
    margin_law,
    margin_sensitivity,
    radius_on_grid,
    scalar_laws,
    total_law,
)
from armslength.protocol.public_lists import is_hash, list_hash, nfc
from armslength.protocol.record import Record, checked_record
from armslength.randomness.seeds import canonical_text
from armslength.results import Result
from armslength.threads import cached_attribute
from armslength.transforms.transform import Transform

if TYPE_CHECKING:
    import pyarrow as pa

    from armslength.laws import DiscreteLaplace
    from armslength.release.stream import SketchStream
    from armslength.sketches.sketches import Sketches

LARGEST_PROTOCOL_FILE = 64 * 2**20
_LARGEST = 2**40
VOTES = "vote"  # as a contribution
MOST_WITH_NORM = 4096  # coordinates: the norm of chance takes k² numbers


class Protocol(Result):
    """An immutable agreement: a transform, the privacy parameters, and how data becomes integers.

    Guarantee: what `release` gives out is ε-DP with Laplace noise, (ε, δ)-DP with Gaussian noise, for two inputs if
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
        epsilon: ε, the decimal that is written.
        delta: δ; 0 means pure DP.
        noise: "laplace", "gaussian", or "auto" for the law with the smaller exact variance at `distance`.
        radius: How far one unit of protection can move the data in ℓ1 norm, in data units.
        resolution: The grid γ: 1 for counts, a power of two for real values, or "auto".
        relation: "add_remove" or "replace"; with `contribution` it sets the radius to that of one person or of two.
        contribution: For event tables, instead of radius: "vote", one vote of each person, split evenly over all different items they have
            in one group; or C, the most that all events of a person count, by weight.
        unit: The unit of protection in words, such as "one patient".
        noise_site: "output", or "input" for `FastJL` with Gaussian noise.
        on_grid: Whether data is promised to be multiples of the resolution; None: yes, except with "auto".
        changed_entries: How many entries one unit can change, over all rows of a release. It matters off the grid only; None
            means input_dim, and then a release off the grid has one row.
        value_range: The public (low, high) to which each coordinate is clamped.
        total_share: The share of ε that goes to the total of each row, so that mixes can be compared; of votes, to the number of people
            and to how far chance reaches. 0: neither.
        spread_sample: The share of people, drawn by a secret key, of whom it is counted how far chance reaches; with votes.
        items: "string" or "int64": what names the coordinates of an open vocabulary.
        vocabulary: The ordered names of all coordinates, or their hash; columns of a data frame must be these.
        record: For tables with one row for each person: what becomes of each column. A list of edges puts numbers into intervals, "category"
            takes values as they are, a list of categories those (others are "(other)"), and "year", "quarter", "month", "week" or "day" takes dates.
            Then people vote, and a fixed vocabulary is all items, unless they are given.
        record_pairs: Pairs of the record's columns, to compare joint distributions.
        margins: With votes and a total_share, public groups of items; tables then tell how many people of each row have an item in each of them. A mapping from items to
            the names of their groups; a table or file with the columns item and group, or prefix and group, where an item belongs to the longest
            prefix that it begins with; or a list of columns of the record, whose values are listed. All other items belong to "(other)", those of a record to none.
        margin_share: The share of ε that goes to margins.
        margin_contribution: G, how many item groups of one person count in full; of somebody with g more of them, each counts G/g. A record knows it.
        distance: The distance at which noise="auto" compares, in data units; it is not stored.

    Attributes:
        totals_epsilon: The part of ε that totals spend; `margins_epsilon` is that of margins, and `sketch_epsilon` the rest.
        sensitivity: How far one unit of protection moves all sketches where their noise is added, in integer units: in ℓ1 norm for Laplace
            noise, in squared ℓ2 norm for Gaussian noise.
        votes: Whether each person has one vote.
        total_law: The noise of each total, in grid units. Of votes, it is that of people less `spread`, and `spread_law` that of the spread.
        margin_sensitivity: How far one unit of protection moves all margins, in ℓ1 norm and in grid units; None without margins.
        released_delta: The δ of what is released: 0 with Laplace noise.
    """

    def __init__(  # noqa: PLR0913  # one argument for each field of the document
        self,
        transform: Transform,
        *,
        epsilon: Any,
        delta: Any = 0,
        noise: str = "auto",
        radius: Any = None,
        resolution: Any = 1,
        relation: str = "add_remove",
        contribution: int | str | None = None,
        unit: str = "",
        noise_site: str = "output",
        on_grid: bool | None = None,
        changed_entries: int | None = None,
        value_range: Any = None,
        total_share: Any = 0,
        spread_sample: Any = 1,
        items: str = "string",
        vocabulary: Any = None,
        record: Any = None,
        record_pairs: Any = (),
        margins: Any = None,
        margin_share: Any = 0,
        margin_contribution: int | None = None,
        distance: float = 0.0,
    ) -> None:
        if not isinstance(transform, Transform):
            raise ParameterError(
                f"transform must be a transform such as al.SparseJL, got {short_repr(transform)}", "transform"
            )
        noise = one_of("noise", noise, ("auto", "laplace", "gaussian"))
        relation = one_of("relation", relation, ("add_remove", "replace"))
        noise_site = one_of("noise_site", noise_site, ("output", "input"))
        items = one_of("items", items, ("string", "int64"))
        unit = one_line("unit", unit)
        distance = number("distance", distance, above=-1e-300, at_most=1e150)
        self.transform, self.relation, self.noise_site = transform, relation, noise_site
        self.items, self.unit = items, unit
        self.record = checked_record(record, record_pairs)
        contribution, vocabulary = _record_defaults(
            self.record, contribution, radius, vocabulary, transform, items
        )
        self.votes = contribution == VOTES
        self.contribution = VOTES if self.votes else _checked_count("contribution", contribution)
        if self.votes:
            _check_votes(transform, noise, resolution, value_range, on_grid, changed_entries)
            noise, resolution = "laplace", float(Fraction(1, VOTE))
        elif self.contribution is not None:
            if noise == "gaussian":
                raise ParameterError("noise must be 'laplace' for event tables, got 'gaussian'", "noise")
            noise = "laplace"
        self.changed_entries = _checked_count("changed_entries", changed_entries)
        total_share = exact_number("total_share", total_share)
        self.spread_sample = _checked_sample(spread_sample, votes=self.votes)
        self.epsilon, self.delta, self.total_share = (
            checked_epsilon(epsilon),
            checked_delta(delta),
            total_share,
        )
        self.margins = checked_margins(margins, self.record)
        self.margin_share, self.margin_contribution = checked_margin_bounds(
            self.margins, margin_share, margin_contribution, items
        )
        if self.margins is not None and not (self.votes and self.total_share):
            raise ParameterError(
                "margins need contribution='vote' and a total_share above 0: they are shares of the people who vote",
                *("margins", "contribution", "total_share"),
            )
        check_shares(self.total_share, self.margin_share)
        self.vocabulary = checked_vocabulary(vocabulary, transform.input_dim)

        # neighbors: how far one unit of protection moves the data, on the public grid
        self.radius = _checked_radius(radius, self.contribution, relation)
        can_differ = self.changed_entries or transform.input_dim
        self.resolution = checked_resolution(resolution, self.radius, can_differ)
        self.on_grid = _checked_on_grid(on_grid, resolution)
        self.value_range = checked_range(value_range, self.resolution)
        self.grid_radius = radius_on_grid(
            self.radius, self.resolution, on_grid=self.on_grid, changed_entries=can_differ
        )

        self._calibrate(noise, distance)
        self._frozen = True

    def _calibrate(self, noise: str, distance: float) -> None:
        """Sets the parts of ε, and how much noise covers what one unit of protection moves."""
        self.totals_epsilon = self.epsilon * self.total_share
        self.margins_epsilon = self.epsilon * self.margin_share
        self.sketch_epsilon = self.epsilon - self.totals_epsilon - self.margins_epsilon
        if self.noise_site == "input":
            noise = _noise_on_input(noise, self.transform)
        if noise == "auto":
            squared_distance = (distance / float(self.resolution)) ** 2
            noise = choose_noise(
                self.transform, self.grid_radius, self.sketch_epsilon, self.delta, squared_distance
            )
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

    def release(
        self,
        X: Any,
        *,
        ledger: Any,
        labels: Any = None,
        population: str = "",
        period: str = "",
        items: Any = None,
        repeat: bool = False,
        threads: int | None = None,
    ) -> "Sketches":
        """One private sketch for each row of X; charged to the ledger first.

        Guarantee: all rows together are ε-DP (Laplace) or (ε, δ)-DP (Gaussian) for neighbors with ‖x − x'‖₁ ≤ radius
        over all rows. Off the grid, neighbors must also differ in at most `changed_entries` entries
        over all rows. You promise both: nothing can check them. Number and labels of the rows are public, and no setting may be
        chosen by looking at X. Random bits are taken for ideal. Errors are raised before anything is charged or drawn, and show no value of X.
        Reference: docs/privacy.md, theorem 1.

        Args:
            X: n rows: a dense array, a SciPy sparse matrix, or anything with an Arrow C stream. Nobody may change it meanwhile:
                it is not copied, and may be read twice.
            ledger: A `Ledger`, the path of one that exists, or `al.NO_LEDGER`.
            labels: One public name for each row; None takes the index of a pandas data frame if that is text, and else numbers them.
            population: Whose budget the ledger charges.
            period: The time that the data are about, "2026-11" for example. The same labels may be released once per period.
            items: For an open vocabulary: the items that the columns count; a table's column names if None.
            repeat: Whether the same population, period and labels may be released again.
            threads: At most this many threads; None takes all that the process may run.
        """
        from armslength.ledger.ledger import open_account  # noqa: PLC0415  # release is above protocol
        from armslength.release.release import release_array  # noqa: PLC0415  # the one door to the secret noise

        account = open_account(ledger, population, period=period, repeat=repeat)
        return release_array(self, X, labels, items, account, threads)

    def release_table(  # noqa: PLR0913  # each is a decision of its own
        self,
        source: Any,
        *,
        person: str,
        item: str | None = None,
        ledger: Any,
        group: str | None = None,
        public_groups: Any = None,
        label: str | None = None,
        weight: str | None = None,
        population: str = "",
        period: str = "",
        vocabulary: Any = None,
        margins: Any = None,
        repeat: bool = False,
        memory: str = "1GB",
        threads: int | None = None,
        show_progress: bool = False,
    ) -> "Sketches":
        """One private sketch for each public group of an event table: who, what, where; charged to the ledger first.

        Guarantee: all rows together are ε-DP for adding or removing, or for replacing, one person with all of their events, whatever these
        are: a person has one vote in one group, split over all different items they have there, or at most `contribution` events, by
        weight, over all groups. Which groups there are, how many rows, their order and labels are public input. Errors are raised
        before anything is charged or drawn.
        Reference: docs/privacy.md, event tables, margins and theorem 1.

        Args:
            source: Parquet, Arrow, CSV or JSON files, a folder, a pattern or a list of them; a table of Arrow, pandas, Polars or DuckDB;
                or an `al.Source`, for databases and other dialects. Nobody may change it meanwhile.
            person: The column that says who an event is about. Events without a person are left out.
            item: The column that says what happened, of the protocol's type. Events without an item are left out. With a protocol that has a
                record there is none: the columns of each row become items.
            ledger: A `Ledger`, the path of one that exists, or `al.NO_LEDGER`.
            group: The column that says which group an event belongs to; with `public_groups`.
            public_groups: Every group that gets a row, also without events, in this order. Events of others are left out.
            label: Instead of both: the name of the one row that all events belong to.
            weight: The column that says how much an event counts, of either sign, floored onto the protocol's grid; None: 1. Not
                with votes.
            population: Whose budget the ledger charges.
            period: The time that the data are about, "2026-11" for example. The same labels may be released once per period.
            vocabulary: For a protocol with a vocabulary: its list of names. Events with other items are left out. A record's own is known.
            margins: For a protocol whose margins are a table of items: the same mapping, table or file. Prefixes and columns of a record are in the protocol.
            repeat: Whether the same population, period and labels may be released again.
            memory: About how much is held before events go to an encrypted temporary file, such as "1GB".
            threads: At most this many threads; None takes all that the process may run.
            show_progress: Whether to show progress, if standard error is a terminal.
        """
        from armslength.ingest.event_columns import EventColumns  # noqa: PLC0415  # the same
        from armslength.ingest.event_table import TableJob, public_groups_of  # noqa: PLC0415  # the same
        from armslength.ledger.ledger import open_account  # noqa: PLC0415  # the same
        from armslength.release.release import release_events  # noqa: PLC0415  # the same

        account = open_account(ledger, population, period=period, repeat=repeat)
        columns = EventColumns(person, item, group, weight)
        groups = public_groups_of(group, public_groups, label)
        job = TableJob.of(
            source,
            self,
            columns,
            groups,
            vocabulary,
            margins=margins,
            memory=memory,
            threads=threads,
        )
        return release_events(job, account, show_progress=show_progress)

    def stream(
        self, *, label: str, ledger: Any, population: str = "", period: str = "", repeat: bool = False
    ) -> "SketchStream":
        """A sketch that takes events one by one; charged to the ledger now. See `armslength.release.stream`."""
        from armslength.release.stream import SketchStream  # noqa: PLC0415  # the same

        return SketchStream(
            self, label=label, ledger=ledger, population=population, period=period, repeat=repeat
        )

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


def check_settings_for_tables(protocol: Protocol) -> None:
    """Refuses a value range, which no event table can be released with."""
    if protocol.value_range is not None:
        raise ParameterError("event tables have no value_range: a contribution bounds them", "value_range")


def _checked_count(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value, at_least=1, at_most=_LARGEST)


def _check_votes(
    transform: Transform,
    noise: str,
    resolution: Any,
    value_range: Any,
    on_grid: bool | None,
    changed_entries: int | None,
) -> None:
    """Refuses settings that votes fix themselves."""
    if transform.column_entries is None:
        raise ParameterError(
            f"transform must be SparseJL or Identity for votes, got {transform.name}: others touch every number for each item",
            "transform",
        )
    if noise == "gaussian":
        raise ParameterError("noise must be 'laplace' for votes, got 'gaussian'", "noise")
    if value_range is not None:
        raise ParameterError("votes have no value_range: a vote bounds them", "value_range")
    if resolution not in (1, "1", float(Fraction(1, VOTE))):  # the command line has text
        raise ParameterError("leave out resolution: votes have their own", "resolution")
    if on_grid is False or changed_entries is not None:
        raise ParameterError(
            "leave out on_grid and changed_entries: votes are whole grid units", "on_grid", "changed_entries"
        )


def _checked_sample(value: Any, *, votes: bool) -> Fraction:
    """The share of people of whom F is counted."""
    share = exact_number("spread_sample", value)
    if not 0 < share <= 1:
        raise ParameterError(
            f"spread_sample must be above 0 and at most 1, got {float(share):g}", "spread_sample"
        )
    if share != 1 and not votes:
        raise ParameterError("spread_sample needs votes", "spread_sample")
    return share


def _record_defaults(
    record: Record | None, contribution: Any, radius: Any, vocabulary: Any, transform: Transform, items: str
) -> tuple[Any, Any]:
    """(contribution, vocabulary), which a record gives where the user does not."""
    if record is None:
        return contribution, vocabulary
    if radius is not None or items != "string" or contribution not in (None, VOTES):
        raise ParameterError("record needs votes and items of text", "record")
    contribution = VOTES
    if vocabulary is None and transform.input_dim is not None:
        names = record.items()
        if names is None:
            raise ParameterError(
                "input_dim needs a record that lists all categories, such as {'sex': ['F', 'M']}; "
                "list them, or leave it out for an open vocabulary",
                "input_dim",
            )
        if len(names) != transform.input_dim:
            raise ParameterError(
                f"input_dim must be {len(names)}, the number of al.record_items, got {transform.input_dim}",
                "input_dim",
            )
        vocabulary = names
    return contribution, vocabulary


def _checked_radius(radius: Any, contribution: int | str | None, relation: str) -> Fraction:
    """How far one unit of protection moves the data: the radius, or what the contribution makes it."""
    if contribution is None:
        exact = exact_number("radius", 1 if radius is None else radius)
        if not 0 < exact <= _LARGEST:
            raise ParameterError(
                f"radius must be above 0 and at most 2^40, got {short_repr(radius)}", "radius"
            )
        return exact
    if radius is not None:
        raise ParameterError("leave out radius: contribution sets it", "radius", "contribution")
    one = 1 if isinstance(contribution, str) else contribution
    return Fraction(one if relation == "add_remove" else 2 * one)


def _checked_on_grid(on_grid: Any, resolution: Any) -> bool:
    """Whether data is promised to lie on the grid; None: yes, unless the grid is ours to choose."""
    if on_grid is None:
        return bool(resolution != "auto")
    if not isinstance(on_grid, bool):
        raise ParameterError(f"on_grid must be True, False or None, got {short_repr(on_grid)}", "on_grid")
    return on_grid


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
    protocol = Protocol(transform, **fields)
    differing = schema.differences(protocol.document(), document)
    if differing:
        raise CorruptFileError(
            f"the protocol was edited by hand: its other fields give another {', '.join(differing)}; "
            "make a new one with al.Protocol or `armslength protocol new`"
        )
    return protocol
