"""The steps of the demo: generate, plan, release in separate processes, compare, cluster, report."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.answers.cluster import cluster
from armslength.estimates.shapes import shape_distances
from armslength.files import atomic_write
from armslength.ledger.ledger import NO_LEDGER
from armslength.planner.plan import plan
from armslength.progress import progress
from armslength.protocol.protocol import Protocol
from armslength.reporting.page import report
from armslength.sketches.sketch_file import load
from armslength.sketches.sketches import Sketches, concat
from armslength.threads import available_threads
from armslength.transforms.identity import Identity

# How well clusters agree with a truth that is known: the adjusted Rand index.


def adjusted_rand_index(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """1 for the same clusters, about 0 for clusters that have nothing to do with the truth.

    Reference: Hubert & Arabie 1985. scikit-learn has it too, and is no core dependency.
    """
    together = np.zeros((int(found.max()) + 1, int(truth.max()) + 1))
    np.add.at(together, (found, truth), 1)
    pairs = _pairs(together)
    in_found, in_truth = _pairs(together.sum(axis=1)), _pairs(together.sum(axis=0))
    expected = in_found * in_truth / _pairs(np.array([len(found)]))
    largest = (in_found + in_truth) / 2
    return 1.0 if largest == expected else float((pairs - expected) / (largest - expected))


def _pairs(counts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    return float((counts * (counts - 1) / 2).sum())


# Generated event tables: 24 hospitals in four hidden regions, each with a file of who was diagnosed with what.
#
# Codes have Zipf frequencies; a region has its own order among the sixty most common ones, so that what is frequent here is rarer there. Most
# patients have a few diagnoses, some have very many: that is what contribution bounds are for.


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


EPSILON, CONTRIBUTION, TOTAL_SHARE = "1", 3, "0.1"
Say = Callable[[str], None]


def run_demo(folder: Path, say: Say) -> Path:
    """The report's path, after the whole workflow in this folder."""
    hospitals = generated_hospitals()
    for hospital in hospitals:
        write_visits(hospital, visits_of(folder, hospital))
    events = sum(hospital.visits.num_rows for hospital in hospitals)
    say(
        f"1. {len(hospitals)} hospitals, {events:,} diagnoses, {CODES:,} codes: one private table each in {folder}/"
    )
    protocol_file = _planned(folder, len(hospitals), say)
    sketches = _released(folder, hospitals, protocol_file, say)
    _compared(sketches, hospitals, say)
    say("\n" + _shown("compare", _sketches_of(folder), "--by", "shape", "--simultaneous", "--top", 10))
    _clustered(sketches, hospitals, Protocol.load(protocol_file), say)
    say(_shown("cluster", _sketches_of(folder), "--by", "shape", "--cut", REGIONS))
    page = folder / "report.html"
    title = "Which hospitals are alike?"
    report(sketches, page, title=title, by="shape")
    say(f"\n6. The report: open {page.resolve()} in a browser; it needs no network")
    say(_shown("report", _sketches_of(folder), "--by", "shape", "--title", title, "-o", page))
    return page


def visits_of(folder: Path, hospital: Hospital) -> Path:
    """Where a hospital keeps its private table; its ledger lies beside it."""
    return folder / hospital.name.replace(" ", "-") / "visits.parquet"


def _sketches_of(folder: Path) -> Path:
    """Where all sketches go."""
    return folder / "sketches"


def _shown(*parts: object) -> str:
    """A command that a user can run after the demo, as a line of its output."""
    return f"   armslength {shlex.join(map(str, parts))}"


def _planned(folder: Path, parties: int, say: Say) -> Path:
    """The protocol's file: before any data is looked at, the parties agree on what they will release."""
    known: dict[str, Any] = {
        "epsilon": EPSILON,
        "contribution": CONTRIBUTION,
        "unit": "one patient",
        "total_share": TOTAL_SHARE,
        "pairs": parties * (parties - 1) // 2,
        "seed": "trial-2026",
    }
    found = plan(distance=(150, 1500), **known)
    path = folder / "protocol.json"
    found.protocol.save(path)
    options = [part for name, value in known.items() for part in (f"--{name.replace('_', '-')}", value)]
    told = _shown(
        *("plan", "--open-vocabulary", "--distance", "150:1500", *options, "--overwrite", "-o", path)
    )
    say(f"\n2. Will it work?\n{told}\n\n{found.summary}\n")
    return path


def _released(folder: Path, hospitals: list[Hospital], protocol_file: Path, say: Say) -> Sketches:
    """All sketches: each hospital runs the command in a process of its own, with a ledger of its own."""
    outputs = [_sketches_of(folder) / f"{hospital.name.replace(' ', '-')}.parquet" for hospital in hospitals]
    outputs[0].parent.mkdir(exist_ok=True)
    commands = [
        _release_command(visits_of(folder, hospital), hospital.name, protocol_file, output)
        for hospital, output in zip(hospitals, outputs, strict=True)
    ]
    again = [part for part in commands[0][3:] if part != "--new-ledger"]
    say(
        "3. Each hospital releases one sketch, in a process of its own (the first time with --new-ledger):\n"
        + _shown(*again)
    )
    with progress("releases", len(commands), "hospitals", shown=True) as advance:
        _run(commands[0])  # the first one compiles for all
        advance(1)
        with ThreadPoolExecutor(available_threads()) as pool:
            for _ in pool.map(_run, commands[1:]):
                advance(1)
    return load(outputs)


def _release_command(visits: Path, name: str, protocol_file: Path, output: Path) -> list[str]:
    ledger = visits.with_name("ledger.sqlite")
    return [
        *(sys.executable, "-m", "armslength", "release", str(visits)),
        *("--person", "patient", "--item", "code", "--label", name),
        *("--protocol", str(protocol_file), "--population", name),
        *("--ledger", str(ledger), *(() if ledger.exists() else ("--new-ledger",))),
        *("--repeat", "--overwrite"),
        *("-o", str(output)),
    ]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own command
    if done.returncode:
        raise RuntimeError(f"a release must work, got exit code {done.returncode}: {done.stderr}")


def _compared(sketches: Sketches, hospitals: list[Hospital], say: Say) -> None:
    """The closest and farthest pairs by shape, beside the truth, which the demo knows."""
    estimate = shape_distances(sketches)
    lower, upper = estimate.interval(0.95)
    truth = _true_shapes(hospitals)
    left, right = np.triu_indices(len(sketches), 1)
    resolved = int(estimate.resolved(0.95, simultaneous=True)[left, right].sum())
    order = np.argsort(estimate.value[left, right])
    say(f"\n4. Distances of shapes: {resolved} of {len(left)} pairs are told apart, all at once at 95%\n")
    say(f"   {'':28}  estimate  95% interval      truth   regions")
    for pair in [*order[:3], *order[-3:]]:
        i, j = int(left[pair]), int(right[pair])
        names = f"{hospitals[i].name}, {hospitals[j].name}"
        say(
            f"   {names:28}  {estimate.value[i, j]:8.3f}  {lower[i, j]:5.3f} to {upper[i, j]:5.3f}  {truth[i, j]:7.3f}   "
            f"{'ABCD'[hospitals[i].region]} and {'ABCD'[hospitals[j].region]}"
        )


def _true_shapes(hospitals: list[Hospital]) -> NDArray[np.float64]:
    """True distances of shapes, of all events: the intervals are about those that count, so the two differ a little."""
    rows = np.zeros((len(hospitals), CODES))
    for row, hospital in zip(rows, hospitals, strict=True):
        codes = [int(code[1:]) for code in hospital.visits.column("code").to_pylist()]
        np.add.at(row, codes, 1 / len(codes))
    return np.array([np.sqrt(((rows - row) ** 2).sum(axis=1)) for row in rows])


def _clustered(sketches: Sketches, hospitals: list[Hospital], protocol: Protocol, say: Say) -> None:
    """Clusters against the hidden regions, beside those of a noisy histogram under the same ε."""
    regions = np.array([hospital.region for hospital in hospitals])
    ours = adjusted_rand_index(cluster(sketches, by="shape").flat(REGIONS), regions)
    names = code_names()
    histogram = Protocol(
        Identity(input_dim=CODES),
        epsilon=protocol.epsilon,
        contribution=protocol.contribution,
        unit=protocol.unit,
        total_share=protocol.total_share,
        vocabulary=names,
    )
    rows = [
        histogram.release_table(
            hospital.visits,
            person="patient",
            item="code",
            label=hospital.name,
            vocabulary=names,
            ledger=NO_LEDGER,  # generated data, for the comparison alone
        )
        for hospital in hospitals
    ]
    theirs = adjusted_rand_index(cluster(concat(rows), by="shape").flat(REGIONS), regions)
    say(
        f"\n5. Clusters: adjusted Rand index {ours:.2f} against the hidden regions\n"
        f"   with {sketches.values.shape[1]:,} numbers a hospital; a noisy histogram under the same ε, with {CODES:,}: {theirs:.2f}"
    )
