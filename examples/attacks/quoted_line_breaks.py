"""Quoted line breaks: one person's text changes how a file is read, and so what everybody else counts for.

    python examples/attacks/quoted_line_breaks.py

What the attacker knows: nothing but that events are kept in a CSV file, which some program reads in parallel. What he does: he has two
events. The text of one is long, ends in a line break and lies across a place where a thread of the reader begins. The thread cannot know that it begins inside
quotes. It takes the line break for the end of a row, and the closing quote for an opening one. From there on inside is outside. The text of
his other event brings it back. Between the two, other people's events are text, and lines of his text are events, of whomever he likes.

What comes out: the parallel CSV reader of the engine that we use for tables loses 200,000 other people and invents three events. Differential privacy
promises that one person changes the exact counts by at most the contribution C before noise is added; here it was 200,003. armslength cuts
text files by its own reader, from their beginning to their end, and every record from the same state: with the attacker's events the
counts change by the attacker's events.
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

BORDER = 64 << 20  # where the second thread of the engine's reader begins
OTHERS = 200_000  # people between the attacker's two events
INVENTED = 3
CONTRIBUTION = 2
KEY = bytes(32)
PROTOCOL = al.Protocol(
    al.SparseJL(sketch_dim=4096, seed="quotes"),
    epsilon=1,
    contribution=CONTRIBUTION,
    unit="one person",
    total_share="0.5",
)


@dataclass(frozen=True)
class Counted:
    """What a reader makes of a file.

    Attributes:
        common: How many events have the item that everybody but the attacker has.
        rare: How many have the item that nobody has.
    """

    common: int
    rare: int


def write_events(path: Path, border: int, *, attacked: bool, others: int = OTHERS) -> None:
    """A CSV file of people with one event each, with or without the attacker's two."""
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
    """As the engine's own CSV reader sees the file, in two threads or in one."""
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
    """By how much the attacker moves our exact sketch and total, in ℓ1 norm; at most twice the contribution is promised."""
    found = []
    for attacked in (False, True):
        path = folder / f"{attacked}.csv"
        write_events(path, border, attacked=attacked, others=others)
        found.append(exact_sums(path))
    return int(np.abs(found[1] - found[0]).sum())


def main() -> None:
    """Both readers on a file with and without the attacker."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        change = moved(folder, BORDER)
        for parallel in (False, True):
            clean, attacked = (
                counted_by_engine(folder / f"{present}.csv", parallel=parallel) for present in (False, True)
            )
            print(
                f"the engine's reader in {'two threads' if parallel else 'one thread '}: the attacker takes away "
                f"{clean.common - attacked.common:,} events of others and invents {attacked.rare - clean.rare}"
            )
        print(
            f"armslength: the attacker moves the exact sketch and the total by {change} together; "
            f"{2 * CONTRIBUTION} is what two events may do"
        )


if __name__ == "__main__":
    main()
