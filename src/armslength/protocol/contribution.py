"""What one person contributes: one vote, counts of events, or a change of an array. Each object checks itself."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from inspect import signature
from typing import Any

from armslength.checks import integer, short_repr
from armslength.errors import ParameterError
from armslength.privacy.exact_numbers import decimal_text, exact_number
from armslength.protocol.margins import ItemGroups, Margins, margins_of
from armslength.protocol.neighbors import (
    VOTE,
    auto_resolution,
    check_range_fits,
    check_shares,
    checked_range,
    checked_resolution,
    persons,
    radius_on_grid,
)
from armslength.protocol.record import Record, checked_record

VOTES = "vote"  # as the contribution of a document
_LARGEST = 2**40
_MOST_UNITS = 2**62  # of one person, in grid units


@dataclass(frozen=True, init=False, repr=False)
class Contribution:
    """What `Votes`, `Counts` and `Arrays` have in common: fields as the protocol's document has them."""

    total_share: Fraction = Fraction(0)
    contribution: int | str | None = None
    spread_sample: Fraction = Fraction(1)
    record: Record | None = None
    item_groups: ItemGroups | None = None
    margins: Margins | None = None
    radius: Fraction = Fraction(1)
    resolution: Fraction | str = Fraction(1)
    on_grid: bool = True
    changed_entries: int | None = None
    value_range: tuple[Fraction, Fraction] | None = None

    def radius_of(self, relation: str) -> Fraction:
        """How far one unit of protection can move the data in ℓ1 norm, in data units."""
        return self.radius * (1 if self.contribution is None else persons(relation))

    def grid_of(self, relation: str, input_dim: int | None) -> tuple[Fraction, int]:
        """(resolution, radius): the grid, and in its units how far one unit of protection can move the data."""
        radius, can_differ = self.radius_of(relation), self.changed_entries or input_dim
        resolution = self.resolution
        if isinstance(resolution, str):
            resolution = auto_resolution(radius, can_differ)
        check_range_fits(self.value_range, resolution)
        return resolution, radius_on_grid(
            radius, resolution, on_grid=self.on_grid, changed_entries=can_differ
        )

    def __repr__(self) -> str:
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "margins"}
        set_here = {name: value for name, value in given.items() if value != getattr(type(self), name)}
        if self.contribution is not None:
            set_here.pop("radius", None)
        texts = (
            f"{name}={decimal_text(value) if isinstance(value, Fraction) else value}"
            for name, value in set_here.items()
        )
        return f"{type(self).__name__}({', '.join(texts)})"


@dataclass(frozen=True, init=False, repr=False)
class Votes(Contribution):
    """One vote of each person, split evenly over all different items that the person has in one group.

    Args:
        total_share: The share of ε that goes to the number of people and to how far chance reaches, so that profiles can be compared. 0: neither.
        spread_sample: The share of people, drawn by a secret key, of whom it is counted how far chance reaches.
        record: For tables with one row for each person: what becomes of each column. A list of edges puts numbers into intervals, "category"
            takes values as they are, a list of categories those (others are "(other)"), and "year", "quarter", "month", "week" or "day" takes dates.
        record_pairs: Pairs of the record's columns, to compare joint distributions.
        item_groups: An `al.ItemGroups`; tables then also tell how many people of each row have an item in each group. It needs a total_share.

    Example:
        >>> import armslength as al
        >>> al.Votes(total_share=0.1)
        Votes(total_share=0.1)
        >>> al.Votes(record={"age": [18, 65], "sex": ["F", "M"]}, record_pairs=[("age", "sex")])
        Votes(record=age:18,65; sex=F,M; age & sex)
    """

    contribution: int | str | None = VOTES
    resolution: Fraction | str = Fraction(1, VOTE)

    def __init__(
        self,
        total_share: Any = 0,
        spread_sample: Any = 1,
        record: Any = None,
        record_pairs: Any = (),
        item_groups: ItemGroups | None = None,
    ) -> None:
        share, sample = exact_number("total_share", total_share), exact_number("spread_sample", spread_sample)
        if not 0 < sample <= 1:
            raise ParameterError(
                f"spread_sample must be above 0 and at most 1, got {float(sample):g}", "spread_sample"
            )
        if not isinstance(item_groups, ItemGroups | None):
            raise ParameterError(
                f"item_groups must be al.ItemGroups, got {short_repr(item_groups)}", "item_groups"
            )
        checked = checked_record(record, record_pairs)
        check_shares(share, Fraction(0) if item_groups is None else item_groups.share)
        if item_groups is not None and not share:
            raise ParameterError(
                "item_groups need a total_share above 0: they are shares of the people who vote",
                *("item_groups", "total_share"),
            )
        margins = None if item_groups is None else margins_of(item_groups.groups, checked)
        vars(self).update(
            total_share=share, spread_sample=sample, record=checked, item_groups=item_groups, margins=margins
        )


@dataclass(frozen=True, init=False, repr=False)
class Counts(Contribution):
    """Amounts of events, added up: at most C for all events of one person.

    Args:
        contribution: C, the most that all events of a person count, by weight.
        total_share: The share of ε that goes to the total of each row. 0: none.
        resolution: The grid γ: 1 for counts, a power of two for other weights, or "auto".
        on_grid: Whether weights are multiples of the resolution; others are left out. None: yes, except with "auto".
        changed_entries: How many different items of one person there can be, over all rows of a release. It matters off the grid only; None
            means input_dim.

    Example:
        >>> import armslength as al
        >>> al.Counts(20)
        Counts(contribution=20)
    """

    def __init__(
        self,
        contribution: Any,
        total_share: Any = 0,
        resolution: Any = 1,
        *,
        on_grid: bool | None = None,
        changed_entries: int | None = None,
    ) -> None:
        most = integer("contribution", contribution, at_least=1, at_most=_LARGEST)
        vars(self).update(
            _checked_grid(resolution, on_grid, changed_entries),
            total_share=_checked_share(total_share),
            contribution=most,
            radius=Fraction(most),
        )
        if isinstance(self.resolution, Fraction) and not 1 <= most // self.resolution < _MOST_UNITS:
            raise ParameterError(
                f"contribution must be 1 to 2^62 times the resolution, got {most}", "contribution"
            )


@dataclass(frozen=True, init=False, repr=False)
class Arrays(Contribution):
    """Rows of numbers, of which one unit of protection can change at most `radius` in ℓ1 norm: a promise of the data holder.

    Args:
        radius: How far one unit of protection can move the data in ℓ1 norm, over all rows of one release, in data units.
        resolution: The grid γ: 1 for counts, a power of two for real values, or "auto".
        on_grid: Whether data is promised to be multiples of the resolution; None: yes, except with "auto".
        changed_entries: How many entries one unit can change, over all rows of a release. It matters off the grid only; None
            means input_dim, and then a release off the grid has one row.
        value_range: The public (low, high) to which each coordinate is clamped.
        total_share: The share of ε that goes to the total of each row. 0: none.

    Example:
        >>> import armslength as al
        >>> al.Arrays(radius=2, value_range=(0, 5)).radius
        Fraction(2, 1)
    """

    def __init__(
        self,
        radius: Any = 1,
        resolution: Any = 1,
        on_grid: bool | None = None,
        changed_entries: int | None = None,
        value_range: Any = None,
        total_share: Any = 0,
    ) -> None:
        exact = exact_number("radius", radius)
        if not 0 < exact <= _LARGEST:
            raise ParameterError(
                f"radius must be above 0 and at most 2^40, got {short_repr(radius)}", "radius"
            )
        vars(self).update(
            _checked_grid(resolution, on_grid, changed_entries),
            total_share=_checked_share(total_share),
            radius=exact,
            value_range=checked_range(value_range),
        )


def contribution_of(flat: dict[str, Any]) -> Contribution:
    """The object of flat fields, as the protocol's document and the options of commands have them; takes them out of the fields.

    Fields that are None or missing have their defaults.
    """
    names = {name for kind in (Votes, Counts, Arrays) for name in signature(kind).parameters}
    given = {name: value for name in names if (value := flat.pop(name, None)) is not None}
    groups, share, limit = (
        flat.pop(name, None) for name in ("margins", "margin_share", "margin_contribution")
    )
    if groups is not None or share or limit is not None:
        given["item_groups"] = ItemGroups(groups, share or 0, limit)
    if not given.get("record_pairs"):
        given.pop("record_pairs", None)
    kind = given.pop("contribution", VOTES if "record" in given else None)
    if kind is None:
        return Arrays(**_of_kind("arrays", Arrays, given))
    if kind != VOTES:
        return Counts(kind, **_of_kind("counts of events", Counts, given))
    if given.get("resolution") in (1, "1", Votes.resolution) and given.get("on_grid") in (None, True):
        given = {name: value for name, value in given.items() if name not in ("resolution", "on_grid")}
    return Votes(**_of_kind("votes", Votes, given))


def _of_kind(words: str, kind: type[Contribution], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments, if the kind has all of them."""
    for name in sorted(given.keys() - signature(kind).parameters.keys()):
        raise ParameterError(f"leave out {name}: it is not for {words}", name)
    return given


def _checked_share(value: Any) -> Fraction:
    share = exact_number("total_share", value)
    check_shares(share, Fraction(0))
    return share


def _checked_grid(resolution: Any, on_grid: Any, changed_entries: Any) -> dict[str, Any]:
    """The fields of a grid."""
    if not isinstance(on_grid, bool | None):
        raise ParameterError(f"on_grid must be True, False or None, got {short_repr(on_grid)}", "on_grid")
    checked = checked_resolution(resolution)
    if changed_entries is not None:
        changed_entries = integer("changed_entries", changed_entries, at_least=1, at_most=_LARGEST)
    return {
        "resolution": checked,
        "on_grid": checked != "auto" if on_grid is None else on_grid,
        "changed_entries": changed_entries,
    }
