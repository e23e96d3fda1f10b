"""`make bench-differences`: the share of the true top ten differences found, beside a noisy histogram at the same ε.

Real data are read from `../shared/data` or from the folder ARMSLENGTH_DATA. Without them the page cannot be written; `--quick` takes what is there.
"""

import argparse
import json
import math
import os
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from report import RESULTS

import armslength as al
from armslength.demo import CHAPTERS, CODES, generated_hospitals
from armslength.estimates.intervals import Level
from armslength.estimates.prevalence import Noise, Prevalence
from armslength.estimates.totals import totals
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks-differences.md"
DATA = Path(os.environ.get("ARMSLENGTH_DATA") or ROOT.parent / "shared" / "data")
TOP, CANDIDATES, ERROR = 10, 100, 0.05
EPSILONS, NO_NOISE = ("0.5", "1", "3"), "10000"
REPETITIONS = 5
MARGIN_SHARE, TOTAL_SHARE = "0.3", "0.1"  # of ε; the histogram has the second, too, and no margins
_TO_TOTALS = 0.02  # of the error, as item differences have it
SKETCHES = {
    "sketch, s = 1": (1, 2048),
    "sketch, s = 3": (3, 3072),
}  # 100 candidates at s = 1 take 2,000 numbers
MARGINS, HISTOGRAM = "margins", "histogram"
GROUPS, LISTED, ALL = "item groups", "100 listed items", "all items"

Scores = dict[
    tuple[str, str], list[float]
]  # by question and method: found of the top ten, told apart, told apart wrongly


@dataclass(frozen=True)
class Case:
    """Event tables of parties.

    Attributes:
        name: On the page.
        people: Who a person is, on the page.
        events: The columns person, item and party; no line comes twice.
        parties: Those that are compared, each with each.
        vocabulary: All items, public.
        prefixes: The beginnings of items that are the item groups.
        rule: The prefixes in words.
    """

    name: str
    people: str
    events: pa.Table
    parties: tuple[str, ...]
    vocabulary: list[str]
    prefixes: list[str]
    rule: str

    @cached_property
    def group_of_item(self) -> NDArray[np.int64]:
        """The number of the item group of each item of the vocabulary; the last one is (other)."""
        numbers = {prefix: number for number, prefix in enumerate(self.prefixes)}
        lengths = sorted({len(prefix) for prefix in self.prefixes}, reverse=True)
        places = (
            next((numbers[item[:n]] for n in lengths if item[:n] in numbers), len(self.prefixes))
            for item in self.vocabulary
        )
        return np.fromiter(places, np.int64)

    @cached_property
    def _counts(self) -> dict[str, tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]]:
        """Of each party: the sum of all votes for each item, how many item groups each person has, how many people each item group has."""
        numbers = {item: number for number, item in enumerate(self.vocabulary)}
        names = self.events["party"].combine_chunks().dictionary_encode()
        items = self.events["item"].combine_chunks().dictionary_encode()
        codes = np.array([numbers[item] for item in items.dictionary.to_pylist()])[items.indices.to_numpy()]
        person = (
            self.events["person"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        )
        groups = len(self.prefixes) + 1
        found: dict[str, tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]] = {}
        for place, name in enumerate(names.dictionary.to_pylist()):
            own = names.indices.to_numpy() == place
            cells = np.unique(person[own] * groups + self.group_of_item[codes[own]])
            vote = 1 / np.bincount(person[own])[person[own]]
            found[name] = (
                np.bincount(codes[own], vote, len(self.vocabulary)).astype(np.float64),
                np.unique(cells // groups, return_counts=True)[1],
                np.bincount(cells % groups, minlength=groups),
            )
        return found

    @cached_property
    def margin_contribution(self) -> int:
        """G: 95 of 100 people have no more item groups than that, and count in full."""
        counts = np.concatenate([self._counts[party][1] for party in self.parties])
        return math.ceil(float(np.quantile(counts, 0.95)))

    def people_of(self, party: str) -> int:
        """How many people a party has."""
        return len(self._counts[party][1])

    def item_shares(self, party: str) -> NDArray[np.float64]:
        """The truth: the share of each item in an average person's vote."""
        return self._counts[party][0] / self.people_of(party)

    def group_shares(self, party: str) -> NDArray[np.float64]:
        """The same for item groups: what a histogram estimates."""
        return self.group_sums(self.item_shares(party))

    def prevalences(self, party: str) -> NDArray[np.float64]:
        """The truth: the share of a party's people with an item of each item group."""
        return self._counts[party][2] / self.people_of(party)

    def group_sums(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """The sums of numbers of items over each item group."""
        weights = np.asarray(numbers, dtype=np.float64)
        sums = np.bincount(self.group_of_item, weights=weights, minlength=len(self.prefixes) + 1)
        return sums.astype(np.float64)

    def candidates(self, pair: tuple[str, str]) -> list[str]:
        """The items that are most frequent among all parties but the two: it stands for a public list."""
        counts = sum(each[0] for party, each in self._counts.items() if party not in pair)
        return [self.vocabulary[place] for place in np.argsort(-counts, kind="stable")[:CANDIDATES]]

    def listed_share(self, pair: tuple[str, str]) -> float:
        """The share of the true top ten items that are candidates."""
        best = _top(self.item_shares(pair[1]) - self.item_shares(pair[0]))
        return len({self.vocabulary[place] for place in best} & set(self.candidates(pair))) / TOP

    @cached_property
    def compared(self) -> pa.Table:
        """The events of the parties that are compared."""
        return self.events.filter(pc.is_in(self.events["party"], pa.array(self.parties)))


def _load(file: str) -> dict[str, NDArray[Any]] | None:
    if not (DATA / file).exists():
        return None
    with np.load(DATA / file, allow_pickle=False) as data:
        return dict(data)


def _babynames() -> Case | None:
    data = _load("babynames_state_year.npz")
    if data is None:
        return None
    year = np.flatnonzero(data["year"] == data["year"].max())
    row = np.repeat(np.arange(len(data["year"])), np.diff(data["indptr"]))
    is_chosen = np.isin(row, year)
    births = data["data"][is_chosen]
    item = np.repeat(data["names"][data["indices"][is_chosen]], births)
    party = np.repeat(data["state"][row[is_chosen]], births)
    events = pa.table({"person": np.arange(len(item)), "item": item, "party": party})
    states = ("ID", "KS", "NE", "NM")  # small enough for noise to matter
    vocabulary = data["names"].tolist()
    letters = sorted({name[0] for name in vocabulary})
    return Case(
        "babynames", "births of 2025", events, states, vocabulary, letters, "the first letter of a name"
    )


def _retail() -> Case | None:
    data = _load("retail_customers.npz")
    if data is None:
        return None
    row = np.repeat(np.arange(len(data["customer"])), np.diff(data["indptr"]))
    columns = (
        data["customer"][row].astype(np.int64),
        data["item"][data["indices"]],
        data["country"][row],
    )
    events = pa.table(dict(zip(("person", "item", "party"), columns, strict=True)))
    countries = ("United Kingdom", "Germany", "France")  # the others have fewer than 30 customers
    vocabulary = data["item"].tolist()
    prefixes = sorted({item[:2] for item in vocabulary})
    rule = "the first two characters of a stock code"
    return Case("retail", "customers", events, countries, vocabulary, prefixes, rule)


def _eicu() -> Case | None:
    data = _load("eicu_demo_stays.npz")
    if data is None:
        return None
    stay = np.repeat(np.arange(len(data["stay"])), np.diff(data["indptr"]))
    columns = (
        data["patient"][stay].astype(np.int64),
        data["feature"][data["indices"]],
        data["region"][stay],
    )
    events = pa.table(dict(zip(("person", "item", "party"), columns, strict=True)))
    events = events.group_by(["person", "item", "party"]).aggregate([])  # several stays of a patient
    regions = ("Midwest", "Northeast", "South", "West")
    vocabulary = data["feature"].tolist()
    first = {"rx:" if item.startswith("rx:") else item.split("|")[0] for item in vocabulary}
    rule = "the first part of a diagnosis or treatment; all drug orders together"
    return Case("eicu", "patients", events, regions, vocabulary, sorted(first), rule)


def _demo() -> Case:
    hospitals = generated_hospitals()
    tables = [
        pa.table(
            {
                "person": hospital.visits["patient"],
                "item": hospital.visits["code"],
                "party": pa.array([hospital.name] * hospital.visits.num_rows),
            }
        )
        for hospital in hospitals
    ]
    events = pa.concat_tables(tables).group_by(["person", "item", "party"]).aggregate([])
    first = {hospital.region: hospital.name for hospital in reversed(hospitals)}
    letters = list(CHAPTERS)
    codes = [f"{letters[code % len(letters)]}{code // len(letters):04d}" for code in range(CODES)]
    rule = "the first letter of a code, its chapter"
    return Case("demo", "patients", events, tuple(sorted(first.values())), codes, letters, rule)


CASES = (_babynames, _retail, _eicu, _demo)


def _protocol(transform: Any, epsilon: str, votes: al.Votes, **fields: Any) -> al.Protocol:
    return al.Protocol(transform, votes, epsilon=epsilon, unit="one person", **fields)


def _release(case: Case, protocol: al.Protocol) -> al.Sketches:
    return al.release(
        protocol,
        case.compared,
        person="person",
        item="item",
        group="party",
        public_groups=list(case.parties),
        vocabulary=case.vocabulary if protocol.vocabulary else None,
        ledger=al.NO_LEDGER,
    )


def _score(truth: NDArray[np.float64], value: Any, lower: Any, upper: Any) -> tuple[float, float, float]:
    """Shares of the true top ten in the top ten by estimate, and told apart with the right sign; how many told apart have the wrong sign."""
    best = _top(truth)
    is_told = ((lower > 0) & (truth > 0)) | ((upper < 0) & (truth < 0))
    is_wrong = ((lower > 0) | (upper < 0)) & ~is_told
    listed = np.flatnonzero(~np.isnan(value))
    largest = listed[_top(value[listed])]
    return len(np.intersect1d(best, largest)) / TOP, float(is_told[best].mean()), float(is_wrong.sum())


def _top(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.argsort(-np.abs(values), kind="stable")[:TOP]


def _margins(case: Case, rows: al.Sketches, pair: tuple[str, str]) -> tuple[float, float, float]:
    """What `al.explain` finds of the people counted, as the histogram's intervals are about them, too."""
    truth = case.prevalences(pair[1]) - case.prevalences(pair[0])
    try:
        found: Any = al.explain(rows, *pair, about="people", level=1 - ERROR)
    except al.NotResolvableError:
        return 0.0, 0.0, 0.0
    names = [*case.prefixes, "(other)"]
    order = [found.item_groups.index(name) for name in names]
    return _score(truth, found.difference[order], found.lower[order], found.upper[order])


def _summed_histogram(case: Case, rows: al.Sketches, pair: tuple[str, str]) -> tuple[float, float, float]:
    """The histogram summed over the items of each item group, over the number of people: the law of these sums.

    It estimates shares of votes, not of people. It is held against the truth of which it finds more.
    """
    groups, sizes = len(case.prefixes) + 1, case.group_sums(np.ones(len(case.vocabulary)))
    sides, ends = [], []
    for party in pair:
        row = rows[party]
        sides.append(case.group_sums(row.values[0] / VOTE))
        total = totals(row)
        low, high = (
            float(end[0]) for end in total.rule.interval(Level(_TO_TOTALS * ERROR / 4, "guaranteed"))
        )
        ends.append((max(1.0, float(total.value[0])), low, high))
    (a, b), (total_a, total_b) = sides, ends
    value = b / total_b[0] - a / total_a[0]
    lower, upper = np.full((2, groups), [[-np.inf], [np.inf]])
    small, large = sorted((total_a[1], total_b[1]))
    if small > 0:  # else a total may be 0, and nothing is told apart
        corners = np.array([b / over_b - a / over_a for over_a in total_a[1:] for over_b in total_b[1:]])
        tail = (1 - _TO_TOTALS) * ERROR / 2 / groups
        law = rows.protocols[0].law
        # of E/small − F/large, for sums E and F of as many noises as the item group has items
        if not isinstance(law, DiscreteLaplace):
            raise TypeError("votes have Laplace noise")
        reach = np.array([_reach(law, max(1, int(size)), small / large, tail) / small for size in sizes])
        lower, upper = corners.min(axis=0) - reach, corners.max(axis=0) + reach
    scores = [
        _score(shares(pair[1]) - shares(pair[0]), value, lower, upper)
        for shares in (case.prevalences, case.group_shares)
    ]
    top, told, wrong = zip(*scores, strict=True)
    return max(top), max(told), min(wrong)


@cache
def _reach(law: DiscreteLaplace, count: int, ratio: float, tail: float) -> float:
    noises = (Noise(law, count), Noise(law, count, ratio))
    return Prevalence(np.zeros(1), 0.0, 0.0, (), noises, beyond_chance=False).people_noise(tail)


def _items(
    case: Case, rows: al.Sketches, pair: tuple[str, str], listed: list[str]
) -> tuple[float, float, float]:
    """What `al.explain` finds of the whole vocabulary's top ten; an item in a tie with a listed one does not count."""
    truth = case.item_shares(pair[1]) - case.item_shares(pair[0])
    vocabulary = case.vocabulary if rows.protocols[0].vocabulary else None
    numbers = {item: number for number, item in enumerate(case.vocabulary)}
    value, lower, upper = np.full((3, len(truth)), [[np.nan], [-np.inf], [np.inf]])
    try:
        found: Any = al.explain(
            rows, *pair, items=listed, about="people", level=1 - ERROR, vocabulary=vocabulary
        )
    except al.NotResolvableError:
        if vocabulary is None:
            return 0.0, 0.0, 0.0
        # A histogram has a plain top ten even where a total may be 0.
        a, b = (
            rows[party].values[0] / VOTE / max(1.0, float(totals(rows[party]).value[0])) for party in pair
        )
        places = np.array([numbers[item] for item in listed])
        value[places] = (b - a)[places]
        return _score(truth, value, lower, upper)
    is_alone = np.array([not ties for ties in found.ties])
    places = np.array([numbers[item] for item in found.items])
    value[places] = found.difference
    lower[places[is_alone]], upper[places[is_alone]] = found.lower[is_alone], found.upper[is_alone]
    return _score(truth, value, lower, upper)


def _votes(case: Case) -> al.Votes:
    """Votes with margins and totals."""
    prefixes = pa.table({"prefix": case.prefixes, "group": case.prefixes})
    return al.Votes(TOTAL_SHARE, item_groups=al.ItemGroups(prefixes, MARGIN_SHARE, case.margin_contribution))


def _histogram(case: Case, epsilon: str, votes: al.Votes) -> al.Sketches:
    identity = al.Identity(input_dim=len(case.vocabulary))
    return _release(case, _protocol(identity, epsilon, votes, vocabulary=case.vocabulary))


def _measure(case: Case, epsilon: str, number: int) -> Scores:
    """One release of each kind, and the means over all pairs of parties."""
    released = {}
    for name, (sparsity, size) in SKETCHES.items():
        transform = al.SparseJL(sketch_dim=size, sparsity=sparsity, seed=f"what differs {number}")
        released[name] = _release(case, _protocol(transform, epsilon, _votes(case)))
    first, last = released.values()
    histogram = _histogram(case, epsilon, al.Votes(TOTAL_SHARE))
    scores = defaultdict(list)
    for pair in combinations(case.parties, 2):
        scores[GROUPS, MARGINS].append(_margins(case, first, pair))
        scores[GROUPS, HISTOGRAM].append(_summed_histogram(case, histogram, pair))
        few = case.candidates(pair)
        for name, rows in (*released.items(), (HISTOGRAM, histogram)):
            scores[LISTED, name].append(_items(case, rows, pair, few))
        for name, rows in (("sketch, s = 3", last), (HISTOGRAM, histogram)):
            scores[ALL, name].append(_items(case, rows, pair, case.vocabulary))
    return {key: np.mean(values, axis=0).tolist() for key, values in scores.items()}


def _without_noise(case: Case) -> dict[str, dict[str, float]]:
    """The plain top ten without noise, where people above G item groups weigh less, and by a guess that looks at no data."""
    rows = _histogram(case, NO_NOISE, _votes(case))
    found = defaultdict(list)
    for pair in combinations(case.parties, 2):
        (a, b), few = [rows[party] for party in pair], case.candidates(pair)
        people = [np.asarray(side.margins)[0, :-1] / np.asarray(side.totals)[0] for side in (a, b)]
        items = [side.values[0] / side.values[0].sum() for side in (a, b)]
        is_listed = np.isin(case.vocabulary, few)
        is_first = np.isin(case.vocabulary, few[:TOP])
        sizes = case.group_sums(np.ones(len(case.vocabulary)))
        truths = [shares(pair[1]) - shares(pair[0]) for shares in (case.prevalences, case.item_shares)]
        for key, truth, value in (
            ((GROUPS, "bound"), truths[0], people[1] - people[0]),
            ((LISTED, "bound"), truths[1], np.where(is_listed, items[1] - items[0], np.nan)),
            ((ALL, "bound"), truths[1], items[1] - items[0]),
            ((GROUPS, "guess"), truths[0], sizes),
            ((LISTED, "guess"), truths[1], is_first.astype(float)),
        ):
            found[key].append(_score(truth, value, value, value)[0])
    means = {key: float(np.mean(values)) for key, values in found.items()}
    return {
        kind: {question: means[question, kind] for question, each in means if each == kind}
        for kind in ("bound", "guess")
    }


def _results(cases: list[Case], repetitions: int) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for case in cases:
        people = {party: case.people_of(party) for party in case.parties}
        about = {
            "people": people,
            "who": case.people,
            "items": len(case.vocabulary),
            "groups": len(case.prefixes) + 1,
        }
        about["listed"] = float(np.mean([case.listed_share(pair) for pair in combinations(case.parties, 2)]))
        about |= {"rule": case.rule, "G": case.margin_contribution}
        cells: dict[str, dict[str, dict[str, list[list[float]]]]] = {}
        for epsilon in EPSILONS:
            for number in range(repetitions):
                for (question, method), score in _measure(case, epsilon, number).items():
                    cells.setdefault(question, {}).setdefault(method, {}).setdefault(epsilon, []).append(
                        score
                    )
            print(case.name, epsilon, flush=True)
        report[case.name] = {"about": about, "without_noise": _without_noise(case), "cells": cells}
    return report


def _cell(scores: list[list[float]], column: int) -> str:
    """The median in percent, and the range of all repetitions."""
    values = 100 * np.array(scores)[:, column]
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{middle:.0f} ({low:.0f}–{high:.0f})" if high > low else f"{middle:.0f}"


def _table(report: dict[str, Any], question: str) -> str:
    heads = [f"{what}, ε = {epsilon}" for what in ("told apart", "top ten") for epsilon in EPSILONS]
    lines = [f"| data | method | {' | '.join(heads)} | top ten, no noise | a guess |"]
    lines.append("|---|---|" + "---:|" * (len(heads) + 2))
    for name, found in report.items():
        for method, by_epsilon in found["cells"][question].items():
            cells = [_cell(by_epsilon[epsilon], column) for column in (1, 0) for epsilon in EPSILONS]
            ends = [found["without_noise"][kind].get(question) for kind in ("bound", "guess")]
            cells += ["" if end is None else f"{100 * end:.0f}" for end in ends]
            lines.append(f"| {name} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _compared(report: dict[str, Any], question: str, column: int) -> str:
    """In how many of the cells our best method has a higher, the same or a lower median than the histogram."""
    counts = [0, 0, 0]
    for found in report.values():
        methods = dict(found["cells"][question])
        theirs = methods.pop(HISTOGRAM)
        for epsilon in EPSILONS:
            best = max(np.median(np.array(each[epsilon])[:, column]) for each in methods.values())
            counts[1 - int(np.sign(np.round(best - np.median(np.array(theirs[epsilon])[:, column]), 9)))] += 1
    return f"higher in {counts[0]}, equal in {counts[1]}, lower in {counts[2]}"


def _sizes(report: dict[str, Any]) -> str:
    lines = [
        "| data | people | items | item groups | G | true top ten that is listed, % |",
        "|---|---|---:|---|---:|---:|",
    ]
    for name, found in report.items():
        about = found["about"]
        people = ", ".join(f"{party} {count:,}" for party, count in about["people"].items())
        lines.append(
            f"| {name} | {about['who']}: {people} | {about['items']:,} | {about['groups']}: {about['rule']} "
            f"| {about['G']} | {100 * about['listed']:.0f} |"
        )
    return "\n".join(lines)


def _wrong(report: dict[str, Any]) -> str:
    """How many are told apart the wrong way, over all releases and pairs."""
    sums: dict[str, float] = defaultdict(float)
    for found in report.values():
        for methods in found["cells"].values():
            for method, by_epsilon in methods.items():
                sums[method] += sum(score[2] for scores in by_epsilon.values() for score in scores)
    return ", ".join(f"{method} {value:.1f}" for method, value in sums.items())


def _draw(report: dict[str, Any]) -> None:
    """A small plot for each question and data set: told apart (filled), top ten by estimate (open), against ε."""
    mpl.rcParams["svg.hashsalt"] = "armslength"
    colors = {
        MARGINS: "tab:blue",
        "sketch, s = 1": "tab:cyan",
        "sketch, s = 3": "tab:purple",
        HISTOGRAM: "tab:orange",
    }
    figure, axes = plt.subplots(
        3, len(report), figsize=(13, 7), sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    places = np.arange(len(EPSILONS))
    for column, (name, found) in enumerate(report.items()):
        for axis, question in zip(axes[:, column], (GROUPS, LISTED, ALL), strict=True):
            methods = found["cells"][question]
            for number, (method, by_epsilon) in enumerate(methods.items()):
                x = places + 0.08 * (number - (len(methods) - 1) / 2)
                for score, style in (
                    (1, {"marker": "o"}),
                    (0, {"marker": "o", "markerfacecolor": "white", "linestyle": ":"}),
                ):
                    values = 100 * np.array([np.array(by_epsilon[epsilon])[:, score] for epsilon in EPSILONS])
                    middle = np.median(values, axis=1)
                    spread = [middle - values.min(axis=1), values.max(axis=1) - middle]
                    label = method if score else None
                    axis.errorbar(
                        x,
                        middle,
                        spread,
                        color=colors[method],
                        markersize=5,
                        linewidth=1,
                        label=label,
                        **style,
                    )
            axis.set(xticks=places, xticklabels=EPSILONS, ylim=(-4, 104))
            axis.spines[["top", "right"]].set_visible(False)
            if column == 0:
                axis.set_ylabel(f"{question}\n% of the true top ten")
        axes[0, column].set_title(name)
        axes[-1, column].set_xlabel("ε")
    handles = {
        text: handle
        for axis in axes.flat
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False
    )
    figure.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)


def _write(report: dict[str, Any]) -> None:
    text = (Path(__file__).parent / "differences.md").read_text(encoding="utf-8")
    tables = {
        name: _table(report, question)
        for name, question in (("groups", GROUPS), ("listed", LISTED), ("all", ALL))
    }
    compared = {
        f"{name}_{way}": _compared(report, question, column)
        for name, question in (("groups", GROUPS), ("listed", LISTED), ("all", ALL))
        for way, column in (("told", 1), ("top", 0))
    }
    known = {
        "sizes": _sizes(report),
        "wrong": _wrong(report),
        "repetitions": REPETITIONS,
        "cells": len(report) * len(EPSILONS),
    }
    PAGE.write_text(text.format(**known, **tables, **compared), encoding="utf-8")
    _draw(report)


def main() -> None:
    """Measures everything, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repetition of what data there are; no page")
    parser.add_argument("--page", action="store_true", help="only write the page from the last whole run")
    options = parser.parse_args()
    file = RESULTS / "what_differs.json"
    if not options.page:
        cases = [case for case in (make() for make in CASES) if case is not None]
        if len(cases) < len(CASES) and not options.quick:
            raise SystemExit(
                f"the data sets must be in {DATA} or in the folder ARMSLENGTH_DATA; --quick takes what there is"
            )
        start = time.perf_counter()
        report = _results(cases, 1 if options.quick else REPETITIONS)
        print(f"{time.perf_counter() - start:.0f} seconds")
        if options.quick:
            print(json.dumps(report, indent=1))
            return
        RESULTS.mkdir(exist_ok=True)
        file.write_text(json.dumps(report, indent=1), encoding="utf-8")
    _write(json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
