"""The hospital stays of the survey beside the project, by party, and releases of people drawn from them."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy import sparse

import armslength as al
from armslength.ingest.sums import Sums, add_squares, norm_of, vote_sums
from armslength.protocol.neighbors import VOTE
from armslength.releasing.release import finished, noised

DATA = Path(os.environ.get("ARMSLENGTH_DATA") or Path(__file__).parents[2] / "shared" / "data")
Party = tuple[str, str]  # region and ownership
# the first codes of the second chapter and of later ones
_CHAPTERS = np.array([140, 240, 280, 290, 320, 390, 460, 520, 580, 630, 680, 710, 740, 760, 780, 800]).astype(
    str
)


@lru_cache(maxsize=1)
def _stays() -> tuple[Any, sparse.csr_array, list[str]]:
    """The patients, their codes, and the names of the codes."""
    patients, diagnoses = (DATA / f"nhds2010_{name}.parquet" for name in ("patients", "diagnoses"))
    if not patients.exists():
        pytest.skip("the hospital stays (NHDS) are not on this machine")
    table = pq.read_table(diagnoses)
    codes = table["code"].combine_chunks().dictionary_encode()
    places = table["patient"].to_numpy(), codes.indices.to_numpy()
    people = pq.read_table(patients).to_pandas()
    shape = int(people["patient"].max()) + 1, len(codes.dictionary)
    counts = sparse.csr_array((np.ones(len(table), np.int64), places), shape)
    return people, counts, codes.dictionary.to_pylist()


@lru_cache(maxsize=16)
def stays_of(party: Party) -> sparse.csr_array:
    """0 or 1 for each stay of a party and each code; those without a code are left out."""
    people, codes, _ = _stays()
    rows = people["patient"][(people["region"] == party[0]) & (people["ownership"] == party[1])]
    stays = codes[rows.to_numpy()]
    return stays[np.diff(stays.indptr) > 0]


@lru_cache(maxsize=16)
def chapters_of(party: Party) -> NDArray[np.bool_]:
    """Whether each stay of a party has a diagnosis of each of the 19 chapters of ICD-9."""
    _, _, names = _stays()
    letters, numbers = np.array([name[0] for name in names]), np.array([f"{name}  "[:3] for name in names])
    of_numbers = np.searchsorted(_CHAPTERS, numbers, side="right")
    chapter = np.where(letters == "V", 17, np.where(letters == "E", 18, of_numbers))
    listed = sparse.csr_array((np.ones(len(names), np.int64), (np.arange(len(names)), chapter)))
    has: NDArray[np.bool_] = (stays_of(party) @ listed).toarray() > 0
    return has


def mix_of(party: Party) -> NDArray[np.float64]:
    """Which share of an average stay's vote each code has."""
    stays = stays_of(party)
    return np.asarray(stays.T @ (1 / np.diff(stays.indptr)) / stays.shape[0])


@dataclass(frozen=True)
class Counted:
    """What each stay of a party adds to a release, by the kernels of releases."""

    values: sparse.csr_array
    masses: NDArray[np.int64]
    squares: NDArray[np.int64]
    bins: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]  # starts, bins and values for F

    @classmethod
    def of(cls, stays: sparse.csr_array, transform: al.SparseJL) -> "Counted":
        """Under a transform of the codes with one entry in each column."""
        words = np.arange(2 * stays.shape[1], dtype=np.uint64).reshape(-1, 2) // 2
        words[:, 0] = 0
        columns = transform.event_columns(words, threads=1)[stays.indices]
        starts, items = stays.indptr.astype(np.int64), np.diff(stays.indptr)
        everybody, one_group = np.ones(len(items), np.bool_), np.zeros(stays.nnz, np.int32)
        _, squares, _, *bins = vote_sums(starts, one_group, columns, everybody, transform.sketch_dim)
        bin_of, weights = columns[:, 0], np.repeat(VOTE // items, items)
        entries = np.where(bin_of >= 0, weights, -weights), np.where(bin_of >= 0, bin_of, -1 - bin_of), starts
        values = sparse.csr_array(entries, shape=(len(items), transform.sketch_dim))
        return cls(values, VOTE // items * items, squares, tuple(bins))

    def drawn(self, rng: np.random.Generator, people: int, rows: int) -> Sums:
        """The exact integers of parties of so many stays, drawn with replacement."""
        width, count = self.values.shape[1], len(self.masses)
        values, totals, spread = (
            np.empty((rows, width), np.int64),
            np.empty(rows, np.int64),
            np.empty((rows, 2), np.int64),
        )
        for row in range(rows):
            chosen = rng.integers(0, count, people)
            often = np.bincount(chosen, minlength=count)
            matrix = np.zeros((width, width), np.int64)
            add_squares(chosen, *self.bins, matrix)
            values[row], totals[row] = self.values.T @ often, often @ self.masses
            spread[row] = often @ self.squares, norm_of(matrix, 1)
        return Sums(values, totals, "events", spread=spread)


def released(protocol: al.Protocol, sums: Sums) -> al.Sketches:
    """Sketches of these integers, with fresh noise."""
    copies = Sums(sums.values.copy(), sums.totals, sums.source, spread=sums.spread.copy())
    return finished(protocol, noised(protocol, copies), None, release=os.urandom(12))
