"""What a plan says of margins, measured: a difference that it says is seen in nine of ten cases is, and one tenth less or more is not.

Each of PAIRS pairs of parties has GROUPS item groups of one prevalence, so a share has a standard error of about
√(0.9·0.1/(PAIRS·GROUPS)) = 0.003, and that of the noise in the number of people, which all groups of a pair share; both are measured, over
pairs. A tenth of a difference is 0.3 standard errors of it or more: 4 points of the share at least.
"""

import math

import numpy as np
import pytest

import armslength as al
from armslength.estimates.prevalence import Prevalence, difference_limits
from armslength.laws import DiscreteLaplace
from armslength.noise.draw import add_noise
from armslength.planner.margin_plan import NO_NOISE, PREVALENCE, seen_from
from statistical.limits import LIMIT

PAIRS, GROUPS = 50, 200
SLACK = 0.02  # the plan takes errors to be normal, and half-widths not to depend on the noise


def share_seen(people, law, tail, difference):
    """The share of item groups whose interval is above 0, and its standard error."""
    generator, shares = np.random.default_rng(5), []
    for _ in range(PAIRS):
        limits = []
        for prevalence in (PREVALENCE - difference / 2, PREVALENCE + difference / 2):
            counts = np.append(generator.binomial(people, prevalence, GROUPS), people).astype(np.int64)
            add_noise(counts, law)
            party = Prevalence(counts[:-1].astype(float), float(counts[-1]), ((law, 1),))
            limits.append(party.limits(tail))
        shares.append((difference_limits(*limits)[1] > 0).mean())
    return np.mean(shares), np.std(shares) / math.sqrt(PAIRS)


@pytest.mark.parametrize(
    ("people", "scale", "tail"),
    [(3000, 16.0, 0.025 / 20), (3000, 60.0, 0.025 / 20), (400, 4.0, 0.025 / 3), (20_000, 1.0, 0.025 / 100)],
)
def test_nine_of_ten_are_seen(people, scale, tail):
    law = DiscreteLaplace(scale)
    difference = seen_from(people, law, tail)
    share, error = share_seen(people, law, tail, difference)
    assert abs(share - 0.9) < SLACK + LIMIT * error
    less, error = share_seen(people, law, tail, 0.9 * difference)
    assert less < 0.9 - SLACK - LIMIT * error
    more, error = share_seen(people, law, tail, 1.1 * difference)
    assert more > 0.9 + SLACK + LIMIT * error


def test_chance_is_what_is_left_without_noise():
    exact = seen_from(3000, NO_NOISE, 0.025 / 20)
    assert exact == pytest.approx(seen_from(3000, DiscreteLaplace(0.7), 0.025 / 20), rel=1e-3)
    assert exact < seen_from(3000, DiscreteLaplace(16.0), 0.025 / 20)
    plan = al.plan(by="shape", epsilon=1, people=3000, contribution=5, one_group=True, item_groups=20)
    assert plan.situation.margins.chance == exact
