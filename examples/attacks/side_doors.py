"""Side doors: what an observer learns from a release besides its values. It should be nothing.

    python examples/attacks/side_doors.py

The attacker knows everything public, and everyone's events but one person's. They see everything a release leaves or shows: the file's name, size,
rows, labels, types, encodings and metadata, every row of the ledger, the text on the screen, warnings, logs, exit codes, and files left in the
temporary folder. They compare it with a release without that person. Any difference is a leak that no noise covers.

Result: every door is shut. Text and bytes are the same whatever the table contains, apart from random parts (noisy values and noise ids) and times. The
*size* of the file depends on the noisy values, because small numbers take fewer bits. But the file can be written again, byte for byte, from what was
released. So its size is post-processing and reveals nothing more than the values.

Three doors are open on purpose, and only to the data holder: the time a release takes, refusals of malformed data, and the progress bar, which
counts events. See SECURITY.md.
"""

import hashlib
import json
import logging
import random
import re
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

import armslength as al
from armslength.cli.main import main as command

Event = tuple[str | None, str | None, str | None, int]  # person, item, group, amount
GROUPS = ("north", "south", "empty")
POPULATION = "visits-2026"
_ITEM_GROUPS = al.ItemGroups({"prefix": ["c1", "c2"], "group": ["ones", "twos"]}, share="0.3", limit=1)
_COMMON: dict[str, Any] = {"epsilon": 1, "unit": "one patient"}
PROTOCOLS = {
    "votes": al.Protocol(
        al.SparseJL(sketch_dim=64, seed="side doors"),
        al.Votes(total_share="0.1", item_groups=_ITEM_GROUPS),
        **_COMMON,
    ),
    "amounts": al.Protocol(
        al.SparseJL(sketch_dim=64, seed="side doors"), al.Counts(3, total_share="0.1"), **_COMMON
    ),
}
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d(:\d\d)?(\+00:00| UTC)?")
_SIZES = {"total_byte_size", "total_compressed_size", "total_uncompressed_size", "serialized_size"}
_DIGESTS = b"armslength digests"  # of published values, so they differ like the noisy values
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_CODES, _AGAIN = "exit codes", "file written again from its contents"
_MUST = {_CODES: "[0, 0]", _AGAIN: "the same bytes"}  # otherwise there was no release to compare
_PLACES = {"data_page_offset", "dictionary_page_offset", "file_offset"}


def random_events(seed: int, persons: int) -> list[Event]:
    """A few events for each of so many people."""
    chance = random.Random(seed)  # noqa: S311  # generated events
    return [
        (f"p{person}", f"c{chance.randrange(9)}", chance.choice(GROUPS[:2]), chance.choice([1, 1, 2, -1]))
        for person in range(persons)
        for _ in range(chance.randrange(1, 6))
    ]


def neighbor_pairs(seed: int = 0) -> dict[str, tuple[list[Event], list[Event]]]:
    """Pairs of tables under the same public settings. Most differ by one person, the last ones in everything."""
    some = random_events(seed, 40)
    busy: list[Event] = [
        ("busy", f"c{number % 97}", GROUPS[number % 3], 1 + number % 5) for number in range(5000)
    ]
    extreme: list[Event] = [("x", "c1", "north", 2**62), ("x", "c2", "south", -(2**62))]
    incomplete: list[Event] = [(None, "c1", "north", 1), ("x", None, "north", 1), ("x", "c1", None, 1)]
    return {
        "one person more": (some, [*some, ("new", "c1", "north", 1)]),
        "nobody, and one person": ([], [("only", "c1", "north", 1)]),
        "a person of 5,000 rows in every group": (some, [*some, *busy]),
        "the only person of a group": (some, [*some, ("lone", "c1", "empty", 1)]),
        "a person of a group that is not listed": (some, [*some, ("far", "c1", "elsewhere", 1)]),
        "amounts at their extremes": (some, [*some, *extreme]),
        "a new item of a strange name": (some, [*some, ("new", "ünheard-of " * 50, "south", 1)]),
        "rows without a person, item or group": (some, [*some, *incomplete]),
        "two unrelated tables": (some, random_events(seed + 1, 90)),
        "nothing, and much": ([], [*random_events(seed + 2, 300), *busy]),
    }


def doors_of(events: list[Event], folder: Path, kind: str = "votes") -> dict[str, str]:
    """Release the events in an empty folder. Returns everything visible, one text per door."""
    _write(events, folder, PROTOCOLS[kind])
    weight = ("--weight", "amount") if kind == "amounts" else ()
    temporary = folder.parent / f"{folder.name}-temporary"
    temporary.mkdir()
    with chdir(folder), mock.patch.object(tempfile, "tempdir", str(temporary)), _heard() as heard:
        released = _run(
            *("release", "visits.parquet", "--person", "patient", "--item", "code", "--group", "hospital"),
            *(*weight, "--public-groups", ",".join(GROUPS), "--protocol", "protocol.json"),
            *("--population", POPULATION, "-o", "sketches.parquet"),
        )
        ledger = _run("ledger", "show")
        names = sorted(f"{path.name} {path.stat().st_mode:o}" for path in folder.iterdir())
        file = Path("sketches.parquet")
        digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "no file"
        return {
            _CODES: str([released.exit_code, ledger.exit_code]),
            "standard output of release": released.stdout.replace(digest, "SHA-256 OF THE FILE"),
            "standard error of release": released.stderr,
            "warnings and log": "\n".join(heard),
            "names and modes of files": "\n".join(names),
            "files left in the temporary folder": "\n".join(
                sorted(path.name for path in temporary.rglob("*"))
            ),
            "armslength ledger show": _without_id(_TIME.sub("TIME", ledger.stdout)),
            "every row of the ledger": _rows_of_the_ledger(Path("ledger.sqlite")),
            "size of the ledger": str(Path("ledger.sqlite").stat().st_size),
            **(_doors_of_the_file(file) if file.exists() else {}),
        }


def _doors_of_the_file(file: Path) -> dict[str, str]:
    metadata = _metadata(file)
    doors = {
        "columns, types, encodings": _layout(file),
        "metadata and card": str({key: value for key, value in metadata.items() if key != _DIGESTS}),
        "contents of the digests": _DIGEST.sub("SHA-256", metadata[_DIGESTS].decode()),
    }
    try:
        return {
            **doors,
            "rows and labels": str(al.load(file).labels),
            _AGAIN: _made_again(file),
            "armslength show": _without_numbers(_run("show", str(file), "--format", "json").stdout),
        }
    except al.ArmslengthError as refused:
        return {**doors, _AGAIN: f"it is refused: {refused}"}


def open_doors(pair: tuple[list[Event], list[Event]], kind: str = "votes") -> list[str]:
    """The doors through which the two tables of a pair look different; there should be none.

    A failed release, and a file that cannot be written again from its contents, count as open doors too: two equal failures
    prove nothing.
    """
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / name / "party" for name in ("first", "second")]
        for folder in folders:
            folder.mkdir(parents=True)
        first, second = (doors_of(events, folder, kind) for events, folder in zip(pair, folders, strict=True))
    return [
        door
        for door in {**first, **second, **_MUST}
        if not first.get(door) == second.get(door) == _MUST.get(door, first.get(door))
    ]


def _write(events: list[Event], folder: Path, protocol: al.Protocol) -> None:
    person, item, group, amount = zip(*events, strict=True) if events else ((), (), (), ())
    table = {
        "patient": pa.array(person, pa.string()),
        "code": pa.array(item, pa.string()),
        "hospital": pa.array(group, pa.string()),
        "amount": pa.array(amount, pa.int64()),
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")
    protocol.save(folder / "protocol.json")
    al.Ledger(folder / "ledger.sqlite", create=True).set_budget(POPULATION, 4, unit="one patient")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@contextmanager
def _heard() -> Iterator[list[str]]:
    """All warnings and log lines inside the block."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{record.name}: {record.getMessage()}")

    listener = Listener()
    logging.getLogger().addHandler(listener)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_, **__: said.append(str(message))
            yield said
    finally:
        logging.getLogger().removeHandler(listener)


def _metadata(file: Path) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = pq.read_schema(file).metadata
    return found


def _rows_of_the_ledger(path: Path) -> str:
    """All rows of its tables, without times and the random ids of releases."""
    with closing(sqlite3.connect(path)) as ledger:
        return _without_id(_TIME.sub("TIME", "\n".join(ledger.iterdump())))


def _without_id(text: str) -> str:
    """The text without the random ids of the releases in the ledger, whole or shortened."""
    for entry in al.Ledger("ledger.sqlite").entries():
        text = text.replace(entry.release, "ID").replace(entry.release[:12], "ID")
    return text


def _layout(file: Path) -> str:
    """The file's footer without sizes and offsets."""

    def public(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: public(inner) for key, inner in value.items() if key not in _SIZES | _PLACES}
        return [public(inner) for inner in value] if isinstance(value, list) else value

    return f"{pq.read_schema(file).remove_metadata()}\n{public(pq.ParquetFile(file).metadata.to_dict())}"


def _made_again(file: Path) -> str:
    """Whether the file is a function of the released labels, noisy values, noise ids and the protocol."""
    again = file.with_name("again.parquet")
    al.load(file).save(again)
    return "the same bytes" if again.read_bytes() == file.read_bytes() else "other bytes"


def _without_numbers(shown: str) -> str:
    """The listing without the noisy totals, people and margins."""
    document = json.loads(shown)
    for file in document:
        for row in file["rows"]:
            row["total"] = row["people"] = "a noisy number"
        for name in {"margins", "missing"} & file.keys():
            file[name] = f"{len(file[name])} noisy lists"
    return json.dumps(document, ensure_ascii=False)


def main() -> None:
    """Compare every door for every pair and print the result."""
    pairs = neighbor_pairs()
    found = {f"{name}, {kind}": open_doors(pair, kind) for name, pair in pairs.items() for kind in PROTOCOLS}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "party"
        folder.mkdir()
        doors = doors_of(random_events(0, 40), folder)
    print(f"Two tables were released under the same public settings, {len(found)} times:")
    for name, opened in found.items():
        print(f"  {name:<50} {'looks the same' if not opened else 'DIFFERS: ' + ', '.join(opened)}")
    print(f"\n{len(doors)} doors were compared:")
    for door, seen in doors.items():
        lines = seen.splitlines()
        first = lines[0][:60] if lines else "nothing"
        print(f"  {door:<40} {first}{' …' if len(seen) > len(first) else ''}")
    shut = not any(found.values())
    print(
        "\nAll doors show the same, whatever the table contains. The size of a sketch file follows from its noisy values and reveals"
        "\nnothing more. Open to the data holder only: run time, refusals, the progress bar."
        if shut
        else "\nSomething besides the noise depends on the data. That is a leak: please report it."
    )


if __name__ == "__main__":
    main()
