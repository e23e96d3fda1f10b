"""Real parties for `benchmarks/votes.py`: the different items of each of their people, and people drawn from them again."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength._numba import kernel

DATA = Path(os.environ.get("ARMSLENGTH_DATA") or Path(__file__).parents[2] / "shared" / "data")
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class People:
    """Some people and what they have."""

    starts: Int64s  # each person's first item, and the number of all
    items: Int64s  # numbers below `width`; those of one person differ

    @property
    def counts(self) -> Int64s:
        """How many items each person has."""
        return np.diff(self.starts)

    def again(self, count: int, generator: np.random.Generator) -> "People":
        """So many people, drawn with replacement, with their items in random order."""
        chosen = generator.integers(0, len(self.counts), count)
        starts = np.concatenate([[0], np.cumsum(self.counts[chosen])])
        return People(starts, _shuffled(self.starts, self.items, chosen, generator.random(starts[-1])))


@dataclass(frozen=True)
class Party:
    """A party, taken for a population of which its people are all."""

    name: str
    people: People
    width: int  # how many items there are

    @cached_property
    def votes(self) -> Floats:
        """The mean of all people's votes: what a question about votes is about."""
        counts = self.people.counts
        return self._sums(1 / counts) / len(counts)

    def cut(self, contribution: int) -> Floats:
        """The share of each item among all that count of people who are cut at C, on average over what is drawn of them."""
        counts = self.people.counts
        sums = self._sums(np.minimum(counts, contribution) / counts)
        shares: Floats = sums / sums.sum()
        return shares

    def _sums(self, weights: Floats) -> Floats:
        each = np.repeat(weights, self.people.counts)
        return np.bincount(self.people.items, weights=each, minlength=self.width).astype(np.float64)


@kernel
def _shuffled(starts: Int64s, items: Int64s, chosen: Int64s, uniforms: Floats) -> Int64s:
    """The items of the chosen people, one after the other, in random order."""
    drawn, first = np.empty(len(uniforms), dtype=np.int64), 0
    for person in chosen:
        count = starts[person + 1] - starts[person]
        for place in range(count):
            other = np.int64(uniforms[first + place] * (place + 1))
            drawn[first + place] = drawn[first + other]
            drawn[first + other] = items[starts[person] + place]
        first += count
    return drawn


def _parties(person: Int64s, item: Int64s, party: NDArray[np.str_], width: int) -> dict[str, Party]:
    """A party for each name, of events (person, item, party) that may occur more than once."""
    found = {}
    for name in np.unique(party).tolist():
        own = party == name
        pairs = np.unique(person[own] * width + item[own])
        _, starts = np.unique(pairs // width, return_index=True)
        found[name] = Party(name, People(np.append(starts, len(pairs)), pairs % width), width)
    return found


def nhds() -> dict[str, Party]:
    """Hospital stays by region and ownership: "NE gov", "MW fp", "S np" and so on."""
    regions = {"Northeast": "NE", "Midwest": "MW", "South": "S", "West": "W"}
    owners = {"government": "gov", "for-profit": "fp", "non-profit": "np"}
    stays = pq.read_table(DATA / "nhds2010_patients.parquet").to_pydict()
    names = [
        f"{regions[region]} {owners[owner]}"
        for region, owner in zip(stays["region"], stays["ownership"], strict=True)
    ]
    by_patient = dict(zip(stays["patient"], names, strict=True))
    table = pq.read_table(DATA / "nhds2010_diagnoses.parquet").to_pydict()
    codes, items = np.unique(np.array(table["code"]), return_inverse=True)
    patients = np.array(table["patient"], dtype=np.int64)
    party = np.array([by_patient[patient] for patient in patients.tolist()])
    return _parties(patients, items.astype(np.int64), party, len(codes))


def eicu() -> dict[str, Party]:
    """Patients of intensive care by region; what was recorded in any of a patient's stays there."""
    with np.load(DATA / "eicu_demo_stays.npz", allow_pickle=False) as data:
        stay = np.repeat(np.arange(len(data["stay"])), np.diff(data["indptr"]))
        person, party = data["patient"][stay].astype(np.int64), data["region"][stay]
        return _parties(person, data["indices"].astype(np.int64), party, len(data["feature"]))


def retail() -> dict[str, Party]:
    """Customers of the United Kingdom, and of all other countries together."""
    with np.load(DATA / "retail_customers.npz", allow_pickle=False) as data:
        row = np.repeat(np.arange(len(data["customer"])), np.diff(data["indptr"]))
        party = np.where(data["country"][row] == "United Kingdom", "UK", "others")
        return _parties(
            data["customer"][row].astype(np.int64), data["indices"].astype(np.int64), party, len(data["item"])
        )
