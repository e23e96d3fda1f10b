"""Released margins are what people add, plus fresh noise of the law that covers one person, independent of all other noise of the release."""

import math

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE
from flat_protocol import flat_protocol
from statistical.limits import FALSE_ALARM, LIMIT, check_variance, draws_for_variance

EPSILON, BOUND = 2, 2  # how many item groups of a person count in full
NAMES = ["one", "two", "three", "four", "five", "six"]  # and (other)
GROUPS = len(NAMES) + 1
ROWS = draws_for_variance(6)  # the kurtosis of Laplace noise; each column is enough by itself


def law(persons, epsilon=EPSILON):
    """ε-DP for what one person moves at most: G item groups in full, or a part of each of all of them, and four times what is left out."""
    moved = BOUND * VOTE + 4 * (VOTE - BOUND * VOTE // GROUPS)
    return DiscreteLaplace(persons * moved / (epsilon / 5))


def counted(items):
    """What one person with so many of the item groups adds: W to the first of them, and 4(R − W) to the last column."""
    weight = VOTE if items <= BOUND else BOUND * VOTE // items
    cells = np.zeros(GROUPS + 1, dtype=np.int64)
    cells[:items], cells[-1] = weight, 4 * (VOTE - weight)
    return cells


def released(rows=ROWS, epsilon=EPSILON, **known):
    """A release of so many rows, and the noise of its margins; in row g, for g up to 7, somebody has g item groups."""
    protocol = flat_protocol(
        al.SparseJL(sketch_dim=4, seed="margins"),
        epsilon=epsilon,
        contribution="vote",
        unit="one person",
        total_share="0.1",
        margins={"prefix": NAMES, "group": NAMES},
        margin_share="0.2",
        margin_contribution=BOUND,
        **known,
    )
    labels = [f"r{number}" for number in range(rows)]
    of_name = {name: f"{name}-x" for name in NAMES} | {"(other)": "nothing listed"}
    events = [
        (f"p{count}", of_name[name], f"r{count}")
        for count in range(1, GROUPS + 1)
        for name in protocol.margins.names[:count]
    ]
    table = pa.table(dict(zip(("who", "what", "where"), map(list, zip(*events, strict=True)), strict=True)))
    sketches = al.release(
        protocol, table, person="who", item="what", group="where", public_groups=labels, ledger=al.NO_LEDGER
    )
    exact = np.zeros((rows, GROUPS + 1), dtype=np.int64)
    exact[1 : GROUPS + 1] = [counted(items) for items in range(1, GROUPS + 1)]
    return sketches, sketches.margins - exact


@pytest.mark.parametrize(("relation", "persons"), [("add_remove", 1), ("replace", 2)])
def test_each_number_has_noise_that_covers_one_person(relation, persons):
    sketches, noise = released(relation=relation)
    assert sketches.protocols[0].margin_law == law(persons)
    for column in noise.T.astype(float):
        check_variance(column, 0.0, law(persons).second_moment)


def test_with_hardly_any_noise_margins_are_what_people_add():
    epsilon, rows = 10**6, GROUPS + 2
    _, noise = released(rows, epsilon)
    scale = law(1, epsilon).scale
    assert scale < 40  # grid units, where a person adds 300,000 or more to each of their item groups
    assert np.abs(noise).max() < scale * math.log(noise.size / FALSE_ALARM)


def test_no_two_numbers_of_a_row_share_their_noise():
    # neither two margins, nor a margin and a number of the sketch, nor one that says how many people there are
    sketches, noise = released()
    people = sketches.totals - sketches.spread[:, 0]
    rest = np.column_stack([noise, sketches.values[:, :2], people, sketches.spread])[GROUPS + 1 :]
    correlations = np.corrcoef(rest.astype(float).T)[np.triu_indices(rest.shape[1], 1)]
    assert np.abs(correlations).max() < (LIMIT + 1) / math.sqrt(len(rest))


def test_two_releases_share_no_noise():
    first, second = (released()[1].ravel().astype(float) for _ in range(2))
    assert abs(np.corrcoef(first, second)[0, 1]) < LIMIT / math.sqrt(len(first))
