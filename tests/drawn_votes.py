"""Released votes of parties that are drawn from a population, quickly: their exact integers are products of how often each type of person is there.

`tests/unit/estimates/test_drawn_votes.py` holds them against the slow reference and against releases of event tables.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.shape_law import ShapeLaw
from armslength.estimates.shapes import Shapes
from armslength.estimates.totals import DOUBTFUL
from armslength.ingest.sums import Sums
from armslength.protocol.neighbors import VOTE
from armslength.release.release import finished, noised
from populations import Population

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_COARSE = 2**16
_MARGINS = {f"chapter {number}": f"chapter {number}" for number in range(19)}


def vote_protocol(
    items: int, sketch_dim: int, epsilon: Any, seed: str, *, margin_share: Any = 0, **fields: Any
) -> al.Protocol:
    """A protocol for tables, at the plan's shares of ε unless others are given; items are numbers."""
    transform = al.SparseJL(input_dim=items, sketch_dim=sketch_dim, seed=seed, **_kinds(fields))
    known: dict[str, Any] = {"contribution": "vote", "total_share": "0.1", "unit": "one person"}
    if margin_share:
        known |= {"margins": _MARGINS, "margin_share": margin_share, "margin_contribution": 11}
    return al.Protocol(transform, epsilon=epsilon, **(known | fields))


def _kinds(fields: dict[str, Any]) -> dict[str, Any]:
    """What is the transform's: one entry in each column, of independent places, unless others are given."""
    known = {"sparsity": 1, "construction": "block"}
    return {name: fields.pop(name, value) for name, value in known.items()}


@dataclass(frozen=True)
class Counted:
    """What each type of person adds to a release under a protocol."""

    protocol: al.Protocol
    population: Population
    values: Floats  # N x k, whole numbers
    masses: Floats
    squares: Floats
    products: NDArray[np.float32]  # N x N: what F's square holds of each pair of people, in votes

    @classmethod
    def of(cls, protocol: al.Protocol, population: Population) -> "Counted":
        """Those of this population."""
        projected = protocol.transform.apply(population.types)
        t = population.items_of_types
        weight, coarse = VOTE // t, _COARSE // t
        entries = protocol.transform.column_entries or 1
        squares = weight**2 * (projected**2).sum(axis=1) // (entries * VOTE)
        light = (projected * (coarse / _COARSE)[:, None]).astype(np.float32)
        products = light @ light.T
        products **= 2
        return cls(
            protocol,
            population,
            (projected * weight[:, None]).astype(np.float64),
            (weight * t).astype(np.float64),
            squares.astype(np.float64),
            products,
        )

    def sums(self, counts: Integers, rng: np.random.Generator) -> Sums:
        """The exact integers of parties with so many people of each type; F is exact to seven digits."""
        whole = counts.astype(np.float64)  # whole numbers below 2^53
        share = float(self.protocol.spread_sample)
        sampled = (counts if share == 1 else rng.binomial(counts, share)).astype(np.float32)
        squared = np.einsum("ij,ij->i", sampled @ self.products, sampled, dtype=np.float64)
        entries = self.protocol.transform.column_entries or 1
        norms = np.floor(np.sqrt(squared) * (VOTE / entries))
        spread = [whole @ self.squares, norms] if self.protocol.releases_norm else [whole @ self.squares]
        margins = self.protocol.margins
        return Sums(
            (whole @ self.values).astype(np.int64),
            (whole @ self.masses).astype(np.int64),
            "events",
            spread=np.column_stack(spread).astype(np.int64),
            margins=None if margins is None else np.zeros((len(counts), len(margins.names) + 1), np.int64),
        )

    def drawn(self, rng: np.random.Generator, people: int, parties: int) -> Sums:
        """The exact integers of some samples of the population."""
        return self.sums(self.population.draw(rng, people, parties), rng)


def released(
    protocol: al.Protocol, sums: Sums, repeats: int = 1, *, step: int = 0, labels: Any = None
) -> al.Sketches:
    """Exact integers with the noise of a release, so many times: all rows, and then all rows again, each time `step` rows further on."""

    def often(array: Any) -> Any:
        return (
            None
            if array is None
            else np.concatenate([np.roll(array, -step * number, 0) for number in range(repeats)])
        )

    arrays = {name: often(getattr(sums, name)) for name in ("margins", "spread")}
    copies = Sums(often(sums.values), often(sums.totals), sums.source, **arrays)
    return finished(protocol, noised(protocol, copies), labels, release=os.urandom(16))


def drawn_pairs(
    sides: tuple[Counted, Counted],
    people: tuple[int, int],
    parties: int,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[al.Sketches, al.Sketches]:
    """Released samples of two populations, so many of each, each compared with so many of the other side; every release has noise of its own."""
    x, y = (each.drawn(rng, size, parties) for each, size in zip(sides, people, strict=True))
    return released(sides[0].protocol, x, repeats), released(sides[1].protocol, y, repeats, step=1)


@dataclass(frozen=True)
class Pairs:
    """Each row of some sketches against the row of the same number of others."""

    law: ShapeLaw
    shapes: Shapes

    @classmethod
    def of(cls, a: al.Sketches, b: al.Sketches, *, beyond_chance: bool = True) -> "Pairs":
        """All pairs."""
        shapes = Shapes(a, b, beyond_chance=beyond_chance)
        return cls(shapes.law(*shapes.rows, is_paired=True), shapes)

    @property
    def has_people(self) -> NDArray[np.bool_]:
        """Whether both sides of each pair surely have people."""
        return self._have_people(DOUBTFUL)

    def _have_people(self, tail: float) -> NDArray[np.bool_]:
        level = Level(min(tail, DOUBTFUL), METHODS[0])
        left, right = (side.totals.is_positive(level) for side in self.shapes.sides)
        return left & right

    def is_told_apart(self, tail: float) -> NDArray[np.bool_]:
        """Whether each pair is found to differ, where a miss has this probability: its lower end is above 0."""
        return self.interval(tail)[0] > 0

    def interval(self, tail: float) -> tuple[Floats, Floats]:
        """Both ends of the squared distance: those of `squared_shape_distances`."""
        lower, upper = self.law.interval(tail)
        lower = self.law.known_from(lower, tail)[:, 0]
        upper = np.where(self.law.is_coarse(upper, tail), np.inf, upper)[:, 0]
        has_people = self._have_people(tail)
        return np.where(has_people, lower, 0.0), np.where(has_people, upper, np.inf)

    def similarity(self, level: Level) -> tuple[Floats, Floats]:
        """Both ends of the cosine: those of `shape_cosines`."""
        lower, upper = self.shapes.likeness(*self.shapes.rows, is_paired=True).interval(level)
        has_people = self._have_people(level.tail)
        return np.where(has_people, lower[:, 0], 0.0), np.where(has_people, upper[:, 0], 1.0)
