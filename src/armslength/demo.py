"""The demo: generate data, plan, release in separate processes, compare, cluster, explain, report.

24 hospitals in four hidden regions each have a private table of diagnoses. Codes have Zipf frequencies, and their first letter is a
chapter. Each region has two chapters that are far more common there, and its own order among the most common codes of each chapter.
Patients are counted, each once for a code. Some have very many: contribution bounds are for them.
"""

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

import armslength as al
from armslength.answers.explain import explain_pairs
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
_FACTOR, _COMMON = (
    4,
    3,
)  # how much more common, and how many codes of a chapter have another order in each region
_FEWEST, _MOST = 500, 2000  # patients of a hospital: few, so that noise matters
_TITLE = "Which hospitals are alike?"

Print = Callable[[str], None]


@dataclass(frozen=True)
class Hospital:
    """One party of the demo."""

    name: str
    region: int  # hidden: no release contains it
    visits: pa.Table  # private, with the columns patient and code

    @property
    def folder_name(self) -> str:
        """The name without spaces."""
        return self.name.replace(" ", "-")


def run_demo(folder: Path, say: Print) -> Path:
    """Runs the whole workflow in this folder and returns the path of the report."""
    hospitals = generated_hospitals()
    for hospital in hospitals:
        path = _visits_file(folder, hospital)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            pq.write_table(hospital.visits, file)
    events = sum(hospital.visits.num_rows for hospital in hospitals)
    sizes = f"{len(hospitals)} hospitals, {events:,} diagnoses, {CODES:,} codes"
    say(f"1. {sizes}: one private table each in {folder}/")
    protocol_file = folder / "protocol.json"
    _plan(protocol_file, len(hospitals), say)
    sketch_folder = folder / "sketches"
    sketches = _release(folder, hospitals, protocol_file, sketch_folder, say)
    _compare(sketches, hospitals, say)
    question = ("--by", "shape", "--beyond-chance")
    say(
        "\n"
        + _command("compare", sketch_folder, *question, "--simultaneous", "--quantity", "cosine", "--top", 10)
    )
    _cluster_and_explain(sketches, hospitals, say)
    say(_command("cluster", sketch_folder, *question))
    pair = sketches.labels[:2]
    say(f"\n6. In what do two hospitals differ?\n{_command('explain', sketch_folder, *pair)}\n")
    say(str(al.explain(*(sketches[label] for label in pair))))
    page = folder / "report.html"
    al.report(sketches, page, title=_TITLE)
    say(f"\n7. The report: open {page.resolve()} in a browser; it needs no network")
    say(_command("report", sketch_folder, "--title", _TITLE, "-o", page))
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
    for place, letter in enumerate(CHAPTERS):
        shares[place :: len(CHAPTERS)] *= _FACTOR if letter in more_common else 1
    return shares / shares.sum()


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


def _visits_file(folder: Path, hospital: Hospital) -> Path:
    """A hospital's private table; its ledger lies beside it."""
    return folder / hospital.folder_name / "visits.parquet"


def _command(*parts: object) -> str:
    """A command that a user can run after the demo, as a line of its output."""
    return f"   armslength {shlex.join(map(str, parts))}"


def _plan(protocol_file: Path, parties: int, say: Print) -> None:
    """Writes the protocol: before anybody looks at data, the parties agree on what they will release."""
    chapter_file = protocol_file.with_name("chapters.csv")
    lines = ["prefix,group", *(f"{letter},{chapter}" for letter, chapter in CHAPTERS.items())]
    chapter_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings: dict[str, Any] = {
        "epsilon": "1",
        "people": 1200,
        "contribution": 2,
        "parties": parties,
        "unit": "one patient",
        "max_sketch_dim": 256,
        "seed": "trial-2026",
        "margins": str(chapter_file),
    }
    plan = al.plan(by="shape", beyond_chance=True, one_group=True, **settings)
    plan.protocol.save(protocol_file)
    options = [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", value)]
    fixed = ("--open-vocabulary", "--one-group", "--by", "shape", "--beyond-chance", "--overwrite")
    command = _command("plan", *options, *fixed, "-o", protocol_file)
    say(f"\n2. Will it work?\n{command}\n\n{plan.summary}\n")


def _release(
    folder: Path, hospitals: list[Hospital], protocol_file: Path, sketch_folder: Path, say: Print
) -> al.Sketches:
    """All sketches. Each hospital runs the command in its own process, with its own ledger."""
    sketch_folder.mkdir(exist_ok=True)
    files = [sketch_folder / f"{hospital.folder_name}.parquet" for hospital in hospitals]
    commands = [
        _release_command(_visits_file(folder, hospital), hospital.name, protocol_file, file)
        for hospital, file in zip(hospitals, files, strict=True)
    ]
    say("3. Each hospital releases one sketch in its own process (the first time with --new-ledger):")
    say(_command(*(part for part in commands[0] if part != "--new-ledger")))
    with progress("releases", len(commands), "hospitals", shown=True) as advance:
        _run(commands[0])  # the first one compiles for all
        advance(1)
        with ThreadPoolExecutor(available_threads()) as pool:
            for _ in pool.map(_run, commands[1:]):
                advance(1)
    return al.load(files)


def _release_command(visits: Path, name: str, protocol_file: Path, output: Path) -> list[str]:
    ledger = visits.with_name("ledger.sqlite")
    return [
        *("release", str(visits), "--person", "patient", "--item", "code", "--label", name),
        *("--protocol", str(protocol_file), "--population", name),
        *("--ledger", str(ledger), *(() if ledger.exists() else ("--new-ledger",))),
        *("--repeat", "--overwrite", "-o", str(output)),
    ]


def _run(command: list[str]) -> None:
    process = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "armslength", *command], capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise RuntimeError(f"a release must work, got exit code {process.returncode}: {process.stderr}")


def _compare(sketches: al.Sketches, hospitals: list[Hospital], say: Print) -> None:
    """Prints how many pairs differ beyond chance, and some of them beside the hidden regions, which the demo knows."""
    differ = al.shape_distances(sketches, beyond_chance=True).resolved(0.95, simultaneous=True)
    likeness = al.shape_cosines(sketches, beyond_chance=True)
    lower, upper = likeness.interval(0.95, simultaneous=True)
    left, right = np.triu_indices(len(sketches), 1)
    is_same = np.equal.outer(*[[hospital.region for hospital in hospitals]] * 2)
    say(
        "\n4. Do the populations differ in their mix of diagnoses?  Beyond chance, 95%, all pairs together.\n"
    )
    for same, where in ((False, "of different regions"), (True, "of the same region")):
        chosen = is_same[left, right] == same
        say(f"   {int(differ[left, right][chosen].sum()):3} of {int(chosen.sum())} pairs {where} differ")
    say(f"\n   {'':28}  alike  from   to    regions")
    order = np.argsort(-likeness.value[left, right], kind="stable")
    for pair in [*order[:3], *order[-3:]]:
        i, j = int(left[pair]), int(right[pair])
        names = f"{hospitals[i].name}, {hospitals[j].name}"
        numbers = "   ".join(f"{max(0.0, each[i, j]):.2f}" for each in (likeness.value, lower, upper))
        say(f"   {names:28}  {numbers}   {'ABCD'[hospitals[i].region]} and {'ABCD'[hospitals[j].region]}")


def _cluster_and_explain(sketches: al.Sketches, hospitals: list[Hospital], say: Print) -> None:
    """Prints which groups stand apart and in what, beside the hidden regions."""
    regions = {hospital.name: hospital.region for hospital in hospitals}
    groups = al.cluster(sketches, by="shape", beyond_chance=True).groups()
    hidden = [{regions[label] for label in group} for group in groups]
    say(
        f"\n5. Groups that stand apart (supported at 95%): {len(groups)}, of which "
        f"{sum(len(each) == 1 for each in hidden)} lie in one region each. Each against all others:\n"
    )
    every = range(len(hospitals))
    members = [[row for row in every if hospitals[row].name in group] for group in groups]
    pairs = [([row for row in every if row not in rows], rows) for rows in members]
    for group, found, in_regions in zip(groups, explain_pairs(sketches, pairs), hidden, strict=True):
        reasons = ", ".join(found.reasons()) if found else ""
        say(f"   {group[0]} and {len(group) - 1} more: {reasons or 'no difference found'}")
        chapters = " and ".join(
            CHAPTERS[letter] for region in sorted(in_regions) for letter in REGIONS[region]
        )
        say(f"      (hidden: more {chapters})")
