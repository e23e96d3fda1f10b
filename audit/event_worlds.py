"""Event tables in which one person more or less is to be told: who holds what, the file, and the exact likelihood of a release.

A table has many blocks of groups, each with a heavy person of its own who occurs in no other, so that one release is as many
independent trials as there are blocks.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attacks.membership import log_likelihoods
from numpy.typing import NDArray

import armslength as al

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LIGHT_ITEMS = ("A01", "Z99")  # what one more person does in every group, who is within the bound


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
    """

    name: str
    protocol: al.Protocol
    groups: int
    first: World
    second: World

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


def takings(world: World, bound: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """(probability, how many of each are taken): a keyed order takes any `bound` of a person's rows alike."""
    total = sum(one.rows for one in world)
    taken = min(bound, total)
    for counts in itertools.product(*(range(min(one.rows, taken) + 1) for one in world)):
        if sum(counts) == taken:
            ways = math.prod(math.comb(one.rows, count) for one, count in zip(world, counts, strict=True))
            yield ways / math.comb(total, taken), counts


class Attacker:
    """Whoever knows the story, the law and everybody's events, but neither the noise nor the release's key.

    Args:
        story: Both worlds.
    """

    def __init__(self, story: Story) -> None:
        self._law = story.protocol.law
        self._story = story
        self._base = np.sum([self._placed(group, LIGHT_ITEMS) for group in range(story.groups)], axis=0)
        self._mixtures = [self._mixture(world) for world in story.worlds]

    def log_ratios(self, values: Integers) -> Floats:
        """ln of how much likelier each block is in the second world: blocks x groups x coordinates in, one number each out."""
        first, second = (self._log_likelihood(values, mixture) for mixture in self._mixtures)
        return second - first

    def _placed(self, group: int, items: Sequence[str]) -> Integers:
        """What these items add to a block, groups x coordinates, one event each."""
        columns = self._story.protocol.transform.columns(list(items))
        block = np.zeros((self._story.groups, columns.shape[0]), dtype=np.int64)
        block[group] = columns.sum(axis=1)
        return block

    def _mixture(self, world: World) -> dict[tuple[int, ...], float]:
        """The probability of each exact block, flattened, over what may be taken."""
        bound = int(self._story.protocol.contribution or 0)
        unit = [self._placed(one.group, [one.item]) for one in world]
        mixture: dict[tuple[int, ...], float] = {}
        for probability, counts in takings(world, bound):
            block = sum((count * one for count, one in zip(counts, unit, strict=True)), start=self._base)
            key = tuple(block.ravel().tolist())
            mixture[key] = mixture.get(key, 0.0) + probability
        return mixture

    def _log_likelihood(self, values: Integers, mixture: dict[tuple[int, ...], float]) -> Floats:
        """ln Σ P(exact block)·P(values | exact block), but for what both worlds share."""
        flat = values.reshape(len(values), -1)
        every = np.array([key for one in self._mixtures for key in one])
        moved = np.flatnonzero((every != every[0]).any(axis=0)).tolist()
        tables = {
            (place, center): log_likelihoods(self._law, np.ascontiguousarray(flat[:, place]), center)
            for place in moved
            for center in {key[place] for key in mixture}
        }
        terms = [
            math.log(probability) + np.sum([tables[place, key[place]] for place in moved], axis=0)
            for key, probability in mixture.items()
        ]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))
