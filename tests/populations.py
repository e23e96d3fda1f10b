"""Populations of people, each with some items: real ones from the data beside the project, and made-up ones that are hard for the law of votes."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DATA = Path(os.environ.get("ARMSLENGTH_DATA") or Path(__file__).parents[2] / "shared" / "data")
TYPES = 2048  # of people, of a larger data set
_ITEMS = 2000


@dataclass(frozen=True, eq=False)
class Population:
    """Types of people, and how often each is drawn.

    Attributes:
        types: N x d, 0 or 1: the items of each type of person.
        chances: Of each household.
        households: The types of the people in each household, one line for each; people who live alone by default.
    """

    types: sparse.csr_array
    chances: Floats
    households: Integers

    @classmethod
    def of(cls, types: Any, chances: Any = None, households: Any = None) -> "Population":
        """A population; by default each household has one person, and all are as frequent."""
        matrix = sparse.csr_array(types, dtype=np.int64)
        matrix.sum_duplicates()
        matrix.data[:] = 1
        alone = np.arange(matrix.shape[0])[:, None] if households is None else np.asarray(households)
        weights = np.ones(len(alone)) if chances is None else np.asarray(chances, dtype=np.float64)
        return cls(matrix, weights / weights.sum(), alone)

    @classmethod
    def of_lists(cls, items: list[Any], count: int, chances: Any = None) -> "Population":
        """A population whose types have these of so many items."""
        starts = np.concatenate([[0], np.cumsum([len(each) for each in items])])
        columns = np.concatenate(items)
        return cls.of(
            sparse.csr_array((np.ones(len(columns)), columns, starts), (len(items), count)), chances
        )

    @property
    def items_of_types(self) -> Integers:
        """t of each type."""
        return np.diff(self.types.indptr).astype(np.int64)

    @property
    def frequencies(self) -> Floats:
        """How often a person is of each type."""
        weights = np.repeat(self.chances / self.households.shape[1], self.households.shape[1])
        often: Floats = np.bincount(
            self.households.ravel(), weights=weights, minlength=self.types.shape[0]
        ).astype(np.float64)
        return often

    def profile(self, frequencies: Floats | None = None) -> Floats:
        """The share of each item in the votes of people who are of each type so often."""
        often = self.frequencies if frequencies is None else frequencies
        return np.asarray(self.types.T @ (often / self.items_of_types))

    def draw(self, rng: np.random.Generator, people: int, parties: int) -> Integers:
        """parties x N: how many people of each type are in each of some samples of so many people."""
        size = self.households.shape[1]
        drawn = rng.multinomial(people // size, self.chances, parties)
        counts = np.zeros((parties, self.types.shape[0]), dtype=np.int64)
        for member in self.households.T:
            np.add.at(counts.T, member, drawn.T)
        return counts

    def in_pairs(self) -> "Population":
        """The same people, each with a twin who has the same items."""
        twins = np.repeat(np.arange(self.types.shape[0])[:, None], 2, axis=1)
        return Population(self.types, self.frequencies, twins)

    def in_families(self, rng: np.random.Generator) -> "Population":
        """Couples who share half of their items: the partner has the others of somebody else."""
        count = self.types.shape[0]
        others = rng.permutation(count)
        partners = []
        for person, other in enumerate(others.tolist()):
            own, theirs = (
                self.types.indices[self.types.indptr[row] : self.types.indptr[row + 1]]
                for row in (person, other)
            )
            shared = rng.permutation(own)[: -(-len(own) // 2)]
            theirs = np.setdiff1d(theirs, shared)
            rest = rng.permutation(theirs)[: len(own) - len(shared)]
            partners.append(np.concatenate([shared, rest]))
        starts = np.concatenate([[0], np.cumsum([len(each) for each in partners])])
        columns = np.concatenate(partners)
        added = sparse.csr_array((np.ones(len(columns)), columns, starts), self.types.shape)
        households = np.column_stack([np.arange(count), count + np.arange(count)])
        return Population.of(sparse.vstack([self.types, added]), self.frequencies, households)


def _chosen(matrix: Any, seed: int, most: int = TYPES) -> Population:
    """The people of a data set with at least one item; at most so many of them."""
    matrix = sparse.csr_array(matrix)
    rows = np.flatnonzero(np.diff(matrix.indptr) > 0)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    return Population.of(matrix[rows])


@lru_cache(maxsize=1)
def nhds() -> tuple[sparse.csr_array, NDArray[Any], NDArray[Any], list[str]]:
    """(stays x diagnoses, the party of each stay, the names of parties, codes) of the National Hospital Discharge Survey.

    A party is region x ownership.
    """
    diagnoses = pq.read_table(DATA / "nhds2010_diagnoses.parquet")
    about = pq.read_table(DATA / "nhds2010_patients.parquet", columns=["patient", "region", "ownership"])
    codes = diagnoses["code"].combine_chunks()
    stays = about["patient"].to_numpy()
    row = np.searchsorted(stays, diagnoses["patient"].to_numpy())
    shape = len(stays), len(codes.dictionary)
    matrix = sparse.csr_array((np.ones(len(row), dtype=np.int64), (row, codes.indices.to_numpy())), shape)
    pairs = zip(about["region"].to_pylist(), about["ownership"].to_pylist(), strict=True)
    names, party = np.unique([f"{region} {owner}" for region, owner in pairs], return_inverse=True)
    return matrix, party, names, codes.dictionary.to_pylist()


def nhds_party(name: str | None = None, most: int = TYPES) -> Population:
    """Stays of one party, or of all; at most so many."""
    matrix, party, names, _ = nhds()
    if name is not None:
        matrix = matrix[np.flatnonzero(names[party] == name)]
    return _chosen(matrix, 1, most)


def _from_file(name: str) -> Population:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as data:
        known = data["data"], data["indices"], data["indptr"]
        matrix = sparse.csr_array(known, tuple(data["shape"]))
    matrix.data = np.ones(len(matrix.data))
    return _chosen(matrix, 2)


def eicu() -> Population:
    """Stays in intensive care, with diagnoses, treatments and drugs."""
    return _from_file("eicu_demo_stays")


def retail() -> Population:
    """Customers of an online shop, with what they bought."""
    return _from_file("retail_customers")


def movies() -> Population:
    """People who rate movies."""
    return _from_file("movietweetings100k")


def zipf(exponent: float, items: int = _ITEMS) -> Floats:
    """Shares by Zipf's law."""
    weights = 1.0 / np.arange(1, items + 1) ** exponent
    shares: Floats = weights / weights.sum()
    return shares


def independent(sizes: Any, mix: Floats, seed: int = 3) -> Population:
    """One type of person for each size, with so many different items, which have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    lists = []
    for size in np.asarray(sizes).tolist():
        waits = rng.exponential(size=len(mix)) / mix
        lists.append(np.argpartition(waits, size - 1)[:size])
    return Population.of_lists(lists, len(mix))


def zipf_items() -> Population:
    """Five items a person, independent, by Zipf's law."""
    return independent(np.full(TYPES, 5), zipf(1.2))


def heavy_tailed() -> Population:
    """The same with heavy-tailed numbers of items: most people have 1 to 5, some have hundreds."""
    sizes = np.random.default_rng(4).pareto(1.2, TYPES) * 2 + 1
    return independent(np.minimum(sizes.astype(int), 400), zipf(1.2))


def bundles(size: int, exponent: float, items: int = _ITEMS) -> Population:
    """Everybody has one of some bundles of items: the largest dependence that there can be."""
    lists = [np.arange(start, start + size) for start in range(0, items, size)]
    return Population.of_lists(lists, items, zipf(exponent, len(lists)))


def one_of_three() -> Population:
    """Everybody has one of three items."""
    return Population.of_lists([[0], [1], [2]], 3, [0.5, 0.3, 0.2])


def few_are_popular(share: float = 0.4, others: int = TYPES // 2) -> Population:
    """Some people have one item, the popular one; the others have twenty others each."""
    rest = independent(np.full(others, 20), zipf(0.9, _ITEMS - 1), 5).types
    lists = [np.array([0]), *(1 + row for row in np.split(rest.indices, rest.indptr[1:-1]))]
    return Population.of_lists(
        lists, _ITEMS, [share, *np.full(len(lists) - 1, (1 - share) / (len(lists) - 1))]
    )


def shortened(population: Population, size: int) -> tuple[Population, Population]:
    """People with exactly so many items, and people with one item each, of the same profile."""
    items = population.items_of_types
    lists = np.split(population.types.indices, population.types.indptr[1:-1])
    count = population.types.shape[1]
    long = Population.of_lists(
        [each[:size] for each, t in zip(lists, items.tolist(), strict=True) if t >= size], count
    )
    profile = long.profile()
    found = np.flatnonzero(profile)
    return long, Population.of_lists([[item] for item in found.tolist()], count, profile[found])


CHAPTERS = {  # of ICD-9: the first number of each
    1: "Infections",
    140: "Neoplasms",
    240: "Endocrine",
    280: "Blood",
    290: "Mental",
    320: "Nervous",
    390: "Circulatory",
    460: "Respiratory",
    520: "Digestive",
    580: "Genitourinary",
    630: "Pregnancy",
    680: "Skin",
    710: "Musculoskeletal",
    740: "Congenital",
    760: "Perinatal",
    780: "Symptoms",
    800: "Injuries",
}
OF_LETTERS = {"V": "Other reasons", "E": "External causes"}


def chapter(code: str) -> str:
    """The chapter of a diagnosis in ICD-9."""
    if code[0] in OF_LETTERS:
        return OF_LETTERS[code[0]]
    return CHAPTERS[max(first for first in CHAPTERS if first <= int(code[:3]))]
