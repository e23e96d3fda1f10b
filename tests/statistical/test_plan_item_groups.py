"""What a plan says of item groups, measured: a difference that it says is seen in nine of ten cases is, and one tenth less or more is not.

Each of PAIRS pairs of parties has GROUPS item groups of one prevalence, so a share has a standard error of about
√(0.9·0.1/(PAIRS·GROUPS)) = 0.003, and that of the noise in the number of people and in the undercount, which all groups of a pair share;
both are measured, over pairs. A tenth of a difference is 0.3 standard errors of it or more: 4 points of the share at least.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import armslength as al
import nhds
from armslength.estimates.prevalence import Noise, Prevalence, difference_limits
from armslength.laws import DiscreteLaplace
from armslength.noise.draw import draw
from armslength.planner.item_groups import PREVALENCE, seen_from, tail_of_group
from armslength.protocol.neighbors import VOTE, margin_law, margin_sensitivity, scalar_laws
from statistical.limits import LIMIT

PAIRS, GROUPS = 50, 200
SLACK = 0.02  # the plan takes errors to be normal, and half-widths not to depend on the noise


def released(people, counts, undercount, margin_law, laws, beyond_chance=True):
    """The released margins of a party."""
    noise = draw(margin_law, (len(counts) + 1,)) / VOTE
    total = people + sum(float(draw(law, (1,))[0]) for law in laws) / VOTE
    noises = (Noise(margin_law, 1),), tuple(Noise(law, 1) for law in laws)
    return Prevalence(counts + noise[:-1], undercount + noise[-1] / 4, total, *noises, beyond_chance)


def share_seen(people, law, laws, tail, difference, beyond_chance=True):
    """The share of item groups whose interval is above 0, and its standard error."""
    generator, shares = np.random.default_rng(5), []
    for _ in range(PAIRS):
        limits = []
        for size, prevalence in zip(
            people, (PREVALENCE - difference / 2, PREVALENCE + difference / 2), strict=True
        ):
            counts = generator.binomial(size, prevalence, GROUPS)
            counts = counts if beyond_chance else np.full(GROUPS, size * prevalence)
            limits.append(released(size, counts, 0.0, law, laws, beyond_chance).limits(tail))
        shares.append((difference_limits(*limits)[1] > 0).mean())
    return np.mean(shares), np.std(shares) / math.sqrt(PAIRS)


@pytest.mark.parametrize(
    ("people", "scale", "tail"),
    [
        ((3000, 3000), 60.0, 0.025 / 20),
        ((400, 400), 4.0, 0.025 / 3),
        ((400, 4000), 8.0, 0.025 / 20),
        ((20_000, 20_000), 1.0, 0.025 / 100),
    ],
)
@pytest.mark.parametrize("beyond_chance", [True, False])
def test_nine_of_ten_are_seen(people, scale, tail, beyond_chance):
    law, laws = DiscreteLaplace(scale * VOTE), scalar_laws(Fraction(2), "add_remove")
    noises = (Noise(law, 1),), tuple(Noise(each, 1) for each in laws)
    difference = seen_from(people, *noises, tail, beyond_chance=beyond_chance)
    share, error = share_seen(people, law, laws, tail, difference, beyond_chance)
    assert abs(share - 0.9) < SLACK + LIMIT * error
    less, error = share_seen(people, law, laws, tail, 0.9 * difference, beyond_chance)
    assert less < 0.9 - SLACK - LIMIT * error
    more, error = share_seen(people, law, laws, tail, 1.1 * difference, beyond_chance)
    assert more > 0.9 + SLACK + LIMIT * error


def test_chance_is_what_is_left_without_noise():
    people, tail = (3000, 3000), 0.025 / 20
    exact = seen_from(people, (), (), tail)
    little, more = ((Noise(DiscreteLaplace(scale * VOTE), 1),) for scale in (0.2, 16.0))
    assert exact == pytest.approx(seen_from(people, little, little, tail), rel=1e-2)
    assert exact < seen_from(people, more, (), tail)
    plan = al.plan(epsilon=1, people=3000, items_per_person=7, item_groups=20)
    assert plan.situation.item_groups.chance(people) == exact


# Chapters of diagnoses of hospital stays: a party is compared with itself, where so many of its stays are replaced by those of another party
# that one chapter differs by as much as is wanted. The BATCH chapters of a pair of releases share the noise in the number of people.
BATCHES, BATCH = 40, 20
TOLERANCE = 0.05  # chapters that about a fifth have, and items of a chapter that go together
PARTIES = [
    (region, owner) for region in ("Midwest", "South", "West") for owner in ("government", "non-profit")
]


def chapters_seen(people, epsilon, factor):
    """The share of chapters that are seen where they differ by a factor of what a plan says, and its standard error."""
    rng = np.random.default_rng(31)
    plan = al.plan(people=people, epsilon=epsilon, parties=12, items_per_person=7, item_groups=19)
    margins, shares = plan.situation.item_groups, plan.recommended.total_share
    sensitivity = margin_sensitivity(margins.contribution, margins.count, margins.relation)
    law = margin_law(sensitivity, Fraction(epsilon) * margins.share)
    laws = scalar_laws(Fraction(epsilon) * shares, margins.relation)
    stays = [nhds.chapters_of(party) for party in (*PARTIES, ("Midwest", "for-profit"))]
    prevalence = np.array([each.mean(axis=0) for each in stays])
    wanted = factor * plan.item_groups_seen
    differences = prevalence[None] - prevalence[:, None]
    choices = np.argwhere(
        (np.abs(differences) > wanted)
        & (np.abs(prevalence[:, None] + np.sign(differences) * wanted / 2 - PREVALENCE) < 0.07)
    )
    seen = np.empty(BATCHES)
    for batch in range(BATCHES):
        drawn = choices[rng.integers(0, len(choices), BATCH)]
        counts, undercounts = np.empty((2, BATCH)), np.empty((2, BATCH))
        for number, (one, other, chapter) in enumerate(drawn.tolist()):
            replaced = wanted / abs(differences[one, other, chapter])
            for side in (0, 1):
                foreign = side * rng.binomial(people, replaced)
                rows = [
                    stays[party][rng.integers(0, len(stays[party]), size)]
                    for party, size in ((one, people - foreign), (other, foreign))
                ]
                has = np.concatenate(rows)
                weights = np.minimum(1.0, margins.contribution / has.sum(axis=1))
                counts[side, number], undercounts[side, number] = (
                    has[:, chapter] @ weights,
                    (1 - weights).sum(),
                )
        sides = [
            released(people, *side, law, laws) for side in zip(counts, undercounts.mean(axis=1), strict=True)
        ]
        _, lower, upper = difference_limits(*(side.limits(tail_of_group(19)) for side in sides))
        more = differences[tuple(drawn.T)] > 0
        seen[batch] = np.where(more, lower > 0, upper < 0).mean()
    return seen.mean(), seen.std() / math.sqrt(BATCHES)


@pytest.mark.parametrize(("people", "epsilon"), [(3000, "3"), (10_000, "1")])
def test_chapters_of_hospital_stays_are_seen_as_planned(people, epsilon):
    share, error = chapters_seen(people, epsilon, 1.0)
    assert abs(share - 0.9) < TOLERANCE + LIMIT * error
    less, error = chapters_seen(people, epsilon, 0.75)
    assert less < 0.9 - TOLERANCE - LIMIT * error
