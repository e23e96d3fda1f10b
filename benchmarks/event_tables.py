"""`make bench-tables`: time and memory of `al.release`, beside DuckDB counting the same file without any bound.

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

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-tables.md"
SIZES = (10_000, 10_000_000, 100_000_000)
SMALL = 10_000  # so many events are the warm-up of every program, and the table of which the whole process is timed
GROUPS = 24
CODES = 70_000
TARGET = 2.5  # times the time of DuckDB
PEER_SIZES, PEER_CODES = (100_000, 1_000_000), 1_000  # of the comparison with a private peer
EVENTS_PER_PATIENT = 20
_MEMORY = "1GB"
_ROUNDS = 3

_OURS = """
    import armslength as al

    def run(path, contribution, sample):
        votes = al.Votes(total_share="0.15", spread_sample=sample)
        data = votes if contribution == "vote" else al.Counts(int(contribution))
        protocol = al.Protocol(al.SparseJL(sketch_dim=512, seed="bench"), data, epsilon=1, unit="one patient")
        al.release(protocol, path, person="patient", item="code", group="hospital",
                               public_groups=[f"hospital {number}" for number in range(24)], ledger=al.NO_LEDGER, memory=memory)
"""
_PEER = """
    import duckdb, tempfile

    def run(path, counted):
        with tempfile.TemporaryDirectory() as folder:
            config = {"memory_limit": memory, "temp_directory": folder, "preserve_insertion_order": False}
            with duckdb.connect(config=config) as connection:
                connection.execute("SET enable_progress_bar = false")
                connection.sql(f"SELECT hospital, code, count({counted}) FROM read_parquet('{path}') GROUP BY ALL").to_arrow_table()
"""
_OPENDP = """
    import warnings
    import opendp.prelude as dp
    import polars as pl
    warnings.simplefilter("ignore")
    dp.enable_features("contrib", "honest-but-curious")

    def run(path, bound, codes):
        keys = pl.DataFrame({"hospital": [f"hospital {number}" for number in range(24)]}).join(
            pl.DataFrame({"code": [f"c{number}" for number in range(int(codes))]}), how="cross")
        context = dp.Context.compositor(
            data=pl.scan_parquet(path), privacy_unit=dp.unit_of(contributions=1, identifier="patient"),
            privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1, margins=[dp.polars.Margin(by=(), max_length=10**9)])
        query = context.query().truncate_per_group(int(bound)).group_by("hospital", "code").agg(dp.len())
        query.with_keys(keys.lazy()).release().collect()
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


PEER = Program("DuckDB: counts without a bound, not private", _PEER, ("*",))
PEOPLE = Program("DuckDB: different patients of each code, not private", _PEER, ("DISTINCT patient",))


def programs(count: int) -> tuple[Program, ...]:
    """The programs for a file of so many events."""
    return (
        PEER,
        Program("armslength: votes", _OURS, ("vote", sample(count))),
        Program("armslength: votes, everybody in F", _OURS, ("vote", "1")),
        Program("armslength: amounts, C = 20", _OURS, ("20", "1")),
        PEOPLE,
    )


def private_peers(count: int) -> tuple[Program, ...]:
    """The programs of the comparison with a private peer."""
    return (
        PEER,
        Program("armslength: votes", _OURS, ("vote", sample(count))),
        Program(
            f"OpenDP (Polars): {EVENTS_PER_PATIENT} rows per patient, public keys",
            _OPENDP,
            (str(EVENTS_PER_PATIENT), str(PEER_CODES)),
        ),
    )


def sample(count: int) -> str:
    """The share of people of whom F is counted, as `plan` chooses it: about 50,000 of each group."""
    return f"{min(1, 50_000 * GROUPS * EVENTS_PER_PATIENT / count):.2g}"


def write_events(path: Path, count: int, codes: int = CODES) -> None:
    """A Parquet file of events: about twenty a patient, nine of ten in the patient's own hospital, and codes of very different frequency."""
    query = f"""COPY (SELECT 'p' || patient AS patient,
        'c' || floor({codes} * pow((hash(number * 13 + 5) % 1000003) / 1000003.0, 4))::INTEGER AS code,
        'hospital ' || (CASE WHEN hash(number * 5 + 2) % 10 = 0 THEN hash(number * 3) ELSE hash(patient * 11) END % {GROUPS}) AS hospital
        FROM (SELECT range AS number, hash(range * 7 + 1) % {max(1, count // EVENTS_PER_PATIENT)} AS patient FROM range({count})))
        TO '{path}' (FORMAT parquet)"""  # noqa: S608  # our own numbers
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


def measured(of: tuple[Program, ...], small: Path, path: Path) -> dict[Program, dict[str, float]]:
    """The fewest seconds and the most resident megabytes of each program, over rounds in which each runs once."""
    found: dict[Program, dict[str, float]] = {}
    for _ in range(_ROUNDS):
        for program in of:
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

    def compared(count: int, of: tuple[Program, ...], codes: int) -> list[str]:
        write_events(small, SMALL, codes)
        write_events(path, count, codes)
        found, lines = measured(of, small, path), []
        for program, best in found.items():
            ratio = best["seconds"] / found[PEER]["seconds"]
            results.append({"events": count, "codes": codes, "program": program.name, "ratio": ratio, **best})
            lines.append(
                f"| {count:,} | {program.name} | {best['seconds']:.2f} | {ratio:.1f} "
                f"| {count / best['seconds'] / 1e6:.2f} million | {best['megabytes']:,.0f} MB |"
            )
        print("\n".join(lines), flush=True)
        return lines

    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.parquet", Path(folder) / "events.parquet"
        lines = [line for count in chosen.rows for line in compared(count, programs(count), CODES)]
        if chosen.no_page:
            return
        largest = max(line["ratio"] for line in results if line["program"] == "armslength: votes")
        peers = [line for count in PEER_SIZES for line in compared(count, private_peers(count), PEER_CODES)]
        write_events(small, SMALL)
        whole = [f"| {each.name} | {process_seconds(each, small):.2f} |" for each in programs(SMALL)[:2]]
    PAGE.write_text(_page(lines, peers, whole, largest), encoding="utf-8")


_HEAD = """| events | program | seconds | ratio to DuckDB | events per second | peak resident memory |
|---|---|---:|---:|---:|---:|"""


def _page(lines: list[str], peers: list[str], whole: list[str], largest: float) -> str:
    missed = f", more than the target of {TARGET:g}" if largest > TARGET else ""
    return f"""# Event tables: time and memory

`make bench-tables` writes this page. The targets: at most {TARGET:g} times the time that DuckDB takes to count the same events without any bound,
at most 1.5 GB of resident memory, and less than a second for {SMALL:,} events. The machine had 2 cores.

What is measured:

* Each program gets a Parquet file with columns of text: about {EVENTS_PER_PATIENT} events per patient, nine of ten in the patient's own
  hospital of {GROUPS}, and {CODES:,} codes of very different frequency. The rows are in random order.
* Each program runs in a process of its own, {_ROUNDS} times, in turns with the others. Before the clock starts, it imports what it needs and
  reads a table of {SMALL:,} events. The table shows the fastest run and the largest peak of resident memory, which includes the imports.
* armslength reads the file, gives each person one vote (or bounds what each adds, C), projects to 512 coordinates and draws the noise. Votes
  come with T, Q and F; F is taken over a sample of about 50,000 people of each group, as `plan` sets it, or over everybody. DuckDB groups
  and counts all rows, and returns an Arrow table. Both have a limit of {_MEMORY}, all cores, and the file in the cache of the system.
* The ratio is to DuckDB in the same run. Other work may have been running on the machine, so compare ratios and not seconds of different runs.

Votes took at most {largest:.1f} times DuckDB's time{missed}. DuckDB's counts do not read the patients; votes read and sort events by them.

{_HEAD}
{chr(10).join(lines)}

## Beside a private peer

OpenDP's Polars path is what one would take instead for private counts of the same table: at most {EVENTS_PER_PATIENT} rows per patient, and a
noisy count for each of the {GROUPS * PEER_CODES:,} public keys ({GROUPS} hospitals x {PEER_CODES:,} codes, fewer than above so that it
finishes). It returns every count, with noise for {EVENTS_PER_PATIENT} rows of one patient; armslength returns sketches, with noise for one vote.
Most of OpenDP's time goes to the keys, not to the events.

{_HEAD}
{chr(10).join(peers)}

## Whole processes

{SMALL:,} events with all that a process does, from its start to its end. Kernels come from the cache: nothing is compiled.

| program | seconds of the whole process |
|---|---:|
{chr(10).join(whole)}

The vote is what takes the time: a person's events must be seen together, and may be in any row of any file
([decision 28](decisions/0028-partitions-by-person.md)). Counting without a bound is faster and has no guarantee.
"""


if __name__ == "__main__":
    main()
