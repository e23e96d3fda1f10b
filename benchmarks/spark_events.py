"""`make bench-spark`: releases under Spark against the number of executors and of events, beside one machine and plain pyarrow.

Every line is a process of its own with real executors in processes of theirs, on the same generated file. A small release
before the clock starts warms up imports, kernels and the Java machine; starting a session is not counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from event_tables import write_events

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks-spark.md"
PLOT = ROOT / "docs" / "benchmarks-spark.svg"
SIZES = (1_000_000, 10_000_000, 100_000_000)
COMPARED = 10_000_000  # events of the comparison with others
SMALL = 100_000

_START = """
    import json, resource, sys, time
    from pathlib import Path
    path, small, count, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    java = lambda: 0
"""
_PROTOCOL = """
    import armslength as al
    protocol = al.Protocol(al.SparseJL(sketch_dim=512, seed="bench"), al.Votes(total_share="0.15", spread_sample="0.1"),
                           epsilon=1, unit="one patient")
    asked = dict(person="patient", item="code", group="hospital", ledger=al.NO_LEDGER,
                 public_groups=[f"hospital {number}" for number in range(24)])
"""
_SESSION = """
    from pyspark.sql import SparkSession
    session = (SparkSession.builder.master(f"local-cluster[{count},1,2048]").appName("bench")
               .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
               .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.memory", "1g")
               .config("spark.executor.memory", "2g").getOrCreate())
    session.sparkContext.setLogLevel("ERROR")

    def java():
        number = session.sparkContext._jvm.ProcessHandle.current().pid()
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
"""
_SPARK = """
    from armslength import spark
    def work(source):
        spark.release_table(session.read.parquet(source), protocol, partitions=max(8, 4 * count), **asked)
"""
_SPARK_COUNTS = """
    def work(source):
        session.read.parquet(source).groupBy("hospital", "code").count().toPandas()
"""
_ONE_MACHINE = """
    def work(source):
        al.release(protocol, source, threads=count, **asked)
"""
_PYARROW = """
    import pyarrow as pa
    import pyarrow.dataset as ds
    pa.set_cpu_count(count)
    def work(source):
        columns = ["hospital", "code"]
        ds.dataset(source).to_table(columns=columns).group_by(columns).aggregate([([], "count_all")])
"""
_END = """
    work(small)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work(path)
        seconds.append(time.perf_counter() - start)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": min(seconds), "python": own, "java": java()}))
"""
SPARK = _START + _PROTOCOL + _SESSION + _SPARK + _END
_PROGRAMS = {
    "armslength under Spark, 1 executor": (SPARK, 1),
    "armslength under Spark, 2 executors": (SPARK, 2),
    "armslength on one machine, 1 thread": (_START + _PROTOCOL + _ONE_MACHINE + _END, 1),
    "armslength on one machine, 2 threads": (_START + _PROTOCOL + _ONE_MACHINE + _END, 2),
    "Spark: counts without a bound, 2 executors, not private": (_START + _SESSION + _SPARK_COUNTS + _END, 2),
    "pyarrow: counts without a bound, 2 threads, not private": (_START + _PYARROW + _END, 2),
}


def measured(program: str, path: Path, small: Path, count: int, repeats: int) -> dict[str, float]:
    """What a program prints: seconds, and the peak memory of its driver in megabytes."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(path), str(small)]
    done = subprocess.run(  # noqa: S603  # our own program
        [*command, str(count), str(repeats)], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(
            "\n".join(line for line in done.stderr.splitlines() if "\tat " not in line)[-6000:]
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(folder: Path, small: Path, count: int) -> list[dict[str, Any]]:
    """Events a second of every program, on the same file."""
    path = folder / "events.parquet"
    write_events(path, count)
    rows = []
    for name, (program, workers) in _PROGRAMS.items():
        found = measured(program, path, small, workers, 2)
        rows.append({"program": name, "events": count, **found})
        print(f"{count / found['seconds'] / 1e6:8.2f} million events per second  {name}", flush=True)
    return rows


def growth(folder: Path, small: Path, sizes: list[int]) -> list[dict[str, Any]]:
    """Time and memory of the driver against the number of events, with two executors."""
    rows = []
    path = folder / "growing.parquet"
    for count in sizes:
        write_events(path, count)
        found = measured(SPARK, path, small, 2, 1)
        rows.append({"events": count, **found})
        print(
            f"{count:>12,} events: {found['seconds']:.1f} s, driver {found['python']:.0f} + {found['java']:.0f} MB",
            flush=True,
        )
    return rows


def draw(rows: list[dict[str, Any]]) -> None:
    """Time and memory of the driver against the number of events."""
    import matplotlib as mpl  # noqa: PLC0415  # the bench environment alone has it

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  # after the backend

    mpl.rcParams["svg.hashsalt"] = "armslength"
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    events = [row["events"] for row in rows]
    left.loglog(events, [row["seconds"] for row in rows], "o-")
    left.set(xlabel="events", ylabel="seconds", title="time")
    for name, label in (("python", "Python"), ("java", "Java")):
        right.semilogx(events, [row[name] for row in rows], "o-", label=label)
    right.set(xlabel="events", ylabel="MB", title="peak memory of the driver")
    right.set_ylim(bottom=0)
    right.legend()
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Measures, prints, and writes the page and the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes; the page is left alone")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "small.parquet"
        write_events(small, SMALL)
        found: dict[str, Any] = {
            "rows": compared(folder, small, COMPARED // (10 if quick else 1)),
            "growth": growth(folder, small, list(SIZES[: 2 if quick else 3])),
        }
    if quick:
        return
    draw(found["growth"])
    PAGE.write_text(_page(found), encoding="utf-8")


def _page(found: dict[str, Any]) -> str:
    rows = [
        f"| {row['program']} | {row['seconds']:.1f} | {row['events'] / row['seconds'] / 1e6:.2f} million |"
        for row in found["rows"]
    ]
    growing = [
        f"| {row['events']:,} | {row['seconds']:.1f} | {row['events'] / row['seconds'] / 1e6:.2f} million "
        f"| {row['python']:,.0f} MB | {row['java']:,.0f} MB |"
        for row in found["growth"]
    ]
    return f"""# Events under Spark

If the events fit on one machine, one machine is faster. Use a cluster if they do not fit, or are already in one.

Written by `make bench-spark` on a machine with 2 cores, shared by the driver and the executors, so at most two executors can be shown.
Executors are separate processes with one core each (`local-cluster`). The clock starts after the session is up and a small release has run.

## {found["rows"][0]["events"]:,} events, 24 groups, 512 coordinates, best of two

| program | seconds | events per second |
|---|---:|---:|
{chr(10).join(rows)}

## By number of events, 2 executors

| events | seconds | events per second | driver: Python | driver: Java |
|---:|---:|---:|---:|---:|
{chr(10).join(growing)}

![time and memory of the driver by number of events](benchmarks-spark.svg)

The driver holds the sums of the groups and no events.
"""


if __name__ == "__main__":
    main()
