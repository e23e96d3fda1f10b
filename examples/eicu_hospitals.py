"""Which hospitals look alike? Intensive-care stays: the plan says no for single hospitals and yes for regions.

    python examples/eicu_hospitals.py

186 hospitals with 10 to 40 stays each are too small to compare one by one under differential privacy. The plan says so before anything is
spent. Pooled by region, the comparison works. Events are (patient, item, region), where items are diagnoses, treatments and drug orders. Each
patient has one vote, split over all their items. The unit of protection is one patient with all of their stays at all hospitals.

The data are the stays of the eICU demo (MIT and Philips, ODbL 1.0). Put `eicu_demo_stays.npz` into `../shared/data` beside the project or into
the folder ARMSLENGTH_DATA. Otherwise stays are generated. The script prints no row of a patient.
"""

import os
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import armslength as al

FILE = "eicu_demo_stays.npz"
REGIONS = ("Midwest", "Northeast", "South", "West")  # public input; stays without a region do not count
HOSPITALS, FEATURES = 186, 3500  # of the generated data
EPSILON, ITEMS_PER_PATIENT = "2", 25  # typically; a guess is enough for a plan


@dataclass(frozen=True)
class Stays:
    """The private table.

    Attributes:
        events: One row per item recorded at a stay: patient, item, region.
        sizes: How many stays each hospital has.
    """

    events: pa.Table
    sizes: NDArray[np.int64]


def recorded_stays() -> Stays | None:
    """The stays of the eICU demo, or None if the file is missing."""
    folder = os.environ.get("ARMSLENGTH_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(folder) / FILE
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as data:
        stay = np.repeat(np.arange(len(data["stay"])), np.diff(data["indptr"]))
        columns = {
            "patient": data["patient"][stay],
            "item": data["feature"][data["indices"]],
            "region": data["region"][stay],
        }
        return Stays(pa.table(columns), np.unique(data["hospital"], return_counts=True)[1])


def generated_stays() -> Stays:
    """Invented stays. Item frequencies differ a little between regions."""
    generator = np.random.default_rng(2026)  # for the generated data; noise has no seed
    frequency = 1 / np.arange(10, FEATURES + 10)
    mixes = [frequency * generator.lognormal(0, 0.7, FEATURES) for _ in REGIONS]
    sizes = (10 + generator.exponential(4, HOSPITALS)).clip(max=40).astype(np.int64)
    patient, item, region = [], [], []
    for number, size in enumerate(sizes):
        mix = mixes[number % len(REGIONS)]
        for stay in range(size):
            recorded = generator.choice(FEATURES, generator.integers(5, 40), replace=False, p=mix / mix.sum())
            patient += [f"{number}-{stay}"] * len(recorded)
            item += [f"feature {feature}" for feature in recorded]
            region += [REGIONS[number % len(REGIONS)]] * len(recorded)
    return Stays(pa.table({"patient": patient, "item": item, "region": region}), sizes)


def ask_for_hospitals(sizes: NDArray[np.int64]) -> None:
    """Print the plan for single hospitals. It uses only their sizes, which are public here."""
    people = (int(sizes.min()), int(sizes.max()))
    plan = al.plan(
        epsilon=1,
        people=people,
        parties=len(sizes),
        items_per_person=ITEMS_PER_PATIENT,
        unit="one patient",
        seed="hospitals",
    )
    print(f"Single hospitals, ε = 1: will it work?\n\n{plan.summary}")


def planned_regions() -> al.Plan:
    """The plan for regions of about five hundred patients, for all six pairs together."""
    return al.plan(
        epsilon=EPSILON,
        people=500,
        parties=len(REGIONS),
        items_per_person=ITEMS_PER_PATIENT,
        unit="one patient",
        seed="regions",
    )


def true_mixes(events: pa.Table) -> NDArray[np.float64]:
    """The true shares of all items in each region, with one vote for each patient of a region, for comparison."""
    patients = events.column("patient").combine_chunks().dictionary_encode().indices.to_numpy()
    items = events.column("item").combine_chunks().dictionary_encode()
    regions, codes = np.array(events.column("region").to_pylist()), items.indices.to_numpy()
    rows = []
    for name in REGIONS:
        who, what = np.unique(np.stack([patients, codes])[:, regions == name], axis=1)
        number, different = np.unique(who, return_inverse=True, return_counts=True)[1:]
        rows.append(np.bincount(what, 1 / different[number], len(items.dictionary)) / len(different))
    return np.array(rows)


def show(sketches: al.Sketches, mixes: NDArray[np.float64]) -> None:
    """Print every pair of regions with the truth for these patients."""
    pairs = al.compare(sketches, keep=True).to_arrow().to_pylist()
    unit = mixes / np.linalg.norm(mixes, axis=1, keepdims=True)
    truth = unit @ unit.T
    print(f"\n{'':22}  similarity  95% interval, all 6   these patients")
    for pair, (i, j) in zip(pairs, combinations(range(len(REGIONS)), 2), strict=True):
        print(
            f"  {f'{REGIONS[i]}, {REGIONS[j]}':20}  {pair['similarity']:10.3f}  {pair['lower']:8.3f} to {pair['upper']:5.3f}  "
            f"{truth[i, j]:15.3f}   {pair['verdict']}"
        )


def main() -> None:
    """Plan for hospitals, see that it cannot work, and compare regions instead."""
    stays = recorded_stays()
    if stays is None:
        print(f"{FILE} not found in ../shared/data or ARMSLENGTH_DATA: using generated stays.\n")
        stays = generated_stays()
    sizes = stays.sizes
    print(
        f"{len(sizes)} hospitals with {sizes.min()} to {sizes.max()} stays, {stays.events.num_rows:,} events\n"
    )
    ask_for_hospitals(sizes)

    plan = planned_regions()
    print(f"\nRegions, ε = {EPSILON}: will it work?\n\n{plan.summary}")
    sketches = al.release(
        plan.protocol,
        stays.events,
        person="patient",
        item="item",
        group="region",
        public_groups=list(REGIONS),
        ledger=al.NO_LEDGER,
    )
    show(sketches, true_mixes(stays.events))
    print(
        "\n  The intervals are about all patients like these. The patients at hand (last column) are less similar than that:"
        "\n  two samples of one population always differ a little.\n"
    )
    print(al.outliers(sketches, about="populations"))


if __name__ == "__main__":
    main()
