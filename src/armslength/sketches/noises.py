"""The noises of rows. Variances add only for independent noises, so every noise has an identity."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.protocol.protocol import Protocol
from armslength.threads import cached_attribute

SOURCES = ("events", "rows", "stream")
UNKNOWN = "unknown"  # for a protocol before any release, or without any row of it
LARGEST_FACTOR, SMALLEST_FACTOR = 2.0**60, 2.0**-60  # of a coefficient, in memory and in files

# A protocol, and what was released under it. "events": the software bounded what each person adds;
# "rows" and "stream": the party promised it; or UNKNOWN.
Release = tuple[Protocol, str]
Term = tuple[Protocol, float]  # the protocol of one noise, and its coefficient

_ORIGIN = np.dtype([("release", "V12"), ("row", ">u4")])  # what the id of a noise says
_MOST_SHARED = 1 << 23  # pairs of terms with one noise
_ROUNDING = 1e-13  # a coefficient this much smaller than what it is the sum of is rounding, not noise


@dataclass(frozen=True, eq=False)
class Noises:
    """The noises of n rows, each a linear combination of released rows, as a sketch file stores them."""

    starts: NDArray[np.int64]  # row i has the terms from starts[i] to starts[i + 1]
    ids: NDArray[
        np.void
    ]  # of each term: 12 random bytes of its release, 4 of the row; same id and protocol is the same noise
    coefficients: NDArray[np.float64]  # of each term: how often its noise is in the row; never 0
    numbers: NDArray[np.int32]  # of each term: the number of its release
    releases: tuple[Release, ...]
    in_clear: NDArray[np.bool_]  # of each row: whether data without noise is part of it

    def __post_init__(self) -> None:
        for name in ("starts", "ids", "coefficients", "numbers", "in_clear"):
            getattr(self, name).flags.writeable = False

    @classmethod
    def fresh(cls, ids: bytes, protocol: Protocol, source: str) -> "Noises":
        """Rows as they are released: one noise each, with these ids of 16 bytes."""
        count = len(ids) // 16
        starts, numbers = np.arange(count + 1), np.zeros(count, dtype=np.int32)
        own_ids, releases = np.frombuffer(ids, dtype="V16"), ((protocol, source),)
        return cls(starts, own_ids, np.ones(count), numbers, releases, np.zeros(count, dtype=bool))

    @classmethod
    def none(cls, count: int, *, in_clear: bool = False) -> "Noises":
        """Rows without noise."""
        starts, numbers = np.zeros(count + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        no_ids = np.empty(0, dtype="V16")
        return cls(starts, no_ids, np.empty(0), numbers, (), np.full(count, in_clear))

    @classmethod
    def concat(cls, parts: Sequence["Noises"]) -> "Noises":
        """The rows of all parts, in order."""
        releases, numbers = _common_releases(parts)
        ends = np.cumsum([0, *(len(part.ids) for part in parts)])
        starts = [part.starts[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([*starts, ends[-1:]]),
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.coefficients for part in parts]),
            np.concatenate(numbers),
            releases,
            np.concatenate([part.in_clear for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.in_clear)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noises):
            return NotImplemented
        _, numbers = _common_releases((self, other))
        names = ("starts", "ids", "coefficients", "in_clear")
        pairs = [numbers, *((getattr(self, name), getattr(other, name)) for name in names)]
        return all(np.array_equal(left, right) for left, right in pairs)

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    @property
    def rows(self) -> NDArray[np.int64]:
        """For each term the number of its row."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def are_released(self) -> NDArray[np.bool_]:
        """For each row whether it is as it was released: one noise, once, and nothing in the clear."""
        single: NDArray[np.bool_] = (np.diff(self.starts) == 1) & ~self.in_clear
        single[self.rows[self.coefficients != 1.0]] = False
        return single

    @property
    def origins(self) -> NDArray[np.void]:
        """The id of the release that each term's noise was drawn for, and the number of its row there, as fields."""
        return self.ids.view(_ORIGIN)

    @cached_attribute
    def are_fresh(self) -> bool:
        """Whether each row is as it was released, and no noise occurs in two of them."""
        return bool(self.are_released.all()) and len(np.unique(self.ids.view("S16"))) == len(self.ids)

    @property
    def are_merged(self) -> bool:
        """Whether no row has two terms with one id."""
        if (np.diff(self.starts) <= 1).all():
            return True
        return len(np.unique(self.rows * len(self.ids) + _id_numbers(self.ids))) == len(self.ids)

    def terms(self, row: int) -> tuple[Term, ...]:
        """The noises of one row, each by its protocol and its coefficient."""
        part = slice(self.starts[row], self.starts[row + 1])
        numbers, coefficients = self.numbers[part].tolist(), self.coefficients[part].tolist()
        protocols = (self.releases[number][0] for number in numbers)
        return tuple(zip(protocols, coefficients, strict=True))

    def take(self, rows: Any) -> "Noises":
        """Rows by number or by slice, in this order; one may come more than once."""
        begins, lengths = self.starts[:-1][rows], np.diff(self.starts)[rows]
        terms, starts = _ranges(begins, lengths), np.concatenate(([0], np.cumsum(lengths)))
        ids, coefficients, numbers = self.ids[terms], self.coefficients[terms], self.numbers[terms]
        return Noises(starts, ids, coefficients, numbers, self.releases, self.in_clear[rows])

    def times(self, factor: float | NDArray[np.float64]) -> "Noises":
        """Every row times a number, or each times its own."""
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), len(self))
        coefficients = self.coefficients * factors[self.rows]
        kept = coefficients != 0
        starts = np.searchsorted(self.rows[kept], np.arange(len(self) + 1))
        ids, numbers = self.ids[kept], self.numbers[kept]
        return Noises(starts, ids, coefficients[kept], numbers, self.releases, self.in_clear)

    def plus(self, other: "Noises", factor: float = 1.0) -> "Noises":
        """Row by row, these plus `factor` times the others: a noise that both have is merged, not counted twice."""
        releases, numbers = _common_releases((self, other))
        rows = np.concatenate((self.rows, other.rows))
        ids = np.concatenate((self.ids, other.ids))
        number = np.concatenate(numbers)
        coefficients = np.concatenate((self.coefficients, factor * other.coefficients))
        protocols = _numbered([protocol for protocol, _ in releases])[number] if len(releases) > 1 else number
        ids_as_words = np.ascontiguousarray(ids).view(">u8").astype(np.uint64).reshape(-1, 2)
        # Terms of one noise in one row come next to each other, those of self first: lexsort is stable.
        keys = (protocols, ids_as_words[:, 1], ids_as_words[:, 0], rows)
        order = np.lexsort(keys)
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
        first = np.flatnonzero(is_first)
        sums = np.add.reduceat(coefficients[order], first)
        largest = np.maximum.reduceat(np.abs(coefficients[order]), first)
        # What is left after cancellation is rounding, not noise; a small coefficient that met no other is noise.
        kept = np.abs(sums) > _ROUNDING * largest
        terms = order[first[kept]]
        starts = np.searchsorted(rows[terms], np.arange(len(self) + 1))
        in_clear = self.in_clear | other.in_clear
        return Noises(starts, ids[terms], sums[kept], number[terms], releases, in_clear)

    def sum(self) -> "Noises":
        """One row, the sum of all rows."""
        total = self
        while len(total) > 1:
            half = len(total) // 2
            pairs = total.take(slice(half)).plus(total.take(slice(half, 2 * half)))
            total = Noises.concat([pairs, total.take(slice(2 * half, None))])
        return total

    @cached_attribute
    def classes(self) -> tuple[NDArray[np.int64], list[tuple[Term, ...]]]:
        """For each row the number of its class, and the terms of one row of each: the same laws and coefficients, but for signs."""
        laws = [(protocol.law.name, protocol.law.scale) for protocol, _ in self.releases]
        sizes, size = np.unique(np.abs(self.coefficients), return_inverse=True)
        kinds = np.unique(_numbered(laws)[self.numbers] * len(sizes) + size, return_inverse=True)[1]
        classes = kinds.astype(np.int64)
        if not (np.diff(self.starts) == 1).all():
            kind_list = kinds.tolist()
            classes = _numbered([tuple(sorted(kind_list[i:j])) for i, j in pairwise(self.starts.tolist())])
        _, members = np.unique(classes, return_index=True)
        return classes, [self.terms(row) for row in members.tolist()]

    def shared_terms(self, other: "Noises") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of a term here and a term there that have the same noise id."""
        order, first, counts = self._matches(other)
        if counts.sum() > _MOST_SHARED:
            raise ParameterError(
                f"the rows have {counts.sum():,} noises in common, over all pairs, more than {_MOST_SHARED:,}; compare fewer rows at a time"
            )
        return np.repeat(np.arange(len(counts)), counts), order[_ranges(first, counts)]

    def shared_pairs(self, other: "Noises") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs of rows, one here and one there, that have a noise in common; sorted, each once."""
        terms, other_terms = self.shared_terms(other)
        pairs = np.unique(self.rows[terms] * len(other) + other.rows[other_terms])
        return np.divmod(pairs, max(1, len(other)))

    def shared_count(self, other: "Noises") -> int:
        """How many pairs of terms `shared_terms` would list."""
        return int(self._matches(other)[2].sum())

    @property
    def has_shared(self) -> bool:
        """Whether a noise is in two of the rows."""
        return self.shared_count(self) > len(self.ids)  # every noise meets itself

    def _matches(self, other: "Noises") -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The other's terms ordered by id; and for each term here where those with its id begin, and how many there are."""
        numbers, other_numbers = np.split(_id_numbers(np.concatenate((self.ids, other.ids))), [len(self.ids)])
        order = np.argsort(other_numbers, kind="stable")
        first, end = (np.searchsorted(other_numbers[order], numbers, side) for side in ("left", "right"))
        return order, first, end - first


def noise_ids(release: bytes, count: int) -> bytes:
    """The ids of the noises of a release with this id of 12 bytes: it, and the number of the row."""
    origins = np.empty(count, dtype=_ORIGIN)
    origins["release"], origins["row"] = np.void(release), np.arange(count)
    return origins.tobytes()


def _common_releases(parts: Sequence[Noises]) -> tuple[tuple[Release, ...], list[NDArray[np.int32]]]:
    """The releases of all parts, each once, and for each part the numbers of its terms among them."""
    if all(part.releases is parts[0].releases for part in parts):
        return parts[0].releases, [part.numbers for part in parts]
    releases = tuple(dict.fromkeys(release for part in parts for release in part.releases))
    index = {release: number for number, release in enumerate(releases)}
    numbers = [np.array([index[release] for release in part.releases], dtype=np.int32) for part in parts]
    return releases, [number[part.numbers] for number, part in zip(numbers, parts, strict=True)]


def _numbered(values: Sequence[Any]) -> NDArray[np.int64]:
    """For each value a number, the same for equal ones, in the order of first occurrence."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _id_numbers(ids: NDArray[np.void]) -> NDArray[np.int64]:
    """For each id a number, the same for equal ones."""
    return np.unique(ids.view("S16"), return_inverse=True)[1]


def _ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers from each begin on, as many as its length says, one range after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(begins - ends + lengths, lengths) + np.arange(lengths.sum())
