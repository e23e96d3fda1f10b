"""How fast do baby names change? One small private sketch per year, and the drift between years with error bars.

    python examples/baby_names.py [STATE]

Each year of a state releases one sketch of its births by name and sex. The unit of protection is one birth, and each birth belongs to one year. The
years need no common list of names: the sketch hashes whatever names occur. Afterward anyone can compare years, as often as they like.

The data are the state files of the US Social Security Administration: 30 years, without names with fewer than 5 births in a year. Put
`babynames_state_year.npz` into `../shared/data` beside the project or into the folder ARMSLENGTH_DATA. Otherwise names are generated.
"""

import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import armslength as al

FILE = "babynames_state_year.npz"
SMALLEST_COUNT = 5
CHART_WIDTH = 44

Births = tuple[list[str], list[int], NDArray[np.int64]]  # names, years, one row of counts for each year


def recorded_births(state: str) -> Births | None:
    """The births of a state, or None if the file is missing."""
    folder = os.environ.get("ARMSLENGTH_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(folder) / FILE
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as data:
        rows = np.flatnonzero(data["state"] == state)
        if not rows.size:
            raise SystemExit(f"STATE must be one of {', '.join(np.unique(data['state']))}; got {state!r}")
        parts = (data["data"], data["indices"], data["indptr"])
        counts = sparse.csr_array(parts, shape=tuple(data["shape"]))[rows].toarray()
        return data["names"].tolist(), data["year"][rows].tolist(), counts.astype(np.int64)


def generated_births() -> Births:
    """Births of an invented small state: Zipf popularities that change from year to year."""
    generator = np.random.default_rng(2026)  # for the generated data; noise has no seed
    years, count = list(range(1996, 2026)), 4000
    popularity = -np.log(np.arange(1, count + 1)) + generator.normal(0, 0.3, count)
    rows = np.empty((len(years), count), dtype=np.int64)
    for number in range(len(years)):
        shares = np.exp(popularity)
        rows[number] = generator.multinomial(6000, shares / shares.sum())
        popularity += generator.normal(0, 0.12, count)
    rows[rows < SMALLEST_COUNT] = 0
    return [f"Name {number}" for number in range(count)], years, rows


def planned(epsilon: str) -> al.Plan:
    """The plan for distances of about a hundred or more between years. It sees no data."""
    return al.plan(epsilon=epsilon, distance=(100, 1000), contribution=1, unit="one birth", seed="baby names")


def estimated_drift(births: Births, protocol: al.Protocol) -> al.Estimate:
    """Distances between all years. Each year is one release, and each birth is in one release."""
    names, years, counts = births
    releases = [
        al.release(protocol, row[None, :], items=names, labels=[str(year)], ledger=al.NO_LEDGER)
        for year, row in zip(years, counts, strict=True)
    ]
    return al.distances(al.concat(releases))


def true_drift(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same distances without privacy, for comparison."""
    rows = counts.astype(float)
    return np.array([np.sqrt(((rows - row) ** 2).sum(axis=1)) for row in rows])


def bar(lower: float, upper: float, truth: float, largest: float) -> str:
    """An interval as text: ├───┤, with x at the truth."""
    ends = (min(end, largest) / largest for end in (lower, upper, truth))
    start, stop, mark = (round(end * (CHART_WIDTH - 1)) for end in ends)
    cells = [" "] * CHART_WIDTH
    cells[start : stop + 1] = "─" * (stop - start + 1)
    cells[start], cells[stop], cells[mark] = "├", "┤", "x"
    return "".join(cells).rstrip()


def show(years: list[int], estimate: al.Estimate, truth: NDArray[np.float64]) -> None:
    """Print one line per year: the drift since the first year and since the year before, with the truth."""
    lower, upper = estimate.interval(0.95)
    resolved = estimate.resolved(0.95)
    largest = max(truth[0].max(), *upper[0, np.isfinite(upper[0])])

    def cell(i: int, j: int) -> str:
        mark = " " if resolved[i, j] else "?"
        return (
            f"{estimate.value[i, j]:7.0f}{mark} [{lower[i, j]:4.0f}, {upper[i, j]:4.0f}] {truth[i, j]:5.0f}"
        )

    first, heads = f"since {years[0]}", f"{'estimate':>8} {'95% interval':>12} {'truth':>5}"
    print(f"\n       {first:^27}   {'since the year before':^27}   {first}, x truth")
    print(f"  year {heads}   {heads}   0")
    for i in range(1, len(years)):
        chart = bar(lower[0, i], upper[0, i], truth[0, i], largest)
        print(f"  {years[i]} {cell(0, i)}   {cell(i, i - 1)}   {chart}")
    pairs = np.triu_indices(len(years), 1)
    held = ((lower <= truth) & (truth <= upper))[pairs]
    print(
        f"\n  {held.mean():.0%} of the intervals of all {len(held)} pairs contain the truth (they share one matrix, so they miss together)"
    )


def resolved_from(years: list[int], resolved: NDArray[np.bool_]) -> str:
    """The year from which on every drift since the first year is resolved."""
    missed = np.flatnonzero(~resolved[0, 1:])
    first = missed[-1] + 2 if missed.size else 1
    return f"from {years[first]} on" if first < len(years) else "never"


def main() -> None:
    """Plan, release 30 years, show the drift, and show how much ε it takes."""
    state = sys.argv[1].upper() if len(sys.argv) > 1 else "VT"
    births = recorded_births(state)
    if births is None:
        print(f"{FILE} not found in ../shared/data or ARMSLENGTH_DATA: using generated names.\n")
        births, state = generated_births(), "An invented state"
    _, years, counts = births
    totals, truth = counts.sum(axis=1), true_drift(counts)

    plan = planned("1")
    print(f"{state}, {years[0]} to {years[-1]}, {totals.min():,} to {totals.max():,} births per year")
    print(f"\nWill it work?\n\n{plan.summary}")
    show(years, estimated_drift(births, plan.protocol), truth)
    chance = np.sqrt(totals[1:] + totals[:-1]).mean()
    print(
        f"  With no change in fashion, two years would be about {chance:.0f} apart by chance: √(births of both)."
    )

    # Releasing all of these about the same people would spend their sum. This is a comparison only.
    print("\nHow much ε does it take? Drifts resolved at 95%, each pair by itself:\n")
    print(f"     ε     k   since {years[0]}       since the year before")
    for epsilon in ("1", "0.3", "0.1", "0.03", "0.01"):
        plan = planned(epsilon)
        if not plan.resolvable:
            print(f"  {epsilon:>4}     -   the plan says that this cannot work, and nothing is spent")
            continue
        resolved = estimated_drift(births, plan.protocol).resolved(0.95)
        steps = np.diagonal(resolved, 1)
        k = plan.protocol.transform.sketch_dim
        print(
            f"  {epsilon:>4} {k:5}   {resolved_from(years, resolved):13}    {steps.sum()} of {len(steps)} years"
        )


if __name__ == "__main__":
    main()
