"""Which hospitals look alike? Intensive-care stays: where the plan says no, and what can be asked instead.

    python examples/eicu_hospitals.py

186 hospitals with 10 to 40 stays each are too small to be compared one by one under differential privacy, and the plan says so before anything is
spent. Pooled by region they can be. Events are (patient, what was recorded, where): diagnoses, treatments and drug orders, each once a stay. One patient is
protected, with all of their stays at all hospitals: some patients are in more than one.

The data are the stays of the eICU demo (MIT and Philips, ODbL 1.0), as `eicu_demo_stays.npz` in `../shared/data` beside the project or in the folder that
ARMSLENGTH_DATA names. Without it, stays are generated. No row of a patient is printed.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import armslength as al

FILE = "eicu_demo_stays.npz"
REGIONS = ("Midwest", "Northeast", "South", "West")  # public input; stays without a region are left out
HOSPITALS, FEATURES = 186, 3500  # of the generated data
EPSILON, CONTRIBUTION = "2", 5


@dataclass(frozen=True)
class Stays:
    """The private table.

    Attributes:
        events: One line for each thing recorded at a stay: patient, item, region.
        sizes: How many stays each hospital has.
    """

    events: pa.Table
    sizes: NDArray[np.int64]


def recorded_stays() -> Stays | None:
    """The stays of the eICU demo, or None where the file is absent."""
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
    """Stays that nobody had: what is common differs a little from region to region."""
    generator = np.random.default_rng(2026)  # for the generated data; noise knows no seed
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
    """What the plan says of single hospitals: no data is looked at but how large they are, which is public here."""
    print("Hospital by hospital, ε = 1: will it work?\n\n  stays  items of a patient   plan  would need")
    for stays in (int(np.median(sizes)), int(sizes.max())):
        for contribution in (1, 5, 20):
            plan = al.plan(epsilon=1, contribution=contribution, people=stays, unit="one patient")
            needs = plan.needs
            words = (
                "" if needs is None else f"ε = {needs.epsilon:g}, or {needs.people} patients in a hospital"
            )
            if needs is None:
                words = f"only from distance {plan.told_apart:.1f} on, where {math.sqrt(2 * stays * contribution):.1f} is the least"
            print(f"  {stays:5}  {contribution:18}   {'no ' if needs else 'yes'}   {words}")


def planned_regions() -> al.Plan:
    """The plan for regions of about five hundred patients, six pairs together."""
    return al.plan(
        epsilon=EPSILON,
        contribution=CONTRIBUTION,
        people=500,
        unit="one patient",
        total_share="0.2",
        pairs=6,
        seed="regions",
    )


def true_shapes(events: pa.Table) -> NDArray[np.float64]:
    """Distances of shapes over all events, without privacy, for the comparison."""
    items = events.column("item").combine_chunks().dictionary_encode()
    codes = items.indices.to_numpy()
    regions = np.array(events.column("region").to_pylist())
    rows = np.array(
        [np.bincount(codes[regions == name], minlength=len(items.dictionary)) for name in REGIONS]
    )
    shapes = rows / rows.sum(axis=1, keepdims=True)
    distances: NDArray[np.float64] = np.sqrt(((shapes[:, None] - shapes[None]) ** 2).sum(axis=2))
    return distances


def show(sketches: al.Sketches, truth: NDArray[np.float64]) -> None:
    """Every pair of regions, beside the truth and beside what chance alone would make."""
    estimate, counted = al.shape_distances(sketches), al.totals(sketches).value
    lower, upper = estimate.interval(0.95, simultaneous=True)
    print(f"\n{'':22}  estimate  95% interval, all 6   all events   by chance")
    for i, j in zip(*np.triu_indices(len(REGIONS), 1), strict=True):
        chance = math.sqrt(1 / counted[i] + 1 / counted[j])
        mark = "" if lower[i, j] > 0 else "   not resolved"
        print(
            f"  {f'{REGIONS[i]}, {REGIONS[j]}':20}  {estimate.value[i, j]:8.3f}  {lower[i, j]:8.3f} to {upper[i, j]:5.3f}  "
            f"{truth[i, j]:10.3f}  {chance:10.3f}{mark}"
        )


def main() -> None:
    """Asks for hospitals, is told no, and compares regions."""
    stays = recorded_stays()
    if stays is None:
        print(
            f"{FILE} is neither in ../shared/data nor where ARMSLENGTH_DATA says: generated stays instead.\n"
        )
        stays = generated_stays()
    sizes = stays.sizes
    print(
        f"{len(sizes)} hospitals with {sizes.min()} to {sizes.max()} stays, {stays.events.num_rows:,} events\n"
    )
    ask_for_hospitals(sizes)

    plan = planned_regions()
    print(
        f"\nRegion by region, ε = {EPSILON}, {CONTRIBUTION} items of a patient: will it work?\n\n{plan.summary}"
    )
    sketches = plan.protocol.release_table(
        stays.events,
        person="patient",
        item="item",
        group="region",
        public_groups=list(REGIONS),
        ledger=al.NO_LEDGER,
    )
    show(sketches, true_shapes(stays.events))
    print(
        "\n  Intervals are about the events that count, at most 5 of a patient. Their distance holds two things: that of the regions (near"
        "\n  the column 'all events'), and what chance adds (last column, at least: √(1/n + 1/m) for n and m counted events). So a pair that is"
        "\n  told apart had other events, for sure at 95%; that its hospitals *treat* differently, only what lies well above chance says.\n"
    )
    print(al.outliers(sketches, by="shape"))


if __name__ == "__main__":
    main()
