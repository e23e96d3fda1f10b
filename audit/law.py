"""The law of votes: false alarms over populations that are hard for it, coverage of true differences, and what households do."""

from collections.abc import Iterable, Sequence

import numpy as np

from armslength.progress import progress
from audit.false_alarms import LIMIT
from audit.law_cells import (
    CLAIMED,
    DIFFERENT,
    HOUSEHOLDS,
    PARTIES,
    POPULATIONS,
    REAL,
    REPEATS,
    SETTINGS,
    Covered,
    Found,
    Setting,
    covered,
    measured,
    people_counted,
)
from audit.sections import Check, Section
from populations import DATA

SEEDS, QUICK = 60, 2  # public seeds of each cell: 61,440 pairs
QUICK_PARTIES = 32
MARGIN_SHARES = ("0.3", "0")  # as a plan has it with item groups, and without
COUNTED = ("NHDS", "retail")
MOST_MISSED = {
    "the two most popular items swapped": 0.05
}  # both in one bin for one of k seeds, and then missed always
TAIL = 0.025
RATES = (
    *("distance, 5 %", "distance, 1 %", "distance, 0.05/276"),
    *("similarity, 2.5 %", "similarity, 0.5 %", "similarity, 0.025/66"),
)
CLAIMS = tuple(
    zip(RATES, CLAIMED * 2, strict=True)
)  # each rate, and how many times as many are claimed at most


def audit(quick: bool) -> Section:
    """All cells, one after the other: each uses all that a core has."""
    rng = np.random.default_rng()
    seeds, parties = (QUICK, QUICK_PARTIES) if quick else (SEEDS, PARTIES)
    has_data = DATA.exists()
    names = [name for name in POPULATIONS if has_data or name not in REAL]
    settings, shares = (SETTINGS[:2], MARGIN_SHARES[:1]) if quick else (SETTINGS, MARGIN_SHARES)
    jobs = [(name, setting, share) for share in shares for name in names for setting in settings]
    cells = []
    with progress("false alarms", len(jobs), "cells", show=True) as advance:
        for job in jobs:
            cells.append(measured(*job, seeds, rng, parties=parties))
            advance(1)
    small = [Setting(1000, 1000, 256, "1"), Setting(5000, 5000, 1024, "1")]
    households = [
        measured(name, setting, "0.3", QUICK if quick else 10, rng, parties=parties)
        for name in (HOUSEHOLDS if has_data else ())
        for setting in (small[:1] if quick else small)
    ]
    different = [covered(name, seeds, rng) for name in DIFFERENT if has_data or not name.startswith("NHDS")]
    counted = [
        people_counted(name, setting, seeds, rng)
        for name in (COUNTED if has_data else ())
        for setting in (small[:1] if quick else small)
    ]
    return section(cells, households, different, counted)


def section(
    cells: Sequence[Found],
    households: Sequence[Found],
    different: Sequence[Covered],
    counted: Sequence[Covered],
) -> Section:
    """The table, one line for each population, and the claims."""
    rows = [
        _row(name, [cell for cell in cells if cell.name == name])
        for name in dict.fromkeys(c.name for c in cells)
    ]
    rows += [_row(f"{cell.name}; {cell.setting}", [cell]) for cell in households]
    rows += [
        (
            f"{cell.name}; {cell.setting}",
            *_percent(cell.distance),
            *_percent(cell.similarity),
            f"{cell.ratio:.2f}",
        )
        for cell in [*different, *counted]
    ]
    checks = [_alarms(cells, number) for number in range(len(CLAIMS))]
    checks += [
        _misses("a true difference", different),
        _misses("how far the people counted are apart", counted),
    ]
    words = (
        f"Pairs of parties whose people are drawn from one population, {max(c.pairs for c in cells):,} in each of {len(cells)} cells: "
        f"{REPEATS} of each party, new public seeds, people and noise, a tenth of ε for the number of people, with and without 30 % for item "
        "groups. False alarms as multiples of 5 %, 1 % and 0.05/276, and upper ends of the similarity below the truth, which is 1, as multiples of "
        "2.5 %, 0.5 % and 0.025/66: the range over all settings. The law's standard deviation is over that of the estimates. Households are "
        "measured, not claimed. Below are shares of missed truths at 2.5 % for each end, of the distance and of the similarity: the lower "
        "end is above the truth, or the upper end is below it."
    )
    heads = ("population", *RATES, "the law's deviation / the true one")
    return Section("The law of votes", words, heads, tuple(rows), tuple(checks))


def _row(name: str, cells: Sequence[Found]) -> tuple[str, ...]:
    ranges = [_range(cell.multiples[number] for cell in cells) for number in range(len(RATES))]
    return (name, *ranges, _range(cell.deviation for cell in cells))


def _range(numbers: Iterable[float]) -> str:
    cells = [f"{number:.2f}" for number in sorted(numbers)]
    return " to ".join(dict.fromkeys((cells[0], cells[-1])))


def _percent(shares: Iterable[float]) -> list[str]:
    cells = [f"{100 * share:.1f} % missed" for share in shares]
    return cells + [""] * (len(CLAIMED) - len(cells))


def _alarms(cells: Sequence[Found], number: int) -> Check:
    """Whether no cell has more false alarms of a rate than claimed, by what chance explains once in a million."""
    rate, times = CLAIMS[number]
    worst = max(cells, key=lambda cell: cell.multiples[number])
    holds = all(cell.multiples[number] <= times + LIMIT * cell.errors[number] for cell in cells)
    found = f"{worst.multiples[number]:.2f} times in the worst: {worst.name}, {worst.setting}"
    return Check(f"false alarms ({rate}) are at most {times} times as many", holds, found)


def _misses(what: str, cells: Sequence[Covered]) -> Check:
    """Whether no end misses more often than it says."""
    ends = [(share, cell) for cell in cells for share in (*cell.distance, *cell.similarity)]
    holds = all(share <= MOST_MISSED.get(cell.name, TAIL) + LIMIT * cell.errors for share, cell in ends)
    share, cell = max(ends, key=lambda end: end[0], default=(0.0, None))
    where = "" if cell is None else f": {cell.name}, {cell.setting}"
    return Check(
        f"an end at 2.5 % misses {what} at most so often", holds, f"{100 * share:.1f} % at the worst{where}"
    )
