"""Simulated releases of two parties, by votes and by version 0.2's cut at C, and what they tell of the parties' distance.

All is as in a release: the shipped matrix, exact integers by the shipped kernels, the shipped laws of noise and of distances. Only the people
are drawn again for each release, and noise comes from NumPy's generator.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from comparators.cut_at_contribution import CutLaw, cut_sums, sampled_rows
from numpy.typing import NDArray
from vote_parties import Floats, Int64s, Party, People

import armslength as al
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.shape_law import ShapeLaw, ShapeRows, Spread
from armslength.estimates.totals import DOUBTFUL, TotalNoise
from armslength.estimates.variance import ErrorModel
from armslength.ingest.sums import Bins, Norms, add_events, vote_sums
from armslength.laws import Cumulants, DiscreteLaplace
from armslength.protocol.neighbors import VOTE

Columns = NDArray[np.int32]
CUTS = (1, 3, 5, 8, 16)
TOTAL_SHARE, MARGIN_SHARE = Fraction("0.1"), Fraction("0.3")  # of ε
PAIRS = 66  # that are told apart together


class Exact(NamedTuple):
    """What the people of one party add up to in many releases, before noise, in grid units."""

    values: Int64s  # releases x k
    total: Int64s  # of each release; of votes, people
    squares: Int64s | None = None  # Q and F, of votes
    products: Int64s | None = None


def columns_of(transform: al.SparseJL, width: int) -> Columns:
    """Where each of so many items is added: one column, or −1−column."""
    words = np.zeros((width, 2), dtype=np.uint64)
    words[:, 1] = np.arange(width)
    return transform.event_columns(words, threads=1).astype(np.int32)


def counted_votes(people: People, columns: Columns, size: int) -> tuple[Int64s, int, int, int]:
    """(values, T, Q, F) of these people's votes."""
    counts, places = people.counts, columns[people.items]
    values, total = np.zeros((1, size), np.int64), np.zeros(1, np.int64)
    row, weights = np.zeros(len(places), np.int32), np.repeat(VOTE // counts, counts)
    add_events(row, places, weights, values, total)
    everybody = np.ones(len(counts), dtype=np.bool_)
    _, squares, groups, starts, bins, bin_values = vote_sums(people.starts, row, places, everybody, size)
    norms = Norms(size, 1)
    norms.add(Bins(groups, starts, bins, bin_values))
    return values[0], int(total[0]), int(squares.sum()), int(norms.norms(1)[0])


def exact_sums(
    party: Party, people: int, size: int, seeds: range, generator: np.random.Generator
) -> dict[int | None, Exact]:
    """What so many people of a party add up to, with a new matrix for each seed: of votes (None), and for each C."""
    votes, cuts = [], []
    for seed in seeds:
        columns = columns_of(al.SparseJL(sketch_dim=size, seed=f"votes {seed}"), party.width)
        drawn = party.people.again(people, generator)
        votes.append(counted_votes(drawn, columns, size))
        values = np.zeros((len(CUTS), size), dtype=np.int64)
        totals = cut_sums(drawn.starts, columns[drawn.items, 0], np.array(CUTS), values)
        cuts.append((values, totals))
    found: dict[int | None, Exact] = {None: Exact(*map(np.array, zip(*votes, strict=True)))}
    for place, cut in enumerate(CUTS):
        values, totals = (np.array([each[part][place] for each in cuts]) for part in (0, 1))
        found[cut] = Exact(values, totals)
    return found


@dataclass(frozen=True)
class Way:
    """A way to release: by votes, or with a contribution of C as in version 0.2."""

    protocol: al.Protocol
    contribution: int | None

    @classmethod
    def of(
        cls,
        contribution: int | None,
        epsilon: str,
        size: int,
        *,
        with_margins: bool,
        total_share: Fraction = TOTAL_SHARE,
    ) -> "Way":
        """A tenth of ε is for totals, or for people and how far chance reaches, or so much; with margins, 30 percent are theirs.

        Margins have no part in distances, so these are protocols without any and with what is left of ε.
        """
        left = 1 - MARGIN_SHARE if with_margins else Fraction(1)
        share = total_share / left
        protocol = al.Protocol(
            al.SparseJL(sketch_dim=size, seed="laws"),
            al.Counts(contribution, share) if contribution else al.Votes(share),
            epsilon=Fraction(epsilon) * left,
            unit="one person",
        )
        return cls(protocol, contribution)

    def distance(self, party: Party, other: Party) -> float:
        """The true squared distance that answers are about."""
        if self.contribution is None:
            return float(((party.votes - other.votes) ** 2).sum())
        return float(((party.cut(self.contribution) - other.cut(self.contribution)) ** 2).sum())

    def rows(self, exact: Exact, generator: np.random.Generator) -> tuple[ShapeRows, Floats]:
        """Releases with new noise, and their totals."""
        protocol, step = self.protocol, float(self.protocol.resolution)
        model = ErrorModel.of(protocol)
        law, totals = protocol.law, protocol.total_law
        if not isinstance(law, DiscreteLaplace) or totals is None:
            raise TypeError("the protocol must have Laplace noise and totals")
        values: Floats = step * (exact.values + drawn_noise(law, exact.values.shape, generator)).astype(
            np.float64
        )
        runs, spread = len(values), protocol.spread_law
        total = exact.total + drawn_noise(totals, runs, generator)
        variance, squares, products = totals.second_moment, None, None
        if spread is not None and exact.squares is not None and exact.products is not None:
            noise = drawn_noise(spread, (2, runs), generator)
            total, squares, products = total + noise[0], exact.squares + noise[0], exact.products + noise[1]
            variance += spread.second_moment
        total = np.maximum(step * total, step)
        noises = law.cumulants.k2, law.cumulants.k4, law.higher_cumulants[0]
        k2, k4, k6 = (np.full(runs, model.unit**power * each) for power, each in enumerate(noises, 1))
        rows = ShapeRows.of(values, total, (k2, k4, k6), model.bias * k2, np.full(runs, step**2 * variance))
        if self.contribution is not None:
            return sampled_rows(rows, total, self.contribution, 1.0), total
        if squares is None or products is None or spread is None:
            raise TypeError("votes must have a spread")
        of_spread = np.full(runs, step**2 * spread.second_moment)
        told = Spread(total, step * squares, step * products, of_spread, of_spread, np.ones(runs))
        return rows.sampled(told, 1.0), total

    def intervals(
        self, exact: tuple[Exact, Exact], tails: tuple[float, ...], generator: np.random.Generator
    ) -> list[tuple[Floats, Floats]]:
        """For each tail, the (lower, upper) ends of the squared distance in each release."""
        (x, total_x), (y, total_y) = (self.rows(each, generator) for each in exact)
        model = ErrorModel.of(self.protocol)
        k2: Any = (x.k2 + y.k2)[:, None] / model.unit  # one for each release
        k4: Any = (x.k4 + y.k4)[:, None] / model.unit**2
        curve = model.variance_curve(Cumulants(k2, k4))
        kind = ShapeLaw if self.contribution is None else CutLaw
        law = kind.of(x, y, curve, 1.0, is_paired=True)
        if isinstance(law, CutLaw) and self.contribution is not None:
            law = replace(law, contribution=self.contribution)
        fewest = np.minimum(total_x, total_y) / float(self.protocol.resolution)
        found = []
        for tail in tails:
            lower, upper = law.interval(tail)
            reach = TotalNoise.of(self.protocol, 1).upper_quantile(min(tail, DOUBTFUL))
            is_unknown = (fewest <= reach)[:, None]
            lower = np.where(is_unknown, 0.0, law.known_from(lower, tail))[:, 0]
            upper = np.where(is_unknown | law.is_coarse(upper, tail), np.inf, upper)[:, 0]
            found.append((lower, upper))
        return found


def drawn_noise(law: DiscreteLaplace, shape: int | tuple[int, ...], generator: np.random.Generator) -> Int64s:
    """Discrete Laplace noise: the difference of two geometric numbers."""
    chance = -np.expm1(-1 / law.scale)
    noise: Int64s = generator.geometric(chance, shape) - generator.geometric(chance, shape)
    return noise


class Outcome(NamedTuple):
    """What one way tells of two parties, over many releases."""

    power: float  # the share that tells them apart, at 5 percent over 66 pairs together
    width: float  # the median width of the 95 percent interval of D, divided by D
    below: float  # the share of these intervals that are wholly above D, and wholly below it
    above: float
    distance: float


def outcome(
    way: Way, parties: tuple[Party, Party], exact: tuple[Exact, Exact], generator: np.random.Generator
) -> Outcome:
    """The outcome of these releases with new noise."""
    each, together = (Level.of(0.95, METHODS[0], pairs).tail for pairs in (1, PAIRS))
    (lower, upper), (strict, _) = way.intervals(exact, (each, together), generator)
    distance = way.distance(*parties)
    return Outcome(
        float((strict > 0).mean()),
        float(np.median(upper - lower)) / distance,
        float((lower > distance).mean()),
        float((upper < distance).mean()),
        distance,
    )
