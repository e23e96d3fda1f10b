"""Event tables in which one person more or less is to be told: who holds what, the file, and the exact likelihood of a release.

A table has many blocks of groups, each with a heavy person of its own who occurs in no other, so that one release is as many
independent trials as there are blocks. What votes add up to is taken from the tests' own reference, not from the package.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attacks.membership import log_likelihoods
from numpy.typing import NDArray

import armslength as al
from reference.votes import Projection, Row, Rule, group_of_prefixes, votes

if TYPE_CHECKING:
    from armslength.laws import Law

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LIGHT_ITEMS = (
    "A01",
    "Z10",
)  # of one more person in every group; in the stories' matrix, both fall in one bin with one sign


@dataclass(frozen=True)
class Held:
    """Equal events of the heavy person: so many rows of an item in a group of the block."""

    group: int
    item: str
    rows: int


World = tuple[Held, ...]  # all that the heavy person holds; nothing, where there is none


@dataclass(frozen=True)
class Story:
    """Two worlds that differ by one person.

    Attributes:
        name: What is particular about it.
        protocol: What is audited.
        groups: How many groups a block has.
        first: What the heavy person holds in one world.
        second: What they hold in the other.
        tight: Whether these worlds nearly reach the bound, so that the audit must come close to it, and must see weak noise.
        has_one_id: Whether the heavy person has one id; else another one in each group, which is a fault.
    """

    name: str
    protocol: al.Protocol
    groups: int
    first: World
    second: World
    tight: bool = True
    has_one_id: bool = True

    @property
    def worlds(self) -> tuple[World, World]:
        """Both worlds."""
        return self.first, self.second

    def labels(self, blocks: int) -> list[str]:
        """The public groups of all blocks."""
        return [f"block {block} group {group}" for block in range(blocks) for group in range(self.groups)]


def write_events(path: Path, story: Story, world: World, blocks: int) -> None:
    """A Parquet file with the columns who, where and what; a person's events lie in several places."""
    held = [*world, *(Held(group, item, 1) for group in range(story.groups) for item in LIGHT_ITEMS)]
    is_heavy = [number < len(world) for number in range(len(held))]
    items = sorted({one.item for one in held})
    every_block = np.arange(blocks)
    # persons: the heavy one of each block, then the light one of each group
    who, where, what = [], [], []
    for one, heavy in zip(held, is_heavy, strict=True):
        group = every_block * story.groups + one.group
        theirs = every_block + (0 if story.has_one_id else one.group * blocks)
        who.append(np.repeat(theirs if heavy else story.groups * blocks + group, one.rows))
        where.append(np.repeat(group, one.rows))
        what.append(np.full(blocks * one.rows, items.index(one.item)))
    labels = story.labels(blocks)
    persons = [f"heavy {block}" for block in range(blocks)]
    persons += [f"heavy {block} in {group}" for group in range(1, story.groups) for block in range(blocks)]
    persons += [f"light of {label}" for label in labels]
    columns = {"who": (who, persons), "where": (where, labels), "what": (what, items)}
    table = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.concatenate(codes), pa.int32()), names)
        for name, (codes, names) in columns.items()
    }
    pq.write_table(pa.table(table), path)


def votes_of(story: Story, world: World) -> Iterator[tuple[float, list[Row]]]:
    """(probability, the exact integers of a block's rows): the heavy person votes in one of their groups, each alike."""
    groups = sorted({one.group for one in world})
    if not story.has_one_id or not groups:
        yield 1.0, _rows_of(story, world)
        return
    for group in groups:
        yield 1 / len(groups), _rows_of(story, tuple(one for one in world if one.group == group))


def _rows_of(story: Story, world: World) -> list[Row]:
    """The exact integers where everybody, by their id, has events in one group alone."""
    protocol, names = story.protocol, [str(group) for group in range(story.groups)]
    events = [(f"heavy {one.group}", names[one.group], one.item) for one in world]
    events += [(f"light {name}", name, item) for name in names for item in LIGHT_ITEMS]

    def total_of(items: Sequence[str | int]) -> list[int]:
        return [int(number) for number in protocol.transform.columns(list(items)).sum(axis=1)]

    rule = None
    if protocol.margins is not None:
        prefixes = {
            prefix: name
            for name, these in zip(protocol.margins.names, protocol.margins.prefixes, strict=False)
            for prefix in these
        }
        rule = Rule(
            protocol.margins.names,
            lambda item: group_of_prefixes(item, prefixes),
            protocol.margin_contribution or 0,
        )
    projection = Projection(protocol.transform.column_entries or 1, total_of)
    return votes(events, names, projection, bytes(32), rule=rule)


def takings(world: World, bound: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """(probability, how many of each are taken): a person's rows in any order alike, up to `bound`."""
    total = sum(one.rows for one in world)
    waiting = {(0,) * len(world): Fraction(1)}
    for taken in range(min(bound, total)):
        following: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for counts, probability in waiting.items():
            for place, one in enumerate(world):
                reached = probability * (one.rows - counts[place]) / (total - taken)
                if reached:
                    following[*counts[:place], counts[place] + 1, *counts[place + 1 :]] += reached
        waiting = following
    for counts, probability in waiting.items():
        yield float(probability), counts


class Attacker:
    """Whoever knows the story, the law and everybody's events, but neither the noise nor the release's key.

    Args:
        story: Both worlds.
    """

    def __init__(self, story: Story) -> None:
        self._story = story
        protocol = story.protocol
        laws: list[Law] = [protocol.law] * protocol.transform.sketch_dim
        if protocol.total_law is not None and protocol.spread_law is not None:
            laws += [protocol.total_law, protocol.spread_law, protocol.spread_law]  # T − Q, Q and F
        if protocol.margins is not None and protocol.margin_law is not None:
            laws += [protocol.margin_law] * (len(protocol.margins.names) + 1)
        self._laws = laws * story.groups  # of each number of a block
        self._mixtures = [self._mixture(world) for world in story.worlds]

    def log_ratios(self, values: Integers) -> Floats:
        """ln of how much likelier each block is in the second world: blocks x groups x numbers in, one number each out."""
        first, second = (self._log_likelihood(values, mixture) for mixture in self._mixtures)
        return second - first

    def _mixture(self, world: World) -> dict[tuple[int, ...], float]:
        """The probability of each exact block, flattened, over what may be taken."""
        story, mixture = self._story, defaultdict[tuple[int, ...], float](float)
        if story.protocol.votes:
            for probability, rows in votes_of(story, world):
                mixture[tuple(number for row in rows for number in _numbers(row, story.protocol))] += (
                    probability
                )
            return mixture
        base = np.sum([self._placed(group, LIGHT_ITEMS) for group in range(story.groups)], axis=0)
        units = [self._placed(one.group, [one.item]) for one in world]
        for probability, counts in takings(world, int(story.protocol.contribution or 0)):
            parts = (count * unit for count, unit in zip(counts, units, strict=True))
            mixture[tuple(sum(parts, start=base).ravel().tolist())] += probability
        return mixture

    def _placed(self, group: int, items: Sequence[str]) -> Integers:
        """What these items add to the sketches of a block, groups x numbers, one event each."""
        columns = self._story.protocol.transform.columns(list(items))
        block = np.zeros((self._story.groups, columns.shape[0]), dtype=np.int64)
        block[group] = columns.sum(axis=1)
        return block

    def _log_likelihood(self, values: Integers, mixture: dict[tuple[int, ...], float]) -> Floats:
        """ln Σ P(exact block)·P(values | exact block), but for what both worlds share."""
        flat = values.reshape(len(values), -1)
        every = np.array([key for one in self._mixtures for key in one])
        moved = np.flatnonzero((every != every[0]).any(axis=0)).tolist()
        tables = {
            (place, center): log_likelihoods(self._laws[place], np.ascontiguousarray(flat[:, place]), center)
            for place in moved
            for center in {key[place] for key in mixture}
        }
        terms = [
            math.log(probability) + np.sum([tables[place, key[place]] for place in moved], axis=0)
            for key, probability in mixture.items()
        ]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))


def _numbers(row: Row, protocol: al.Protocol) -> list[int]:
    """The numbers of a row to which noise is added: values, T − Q, Q, F and margins, as far as they are released."""
    scalars = [row.people - row.squares, row.squares, row.norm] if protocol.spread_law is not None else []
    return [*row.values, *scalars, *row.margins]
