"""What does not fit among several files: releases with other settings than most, and labels that occur twice."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armslength.checks import short_repr
from armslength.errors import IncompatibleSketchesError, printable
from armslength.protocol.protocol import Protocol
from armslength.protocol.schema import differences

_MOST_NAMED = 3  # labels of a file
_MOST_LISTED = 10  # files
_OF_MARGINS = ("margin_share", "margin_contribution")


@dataclass(frozen=True)
class Source:
    """Rows that were released under some protocols of one space: those of a file, for example.

    Attributes:
        protocols: Their protocols.
        rows: How many rows there are.
        labels: Gives the labels of the rows; called only if they have to be named.
        file: The file that they are from; empty for rows in memory.
        is_asked: Whether the question is about any of them; if not, they only tell what is usual where others are undecided.
    """

    protocols: tuple[Protocol, ...]
    rows: int
    labels: Callable[[], Iterable[str]]
    file: str = ""
    is_asked: bool = True


@dataclass(frozen=True)
class Misfit:
    """A source with other settings than most rows; `str` gives it in words.

    Attributes:
        source: The number of the source.
        labels: The labels of its rows.
        file: Its file.
        fields: The settings that differ.
        is_comparable: Whether its rows can be compared with the others all the same.
    """

    source: int
    labels: tuple[str, ...]
    file: str
    fields: tuple[str, ...]
    is_comparable: bool

    def __str__(self) -> str:
        return f"{self._name}{'' if self.is_comparable else ' left out'}: {self._reason}"

    @property
    def _name(self) -> str:
        more = len(self.labels) - _MOST_NAMED
        names = printable(_joined((*self.labels[:_MOST_NAMED], *([f"{more} more"] if more > 0 else []))))
        return f"{names} ({printable(self.file)})" if self.file else names

    @property
    def _reason(self) -> str:
        whose = "its" if len(self.labels) == 1 else "their"
        is_one = len(self.fields) == 1 and (self.fields[0] == "radius" or not self.fields[0].endswith("s"))
        return f"{whose} {_joined(self.fields)} differ{'s' * is_one}"

    @property
    def problem(self) -> str:
        """Why its rows cannot be compared with the others."""
        return f"{self._name} cannot be compared with the others: {self._reason}"


def misfits(sources: Sequence[Source]) -> list[Misfit]:
    """The sources whose settings differ from those of most rows. What cannot be compared is named by what keeps it from that alone."""
    if not sources:
        return []
    spaces = [source.protocols[0].space for source in sources]
    space = _usual((space, source, 1) for space, source in zip(spaces, sources, strict=True))
    usual: Protocol = _usual(
        (protocol, source, 1 / len(source.protocols))
        for other, source in zip(spaces, sources, strict=True)
        if other == space
        for protocol in source.protocols
    )
    found = []
    for number, source in enumerate(sources):
        if not source.is_asked:
            continue
        fields = dict.fromkeys(
            name for other in source.protocols for name in differing_settings(usual, other)
        )
        if fields:
            is_comparable = spaces[number] == space
            labels = tuple(dict.fromkeys(source.labels()))
            found.append(Misfit(number, labels, source.file, tuple(fields), is_comparable))
    return found


def _usual(values: Iterable[tuple[Any, Source, float]]) -> Any:
    """The value that most rows have, by those that are asked about and then by all: of (value, rows that have it, share of them)."""
    weights: dict[Any, tuple[float, float]] = {}
    for value, source, share in values:
        asked, every = weights.get(value, (0.0, 0.0))
        rows = share * source.rows
        weights[value] = asked + rows * source.is_asked, every + rows
    return max(weights, key=weights.__getitem__)  # the first of equals


def check_all_fit(sources: Sequence[Source]) -> None:
    """Refuses sources that do not share one space, and names those that most rows do not fit."""
    if len({source.protocols[0].space for source in sources}) > 1:
        raise incomparable(misfits(sources))


def incomparable(found: Sequence[Misfit]) -> IncompatibleSketchesError:
    """The error that names what cannot be compared."""
    problems = [misfit.problem for misfit in found if not misfit.is_comparable]
    return IncompatibleSketchesError(f"{'; '.join(listed(problems))}; leave out what does not fit")


def repeated_label(sources: Sequence[Source], keep: Callable[[str], bool] | None = None) -> str:
    """Which label several rows have, and in which files, in words; empty if all labels to be kept differ."""

    def labels(source: Source) -> Iterator[str]:
        return filter(keep, source.labels()) if keep else iter(source.labels())

    # Eight bytes for each label: there may be millions.
    hashes = np.fromiter((hash(label) for source in sources for label in labels(source)), np.int64)
    values, often = np.unique(hashes, return_counts=True)
    repeated = set(values[often > 1].tolist())
    files: dict[str, list[str]] = {}
    for source in sources if repeated else ():
        for label in labels(source):
            if hash(label) in repeated:
                files.setdefault(label, []).append(printable(source.file))
    for label, names in files.items():
        if len(names) > 1:
            twice = [f"twice in {names[0]}"] if len(set(names)) == 1 else [f"in {name}" for name in names]
            return f"{short_repr(label)} is {_joined(twice[:_MOST_NAMED])}"
    return ""


def listed(problems: Sequence[object]) -> list[str]:
    """The first of them in words, and how many more there are."""
    more = len(problems) - _MOST_LISTED
    return [
        *map(str, problems[:_MOST_LISTED]),
        *([f"and {more:,} more with other settings"] if more > 0 else []),
    ]


def differing_settings(one: Protocol, other: Protocol) -> list[str]:
    """The settings in which two protocols differ; only those that comparing needs, if any of these differ."""
    if other.space != one.space:
        return _settings(one.space_fields(), other.space_fields())
    return all_differing_settings(one, other)


def all_differing_settings(one: Protocol, other: Protocol) -> list[str]:
    """The settings in which two protocols differ, without what is derived from others."""
    names = _settings(one.document() | {"derived": {}}, other.document() | {"derived": {}})
    if (one.margins is None) != (other.margins is None):
        return [name for name in names if name not in _OF_MARGINS]
    return names


def _settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of different fields; those of the transform by themselves."""
    names = differences(one, other)
    return [name if name == "transform name" else name.removeprefix("transform ") for name in names]


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
