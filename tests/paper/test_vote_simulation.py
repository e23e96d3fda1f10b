"""What docs/benchmarks-votes.md simulates is what a release has, and the comparator's law is that of version 0.2."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import vote_simulation
import votes
from comparators.cut_at_contribution import CutLaw, cut_sums, sampled_rows
from vote_parties import Party, People
from vote_simulation import CUTS, Exact, Way, columns_of, counted_votes

import armslength as al
from armslength.estimates.intervals import Level
from armslength.estimates.shape_law import ShapeRows
from armslength.estimates.shapes import squared_shape_distances
from armslength.estimates.variance import VarianceCurve
from armslength.laws import DiscreteLaplace

SIZE, WIDTH = 64, 200
# value, variance, third cumulant, the totals' variance at D = 0.01, and the 95 percent interval, all from version 0.2 itself
VERSION_02 = {
    1: (
        0.035770082803122286,
        5.4241136293836756e-05,
        4.66506393587777e-07,
        1.5881005957613907e-06,
        0.013923009393164317,
        0.13314571261993513,
    ),
    5: (
        0.02919250234172119,
        4.953880344159439e-05,
        3.5580658744260326e-07,
        1.478938433186829e-06,
        0.011176413648505776,
        0.10469607209548928,
    ),
}


def some_people(count, seed):
    generator = np.random.default_rng(seed)
    own = [
        generator.choice(WIDTH, generator.integers(1, 30), replace=False, p=popularity())
        for _ in range(count)
    ]
    return People(np.cumsum([0, *map(len, own)]), np.concatenate(own).astype(np.int64))


def popularity():
    weights = 1.0 / np.arange(1, WIDTH + 1)
    return weights / weights.sum()


def events(people, group):
    person = np.repeat(np.arange(len(people.counts)), people.counts)
    names = [f"{group} {number}" for number in person.tolist()]
    return pa.table({"person": names, "item": people.items, "group": [group] * len(names)})


@pytest.fixture(scope="module")
def two_parties():
    return some_people(300, 1), some_people(400, 2)


def released(two_parties, epsilon):
    transform = al.SparseJL(sketch_dim=SIZE, seed="simulated")
    protocol = al.Protocol(
        transform, al.Votes(total_share="0.1"), epsilon=epsilon, items="int64", unit="one person"
    )
    tables = pa.concat_tables(events(people, name) for people, name in zip(two_parties, "ab", strict=True))
    return al.release(
        protocol,
        tables,
        person="person",
        item="item",
        group="group",
        public_groups=["a", "b"],
        ledger=al.NO_LEDGER,
    )


def no_noise(_law, shape, _generator):
    return np.zeros(shape, dtype=np.int64)


def test_simulated_votes_are_those_of_a_release(two_parties):
    rows = released(two_parties, 200_000)
    columns = columns_of(rows.transform, WIDTH)
    for row, people in enumerate(two_parties):
        values, total, squares, products = counted_votes(people, columns, SIZE)
        protocol = rows.protocol
        found = (rows.values[row], rows.totals[row], rows.spread[row, 0], rows.spread[row, 1])
        laws = (protocol.law, protocol.spread_law, protocol.spread_law, protocol.spread_law)
        for ours, theirs, law in zip((values, total, squares, products), found, laws, strict=True):
            reach = 60 * law.scale  # e^-60
            assert np.abs(ours - theirs).max() < reach
            assert np.abs(ours).max() > 100 * reach


def test_intervals_of_votes_are_those_of_sketches(two_parties, monkeypatch):
    monkeypatch.setattr(vote_simulation, "drawn_noise", no_noise)
    rows = released(two_parties, 5)
    rule = squared_shape_distances(rows["a"], rows["b"], beyond_chance=True).rule
    way = replace(Way.of(None, "5", SIZE, with_margins=False), protocol=rows.protocol)
    exact = tuple(
        Exact(rows.values[row : row + 1], rows.totals[row : row + 1], *rows.spread[row : row + 1].T)
        for row in (0, 1)
    )
    tails = (0.3, 0.025, 0.0004)
    for tail, ours in zip(tails, way.intervals(exact, tails, np.random.default_rng(0)), strict=True):
        theirs = rule.interval(Level(tail, "asymptotic"))
        assert np.array(ours).ravel() == pytest.approx(np.array(theirs).ravel(), rel=1e-9)


def test_people_are_cut_at_random_and_cut_shares_are_the_mean():
    people = some_people(40, 3)
    party, generator = Party("", people, WIDTH), np.random.default_rng(4)
    columns = np.arange(WIDTH, dtype=np.int32)
    drawn = people.again(20_000, generator)
    values = np.zeros((len(CUTS), WIDTH), dtype=np.int64)
    totals = cut_sums(drawn.starts, columns[drawn.items], np.array(CUTS), values)
    for cut, row, total in zip(CUTS, values, totals, strict=True):
        assert total == row.sum() == np.minimum(drawn.counts, cut).sum()
        # One person adds at most one of each item: five standard errors of a share, and a little more for the total's.
        error = 6 * np.sqrt(party.cut(cut) * 20_000) / total + 1e-4
        assert (np.abs(row / total - party.cut(cut)) < error).all()
    assert np.abs(party.cut(1) - party.votes).max() < 1e-12
    assert np.abs(party.cut(16) - party.votes).max() > 0.01


def test_items_are_subtracted_where_columns_say():
    values = np.zeros((2, 3), dtype=np.int64)
    cut_sums(np.array([0, 3]), np.array([0, -2, -2], dtype=np.int32), np.array([1, 3]), values)
    assert values.tolist() == [[1, 0, 0], [1, -2, 0]]


@pytest.mark.parametrize("contribution", VERSION_02)
def test_the_law_of_cut_rows_is_that_of_version_02(contribution):
    size, items = 16, 900.0 * contribution * np.ones(1)
    noise, totals = DiscreteLaplace(contribution / 0.9), DiscreteLaplace(contribution / 0.1)
    k2, k4 = noise.cumulants.k2 * np.ones(1), noise.cumulants.k4 * np.ones(1)
    sides = []
    for phase in (0, 2):
        places = np.arange(size)
        shares = (1 + 0.5 * np.sin(places + phase)) / (1 + places)
        values = items * shares / shares.sum() * np.where(places % 3 == 0, -1, 1) + 9 * np.cos(
            7 * places + phase
        )
        rows = ShapeRows.of(
            values[None, :],
            items,
            (k2, k4, noise.higher_cumulants[0] * np.ones(1)),
            size * k2,
            totals.second_moment * np.ones(1),
        )
        sides.append(sampled_rows(rows, items, contribution, 1.0))
    x, y = sides
    k2, k4 = (x.k2 + y.k2)[:, None], (x.k4 + y.k4)[:, None]
    curve = VarianceCurve(2 / size, 4 * k2, size * (k4 + 2 * k2**2))
    law = replace(CutLaw.of(x, y, curve, 1.0), contribution=contribution)
    found = (law.value, *law.moments(np.full((1, 1), 0.01)), *law.interval(0.025))
    assert [float(each[0, 0]) for each in found] == pytest.approx(VERSION_02[contribution], rel=1e-9)


def test_the_page_says_what_was_simulated(two_parties, tmp_path, monkeypatch):
    parties = [Party(name, people, WIDTH) for name, people in zip("ab", two_parties, strict=True)]
    for name, value in {
        "PAGE": tmp_path / "page.md",
        "PEOPLE": {"made up": (200, 3000)},
        "SHOWN": ((1, "3", SIZE),),
        "DIMENSIONS": (SIZE,),
    }.items():
        monkeypatch.setattr(votes, name, value)
    rows = [
        row for people in (200, 3000) for row in votes.measured("made up", parties, (people, people), SIZE, 8)
    ]
    votes.write_page(json.loads(json.dumps({"pairs": rows, "small": rows[:3]})))
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("| made up, a : b"))
    cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
    outcomes = next(row for row in rows if row["people"][0] == 3000 and row["epsilon"] == "3")["outcomes"]
    assert cells[1:5] == ["3,000", "3", str(SIZE), f"{outcomes['votes'].power:.2f}"]
    assert "{" not in page
    assert "nan" not in page
    assert (tmp_path / "page.svg").exists()
