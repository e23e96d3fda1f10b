"""Quoted line breaks: one person's text changes how a file is read, and so how everyone else is counted.

    python examples/attacks/quoted_line_breaks.py

The attacker knows only that events are in a CSV file that some program reads in parallel, and has two events. The text of the first is long, ends
in a line break and crosses the place where a thread of the reader starts. The thread cannot know that it starts inside quotes. It takes the
line break for the end of a row and the closing quote for an opening one. From there on, inside and outside are swapped, until the text of
the second event swaps them back. In between, other people's events are read as text, and lines of the attacker's text are read as events, of
anyone the attacker likes.

Result: the parallel CSV reader of our table engine loses 200,000 other people and invents three events. Differential privacy needs one person
to change the exact counts by at most the contribution C before noise is added; here it was 200,003. armslength reads text files with its own
reader, from beginning to end and every record from the same state. There the counts change by the attacker's events only.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import duckdb
import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob

BORDER = 64 << 20  # where the second thread of the engine's reader starts
OTHERS = 200_000  # people between the attacker's two events
INVENTED = 3
CONTRIBUTION = 2
KEY = bytes(32)
PROTOCOL = al.Protocol(
    al.SparseJL(sketch_dim=4096, seed="quotes"),
    al.Counts(CONTRIBUTION, total_share="0.5"),
    epsilon=1,
    unit="one person",
)


@dataclass(frozen=True)
class Counted:
    """Counts of a reader.

    Attributes:
        common: Events with the item that everyone but the attacker has.
        rare: Events with the item that nobody has.
    """

    common: int
    rare: int


def write_events(path: Path, border: int, *, attacked: bool, others: int = OTHERS) -> None:
    """Write a CSV file of people with one event each, with or without the attacker's two events."""
    with path.open("wb") as file:
        file.write(b"person,item\n")
        before = (border - 1000) // len(_row(0))
        file.write(b"".join(map(_row, range(before))))
        if attacked:
            file.write(b'attacker,"' + b"z" * (border - file.tell() + 20) + b'\n"\n')
        file.write(b"".join(map(_row, range(before, before + others))))
        if attacked:
            invented = b"".join(b"v%d,rare\n" % number for number in range(INVENTED))
            file.write(b'attacker,""",x\n' + invented + b'v,z"\n')
        file.write(b"".join(map(_row, range(before + others, before + 2 * others))))


def _row(number: int) -> bytes:
    return b"p%09d,common\n" % number


def counted_by_engine(path: Path, *, parallel: bool) -> Counted:
    """Counts by the engine's own CSV reader, with two threads or one."""
    with duckdb.connect(config={"threads": 2}) as engine:
        columns = "{'person': 'VARCHAR', 'item': 'VARCHAR'}"
        ((common, rare),) = engine.execute(
            "SELECT count(*) FILTER (item = 'common'), count(*) FILTER (item = 'rare') FROM "  # noqa: S608  # our own text
            f"read_csv(?, auto_detect = false, header = true, columns = {columns}, delim = ',', quote = '\"', escape = '\"', "
            f"strict_mode = true, max_line_size = 16777216, parallel = {parallel})",
            [str(path)],
        ).fetchall()
    return Counted(common, rare)


def exact_sums(path: Path) -> NDArray[np.int64]:
    """The exact integers of armslength before noise: the sketch and the total."""
    job = TableJob.of(path, PROTOCOL, EventColumns("person", "item"), PublicGroups(("all",), None))
    ready = job.sums(KEY)
    return np.concatenate([cast("NDArray[np.int64]", part).ravel() for part in (ready.values, ready.totals)])


def moved(folder: Path, border: int, others: int = OTHERS) -> int:
    """How far the attacker moves our exact sketch and total in ℓ1 norm. The promise is at most twice the contribution."""
    found = []
    for attacked in (False, True):
        path = folder / f"{attacked}.csv"
        write_events(path, border, attacked=attacked, others=others)
        found.append(exact_sums(path))
    return int(np.abs(found[1] - found[0]).sum())


def main() -> None:
    """Run both readers on a file with and without the attacker."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        change = moved(folder, BORDER)
        for parallel in (False, True):
            clean, attacked = (
                counted_by_engine(folder / f"{present}.csv", parallel=parallel) for present in (False, True)
            )
            print(
                f"the engine's reader, {'2 threads' if parallel else '1 thread'}: the attacker removes "
                f"{clean.common - attacked.common:,} events of others and invents {attacked.rare - clean.rare}"
            )
        print(
            f"armslength: the attacker moves the exact sketch and total by {change} together; two events may move them by {2 * CONTRIBUTION}"
        )


if __name__ == "__main__":
    main()
