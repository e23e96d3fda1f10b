"""How fast do baby names change? One small private sketch for each year, and the drift between years with its error bars.

    python examples/baby_names.py [STATE]

Each year of a state releases one sketch of its births by name and sex; one birth is one unit of protection, and belongs to one year. Nobody
has to agree on a list of names first: the sketch hashes whatever names occur. Afterward anybody compares years, as often as they like.

The data are the state files of the US Social Security Administration (30 years; names with fewer than 5 births in a year are left out there), as
`babynames_state_year.npz` in `../shared/data` beside the project or in the folder that ARMSLENGTH_DATA names. Without it, names are generated.
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
    """The births of a state, or None where the file is absent."""
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
    """Births of a small state that does not exist: Zipf popularities that wander from year to year."""
    generator = np.random.default_rng(2026)  # for the generated data; noise knows no seed
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
    """The plan for years about a hundred apart or more; it sees no data."""
    return al.plan(
        None, epsilon=epsilon, distance=(100, 1000), contribution=1, unit="one birth", seed="baby names"
    )


def estimated_drift(births: Births, protocol: al.Protocol) -> al.Estimate:
    """Distances between all years; each year is one release, and a birth is in one of them."""
    names, years, counts = births
    releases = [
        protocol.release(row[None, :], items=names, labels=[str(year)], ledger=al.NO_LEDGER)
        for year, row in zip(years, counts, strict=True)
    ]
    return al.distances(al.concat(releases))


def true_drift(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same without privacy, for the comparison."""
    rows = counts.astype(float)
    return np.array([np.sqrt(((rows - row) ** 2).sum(axis=1)) for row in rows])


def bar(lower: float, upper: float, truth: float, largest: float) -> str:
    """An interval as text: ├───┤, with x where the truth is."""
    ends = (min(end, largest) / largest for end in (lower, upper, truth))
    start, stop, mark = (round(end * (CHART_WIDTH - 1)) for end in ends)
    cells = [" "] * CHART_WIDTH
    cells[start : stop + 1] = "─" * (stop - start + 1)
    cells[start], cells[stop], cells[mark] = "├", "┤", "x"
    return "".join(cells).rstrip()


def show(years: list[int], estimate: al.Estimate, truth: NDArray[np.float64]) -> None:
    """One line for each year: its drift since the first year and since the year before, beside the truth."""
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
        f"\n  {held.mean():.0%} of the intervals of all {len(held)} pairs of years hold the truth (one matrix: they miss together)"
    )


def resolved_from(years: list[int], resolved: NDArray[np.bool_]) -> str:
    """From which year on all drifts since the first year are told apart from 0."""
    missed = np.flatnonzero(~resolved[0, 1:])
    first = missed[-1] + 2 if missed.size else 1
    return f"from {years[first]} on" if first < len(years) else "never"


def main() -> None:
    """Plans, releases 30 years, shows the drift, and how much ε it takes."""
    state = sys.argv[1].upper() if len(sys.argv) > 1 else "VT"
    births = recorded_births(state)
    if births is None:
        print(
            f"{FILE} is neither in ../shared/data nor where ARMSLENGTH_DATA says: generated names instead.\n"
        )
        births, state = generated_births(), "A state that does not exist"
    _, years, counts = births
    totals, truth = counts.sum(axis=1), true_drift(counts)

    plan = planned("1")
    print(f"{state}, {years[0]} to {years[-1]}, {totals.min():,} to {totals.max():,} births a year")
    print(f"\nWill it work?\n\n{plan.summary}")
    show(years, estimated_drift(births, plan.protocol), truth)
    chance = np.sqrt(totals[1:] + totals[:-1]).mean()
    print(f"  two years of equal fashion would be about {chance:.0f} apart by chance, √(births of both)")

    # To try all of these on the same people would spend their sum; here they stand side by side to compare.
    print("\nHow much ε does it take? Told apart from 0 at 95%, each pair by itself:\n")
    print(f"     ε     k   since {years[0]}       since the year before")
    for epsilon in ("1", "0.3", "0.1", "0.03", "0.01"):
        plan = planned(epsilon)
        if not plan.resolvable:
            print(f"  {epsilon:>4}     -   the plan says no, before anything is spent")
            continue
        resolved = estimated_drift(births, plan.protocol).resolved(0.95)
        steps = np.diagonal(resolved, 1)
        k = plan.protocol.transform.sketch_dim
        print(
            f"  {epsilon:>4} {k:5}   {resolved_from(years, resolved):13}    {steps.sum()} of {len(steps)} years"
        )


if __name__ == "__main__":
    main()
