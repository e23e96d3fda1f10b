"""Released margins are the exact counts plus fresh noise of the law that the protocol says, independent of all other noise of the release."""

import math

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from statistical.limits import LIMIT, check_variance, draws_for_variance

NAMES = ["one", "two", "three"]
GAUSSIAN = {"delta": "1e-6", "noise": "gaussian", "contribution": 50}
PROTOCOLS = {
    "laplace": {"contribution": 5, "one_group": True},
    "laplace, replace": {"contribution": 5, "relation": "replace", "total_share": "0.1"},
    "laplace beside gaussian": {**GAUSSIAN, "one_group": True},
    "gaussian": GAUSSIAN,
}


def released(**known):
    """A release of so many rows that their margins are enough draws; somebody has one item in each of the first ten."""
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=4, seed="margins"),
        epsilon=1,
        unit="one person",
        margins={"prefix": NAMES, "group": NAMES},
        margin_share="0.2",
        margin_contribution=2,
        **known,
    )
    kurtosis = protocol.margin_law.fourth_moment / protocol.margin_law.second_moment**2
    count = math.ceil(draws_for_variance(kurtosis) / (len(NAMES) + 2))
    labels = [f"r{number}" for number in range(count)]
    table = pa.table(
        {"who": [f"p{number}" for number in range(10)], "what": ["two-x"] * 10, "where": labels[:10]}
    )
    sketches = protocol.release_table(
        table, person="who", item="what", group="where", public_groups=labels, ledger=al.NO_LEDGER
    )
    exact = np.zeros((count, len(NAMES) + 2), dtype=np.int64)
    exact[:10, [protocol.margins.names.index("two"), -1]] = 1
    return protocol, sketches, sketches.margins - exact


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_noise_has_the_law_of_the_protocol(name):
    protocol, sketches, noise = released(**PROTOCOLS[name])
    assert protocol.margin_law.name == name.split(" ")[0].rstrip(",")
    check_variance(noise.ravel().astype(float), 0.0, protocol.margin_law.second_moment)
    # no two numbers of a row share their noise: neither two margins, nor a margin and a number of the sketch, nor its total
    columns = [noise, sketches.values[:, :2]] + (
        [] if sketches.totals is None else [sketches.totals[:, None]]
    )
    rest = np.hstack(columns).astype(float)[10:]
    correlations = np.corrcoef(rest.T)[np.triu_indices(rest.shape[1], 1)]
    assert np.abs(correlations).max() < (LIMIT + 1) / math.sqrt(len(rest))


def test_two_releases_share_no_noise():
    first, second = (released(**PROTOCOLS["laplace"])[2].ravel().astype(float) for _ in range(2))
    assert abs(np.corrcoef(first, second)[0, 1]) < LIMIT / math.sqrt(len(first))
