"""The false alarms of the law of votes, cell by cell: pairs of parties from one population, over public seeds, people and noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import populations
from drawn_votes import Counted, Pairs, drawn_pairs, vote_protocol
from populations import Population

TAILS = (0.05, 0.01, 0.05 / 276)
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
        multiples: False alarms as multiples of each of `TAILS`.
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
        pairs = _pairs(name, setting, margin_share, rng, parties)
        alarms.append([np.count_nonzero(pairs.is_told_apart(tail)) for tail in TAILS])
        is_said = pairs.has_people
        laws.append(pairs.law.moments(np.zeros_like(pairs.law.value))[0][is_said, 0])
        squares.append(pairs.law.value[is_said, 0])
    count = parties * REPEATS
    expected = count * np.array(TAILS)
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


def _pairs(name: str, setting: Setting, margin_share: str, rng: np.random.Generator, parties: int) -> Pairs:
    sides = population(name)
    sample = min(1.0, IN_SAMPLE / max(setting.left, setting.right))
    protocol = vote_protocol(
        sides[0].types.shape[1],
        setting.sketch_dim,
        setting.epsilon,
        f"law {rng.integers(2**62)}",
        margin_share=margin_share if float(margin_share) else 0,
        spread_sample=f"{sample:.2g}",
    )
    x = Counted.of(protocol, sides[0])
    y = x if sides[1] is sides[0] else Counted.of(protocol, sides[1])
    return Pairs.of(*drawn_pairs((x, y), (setting.left, setting.right), parties, REPEATS, rng))
