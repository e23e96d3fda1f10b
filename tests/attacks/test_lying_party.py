"""A party that lies harms its own rows; what its declared noise makes implausible is flagged."""

import numpy as np
import pytest

import armslength as al
from attacks import lying_party

CAUGHT = [
    "nothing but zeros",
    "its small counts without noise",
    "a copy of north",
    "multiples of 1,000",
    "enormous numbers",
    "half of the noise",
]


@pytest.fixture(scope="module")
def honest():
    return lying_party.honest_release()


def test_honest_rows_are_not_flagged(honest):
    assert not lying_party.is_flagged(honest)


@pytest.mark.parametrize("name", CAUGHT)
def test_a_crude_lie_is_flagged(name, honest):
    lied = lying_party.with_lie(honest, lying_party.lies(honest)[name])
    assert lying_party.is_flagged(lied)


@pytest.mark.parametrize("name", list(lying_party.lies(lying_party.honest_release())))
def test_a_lie_changes_nothing_between_the_others(name, honest):
    lied = lying_party.with_lie(honest, lying_party.lies(honest)[name])
    before, after = al.squared_distances(honest), al.squared_distances(lied)
    others = np.ix_(range(3), range(3))
    for quantity in ("value", "variance"):
        assert np.array_equal(getattr(before, quantity)[others], getattr(after, quantity)[others])
    for one, other in zip(before.interval(0.95), after.interval(0.95), strict=True):
        assert np.array_equal(one[others], other[others])
    assert np.isfinite(after.value).all()
    assert np.isfinite(after.variance).all()
