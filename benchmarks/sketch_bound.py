"""How much noise a bound in the sketch saves on real data, and what it leaves out: the table of docs/reference/event-tables.md.

    python benchmarks/sketch_bound.py FOLDER [RELEASES]

FOLDER holds retail_customers.npz, eicu_demo_stays.npz and movietweetings100k.npz. Two groups of each are compared, people are
counted, and C is what 95 percent of people fit in. Laplace noise and a bound in the sketch with Gaussian noise, each at its best
size, release the same people again and again, with a random order in place of the key, a fresh matrix and fresh noise each time. The error of a squared distance
is against the exact one of the first C items of everybody, so that what the bound leaves out counts as error.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.ingest.sketch_bound import bound_sketches
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import open_account
from armslength.release.release import release

EPSILON, DELTA = 1, "1e-6"
LARGEST = 1 << 15  # numbers in a sketch
RELEASES = 1000
Events = NDArray[np.int64]  # person, group, item of each event, sorted by person; every line once


def events_of(folder: Path, name: str) -> Events:
    """The events of a data set: two groups of its people."""
    data = np.load(folder / f"{name}.npz")
    rows = np.repeat(np.arange(len(data["indptr"]) - 1), np.diff(data["indptr"]))
    if name == "retail_customers":
        persons, groups = np.arange(rows.max() + 1), (data["country"] != "United Kingdom").astype(np.int64)
    elif name == "eicu_demo_stays":
        regions = {"Midwest": 0, "South": 1}
        persons, groups = data["patient"], np.array([regions.get(region, -1) for region in data["region"]])
    else:
        persons = np.arange(rows.max() + 1)
        groups = persons % 2  # two halves of the users
    events = np.stack([persons[rows], groups[rows], data["indices"]], axis=1).astype(np.int64)
    return np.unique(events[events[:, 1] >= 0], axis=0)


def released_distance(
    protocol: al.Protocol, events: Events, generator: np.random.Generator
) -> tuple[float, float, float]:
    """(estimate, exact squared distance of the first C, share of these events that the bound leaves out) of one release."""
    transform, most = protocol.transform, protocol.contribution or 0
    order = np.lexsort((generator.random(len(events)), events[:, 0]))
    person = events[order, 0]
    ranks = np.arange(len(person)) - np.searchsorted(person, person)
    person, group, item = events[order][ranks < most].T  # the first C of everybody
    starts = np.concatenate([[0], np.flatnonzero(np.diff(person)) + 1, [len(person)]])
    present, places = np.unique(item, return_inverse=True)
    columns = transform.signed_rows(present)[places]
    kept = np.ones(len(person), dtype=np.int64)
    if protocol.sketch_bound is not None:
        bound_sketches(starts, group, columns, kept, protocol.sketch_bound)
    exact = np.bincount(places, weights=1 - 2 * group)
    entries = columns[:, 0].astype(np.int64)
    values = np.zeros((2, transform.sketch_dim), dtype=np.int64)
    np.add.at(
        values, (group, np.where(entries >= 0, entries, -1 - entries)), np.where(entries >= 0, kept, -kept)
    )
    sketches = release(protocol, Sums(values, None, "events"), None, open_account(al.NO_LEDGER, ""))
    left_out = 1 - float(kept.mean())
    return float(al.squared_distances(sketches).value[0, 1]), float(exact @ exact), left_out


def best_size(noise: str, contribution: int, squared_distance: float) -> tuple[int, float]:
    """(the size with the smallest exact variance, that variance) for one entry in each column."""
    plan = al.plan(
        epsilon=EPSILON,
        delta=DELTA,
        distance=math.sqrt(squared_distance),
        contribution=contribution,
        max_sketch_dim=LARGEST,
    )
    lines = [
        line for line in plan.configurations if line.noise == noise and (noise == "laplace" or line.max_norm)
    ]
    return lines[0].sketch_dim, (lines[0].relative_error * squared_distance) ** 2


def measured(events: Events, contribution: int, releases: int) -> dict[str, float]:
    """What was measured of both laws."""
    generator = np.random.default_rng(1)
    found: dict[str, float] = {}
    small = al.Protocol(al.SparseJL(sketch_dim=1), epsilon=1, contribution=contribution)
    squared_distance = released_distance(small, events, generator)[1]
    max_norm = math.ceil(100 * math.sqrt(1.2 * contribution)) / 100
    for noise in ("laplace", "gaussian"):
        size, predicted = best_size(noise, contribution, squared_distance)
        known: dict[str, Any] = {} if noise == "laplace" else {"delta": DELTA, "max_norm": max_norm}
        errors, left_out = [], []
        for _ in range(releases):
            protocol = al.Protocol(
                al.SparseJL(sketch_dim=size), epsilon=EPSILON, contribution=contribution, **known
            )
            estimate, exact, lost = released_distance(protocol, events, generator)
            errors.append(estimate - exact)
            left_out.append(lost)
        found |= {
            f"{noise} size": size,
            f"{noise} error": math.sqrt(float(np.mean(np.square(errors)))) / squared_distance,
            f"{noise} bias": float(np.mean(errors)) / squared_distance,
            f"{noise} variance": float(np.mean(np.square(errors))),
            f"{noise} predicted": predicted,
            f"{noise} left out": float(np.mean(left_out)),
        }
    return found


def main() -> None:
    """Prints the table."""
    folder = Path(sys.argv[1])
    releases = int(sys.argv[2]) if len(sys.argv) > 2 else RELEASES
    print(
        f"{releases} releases of each; the variance of so many has a standard error of {100 * math.sqrt(2 / releases):.1f} %.\n"
    )
    print(
        "| data | people | C | Laplace: k, error | bound in the sketch: k, error | variance, times less | exact formula | "
        "derived, 37.2·C²/16σ² | left out by the bound |"
    )
    print("|" + "---|" * 9)
    for name, contribution in (
        ("retail_customers", 204),
        ("eicu_demo_stays", 68),
        ("movietweetings100k", 25),
    ):
        events = events_of(folder, name)
        found = measured(events, contribution, releases)
        sigma = al.Protocol(
            al.SparseJL(sketch_dim=1), epsilon=EPSILON, delta=DELTA, contribution=contribution,
            max_norm=math.ceil(100 * math.sqrt(1.2 * contribution)) / 100,
        ).law.scale  # fmt: skip
        cells = [
            name,
            f"{len(np.unique(events[:, 0])):,}",
            f"{contribution}",
            *(
                f"{found[f'{noise} size']:,}, {found[f'{noise} error']:.2%}"
                for noise in ("laplace", "gaussian")
            ),
            f"{found['laplace variance'] / found['gaussian variance']:.3g}",
            f"{found['laplace predicted'] / found['gaussian predicted']:.3g}",
            f"{37.17 * contribution**2 / EPSILON**2 / (16 * sigma**2):.3g}",
            f"{found['gaussian left out']:.4%}",
        ]
        print("| " + " | ".join(cells) + " |")
        print(
            f"<!-- mean errors: {found['laplace bias']:+.3%}, {found['gaussian bias']:+.3%} -->", flush=True
        )


if __name__ == "__main__":
    main()
