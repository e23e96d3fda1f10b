"""The false alarms of the law of votes, cell by cell: pairs of parties from one population, over public seeds, people and noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import armslength as al
import populations
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.totals import DOUBTFUL
from audit.false_alarms import error_of_share
from drawn_votes import Counted, Floats, Pairs, drawn_pairs, released, vote_protocol
from populations import Population

TAILS = (0.05, 0.01, 0.05 / 276)
END_TAILS = (0.025, 0.005, 0.025 / 66)  # of a similarity's upper end, for the same profile
CLAIMED = (1.3, 1.5, 2.5)  # times each of these, at most
PARTIES, REPEATS = 256, 4  # of each side, for each public seed; each party is in so many pairs
IN_SAMPLE = 50_000  # people of a party whose votes tell how far chance reaches, as a plan has it


class Setting(NamedTuple):
    """People of both parties, numbers in a sketch, and ε."""

    left: int
    right: int
    sketch_dim: int
    epsilon: str

    def __str__(self) -> str:
        return f"{self.left:,} and {self.right:,}, k = {self.sketch_dim}, ε = {self.epsilon}"


SETTINGS = (
    Setting(1000, 1000, 256, "1"),
    Setting(5000, 2000, 256, "3"),
    Setting(5000, 5000, 1024, "1"),
    Setting(50_000, 10_000, 256, "1"),
    Setting(50_000, 50_000, 1024, "3"),
    Setting(150, 150, 256, "3"),
    Setting(300, 5000, 256, "1"),
    Setting(400, 5000, 256, "3"),
    Setting(255, 17_000, 256, "1"),
)
MARGIN_SHARES = ("0", "0.3")

Maker = Callable[[], tuple[Population, Population]]


def _same(make: Callable[[], Population]) -> Maker:
    def both() -> tuple[Population, Population]:
        population = make()
        return population, population

    return both


def _short(make: Callable[[], Population], size: int) -> Maker:
    return lambda: populations.shortened(make(), size)


REAL: dict[str, Maker] = {
    "NHDS": _same(populations.nhds_party),
    "eICU": _same(populations.eicu),
    "retail": _same(populations.retail),
    "movies": _same(populations.movies),
    "NHDS, 7 items against 1 of the same profile": _short(populations.nhds_party, 7),
}
MADE_UP: dict[str, Maker] = {
    "Zipf 1.2, t = 5, independent": _same(populations.zipf_items),
    "Zipf 1.2, heavy-tailed t": _same(populations.heavy_tailed),
    "bundles of 5, Zipf 0.9": _same(lambda: populations.bundles(5, 0.9)),
    "bundles of 20, flat": _same(lambda: populations.bundles(20, 0.0)),
    "one of 3 items": _same(populations.one_of_three),
    "few items: the popular one": _same(populations.few_are_popular),
    "bundles of 7 against 1 item of the same profile": _short(lambda: populations.bundles(7, 0.9, 2002), 7),
}
POPULATIONS = REAL | MADE_UP


@lru_cache(maxsize=2)
def population(name: str) -> tuple[Population, Population]:
    """Both sides of a pair."""
    return (POPULATIONS | HOUSEHOLDS)[name]()


def _pairs_of_people(make: Callable[[], Population]) -> Maker:
    return _same(lambda: make().in_pairs())


def _families(make: Callable[[], Population]) -> Maker:
    return _same(lambda: make().in_families(np.random.default_rng(6)))


HOUSEHOLDS: dict[str, Maker] = {
    "NHDS, identical pairs": _pairs_of_people(populations.nhds_party),
    "NHDS, couples sharing half": _families(populations.nhds_party),
    "retail, identical pairs": _pairs_of_people(populations.retail),
    "retail, couples sharing half": _families(populations.retail),
}


@dataclass(frozen=True)
class Found:
    """What was measured in a cell.

    Attributes:
        name: The population.
        setting: People, size, ε.
        margin_share: The share of ε for margins.
        pairs: How many.
        multiples: False alarms as multiples of each of `TAILS`, and upper ends of the similarity below 1 of each of `END_TAILS`.
        errors: The standard errors of these, from sums over each public seed.
        deviation: The law's standard deviation at equal profiles, over the true one.
    """

    name: str
    setting: Setting
    margin_share: str
    pairs: int
    multiples: tuple[float, ...]
    errors: tuple[float, ...]
    deviation: float


def measured(
    name: str,
    setting: Setting,
    margin_share: str,
    seeds: int,
    rng: np.random.Generator,
    *,
    parties: int = PARTIES,
) -> Found:
    """A cell, over so many public seeds."""
    alarms, laws, squares = [], [], []
    for _ in range(seeds):
        pairs = _pairs_of(population(name), setting, margin_share, rng, parties, REPEATS)
        found = [pairs.is_told_apart(tail) for tail in TAILS]
        found += [pairs.similarity(Level(tail, METHODS[0]))[1] < 1 for tail in END_TAILS]
        alarms.append([np.count_nonzero(each) for each in found])
        is_said = pairs.has_people(DOUBTFUL)
        laws.append(pairs.law.moments(np.zeros_like(pairs.law.value))[0][is_said, 0])
        squares.append(pairs.law.value[is_said, 0])
    count = parties * REPEATS
    expected = count * np.array(TAILS + END_TAILS)
    each = np.array(alarms) / expected
    # of what is hardly ever seen, the error is at least that of one event
    least = np.sqrt(np.maximum(each.mean(axis=0), 1 / (seeds * expected)) / (seeds * expected))
    errors = np.maximum(each.std(axis=0, ddof=1) / np.sqrt(seeds), least) if seeds > 1 else least
    values = np.concatenate(squares)
    deviation = np.sqrt(np.concatenate(laws).mean()) / values.std() if len(values) > 1 else np.nan
    return Found(
        name,
        setting,
        margin_share,
        seeds * count,
        tuple(each.mean(axis=0).tolist()),
        tuple(errors.tolist()),
        float(deviation),
    )


def _protocol(side: Population, setting: Setting, margin_share: str, rng: np.random.Generator) -> al.Protocol:
    """At the plan's shares of ε, with a new public seed."""
    sample = min(1.0, IN_SAMPLE / max(setting.left, setting.right))
    return vote_protocol(
        side.types.shape[1],
        setting.sketch_dim,
        setting.epsilon,
        f"law {rng.integers(2**62)}",
        margin_share=margin_share if float(margin_share) else 0,
        spread_sample=f"{sample:.2g}",
    )


def _pairs_of(
    sides: tuple[Population, Population],
    setting: Setting,
    margin_share: str,
    rng: np.random.Generator,
    parties: int,
    repeats: int,
) -> Pairs:
    """Pairs of samples of both populations, of one public seed."""
    protocol = _protocol(sides[0], setting, margin_share, rng)
    x = Counted.of(protocol, sides[0])
    y = x if sides[1] is sides[0] else Counted.of(protocol, sides[1])
    return Pairs.of(*drawn_pairs((x, y), (setting.left, setting.right), parties, repeats, rng))


@dataclass(frozen=True)
class Covered:
    """How often intervals at 95 % miss a true difference.

    Attributes:
        name: The two populations.
        setting: People, size, ε.
        pairs: How many.
        distance: The shares of pairs whose interval of the squared distance is above the truth, and below.
        similarity: The same of the cosine; nothing where it was not measured.
        errors: The largest standard error of these, from sums over each public seed.
        truth: The true cosine.
        ratio: The law's standard deviation at the true distance over that of the estimates.
    """

    name: str
    setting: Setting
    pairs: int
    distance: tuple[float, float]
    similarity: tuple[float, ...]
    errors: float
    truth: float
    ratio: float


def _swapped() -> tuple[Population, Population]:
    """One item each by Zipf's law; in the other population, the two most popular items are swapped."""
    mix = populations.zipf(0.9)
    other = mix.copy()
    other[:2] = mix[1::-1]
    lists = [np.array([item]) for item in range(len(mix))]
    return Population.of_lists(lists, len(mix), mix), Population.of_lists(lists, len(mix), other)


def _shifted() -> tuple[Population, Population]:
    """Bundles of 20, of which half are shifted by three."""
    chances = populations.zipf(0.5, 100)
    types = populations.bundles(20, 0.0).types
    return Population.of(types, chances), Population.of(types, (chances + np.roll(chances, 3)) / 2)


def _by_size() -> tuple[Population, Population]:
    """People with few items have others than people with many, and are more frequent on one side."""
    rng = np.random.default_rng(7)
    few = [rng.choice(50, 2, replace=False) for _ in range(500)]
    many = [50 + rng.choice(450, 15, replace=False) for _ in range(500)]
    first, second = (
        Population.of_lists(few + many, 500, np.repeat([share, 1 - share], 500)) for share in (0.4, 0.5)
    )
    return first, second


def _of_survey(first: str, second: str) -> Maker:
    return lambda: (populations.nhds_party(first), populations.nhds_party(second))


DIFFERENT: dict[str, tuple[Maker, Setting]] = {
    "NHDS, Midwest and South for-profit": (
        _of_survey("Midwest for-profit", "South for-profit"),
        Setting(1279, 17_209, 256, "1"),
    ),
    "NHDS, South and West non-profit": (
        _of_survey("South non-profit", "West non-profit"),
        Setting(5000, 5000, 512, "1"),
    ),
    "bundles of 20, some shifted": (_shifted, Setting(5000, 5000, 256, "3")),
    "few items go with other items": (_by_size, Setting(10_000, 10_000, 512, "1")),
    "the two most popular items swapped": (_swapped, Setting(20_000, 20_000, 1024, "1")),
}


def covered(name: str, seeds: int, rng: np.random.Generator, *, parties: int = 32) -> Covered:
    """A cell, over so many public seeds."""
    make, setting = DIFFERENT[name]
    sides = make()
    p, q = (side.profile() for side in sides)
    distance, cosine = float(((p - q) ** 2).sum()), float(p @ q / np.sqrt((p @ p) * (q @ q)))
    tail = 0.025
    missed, values, variances = [], [], []
    for _ in range(seeds):
        pairs = _pairs_of(sides, setting, "0.3", rng, parties, 1)
        ends, likeness = pairs.interval(tail), pairs.similarity(Level(tail, METHODS[0]))
        missed.append([*_misses(ends, distance), *_misses(likeness, cosine)])
        values.append(pairs.law.value[:, 0])
        variances.append(pairs.law.moments(np.full_like(pairs.law.value, distance))[0][:, 0])
    rates = np.array(missed)
    means = rates.mean(axis=0).tolist()
    deviation = float(np.sqrt(np.concatenate(variances).mean()) / np.concatenate(values).std())
    error = _error(rates, parties)
    first, second, third, fourth = means
    return Covered(name, setting, seeds * parties, (first, second), (third, fourth), error, cosine, deviation)


def _error(rates: Floats, pairs: int) -> float:
    """The largest standard error of mean rates, from those of each public seed; at least that of a true 2.5 percent."""
    least = error_of_share(0.025, pairs * len(rates))
    return max(float((rates.std(axis=0, ddof=1) / np.sqrt(len(rates))).max()), least)


def _misses(ends: tuple[Floats, Floats], truth: Floats | float) -> tuple[float, float]:
    """The shares of intervals above and below the truth."""
    lower, upper = ends
    return float((lower > truth).mean()), float((upper < truth).mean())


def people_counted(
    name: str, setting: Setting, seeds: int, rng: np.random.Generator, *, parties: int = 32
) -> Covered:
    """How often intervals about the people counted miss how far these are apart."""
    sides = population(name)
    missed, errors, variances = [], [], []
    for _ in range(seeds):
        protocol = _protocol(sides[0], setting, "0.3", rng)
        counted = [Counted.of(protocol, side) for side in sides]
        counts = [
            side.draw(rng, people, parties)
            for side, people in zip(sides, (setting.left, setting.right), strict=True)
        ]
        shares = [
            np.stack([side.profile(row / row.sum()) for row in rows])
            for side, rows in zip(sides, counts, strict=True)
        ]
        truth = ((shares[0] - shares[1]) ** 2).sum(axis=1)
        rows = (
            released(protocol, each.sums(number, rng)) for each, number in zip(counted, counts, strict=True)
        )
        pairs = Pairs.of(*rows, beyond_chance=False)
        missed.append(_misses(pairs.interval(0.025), truth))
        errors.append(pairs.law.value[:, 0] - truth)
        variances.append(pairs.law.moments(truth[:, None])[0][:, 0])
    rates = np.array(missed)
    lower, upper = rates.mean(axis=0).tolist()
    ratio = float(np.sqrt(np.concatenate(variances).mean()) / np.concatenate(errors).std())
    error = _error(rates, parties)
    return Covered(name, setting, seeds * parties, (lower, upper), (), error, 1.0, ratio)
