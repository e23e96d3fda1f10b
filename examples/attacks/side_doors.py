"""Side doors: what an onlooker learns from a release beside its values. He should learn nothing.

What the attacker knows: everything that is public, and everybody's events but one person's. What he sees: all that a release leaves or shows:
the file's name, size, rows, labels, types, encodings and metadata, the ledger with every row, the text on the screen, warnings, logs, exit codes, and files
left in the temporary folder. What he does: he compares them with what the release would have been without that person. Any difference is a
leak that no noise covers.

What comes out: every door is shut. The same text and bytes come out whatever the table holds, apart from what is random (values with noise, and
the noise ids) and what is a clock. The *size* of the file depends on the values with noise, since small numbers take fewer bits; but the file
can be made again, byte for byte, from what was released. So its size is post-processing and tells nothing that the values do not.

Three doors are open by decision, and only to the data holder: how long a release takes, a refusal of data of the wrong form, and the progress bar on a
terminal, which counts events. See SECURITY.md.

python side_doors.py
"""

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
PROTOCOL = al.Protocol(
    al.SparseJL(sketch_dim=64, seed="side doors"),
    epsilon=1,
    contribution=3,
    unit="one patient",
    total_share="0.1",
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d(:\d\d)?(\+00:00| UTC)?")
_SIZES = {"total_byte_size", "total_compressed_size", "total_uncompressed_size", "serialized_size"}
_DIGESTS = b"armslength digests"  # of what is published: as different as the values with their noise
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_CODES, _AGAIN = "exit codes", "file made again from what was released"
_MUST = {_CODES: "[0, 0]", _AGAIN: "the same bytes"}  # else there was no release, and nothing to compare
_PLACES = {"data_page_offset", "dictionary_page_offset", "file_offset"}


def random_events(seed: int, persons: int) -> list[Event]:
    """A few events of each of so many persons."""
    chance = random.Random(seed)  # noqa: S311  # generated events
    return [
        (f"p{person}", f"c{chance.randrange(9)}", chance.choice(GROUPS[:2]), chance.choice([1, 1, 2, -1]))
        for person in range(persons)
        for _ in range(chance.randrange(1, 6))
    ]


def neighbor_pairs(seed: int = 0) -> dict[str, tuple[list[Event], list[Event]]]:
    """Pairs of tables under the same public settings: most differ by one person, the last ones in everything."""
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


def doors_of(events: list[Event], folder: Path) -> dict[str, str]:
    """Releases the events in an empty folder; all that can be seen of it, as one text for each door."""
    _write(events, folder)
    temporary = folder.parent / f"{folder.name}-temporary"
    temporary.mkdir()
    with chdir(folder), mock.patch.object(tempfile, "tempdir", str(temporary)), _heard() as heard:
        released = _run(
            *("release", "visits.parquet", "--person", "patient", "--item", "code", "--group", "hospital"),
            *("--weight", "amount", "--public-groups", ",".join(GROUPS), "--protocol", "protocol.json"),
            *("--population", POPULATION, "-o", "sketches.parquet"),
        )
        ledger = _run("ledger", "show")
        names = sorted(f"{path.name} {path.stat().st_mode:o}" for path in folder.iterdir())
        file = Path("sketches.parquet")
        return {
            _CODES: str([released.exit_code, ledger.exit_code]),
            "standard output of release": released.stdout,
            "standard error of release": released.stderr,
            "warnings and log": "\n".join(heard),
            "names and modes of files": "\n".join(names),
            "files left in the temporary folder": "\n".join(
                sorted(path.name for path in temporary.rglob("*"))
            ),
            "armslength ledger show": _TIME.sub("TIME", ledger.stdout),
            "every row of the ledger": _rows_of_the_ledger(Path("ledger.sqlite")),
            "size of the ledger": str(Path("ledger.sqlite").stat().st_size),
            **(_doors_of_the_file(file) if file.exists() else {}),
        }


def _doors_of_the_file(file: Path) -> dict[str, str]:
    metadata = _metadata(file)
    doors = {
        "columns, types, encodings": _layout(file),
        "metadata and card": str({key: value for key, value in metadata.items() if key != _DIGESTS}),
        "what the digests are of": _DIGEST.sub("SHA-256", metadata[_DIGESTS].decode()),
    }
    try:
        return {
            **doors,
            "rows and labels": str(al.load(file).labels),
            _AGAIN: _made_again(file),
            "armslength inspect": _without_totals(_run("inspect", str(file), "--format", "json").stdout),
        }
    except al.ArmslengthError as refused:
        return {**doors, _AGAIN: f"it is refused: {refused}"}


def open_doors(pair: tuple[list[Event], list[Event]]) -> list[str]:
    """The doors through which the two tables of a pair look different: none, one hopes.

    A release that did not work, and a file that is not made again from what it holds, are open doors too: two that fail
    alike show nothing.
    """
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / name / "party" for name in ("first", "second")]
        for folder in folders:
            folder.mkdir(parents=True)
        first, second = (doors_of(events, folder) for events, folder in zip(pair, folders, strict=True))
    return [
        door
        for door in {**first, **second, **_MUST}
        if not first.get(door) == second.get(door) == _MUST.get(door, first.get(door))
    ]


def _write(events: list[Event], folder: Path) -> None:
    person, item, group, amount = zip(*events, strict=True) if events else ((), (), (), ())
    table = {
        "patient": pa.array(person, pa.string()),
        "code": pa.array(item, pa.string()),
        "hospital": pa.array(group, pa.string()),
        "amount": pa.array(amount, pa.int64()),
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")
    PROTOCOL.save(folder / "protocol.json")
    al.Ledger(folder / "ledger.sqlite", create=True).set_budget(POPULATION, 4, unit="one patient")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Every warning and every line of a log inside the block."""
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
    """All that its tables hold, without times."""
    with closing(sqlite3.connect(path)) as ledger:
        return _TIME.sub("TIME", "\n".join(ledger.iterdump()))


def _layout(file: Path) -> str:
    """All that the file's footer says, but for sizes and places."""

    def public(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: public(inner) for key, inner in value.items() if key not in _SIZES | _PLACES}
        return [public(inner) for inner in value] if isinstance(value, list) else value

    return f"{pq.read_schema(file).remove_metadata()}\n{public(pq.ParquetFile(file).metadata.to_dict())}"


def _made_again(file: Path) -> str:
    """Whether the file is a function of what was released: labels, values with noise, noise ids, and the protocol."""
    again = file.with_name("again.parquet")
    al.load(file).save(again)
    return "the same bytes" if again.read_bytes() == file.read_bytes() else "other bytes"


def _without_totals(shown: str) -> str:
    """The listing without totals, which have noise."""
    document = json.loads(shown)
    for file in document:
        for row in file["rows"]:
            row["total"] = "a number with noise"
    return json.dumps(document, ensure_ascii=False)


def main() -> None:
    """Compares every door for every pair, and says what was seen."""
    pairs = neighbor_pairs()
    found = {name: open_doors(pair) for name, pair in pairs.items()}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "party"
        folder.mkdir()
        doors = doors_of(random_events(0, 40), folder)
    print(f"Two tables were released under the same public settings, {len(pairs)} times:")
    for name, opened in found.items():
        print(f"  {name:<40} {'looks the same' if not opened else 'DIFFERS: ' + ', '.join(opened)}")
    print(f"\nCompared were {len(doors)} doors:")
    for door, seen in doors.items():
        lines = seen.splitlines()
        first = lines[0][:60] if lines else "nothing"
        print(f"  {door:<40} {first}{' …' if len(seen) > len(first) else ''}")
    shut = not any(found.values())
    print(
        "\nAll of them show the same, whatever the table holds. The size of a sketch file follows from its values with noise,"
        "\nand tells nothing that they do not. Open to the data holder alone: how long it takes, refusals, a progress bar."
        if shut
        else "\nSomething beside the noise depends on the data. That is a leak: please report it."
    )


if __name__ == "__main__":
    main()
