"""`make bench-tables`: time and memory of `protocol.release_table`, beside DuckDB counting the same file without any bound.

Every program runs in processes of its own, in turns, on the same generated files and with the same limit of memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from report import RESULTS, rewrite_page

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-tables.md"
SIZES = (10_000, 10_000_000, 100_000_000)
SMALL = 10_000  # so many events are the warm-up of every program, and the table of which the whole process is timed
GROUPS = 24
_MEMORY = "1GB"
_ROUNDS = 3

_OURS = """
    import armslength as al

    def run(path, contribution, count):
        protocol = al.Protocol(al.SparseJL(sketch_dim=512, seed="bench"), epsilon=1, contribution=int(contribution), count=count, unit="one patient")
        protocol.release_table(path, person="patient", item="code", group="hospital",
                               public_groups=[f"hospital {number}" for number in range(24)], ledger=al.NO_LEDGER, memory=memory)
"""
_PEER = """
    import duckdb, tempfile

    def run(path):
        with tempfile.TemporaryDirectory() as folder:
            config = {"memory_limit": memory, "temp_directory": folder, "preserve_insertion_order": False}
            with duckdb.connect(config=config) as connection:
                connection.execute("SET enable_progress_bar = false")
                connection.sql(f"SELECT hospital, code, count(*) FROM read_parquet('{path}') GROUP BY ALL").to_arrow_table()
"""
_START = """
    import json, sys, time
    memory, small, path, *choices = sys.argv[1:]
"""
_TIMED = """
    run(small, *choices)  # imports, and whatever happens at the first call
    start = time.perf_counter()
    run(path, *choices)
    seconds = time.perf_counter() - start
    with open("/proc/self/status") as status:  # getrusage would count the process that started this one, too
        peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "megabytes": peak}))
"""
_ONCE = """
    run(small, *choices)
"""
_WATCHED = """
    from numba.core import event
    compiled = event.RecordingListener()
    event.register("numba:compile", compiled)
    run(small, *choices)
    print(len(compiled.buffer))
"""


@dataclass(frozen=True)
class Program:
    """A program that reads a file of events.

    Attributes:
        name: What it does.
        code: Defines `run(path, *choices)`.
        choices: The bound, and what is counted.
    """

    name: str
    code: str
    choices: tuple[str, ...] = ()


PEER = Program("DuckDB: counts without a bound, not private", _PEER)
PROGRAMS = (
    PEER,
    *(
        Program(f'armslength, C = {contribution}, count="{count}"', _OURS, (str(contribution), count))
        for count in ("people", "events")
        for contribution in (5, 20)
    ),
)


def write_events(path: Path, count: int) -> None:
    """A Parquet file of events: about twenty a patient, 70,000 codes of very different frequency, 24 hospitals."""
    query = f"""COPY (SELECT 'p' || (hash(range * 7 + 1) % {max(1, count // 20)}) AS patient,
        'c' || floor(70000 * pow((hash(range * 13 + 5) % 1000003) / 1000003.0, 4))::INTEGER AS code,
        'hospital ' || (hash(range * 3) % {GROUPS}) AS hospital FROM range({count})) TO '{path}' (FORMAT parquet)"""  # noqa: S608  # our own numbers
    with duckdb.connect() as connection:
        connection.execute(query)


def output_of(program: Program, ending: str, small: Path, path: Path) -> str:
    """What the program prints in a process of its own."""
    code = textwrap.dedent(_START) + textwrap.dedent(program.code) + textwrap.dedent(ending)
    command = [sys.executable, "-c", code, _MEMORY, str(small), str(path), *program.choices]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own program
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def measured(small: Path, path: Path) -> dict[Program, dict[str, float]]:
    """The fewest seconds and the most resident megabytes of each program, over rounds in which each runs once."""
    found: dict[Program, dict[str, float]] = {}
    for _ in range(_ROUNDS):
        for program in PROGRAMS:
            now = json.loads(output_of(program, _TIMED, small, path))
            before = found.get(program, now)
            found[program] = {
                "seconds": min(now["seconds"], before["seconds"]),
                "megabytes": max(now["megabytes"], before["megabytes"]),
            }
    return found


def process_seconds(program: Program, small: Path) -> float:
    """The fewest seconds of a whole process that releases the small file: its start, its imports and its end count."""
    if program is not PEER and (compiled := int(output_of(program, _WATCHED, small, small))):
        raise RuntimeError(
            f"kernels must come from the cache in a second process, got {compiled} compiled anew"
        )
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        output_of(program, _ONCE, small, small)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Measures, prints, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES)
    parser.add_argument("--no-page", action="store_true")
    chosen = parser.parse_args()
    results: list[dict[str, Any]] = []
    lines = [
        "| events | program | seconds | ratio to DuckDB | events per second | peak resident memory |",
        "|---|---|---:|---:|---:|---:|",
    ]
    whole = ["| program | seconds of the whole process |", "|---|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.parquet", Path(folder) / "events.parquet"
        write_events(small, SMALL)
        for count in chosen.rows:
            write_events(path, count)
            found = measured(small, path)
            for program, best in found.items():
                ratio = best["seconds"] / found[PEER]["seconds"]
                results.append({"events": count, "program": program.name, "ratio": ratio, **best})
                lines.append(
                    f"| {count:,} | {program.name} | {best['seconds']:.2f} | {ratio:.1f} "
                    f"| {count / best['seconds'] / 1e6:.2f} million | {best['megabytes']:,.0f} MB |"
                )
            print("\n".join(lines[-len(found) :]), flush=True)
        for program in PROGRAMS:
            whole.append(f"| {program.name} | {process_seconds(program, small):.2f} |")
            print(whole[-1], flush=True)
    if not chosen.no_page:
        PAGE.write_text(_page(lines, whole), encoding="utf-8")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "tables.json").write_text(
            json.dumps({"lines": results}, indent=1) + "\n", encoding="utf-8"
        )
        rewrite_page()


def _page(lines: list[str], whole: list[str]) -> str:
    return f"""# Event tables: time and memory

`make bench-tables` writes this page. The targets: at most 3 times the time that DuckDB takes to count the same events without any bound, at
most 1.5 GB of resident memory, and less than a second for {SMALL:,} events. The machine had 2 cores.

What is measured:

* Each program gets a Parquet file with columns of text: about twenty events per patient, 70,000 codes of very different
  frequency, {GROUPS} hospitals. The rows are in random order.
* Each program runs in a process of its own, {_ROUNDS} times, in turns with the others. Before the clock starts, it imports what it needs and
  reads a table of {SMALL:,} events. The table shows the fastest run and the largest peak of resident memory, which includes the imports.
* armslength reads the file, bounds what each person adds (C), projects to 512 coordinates and draws the noise. DuckDB groups and counts all
  rows, and returns an Arrow table. Both have a limit of {_MEMORY}, all cores, and the file in the cache of the system.
* The ratio is to DuckDB in the same run.

{chr(10).join(lines)}

The same for {SMALL:,} events with all that a process does, from its start to its end. Kernels come from the cache: nothing is compiled.

{chr(10).join(whole)}

The bound is what takes the time: a person's events must be seen together, and may be in any row of any file
([decision 28](decisions/0028-partitions-by-person.md)). Counting without a bound is faster and has no guarantee.
"""


if __name__ == "__main__":
    main()
