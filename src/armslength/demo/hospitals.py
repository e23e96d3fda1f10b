"""Generated event tables: 24 hospitals in four hidden regions, each with a file of who was diagnosed with what.

Codes have Zipf frequencies; a region has its own order among the sixty most common ones, so that what is frequent here is rarer there. Most
patients have a few diagnoses, some have very many: that is what contribution bounds are for.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.formats.atomic import atomic_write

HOSPITALS, REGIONS, CODES = 24, 4, 70_000
_COMMON = 60
_FEWEST, _MOST = 250, 1200  # patients of a hospital: few, so that noise matters


@dataclass(frozen=True)
class Hospital:
    """One party of the demo.

    Attributes:
        name: Its public name.
        region: Which hidden region it is in; no release knows.
        visits: Its private table, with the columns patient and code.
    """

    name: str
    region: int
    visits: pa.Table


def generated_hospitals(seed: int = 2026) -> list[Hospital]:
    """All hospitals. The seed is that of the generated data; noise knows no seed."""
    generator = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, CODES + 1)
    orders = [
        np.concatenate([generator.permutation(_COMMON), np.arange(_COMMON, CODES)]) for _ in range(REGIONS)
    ]
    hospitals = []
    for number in range(HOSPITALS):
        region = number % REGIONS
        shares = frequencies[orders[region]]
        visits = _visits(generator, number, shares / shares.sum())
        hospitals.append(Hospital(f"hospital {number + 1:02d}", region, visits))
    return hospitals


def _visits(generator: np.random.Generator, hospital: int, shares: NDArray[np.float64]) -> pa.Table:
    """The events of a hospital: two or three for most patients, dozens for some."""
    patients = int(generator.integers(_FEWEST, _MOST + 1))
    events = np.ceil(generator.pareto(1.5, patients) + 1).clip(max=500).astype(np.int64)
    who = np.repeat(np.arange(patients), events)
    codes = generator.choice(CODES, size=len(who), p=shares)
    return pa.table(
        {
            "patient": pa.array([f"H{hospital + 1:02d}-{patient:05d}" for patient in who.tolist()]),
            "code": pa.array([f"D{code:05d}" for code in codes.tolist()]),
        }
    )


def code_names() -> list[str]:
    """The name of every code, in order: what a histogram needs to know beforehand, and a sketch does not."""
    return [f"D{code:05d}" for code in range(CODES)]


def write_visits(hospital: Hospital, path: Path) -> None:
    """Writes a hospital's private table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        pq.write_table(hospital.visits, file)
