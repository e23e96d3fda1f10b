"""A party that releases with a fault in the middle, and the judge of what is left."""

import re
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import armslength as al
from armslength.errors import ArmslengthError
from audit.faults.forks import Ended, Forks

TARGET, LEDGER, POPULATION = "sketches.parquet", "ledger.sqlite", "visits-2026"
RELEASE = (
    *("release", "visits.parquet", "--person", "patient", "--item", "code", "--group", "hospital"),
    *(
        "--public-groups",
        "north,south",
        "--protocol",
        "protocol.json",
        "--population",
        POPULATION,
        "-o",
        TARGET,
    ),
    *("--threads", "1"),
)
AGAIN = ("--overwrite", "--repeat")
MANY_ROWS, LITTLE_MEMORY = 400_000, "4MB"  # more rows than may be held: they wait in a temporary file
READABLE = (b"p1234",)  # what stands in a file of these events that is not encrypted
NEW_LEDGER = "--new-ledger"
_HALF_RELEASED = re.compile(rf"\.{re.escape(TARGET)}\..+\.part")
_HALF_CHARGED = re.compile(rf"\.{re.escape(LEDGER)}\..+\.part|{re.escape(LEDGER)}-journal")


@dataclass(frozen=True)
class Found:
    """What a fault left behind.

    Attributes:
        charged: Whether the ledger has its line.
        released: Whether the file is there, whole and new.
        leftovers: The names of files that are neither.
        wrong: What must never be, in words.
    """

    charged: bool
    released: bool
    leftovers: tuple[str, ...]
    wrong: tuple[str, ...]


class Party:
    """A folder with events, a protocol, and perhaps an earlier release and its ledger.

    Args:
        folder: An empty folder.
        forks: Where its commands run.
        released_before: Whether there is an earlier release, which the next one replaces; else the release makes its ledger.
        spills: Whether there are more events than may be held in memory; else there are few.
    """

    def __init__(self, folder: Path, forks: Forks, *, released_before: bool, spills: bool = False) -> None:
        self.folder = folder
        self._forks = forks
        again = AGAIN if released_before else (NEW_LEDGER,)
        self.arguments: tuple[str, ...] = (
            *RELEASE,
            *again,
            *(("--memory", LITTLE_MEMORY) if spills else ()),
        )
        folder.mkdir()
        rows = MANY_ROWS if spills else 200
        visits = {
            "patient": [f"p{7919 * number % rows // 4}" for number in range(rows)],
            "code": [f"c{number % 7}" for number in range(rows)],
            "hospital": ["north" if number % 3 else "south" for number in range(rows)],
        }
        pq.write_table(pa.table(visits), folder / "visits.parquet")
        protocol = al.Protocol(
            al.SparseJL(sketch_dim=64, seed="faults"),
            al.Votes(total_share="0.1"),
            epsilon=1,
            unit="one patient",
        )
        protocol.save(folder / "protocol.json")
        if released_before:
            al.Ledger(folder / LEDGER, create=True).set_budget(POPULATION, 1000, unit="one patient")
            earlier = forks.run(folder, RELEASE)
            if earlier.code != 0:
                raise RuntimeError(f"the release before the fault must work, got: {earlier.err}")
        self._names = {path.name for path in folder.iterdir()}
        self._lines = self._entries()
        self._target = self._bytes()
        self._kept = folder.with_name(f"{folder.name}-kept")
        shutil.copytree(folder, self._kept)

    def restore(self) -> None:
        """Everything as it was in the beginning."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder)

    def run(self, fault: dict[str, Any] | None = None, *more: str) -> Ended:
        """Releases, with the fault."""
        return self._forks.run(self.folder, (*self.arguments, *more), fault)

    def found(self) -> Found:
        """What there is now, judged."""
        wrong = []
        try:
            entries = self._entries()
        except (ArmslengthError, sqlite3.Error, AssertionError) as problem:
            return Found(False, False, (), (f"the ledger does not open: {problem}",))
        charged = entries - self._lines
        if charged not in {0, 1}:
            wrong.append(f"the ledger has {charged} new lines")
        released = self._bytes() != self._target
        if released and self._loads(TARGET) is not True:
            wrong.append("the file does not load")
        if released and not charged:
            wrong.append("a release is missing from the ledger")
        leftovers = sorted({path.name for path in self.folder.iterdir()} - self._names - {TARGET, LEDGER})
        for name in leftovers:
            if _HALF_RELEASED.fullmatch(name):
                if (self.folder / name).stat().st_size and not charged:
                    wrong.append("noisy values are on the disk, and the ledger does not know")
            elif not _HALF_CHARGED.fullmatch(name):
                wrong.append(f"a file of an unknown kind: {name}")
        return Found(bool(charged), released, tuple(leftovers), tuple(wrong))

    def retried(self, found: Found) -> tuple[str, ...]:
        """Releases again, without a fault; what is wrong with that, in words."""
        wrong = []
        before = self._entries()
        if found.charged and AGAIN[1] not in self.arguments:
            refused = self._forks.run(self.folder, (*RELEASE, "--overwrite"))
            if refused.code != 4 or self._entries() != before:
                wrong.append(f"a second release without --repeat gave {refused.code}")
        ended = self._forks.run(self.folder, (*RELEASE, *AGAIN) if found.charged else self.arguments)
        if ended.code != 0 or self._loads(TARGET) is not True or self._entries() != before + 1:
            wrong.append(f"a retry gave {ended.code}: {ended.err.strip()}")
        return tuple(wrong)

    def _bytes(self) -> bytes | None:
        target = self.folder / TARGET
        return target.read_bytes() if target.exists() else None

    def _loads(self, name: str) -> bool:
        try:
            sketches = al.load(self.folder / name)
        except ArmslengthError:
            return False
        return sketches.labels == ("north", "south") and sketches.values.shape == (2, 64)

    def _entries(self) -> int:
        """How many lines the ledger has; it must be whole. A reader of ours is the first to see what a dead process left."""
        path = self.folder / LEDGER
        if not path.exists():
            return 0
        entries = al.Ledger(path, read_only=True).entries()
        with closing(sqlite3.connect(path)) as connection:
            (state,) = connection.execute("PRAGMA integrity_check").fetchone()
            labels = connection.execute("SELECT count(*) FROM labels").fetchone()[0]
        if state != "ok" or labels != 2 * len(entries):
            raise sqlite3.DatabaseError(f"integrity {state}, {labels} labels of {len(entries)} lines")
        return len(entries)


def bytes_spilled(process: int, most: int = -1) -> bytes:
    """What a release has written to its temporary file so far, up to so many bytes. The file has no name: only the process itself leads there, and its owner's tools."""
    for descriptor in Path(f"/proc/{process}/fd").glob("*"):
        try:
            name = str(descriptor.readlink())
            if name.endswith(" (deleted)") and Path(name).is_relative_to(tempfile.gettempdir()):
                with descriptor.open("rb") as file:
                    return file.read(most)
        except OSError:  # it has just been closed
            continue
    return b""
