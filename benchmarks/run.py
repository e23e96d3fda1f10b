"""`make bench`: how fast exact noise is drawn, as ratios against named peers in the same run."""

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import opendp.prelude as dp

from armslength.laws.discrete_laplace import DiscreteLaplace
from armslength.laws.law import Law
from armslength.laws.rounded_normal import RoundedNormal
from armslength.noise.draw import draw
from armslength.threads import available_threads

RESULTS = Path(__file__).parent / "results" / "noise.json"
LAWS: list[Law] = [
    DiscreteLaplace(1.0),
    DiscreteLaplace(50.0),
    DiscreteLaplace(2.0**30),
    RoundedNormal(5.0),
    RoundedNormal(2.0**30),
]


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The best of several runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def numpy_peer(law: Law, count: int) -> tuple[str, Callable[[], object]]:
    """The generator that people use today: floats, a seed, no exactness."""
    generator = np.random.default_rng()
    if isinstance(law, DiscreteLaplace):
        return "numpy Generator.laplace", lambda: generator.laplace(0.0, law.scale, count)
    return "numpy Generator.standard_normal", lambda: generator.standard_normal(count)


def opendp_seconds(law: Law) -> float:
    """Seconds a draw of OpenDP's exact integer Laplace takes."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    sampler = dp.m.make_laplace(*space, scale=law.scale)
    return best_seconds(lambda: sampler([0] * 10_000), 3) / 10_000


def main() -> None:
    """Measures, prints one table, writes one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws and repeats")
    quick = parser.parse_args().quick
    count, repeats = (1_000_000, 3) if quick else (10_000_000, 7)

    rows = []
    for law in LAWS:
        ours = best_seconds(partial(draw, law, (count,)), repeats) / count
        name, work = numpy_peer(law, count)
        peers = {name: best_seconds(work, repeats) / count}
        if isinstance(law, DiscreteLaplace):
            peers["OpenDP integer Laplace"] = opendp_seconds(law)
        rows += [
            {
                "law": law.name,
                "scale": law.scale,
                "peer": peer,
                "ours_ns": ours * 1e9,
                "ratio": seconds / ours,
            }
            for peer, seconds in peers.items()
        ]

    print(f"{'law':10}{'scale':>14}  {'ours, ns a draw':>16}  {'times faster':>13}  than")
    for row in rows:
        print(
            f"{row['law']:10}{row['scale']:14g}  {row['ours_ns']:16.2f}  {row['ratio']:13.1f}  {row['peer']}"
        )

    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607  # git is found as the user finds it
    report = {
        "commit": commit.stdout.strip(),
        "cpu": platform.processor() or platform.machine(),
        "threads": available_threads(),
        "python": sys.version.split()[0],
        "versions": {name: version(name) for name in ("armslength", "numba", "numpy", "opendp")},
        "draws": count,
        "repeats": repeats,
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"written to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")


if __name__ == "__main__":
    main()
