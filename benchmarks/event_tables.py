"""`make bench-tables`: time and memory of `protocol.release_table` against the number of events, beside the engine by itself.

Every program runs in a process of its own, with the same limit of memory for the engine, on the same generated file.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import duckdb
from report import RESULTS, rewrite_page

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-tables.md"
SIZES = (1_000_000, 10_000_000, 100_000_000)
GROUPS = 24
_MEMORY = "1GB"

_START = """
    import json, resource, sys, time
    path, memory, contribution = sys.argv[1], sys.argv[2], int(sys.argv[3])
    start = time.perf_counter()
"""
_END = """
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
_OURS = """
    import armslength as al
    protocol = al.Protocol(al.SparseJL(sketch_dim=512, seed="bench"), epsilon=1, contribution=contribution, count="events", unit="one patient")
    groups = [f"hospital {number}" for number in range(24)]
    protocol.release_table(path, person="patient", item="code", group="hospital", public_groups=groups,
                     ledger=al.NO_LEDGER, memory=memory)
"""
_ENGINE = """
    import duckdb, tempfile
    folder = tempfile.mkdtemp()
    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": folder, "preserve_insertion_order": False})
    connection.execute("SET enable_progress_bar = false")
"""
_COUNTS = """
    connection.sql(f"SELECT hospital, code, count(*) FROM read_parquet('{path}') GROUP BY ALL").fetchall()
"""
_WINDOW = """
    connection.sql(f'''SELECT hospital, code, count(*) FROM (
        SELECT hospital, code, row_number() OVER (PARTITION BY patient ORDER BY hash(patient || hospital || code)) AS place
        FROM read_parquet('{path}')) WHERE place <= {contribution} GROUP BY ALL''').fetchall()
"""
PROGRAMS = {
    "armslength, at most 20 events per person": (_START + _OURS + _END, 20),
    "armslength, at most 5 events per person": (_START + _OURS + _END, 5),
    "DuckDB: counts without a bound, not private": (_START + _ENGINE + _COUNTS + _END, 20),
    "DuckDB: counts with a bound of 20 by a window function, not private": (
        _START + _ENGINE + _WINDOW + _END,
        20,
    ),
}


def write_events(path: Path, count: int) -> None:
    """A Parquet file of events: about twenty a patient, 70,000 codes of very different frequency, 24 hospitals."""
    query = f"""COPY (SELECT 'p' || (hash(range * 7 + 1) % {max(1, count // 20)}) AS patient,
        'c' || floor(70000 * pow((hash(range * 13 + 5) % 1000003) / 1000003.0, 4))::INTEGER AS code,
        'hospital ' || (hash(range * 3) % {GROUPS}) AS hospital FROM range({count})) TO '{path}' (FORMAT parquet)"""  # noqa: S608  # our own numbers
    with duckdb.connect() as connection:
        connection.execute(query)


def measured(program: str, path: Path, contribution: int) -> dict[str, float] | None:
    """Seconds and peak resident megabytes of a program; None if it ran out of memory."""
    command = [sys.executable, "-c", textwrap.dedent(program), str(path), _MEMORY, str(contribution)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own program
    if done.returncode:
        if "Out of Memory" in done.stderr or "OutOfMemory" in done.stderr:
            return None
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measures, prints, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES)
    parser.add_argument("--no-page", action="store_true")
    chosen = parser.parse_args()
    results: list[dict[str, Any]] = []
    lines = [
        "| events | program | seconds | events per second | peak resident memory |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        for count in chosen.rows:
            write_events(path, count)
            for name, (program, contribution) in PROGRAMS.items():
                found = measured(program, path, contribution)
                results.append(
                    {
                        "events": count,
                        "program": name,
                        **(found or {"seconds": None, "megabytes": None}),
                    }
                )
                result = (
                    "out of memory | | "
                    if found is None
                    else f"{found['seconds']:.1f} | {count / found['seconds'] / 1e6:.2f} million | {found['megabytes']:,.0f} MB"
                )
                lines.append(f"| {count:,} | {name} | {result} |")
                print(lines[-1], flush=True)
    if not chosen.no_page:
        PAGE.write_text(_page(lines), encoding="utf-8")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "tables.json").write_text(
            json.dumps({"lines": results}, indent=1) + "\n", encoding="utf-8"
        )
        rewrite_page()


def _page(lines: list[str]) -> str:
    return "\n".join(
        [
            "# Event tables: time and memory",
            "",
            f"Written by `make bench-tables` on a machine with 2 cores, with {_MEMORY} for the engine in every program. Each program ran once, so compare",
            "ratios within a size, and the memory. Times of armslength include process start, the sort by person, the contribution bound, the",
            "projection and the noise. The import takes about a second.",
            "",
            *lines,
            "",
            "Much of the time is the sort by person: a person's events must be seen together and may be in any file. Counting without a bound is",
            "several times faster and has no guarantee.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
