"""`make bench-votes`: votes beside version 0.2's cut at C, on real parties: power, width and coverage.

Real data are read from `../shared/data` or from the folder ARMSLENGTH_DATA. The text of the page is in `benchmarks/votes.md`.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from report import RESULTS
from vote_parties import DATA, Party, eicu, nhds, retail
from vote_simulation import CUTS, Outcome, Way, exact_sums, outcome

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks-votes.md"
RUNS, SMALL_RUNS, QUICK_RUNS = 400, 100, 40
EPSILONS = ("0.5", "1", "3")
DIMENSIONS = (256, 1024)
SETS = {"NHDS": nhds, "eICU": eicu, "retail": retail}
PAIRS = {
    "NHDS": (("NE gov", "S gov"), ("S np", "W np"), ("MW np", "S np"), ("MW fp", "S fp")),
    "eICU": (("Midwest", "South"), ("South", "West")),
    "retail": (("UK", "others"),),
}
PEOPLE = {"NHDS": (1000, 3000, 10_000), "eICU": (300, 1000, 3000), "retail": (300, 1000, 3000)}
SHOWN = ((0, "1", 256), (1, "0.5", 1024), (1, "1", 256), (1, "1", 1024), (1, "3", 1024), (2, "1", 1024))
SMALL, LARGE = 300, 5000  # parties below have their own number of people, others at most so many
WAYS = (None, *CUTS)
LARGER_SHARE, LARGER = Fraction("0.15"), "votes, 15 % for people"
_HOLD = 0.05  # of power: less is no difference

Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One comparison, with the outcome of each way, without and with margins."""

    data: str
    pair: str
    people: tuple[int, int]
    dimension: int
    epsilon: str
    outcomes: dict[str, Outcome]

    @classmethod
    def of(cls, row: Row) -> "Line":
        """From JSON."""
        outcomes = {name: Outcome(*numbers) for name, numbers in row.pop("outcomes").items()}
        return cls(**{**row, "people": tuple(row["people"])}, outcomes=outcomes)

    def best(self, *, with_margins: bool = False) -> Outcome:
        """Of all C, the one with the most power, then with the smallest width; nobody knows it beforehand."""
        cuts = (self.outcomes[name_of(cut, with_margins=with_margins)] for cut in CUTS)
        return max(cuts, key=lambda each: (each.power, -each.width))


def name_of(contribution: int | None, *, with_margins: bool) -> str:
    """A way's name in the report."""
    name = "votes" if contribution is None else f"C = {contribution}"
    return f"{name}, margins" if with_margins else name


def measured(
    data: str, parties: tuple[Party, Party], people: tuple[int, int], dimension: int, runs: int
) -> Iterator[Row]:
    """A line for each ε: the same people and matrices, with new noise."""
    name = " : ".join(party.name for party in parties)
    generator = np.random.default_rng(list(f"{data} {name} {people} {dimension}".encode()))
    x, y = (
        exact_sums(party, count, dimension, range(runs), generator)
        for party, count in zip(parties, people, strict=True)
    )
    for epsilon in EPSILONS:
        outcomes = {}
        for way in WAYS:
            for with_margins in (False, True):
                release = Way.of(way, epsilon, dimension, with_margins=with_margins)
                outcomes[name_of(way, with_margins=with_margins)] = outcome(
                    release, parties, (x[way], y[way]), generator
                )
        if min(people) < SMALL:
            release = Way.of(None, epsilon, dimension, with_margins=False, total_share=LARGER_SHARE)
            outcomes[LARGER] = outcome(release, parties, (x[None], y[None]), generator)
        yield {
            "data": data,
            "pair": name,
            "people": people,
            "dimension": dimension,
            "epsilon": epsilon,
            "outcomes": outcomes,
        }


def _pairs(found: dict[str, dict[str, Party]], runs: int) -> list[Row]:
    """The named pairs, with equally many people drawn from both."""
    rows: list[Row] = []
    for data, parties in found.items():
        for pair in PAIRS[data]:
            for people in PEOPLE[data]:
                for dimension in DIMENSIONS:
                    both = parties[pair[0]], parties[pair[1]]
                    rows += measured(data, both, (people, people), dimension, runs)
            print(data, " : ".join(pair), flush=True)
    return rows


def _small(parties: dict[str, Party], runs: int) -> list[Row]:
    """All pairs in which a party has few people, each with its own number of people."""
    rows: list[Row] = []
    sizes = {name: min(len(party.people.counts), LARGE) for name, party in parties.items()}
    for a, b in combinations(parties, 2):
        if min(sizes[a], sizes[b]) < SMALL:
            for dimension in DIMENSIONS:
                rows += measured("NHDS", (parties[a], parties[b]), (sizes[a], sizes[b]), dimension, runs)
    return rows


def _power(power: float) -> str:
    return f"{power:.2f}"


def _width(width: float) -> str:
    return f"{width:.2f}" if np.isfinite(width) else "–"


def _gain(line: Line) -> float:
    return line.outcomes["votes"].power - line.best().power


def _numbers(lines: list[Line]) -> dict[str, str]:
    """The numbers that the page's text names."""
    most = max(lines, key=_gain)
    least = [line for line in sorted(lines, key=_gain) if _gain(line) < -_HOLD]
    distances = [
        each.distance / line.outcomes["votes"].distance for line in lines for each in line.outcomes.values()
    ]
    means = [np.mean([line.outcomes[name].power for line in lines]) for name in ("votes", "votes, margins")]
    return {
        "more": str(sum(_gain(line) > _HOLD for line in lines)),
        "same": str(sum(abs(_gain(line)) <= _HOLD for line in lines)),
        "less": str(len(least)),
        "most_at": _place(most),
        "most": f"{most.outcomes['votes'].power:.2f} against {most.best().power:.2f}",
        "lost": "; ".join(
            f"{_place(line)}: {line.outcomes['votes'].power:.2f} against {line.best().power:.2f}"
            for line in least
        )
        or "none",
        "without_margins": f"{means[0]:.2f}",
        "with_margins": f"{means[1]:.2f}",
        "nearest": f"{min(distances):.2f}",
        "farthest": f"{max(distances):.2f}",
    }


def _place(line: Line) -> str:
    return f"{line.data}, {line.pair}, {line.people[0]:,} people, ε = {line.epsilon}, k = {line.dimension:,}"


def _table(lines: list[Line]) -> str:
    """Power of each way and the widths of votes and the best C, for the lines that are shown."""
    heads = [
        "pair",
        "people",
        "ε",
        "k",
        "**votes**",
        *(f"C = {cut}" for cut in CUTS),
        "**votes**, margins",
        "best C, margins",
        "width: **votes**",
        "best C",
        "worst C",
    ]
    text = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    shown = {
        (data, people[place], epsilon, dimension)
        for data, people in PEOPLE.items()
        for place, epsilon, dimension in SHOWN
    }
    for line in lines:
        if (line.data, line.people[0], line.epsilon, line.dimension) not in shown:
            continue
        votes, with_margins = line.outcomes["votes"], line.outcomes["votes, margins"]
        widths = [line.outcomes[name_of(cut, with_margins=False)].width for cut in CUTS]
        cells = [
            f"{line.data}, {line.pair}",
            f"{line.people[0]:,}",
            line.epsilon,
            f"{line.dimension:,}",
            f"**{_power(votes.power)}**",
            *(_power(line.outcomes[name_of(cut, with_margins=False)].power) for cut in CUTS),
            f"**{_power(with_margins.power)}**",
            _power(line.best(with_margins=True).power),
            f"**{_width(votes.width)}**",
            _width(min(widths)),
            _width(max(widths)),
        ]
        text.append(f"| {' | '.join(cells)} |")
    return "\n".join(text)


def _summary(lines: list[Line]) -> str:
    """For each ε, how often votes have more power than the best C, and the C that plans recommended; and the widths."""
    text = [
        "| ε | lines | more power than the best C | the same, within 0.05 | less | mean power: votes | best C | C = 5 | C = 16 | mean ratio of widths: votes to the best C |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for epsilon in EPSILONS:
        chosen = [line for line in lines if line.epsilon == epsilon]
        gains = np.array([_gain(line) for line in chosen])
        means = [
            np.mean([line.outcomes["votes"].power for line in chosen]),
            np.mean([line.best().power for line in chosen]),
            *(np.mean([line.outcomes[f"C = {cut}"].power for line in chosen]) for cut in (5, 16)),
        ]
        ratios = [
            line.outcomes["votes"].width / min(line.outcomes[f"C = {cut}"].width for cut in CUTS)
            for line in chosen
        ]
        is_more, is_less = gains > _HOLD, gains < -_HOLD
        text.append(
            f"| {epsilon} | {len(chosen)} | {is_more.sum()} | {(~is_more & ~is_less).sum()} | {is_less.sum()} | "
            + " | ".join(f"{mean:.2f}" for mean in means)
            + f" | {_mean_ratio(ratios)} |"
        )
    return "\n".join(text)


def _mean_ratio(ratios: list[float]) -> str:
    finite = [ratio for ratio in ratios if np.isfinite(ratio) and ratio > 0]
    return f"{np.exp(np.mean(np.log(finite))):.2f}"


def _coverage(lines: list[Line]) -> str:
    """Misses on each side, in percent: on average over all lines, and in the worst one."""
    names = [name_of(way, with_margins=with_margins) for with_margins in (False, True) for way in WAYS]
    text = [
        "| way | wholly above D: mean | worst | wholly below D: mean | worst |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in names:
        cells = []
        for side in ("below", "above"):
            misses = 100 * np.array([getattr(line.outcomes[name], side) for line in lines])
            cells += [f"{misses.mean():.2f}", f"{misses.max():.2f}"]
        text.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(text)


def _small_table(lines: list[Line]) -> str:
    """The expected number of pairs told apart, for each ε and k."""
    names = [name_of(way, with_margins=with_margins) for with_margins in (False, True) for way in WAYS]
    names.insert(1, LARGER)
    text = [f"| ε | k | {' | '.join(names)} |", "|---|---:|" + "---:|" * len(names)]
    for epsilon in EPSILONS:
        for dimension in DIMENSIONS:
            chosen = [line for line in lines if line.epsilon == epsilon and line.dimension == dimension]
            sums = [sum(line.outcomes[name].power for line in chosen) for name in names]
            text.append(f"| {epsilon} | {dimension:,} | {' | '.join(f'{each:.1f}' for each in sums)} |")
    return "\n".join(text)


def _draw(lines: list[Line]) -> None:
    """Power against people, a small plot for each pair and ε, for votes and some C; the larger sketch."""
    mpl.rcParams["svg.hashsalt"] = "armslength"
    pairs = list(dict.fromkeys((line.data, line.pair) for line in lines))
    figure, axes = plt.subplots(
        len(EPSILONS), len(pairs), figsize=(13, 6), sharey=True, layout="constrained", squeeze=False
    )
    styles: dict[str, dict[str, Any]] = {
        "votes": {"color": "tab:blue", "linewidth": 2.0},
        "C = 1": {"color": "tab:olive"},
        "C = 5": {"color": "tab:orange"},
        "C = 16": {"color": "tab:red"},
    }
    for (data, pair), column in zip(pairs, axes.T, strict=True):
        for epsilon, axis in zip(EPSILONS, column, strict=True):
            chosen = [
                line
                for line in lines
                if (line.data, line.pair, line.epsilon, line.dimension)
                == (data, pair, epsilon, DIMENSIONS[-1])
            ]
            people = [line.people[0] for line in chosen]
            for name, style in styles.items():
                power = [line.outcomes[name].power for line in chosen]
                axis.plot(people, power, marker="o", markersize=4, label=name, **style)
            axis.set(xscale="log", xticks=people, ylim=(-0.04, 1.04))
            axis.set_xticklabels([f"{count:,}" for count in people])
            axis.minorticks_off()
            axis.spines[["top", "right"]].set_visible(False)
        column[0].set_title(f"{data}\n{pair}", fontsize=10)
        column[-1].set_xlabel("people in each party")
    for epsilon, axis in zip(EPSILONS, axes[:, 0], strict=True):
        axis.set_ylabel(f"ε = {epsilon}\ntold apart")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)


def write_page(report: dict[str, list[Row]]) -> None:
    """Writes the page and its plot."""
    lines, small = ([Line.of(dict(row)) for row in report[name]] for name in ("pairs", "small"))
    text = (Path(__file__).parent / "votes.md").read_text(encoding="utf-8")
    PAGE.write_text(
        text.format(
            summary=_summary(lines),
            table=_table(lines),
            coverage=_coverage(lines),
            small=_small_table(small),
            small_pairs=len({line.pair for line in small}),
            lines=len(lines),
            k=DIMENSIONS[-1],
            largest=LARGE,
            **_numbers(lines),
            runs=RUNS,
            small_runs=SMALL_RUNS,
        ),
        encoding="utf-8",
    )
    _draw(lines)


def main() -> None:
    """Measures everything, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few releases of each; no page")
    parser.add_argument("--page", action="store_true", help="only write the page from the last whole run")
    options = parser.parse_args()
    file = RESULTS / "votes.json"
    if not options.page:
        if not DATA.exists():
            raise SystemExit(f"the data sets must be in {DATA} or in the folder ARMSLENGTH_DATA")
        start = time.perf_counter()
        found = {name: make() for name, make in SETS.items()}
        pairs = _pairs(found, QUICK_RUNS if options.quick else RUNS)
        report = {"pairs": pairs, "small": [] if options.quick else _small(found["NHDS"], SMALL_RUNS)}
        print(f"{time.perf_counter() - start:.0f} seconds")
        if options.quick:
            lines = [Line.of(dict(row)) for row in pairs]
            print(_summary(lines), _table(lines), _coverage(lines), sep="\n\n")
            return
        RESULTS.mkdir(exist_ok=True)
        file.write_text(json.dumps(report, indent=1), encoding="utf-8")
    write_page(json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
