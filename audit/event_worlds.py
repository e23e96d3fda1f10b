"""Event tables in which one person more or less is to be told: who holds what, the file, and the exact likelihood of a release.

A table has many blocks of groups, each with a heavy person of its own who occurs in no other, so that one release is as many
independent trials as there are blocks.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attacks.membership import log_likelihoods
from numpy.typing import NDArray

import armslength as al
from armslength.protocol.margins import margin_table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LIGHT_ITEMS = ("A01", "Z99")  # what one more person does in every group, who is within the bound


@dataclass(frozen=True)
class Held:
    """Equal events of the heavy person: so many rows of an item in a group of the block."""

    group: int
    item: str
    rows: int


Cell = tuple[int, int]  # a group of the block, and the number of an item group
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
    """

    name: str
    protocol: al.Protocol
    groups: int
    first: World
    second: World
    tight: bool = True

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
        who.append(np.repeat(every_block if heavy else blocks + group, one.rows))
        where.append(np.repeat(group, one.rows))
        what.append(np.full(blocks * one.rows, items.index(one.item)))
    labels = story.labels(blocks)
    persons = [f"heavy {block}" for block in range(blocks)] + [f"light of {label}" for label in labels]
    columns = {"who": (who, persons), "where": (where, labels), "what": (what, items)}
    table = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.concatenate(codes), pa.int32()), names)
        for name, (codes, names) in columns.items()
    }
    pq.write_table(pa.table(table), path)


def counted(world: World, protocol: al.Protocol) -> Iterator[tuple[float, World]]:
    """(probability, what may be counted): each group and item once where people are, and one group, each of theirs alike."""
    if protocol.count == "people":
        world = tuple(replace(one, rows=1) for one in world)
    groups = sorted({one.group for one in world})
    if not protocol.one_group or not groups:
        yield 1.0, world
        return
    for group in groups:
        yield 1 / len(groups), tuple(one for one in world if one.group == group)


def takings(world: World, bound: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """(probability, how many of each are taken): a person's rows in any order alike, up to `bound`."""
    for probability, counts, _ in takings_with_cells(world, bound, [None] * len(world), 0):
        yield probability, counts


def takings_with_cells(
    world: World,
    bound: int,
    cells: Sequence[Cell | None],
    most: int,
) -> Iterator[tuple[float, tuple[int, ...], frozenset[Cell]]]:
    """The same, and which different cells came first, at most so many; `cells` has that of each part of the world."""
    total = sum(one.rows for one in world)
    waiting = {((0,) * len(world), frozenset[Cell]()): Fraction(1)}
    for taken in range(min(bound, total)):
        following: dict[tuple[tuple[int, ...], frozenset[Cell]], Fraction] = defaultdict(Fraction)
        for (counts, firsts), probability in waiting.items():
            for place, one in enumerate(world):
                more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                reached = probability * (one.rows - counts[place]) / (total - taken)
                if not reached:
                    continue
                cell = cells[place]
                if cell is not None and len(firsts) < most:
                    following[more, firsts | {cell}] += reached
                else:
                    following[more, firsts] += reached
        waiting = following
    for (counts, firsts), probability in waiting.items():
        yield float(probability), counts, firsts


class Attacker:
    """Whoever knows the story, the law and everybody's events, but neither the noise nor the release's key.

    Args:
        story: Both worlds.
    """

    def __init__(self, story: Story) -> None:
        self._story = story
        width = story.protocol.transform.sketch_dim
        margins = story.protocol.margins
        laws = [story.protocol.law] * width
        if margins is not None and story.protocol.margin_law is not None:
            laws += [story.protocol.margin_law] * (len(margins.names) + 1)
        self._laws = laws * story.groups  # of each number of a block
        self._base = np.sum([self._placed(group, LIGHT_ITEMS) for group in range(story.groups)], axis=0)
        for group in range(story.groups):
            # within the bound: all of their item groups count
            self._base += self._counted({(group, code) for code in self._codes(LIGHT_ITEMS)}, {group})
        self._mixtures = [self._mixture(world) for world in story.worlds]

    def log_ratios(self, values: Integers) -> Floats:
        """ln of how much likelier each block is in the second world: blocks x groups x numbers in, one number each out."""
        first, second = (self._log_likelihood(values, mixture) for mixture in self._mixtures)
        return second - first

    def _placed(self, group: int, items: Sequence[str]) -> Integers:
        """What these items add to the sketches of a block, groups x numbers, one event each; margins are 0."""
        columns = self._story.protocol.transform.columns(list(items))
        block = np.zeros((self._story.groups, len(self._laws) // self._story.groups), dtype=np.int64)
        block[group, : columns.shape[0]] = columns.sum(axis=1)
        return block

    def _codes(self, items: Sequence[str]) -> list[int]:
        margins = self._story.protocol.margins
        table = margin_table(None, margins)  # of prefixes, which the protocol has
        return [] if margins is None or table is None else margins.codes(list(items), table).tolist()

    def _counted(self, cells: Iterable[Cell], groups: Iterable[int]) -> Integers:
        """What a person in these cells and groups adds to the margins of a block; sketches are 0."""
        protocol = self._story.protocol
        block = np.zeros((self._story.groups, len(self._laws) // self._story.groups), dtype=np.int64)
        if protocol.margins is not None:
            for group, code in cells:
                block[group, protocol.transform.sketch_dim + code] = 1
            block[list(groups), -1] = 1
        return block

    def _mixture(self, world: World) -> dict[tuple[int, ...], float]:
        """The probability of each exact block, flattened, over what may be taken."""
        protocol = self._story.protocol
        mixture: dict[tuple[int, ...], float] = defaultdict(float)
        for share, held in counted(world, protocol):
            units = [self._placed(one.group, [one.item]) for one in held]
            codes = self._codes([one.item for one in held]) or [0] * len(held)
            cells = [(one.group, code) for one, code in zip(held, codes, strict=True)]

            bounds = int(protocol.contribution or 0), cells, protocol.margin_contribution or 0
            for probability, counts, firsts in takings_with_cells(held, *bounds):
                groups = {one.group for one, count in zip(held, counts, strict=True) if count}
                parts = (count * unit for count, unit in zip(counts, units, strict=True))
                block = sum(parts, start=self._base) + self._counted(firsts, groups)
                mixture[tuple(block.ravel().tolist())] += share * probability
        return mixture

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
