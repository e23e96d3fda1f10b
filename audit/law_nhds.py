"""What is found of the hospital survey: 12 parties of 254 to 34,342 stays, released again and again as the plan recommends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import armslength as al
from armslength.answers.explain import can_be_said
from armslength.estimates.prevalence import Prevalence, difference_limits
from armslength.estimates.typical import weights_of
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ingest.sums import Sums
from audit.false_alarms import LIMIT, error_of_share
from audit.sections import Check, Section
from drawn_votes import released
from populations import chapter, nhds

Floats = NDArray[np.float64]

KEY = bytes(32)  # everybody is in one party, and the plan samples nobody: no key matters
LEVEL, FACTOR = 0.95, 1.5
LARGE = 1000  # stays of a party whose pairs are asked for reasons
ODD_SHARE = 0.6  # of all people, in one odd party
MOST_PAIRS, LEAST_FOUND, LEAST_CALLED = 0.08, 230, 0.9
MANY = 200  # releases; fewer, as in a quick audit, are allowed the error of their means
HARDLY_LESS = 0.15  # often, where there is an odd party
MIDWEST = "Midwest for-profit"


@dataclass(frozen=True)
class Survey:
    """The stays of the survey.

    Attributes:
        events: One line for each diagnosis: stay, code, party.
        parties: Their names.
        party: The number of each stay's party.
        in_chapter: Whether each stay has a diagnosis in each item group.
        shares: How much each code is of the vote of a typical stay of each party.
        chance: What chance adds to the squared length of these.
    """

    events: pa.Table
    parties: tuple[str, ...]
    party: NDArray[np.int64]
    in_chapter: NDArray[np.bool_]
    shares: Floats
    chance: Floats

    @property
    def people(self) -> Floats:
        """Of each party."""
        return np.bincount(self.party).astype(np.float64)

    @property
    def prevalence(self) -> Floats:
        """Parties x item groups: the share of stays with a diagnosis of each."""
        return np.stack([self.in_chapter[self.party == row].mean(axis=0) for row in range(len(self.parties))])

    @property
    def large(self) -> list[int]:
        """The parties whose pairs are asked for reasons."""
        return np.flatnonzero(self.people > LARGE).tolist()

    def with_parties(self, party: NDArray[np.int64]) -> pa.Table:
        """The events with other parties for the stays; −1 for none."""
        numbers = party[self.events["stay"].to_numpy()]
        is_in = numbers >= 0
        names = pa.array(self.parties).take(pa.array(numbers[is_in]))
        return self.events.filter(pa.array(is_in)).set_column(2, "party", names)

    @property
    def ratios(self) -> Floats:
        """How far each party is from the typical party, over what is usual, beyond chance: the truth as well as it is known."""
        weights = weights_of(self.people)
        squares = ((self.shares - weights @ self.shares) ** 2).sum(axis=1)
        squares -= self.chance + weights**2 @ self.chance
        distance = np.sqrt(np.maximum(squares, 0.0))
        usual = [np.median(np.delete(distance, row)) for row in range(len(distance))]
        ratios: Floats = distance / np.array(usual)
        return ratios


@cache
def survey() -> Survey:
    """The survey, from the data beside the project."""
    matrix, party, names, codes = nhds()
    cells = matrix.tocoo()
    groups = {chapter(code) for code in codes}
    number = {name: place for place, name in enumerate(sorted(groups))}
    in_chapter = np.zeros((len(party), len(groups)), dtype=np.bool_)
    in_chapter[cells.row, np.array([number[chapter(code)] for code in codes])[cells.col]] = True
    events = pa.table(
        {
            "stay": cells.row.astype(np.int64),
            "code": pa.array(codes).take(pa.array(cells.col)),
            "party": pa.array(names.tolist()).take(pa.array(party[cells.row])),
        }
    )
    items = np.diff(matrix.indptr)
    votes = matrix.astype(np.float64)
    votes.data = np.repeat(1 / items, items)
    rows = [np.flatnonzero(party == each) for each in range(len(names))]
    shares = np.stack([np.asarray(votes[row].sum(axis=0)).ravel() / len(row) for row in rows])
    lengths = np.array([(1 / items[row]).mean() for row in rows])
    chance = (lengths - (shares**2).sum(axis=1)) / np.array([len(row) for row in rows])
    return Survey(events, tuple(names.tolist()), party.astype(np.int64), in_chapter, shares, chance)


def planned(seed: str) -> al.Protocol:
    """What a plan recommends for the survey."""
    codes = survey().events["code"].unique().to_pylist()
    plan = al.plan(
        epsilon=1,
        people=(254, 34_342),
        parties=12,
        items_per_person=7,
        item_groups={code: chapter(code) for code in codes},
        unit="one stay",
        seed=seed,
    )
    return plan.protocol


def counted(protocol: al.Protocol, party: NDArray[np.int64] | None = None) -> Sums:
    """The exact integers of each party's row; with other parties for the stays, if given."""
    data = survey()
    names = list(data.parties)
    margins = {code: chapter(code) for code in data.events["code"].unique().to_pylist()}
    job = TableJob.of(
        data.events if party is None else data.with_parties(party),
        protocol,
        EventColumns("stay", "code", "party"),
        public_groups_of("party", names, None),
        item_groups=margins,
    )
    return job.sums(KEY)


def releases(protocol: al.Protocol, sums: Sums, count: int) -> Iterator[al.Sketches]:
    """Releases of the same integers, each with noise of its own."""
    for _ in range(count):
        yield released(protocol, sums, labels=list(survey().parties))


@dataclass(frozen=True)
class Reasons:
    """What `al.explain` finds in the pairs of large parties, in one release.

    Attributes:
        missed: The share of pairs in which an interval misses the truth.
        misses: How many intervals do.
        found: How many differences are found.
        wrong: How many of them have the wrong sign.
    """

    missed: float
    misses: int
    found: int
    wrong: int


def reasons(rows: al.Sketches, truth: Floats, *, beyond_chance: bool, level: float = LEVEL) -> Reasons:
    """Those of a release, of which these are the true prevalences; the ends of each party are computed once."""
    data = survey()
    names = rows.margin_names
    tail = (1 - level) / 2 / len(names)
    places = [names.index(name) for name in names if name != "(other)"]
    limits = {}
    for row in data.large:
        people = Prevalence.of(rows[data.parties[row]], beyond_chance=beyond_chance)
        if can_be_said(people, tail):
            limits[row] = people.limits(tail)
    missed, misses, found, wrong = [], 0, 0, 0
    for a, b in combinations(data.large, 2):
        if a not in limits or b not in limits:
            missed.append(False)
            continue
        _, lower, upper = (ends[places] for ends in difference_limits(limits[a], limits[b]))
        difference = truth[b] - truth[a]
        is_missed = (lower > difference) | (upper < difference)
        missed.append(bool(is_missed.any()))
        misses += int(np.count_nonzero(is_missed))
        found += int(np.count_nonzero((lower > 0) | (upper < 0)))
        wrong += int(np.count_nonzero(((lower > 0) & (difference <= 0)) | ((upper < 0) & (difference >= 0))))
    return Reasons(float(np.mean(missed)), misses, found, wrong)


def resampled(sums: Sums, protocol: al.Protocol, rng: np.random.Generator) -> Sums:
    """The same parties with people drawn from them with replacement: samples of populations of which the prevalences are known."""
    data, bound = survey(), protocol.margin_contribution or 0
    groups = data.in_chapter.sum(axis=1)
    vote = round(1 / float(protocol.resolution))
    weight = np.where(groups <= bound, vote, bound * vote // np.maximum(groups, 1))
    names = protocol.margins.names if protocol.margins is not None else ()
    columns = [names.index(name) for name in names if name != "(other)"]
    margins = np.zeros((len(data.parties), len(names) + 1), dtype=np.int64)
    for row in range(len(data.parties)):
        stays = np.flatnonzero(data.party == row)
        drawn = rng.choice(stays, len(stays))
        margins[row, columns] = weight[drawn] @ data.in_chapter[drawn]
        margins[row, -1] = 4 * (vote - weight[drawn]).sum()
    return replace(sums, margins=margins)


def called(rows: al.Sketches) -> set[str]:
    """The parties that are called outliers."""
    found = al.outliers(rows, level=LEVEL, factor=FACTOR, about="populations")
    return {name for name, is_outlier in zip(found.labels, found.is_outlier, strict=True) if is_outlier}


def groups_hold(rows: al.Sketches) -> bool:
    """Whether no group has two parties that `al.compare` finds to differ."""
    tree = al.cluster(rows, level=LEVEL, about="populations")
    group = {name: number for number, names in enumerate(tree.groups()) for name in names}
    pairs = al.compare(rows[list(tree.labels)], about="populations", level=LEVEL, verdict="differ").to_arrow()
    differ = zip(pairs["left"].to_pylist(), pairs["right"].to_pylist(), strict=True)
    return not any(group.get(a, a) == group.get(b, b) for a, b in differ)


def shuffled(rng: np.random.Generator) -> NDArray[np.int64]:
    """Everybody in a party drawn at random, of the same sizes: parties of one population."""
    return rng.permutation(survey().party)


def with_odd_party(protocol: al.Protocol, sums: Sums) -> Sums:
    """The largest party is replaced by the same stays again and again: those with a circulatory disease, as many as make 60 % of all people."""
    data = survey()
    largest = int(data.people.argmax())
    chosen = sorted({chapter(code) for code in data.events["code"].unique().to_pylist()}).index("Circulatory")
    party = np.where(data.in_chapter[:, chosen] & (data.party == largest), largest, -1)
    odd = counted(protocol, party)
    rest = data.people.sum() - data.people[largest]
    times = round(ODD_SHARE / (1 - ODD_SHARE) * rest / np.count_nonzero(party >= 0))
    arrays: dict[str, Any] = {}
    for name in ("values", "totals", "spread", "margins"):
        arrays[name] = getattr(sums, name).copy()
        arrays[name][largest] = times * getattr(odd, name)[largest]
    return replace(sums, **arrays)


def audit(quick: bool) -> Section:
    """Releases of the survey over public seeds and noise."""
    seeds, few = (2, 1) if quick else (100, 20)
    rng = np.random.default_rng()
    data = survey()
    about: dict[str, list[Reasons]] = {
        "populations, as drawn again": [],
        "populations": [],
        "people counted": [],
    }
    outliers, equal, odd, holds = [], [], [], []
    for number in range(seeds):
        protocol = planned(f"survey {rng.integers(2**62)}")
        sums = counted(protocol)
        first, second = releases(protocol, sums, 2)
        (drawn,) = releases(protocol, resampled(sums, protocol, rng), 1)
        about["populations"].append(reasons(first, data.prevalence, beyond_chance=True))
        about["people counted"].append(reasons(first, data.prevalence, beyond_chance=False))
        about["populations, as drawn again"].append(reasons(drawn, data.prevalence, beyond_chance=True))
        holds.append(groups_hold(first))
        outliers += [called(first), called(second)]
        if number < few:
            odd += [called(rows) for rows in releases(protocol, with_odd_party(protocol, sums), 10)]
            equal += [called(rows) for rows in releases(protocol, counted(protocol, shuffled(rng)), 10)]
    return _section(protocol, about, outliers, equal, odd, holds)


def _section(
    protocol: al.Protocol,
    about: dict[str, list[Reasons]],
    outliers: list[set[str]],
    equal: list[set[str]],
    odd: list[set[str]],
    holds: list[bool],
) -> Section:
    """The tables and claims."""
    data = survey()
    ratios = dict(zip(data.parties, data.ratios.tolist(), strict=True))
    rows = [
        (
            question,
            str(len(found)),
            f"{100 * np.mean([one.missed for one in found]):.1f} %",
            f"{np.mean([one.misses for one in found]):.2f}",
            f"{np.mean([one.found for one in found]):.0f}",
            f"{np.mean([one.wrong for one in found]):.2f}",
        )
        for question, found in about.items()
    ]
    largest = data.parties[int(data.people.argmax())]
    is_few = len(outliers) < MANY
    often = {name: np.mean([name in names for names in outliers]) for name in data.parties}
    false = [name for names in outliers for name in names if ratios[name] <= FACTOR]
    doubt = LIMIT * error_of_share(LEAST_CALLED, len(outliers))
    unhidden = np.mean([MIDWEST in names for names in odd])
    odd_called = np.mean([largest in names for names in odd])
    of_populations, of_people = about["populations"], about["people counted"]
    missed = max(([one.missed for one in found] for found in about.values()), key=np.mean)
    found = [one.found for one in of_populations]
    wrong = max(([one.wrong for one in each] for each in (of_populations, of_people)), key=np.mean)

    def unsure(numbers: Sequence[float]) -> float:
        return LIMIT * float(np.std(numbers)) / len(numbers) ** 0.5 if is_few else 0.0

    calls = ", ".join(
        f"{name} {100 * share:.0f} % (true ratio {ratios[name]:.1f})"
        for name, share in often.items()
        if share
    )
    checks = (
        Check(
            "at most 8 % of pairs miss a plain difference",
            bool(np.mean(missed) <= MOST_PAIRS + unsure(missed)),
            f"{100 * np.mean(missed):.1f} %",
        ),
        Check(
            "at least 230 of 855 differences are found",
            bool(np.mean(found) >= LEAST_FOUND - unsure(found)),
            f"{np.mean(found):.0f}",
        ),
        Check(
            "of 855, at most 2.1 have the wrong sign",
            bool(np.mean(wrong) <= (1 - LEVEL) * 855 / 20 + unsure(wrong)),
            f"{np.mean(wrong):.2f}",
        ),
        Check(
            f"{MIDWEST} is called in at least 90 %, with two standard errors of so many releases allowed",
            bool(often[MIDWEST] >= LEAST_CALLED - (doubt if is_few else 2 * doubt / LIMIT)),
            calls,
        ),
        Check("nobody else is called falsely", not false, f"{len(false)} of {len(outliers)} releases"),
        Check(
            "of equal parties, at most one release in fifty calls one; 5 % are promised",
            sum(map(bool, equal)) <= max(0.02 * len(equal), 1 if len(equal) > 1 else 0),
            f"{sum(map(bool, equal))} of {len(equal)} releases",
        ),
        Check(
            "an odd party with 60 % of the people hides nobody",
            bool(unhidden >= often[MIDWEST] - HARDLY_LESS - doubt),
            f"{MIDWEST} {100 * unhidden:.0f} %, the odd party {100 * odd_called:.0f} % of {len(odd)} releases",
        ),
        Check("no group has two parties that differ", all(holds), f"{len(holds)} releases"),
    )
    words = (
        "The National Hospital Discharge Survey by region and ownership: 12 parties of 254 to 34,342 stays, ε = 1, as the plan recommends "
        f"({protocol.transform.sketch_dim} numbers, {100 * float(protocol.margin_share):g} % of ε for 19 chapters, of which "
        f"{protocol.margin_contribution} of a person count in full). Reasons: 45 pairs of the 10 parties above 1,000 stays x 19 chapters = 855 "
        'differences in prevalence, all of a pair together at 95 %. "As drawn again": people are drawn from each party with replacement, '
        "so that the truth about populations is known. An outlier is at least 1.5 times as far from the typical party as is usual; "
        f"of {len(outliers)} releases, a share of 90 % has a standard error of {100 * error_of_share(LEAST_CALLED, len(outliers)):.1f} points, "
        "and up to 1.4 times as much because two releases each have one public seed."
    )
    heads = ("about", "releases", "pairs with a miss", "misses of 855", "found of 855", "wrong signs of 855")
    return Section("What is found of a hospital survey", words, heads, tuple(rows), checks)
