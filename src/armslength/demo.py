"""The demo: generate data, plan, release in separate processes, compare, cluster, explain, report.

24 hospitals in four hidden regions each have a private table of diagnoses. Codes have Zipf frequencies, and their first letter is a
chapter. Each region has two chapters that are far more common there, and its own order among the most common codes of each chapter.
Every patient has one vote, split over all their codes. Some have very many.

`write_tables` writes other event tables, without any release: those of docs/tutorial.md.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.files import atomic_write
from armslength.progress import progress
from armslength.threads import available_threads

HOSPITALS, CODES = 24, 70_000
_CHAPTERS = (
    "A Infections, C Tumors, D Blood, E Metabolism, F Mental health, G Nerves, H Eyes and ears, I Circulation, J Breathing, K Digestion, "
    "L Skin, M Muscles and bones, N Kidneys, O Births, P Newborns, Q Malformations, R Symptoms, S Injuries, Z Checkups"
)
CHAPTERS = {chapter[0]: chapter[2:] for chapter in _CHAPTERS.split(", ")}
REGIONS = ("SO", "EI", "AJ", "FM")  # the chapters that are more common in each
_FACTOR = 4  # how much more common
_COMMON = 3  # how many codes of a chapter have another order in each region
_FEWEST, _MOST = 500, 2000  # patients of a hospital: few, so that noise matters
_TITLE = "Which hospitals are alike?"

# The tables of the tutorial: how many patients each hospital has in a month, and the chapter of the codes that begin with a letter.
_CITY = {"north": 3000, "south": 4500, "east": 2500, "west": 3500, "hill": 4000, "park": 3000}
PATIENTS = _CITY | {"harbor": 2500, "bay": 3000, "children": 3500}
_LETTERS = {"A": "Infections", "C": "Tumors", "P": "Newborns", "I": "Circulation", "E": "Metabolism"}
_LETTERS |= {"K": "Digestion", "S": "Injuries", "J": "Breathing", "N": "Kidneys", "M": "Bones and muscles"}
_TABLE_CODES, _TABLE_SEED = 5000, 7
MONTHS = 2

Print = Callable[[str], None]


@dataclass(frozen=True)
class Hospital:
    """One party of the demo."""

    name: str
    region: int  # hidden: no release contains it
    visits: pa.Table  # private, with the columns patient and code

    @property
    def file_name(self) -> str:
        """The name without spaces."""
        return self.name.replace(" ", "-")


def run_demo(folder: Path, say: Print) -> Path:
    """Runs the whole workflow in this folder, each command in a process of its own, and returns the path of the report."""
    hospitals = generated_hospitals()
    for hospital in hospitals:
        path = folder / hospital.file_name / "visits.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            pq.write_table(hospital.visits, file)
    events = sum(hospital.visits.num_rows for hospital in hospitals)
    sizes = f"{len(hospitals)} hospitals, {events:,} diagnoses, {CODES:,} codes"
    say(f"1. {sizes}: one private table each in {folder}/")

    def step(title: str, *command: object) -> None:
        say(f"\n{title}\n{_line(command)}\n\n{_run(command)}")

    chapters, protocol, sketches = folder / "chapters.csv", folder / "protocol.json", folder / "sketches"
    lines = ["prefix,group", *(f"{letter},{chapter}" for letter, chapter in CHAPTERS.items())]
    chapters.write_text("\n".join(lines) + "\n", encoding="utf-8")
    people = ("--parties", len(hospitals), "--people", f"{_FEWEST}:{_MOST}", "--items-per-person", 3)
    settings = ("--epsilon", 1, *people, "--unit", "one patient", "--item-groups", chapters)
    step("2. Will it work?", "plan", *settings, "--overwrite", "-o", protocol)
    _release(folder, hospitals, protocol, sketches, say)
    step("4. Do the populations differ?", "compare", sketches)
    step("5. Which hospitals belong together?", "cluster", sketches)
    say(_hidden(hospitals))
    pair = [hospital.name for hospital in hospitals[:2]]
    step("6. What sets two hospitals apart?", "explain", sketches, *pair)
    page = folder / "report.html"
    step("7. All of it on one page", "report", sketches, "--title", _TITLE, "-o", page)
    say(f"open {page.resolve()} in a browser; it needs no network")
    return page


def generated_hospitals(
    count: int | None = None, people: tuple[int, int] = (_FEWEST, _MOST), items: int = 3, seed: int = 2026
) -> list[Hospital]:
    """All hospitals, with so many people each and about so many items a person.

    The seed is for the generated data; noise has no seed.
    """
    generator = np.random.default_rng(seed)
    mixes = [_mix(generator, chapters) for chapters in REGIONS]
    hospitals = []
    for number in range(count or HOSPITALS):
        region = number % len(REGIONS)
        visits = _visits(generator, number, mixes[region], people, items)
        hospitals.append(Hospital(f"hospital {number + 1:02d}", region, visits))
    return hospitals


def _mix(generator: np.random.Generator, more_common: str) -> NDArray[np.float64]:
    """How frequent each code is in a region; the chapter of code number i is chapter i modulo their number."""
    shares = 1 / np.arange(1, CODES + 1)
    common = shares[: _COMMON * len(CHAPTERS)].reshape(_COMMON, -1)
    common[:] = generator.permuted(common, axis=0)
    for chapter, letter in enumerate(CHAPTERS):
        shares[chapter :: len(CHAPTERS)] *= _FACTOR if letter in more_common else 1
    shares /= shares.sum()
    return shares


def _visits(
    generator: np.random.Generator,
    hospital: int,
    shares: NDArray[np.float64],
    people: tuple[int, int],
    items: int,
) -> pa.Table:
    """The events of a hospital: two or three for most patients if `items` is 3, dozens for some."""
    patients = int(generator.integers(people[0], people[1] + 1))
    events = np.ceil(generator.pareto(1.5, patients) * (items - 1) / 2 + 1).clip(max=500).astype(np.int64)
    patient_of_event = np.repeat(np.arange(patients), events)
    codes = generator.choice(CODES, size=len(patient_of_event), p=shares)
    patient_names = [f"H{hospital + 1:02d}-{patient:05d}" for patient in patient_of_event.tolist()]
    letters, numbers = np.array(list(CHAPTERS))[codes % len(CHAPTERS)].tolist(), codes // len(CHAPTERS)
    code_names = [f"{letter}{code:04d}" for letter, code in zip(letters, numbers.tolist(), strict=True)]
    return pa.table({"patient": patient_names, "code": code_names})


def _release(folder: Path, hospitals: list[Hospital], protocol: Path, sketches: Path, say: Print) -> None:
    """Writes all sketches. Each hospital runs the command in its own process, with a ledger of its own beside its table."""
    sketches.mkdir(exist_ok=True)
    commands: list[list[object]] = []
    for hospital in hospitals:
        own = folder / hospital.file_name
        ledger = own / "ledger.sqlite"
        command = [
            *("release", own / "visits.parquet", "--person", "patient", "--item", "code"),
            *("--label", hospital.name, "--protocol", protocol, "--population", hospital.name),
            *("--ledger", ledger, *(() if ledger.exists() else ("--new-ledger",))),
            *("--repeat", "--overwrite", "-o", sketches / f"{hospital.file_name}.parquet"),
        ]
        commands.append(command)
    say("\n3. Each hospital releases one sketch in its own process (the first time with --new-ledger):")
    say(_line([part for part in commands[0] if part != "--new-ledger"]))
    with progress("releases", len(commands), "hospitals", show=True) as advance:
        _run(commands[0])  # the first one compiles for all
        advance(1)
        with ThreadPoolExecutor(available_threads()) as pool:
            for _ in pool.map(_run, commands[1:]):
                advance(1)


def _line(command: Sequence[object]) -> str:
    """A command that a user can run after the demo, as a line of its output."""
    return f"   armslength {shlex.join(map(str, command))}"


def _run(command: Sequence[object]) -> str:
    """What the command prints."""
    process = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "armslength", *map(str, command)], capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise RuntimeError(
            f"a command of the demo failed with exit code {process.returncode}: {process.stderr}"
        )
    return process.stdout.rstrip("\n")


def _hidden(hospitals: list[Hospital]) -> str:
    """The truth, which no release contains."""
    lines = ["\nHidden, and known to this demo alone:"]
    for number, letters in enumerate(REGIONS):
        names = ", ".join(hospital.name for hospital in hospitals if hospital.region == number)
        lines.append(f"   more {' and '.join(map(CHAPTERS.__getitem__, letters))}: {names}")
    return "\n".join(lines)


def write_tables(paths: Sequence[Path], say: Print) -> None:
    """Writes one event table for each month, and the public lists `hospitals.txt` and `chapters.csv` beside the first.

    The bytes are the same in every run. No file is replaced: lists that are there already must be the same.
    """
    chapters = ["prefix,group", *(f"{letter},{chapter}" for letter, chapter in _LETTERS.items())]
    lists = {
        paths[0].with_name(name): ("\n".join(lines) + "\n").encode()
        for name, lines in (("hospitals.txt", PATIENTS), ("chapters.csv", chapters))
    }
    for path in (*paths, *lists):
        if path.exists() and (path in paths or path.read_bytes() != lists[path]):
            raise ParameterError(f"{path} already exists; name a table in another folder, or move that file")
    tables = dict(zip(paths, generated_months(), strict=False))
    for path, table in tables.items():
        with atomic_write(path, new=True) as file:
            pq.write_table(table, file)
    for path, text in lists.items():
        with atomic_write(path) as file:
            file.write(text)
    say(f"{len(PATIENTS)} made-up hospitals, the same in every run")
    for path, table in tables.items():
        say(f"  {path}: {table.num_rows:,} diagnoses of {sum(PATIENTS.values()):,} patients in a month")
    say(f"  {', '.join(map(str, lists))}: public lists of the hospitals, and of the chapters of diagnoses")


def generated_months() -> list[pa.Table]:
    """Two months of visits, with the columns patient, code and hospital.

    Six hospitals of a city have the same profile, harbor and bay share another, children has its own. In the second month, bay
    opens a ward for children.
    """
    generator = np.random.default_rng(_TABLE_SEED)
    frequency = 1 / np.arange(1, _TABLE_CODES + 1)  # few codes are common, most are rare
    city, coast, young = (
        np.concatenate([generator.permutation(frequency[:300]), frequency[300:]]) for _ in range(3)
    )
    mixes = dict.fromkeys(_CITY, city) | {"harbor": coast, "bay": coast, "children": young}
    later = mixes | {"bay": (coast + 2 * young) / 3}
    return [
        pa.concat_tables([_month(generator, name, mix) for name, mix in month.items()]).combine_chunks()
        for month in (mixes, later)
    ]


def _month(generator: np.random.Generator, hospital: str, mix: NDArray[np.float64]) -> pa.Table:
    """The visits of a month: two or three diagnoses for most patients, dozens for some."""
    count = PATIENTS[hospital]
    patients = generator.choice(2 * count, count, replace=False)  # half of its patients come in a month
    events = np.ceil(generator.pareto(1.5, count) + 1).clip(max=300).astype(np.int64)
    who = np.repeat(patients, events).tolist()
    codes = generator.choice(_TABLE_CODES, len(who), p=mix / mix.sum()).tolist()
    letters = list(_LETTERS)
    return pa.table(
        {
            "patient": [f"{hospital}-{number}" for number in who],
            "code": [f"{letters[code % len(letters)]}{code // len(letters):03d}" for code in codes],
            "hospital": [hospital] * len(who),
        }
    )
