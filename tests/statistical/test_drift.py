"""What changed between two releases of votes, with nobody, half or all of the people in both: false alarms, and a real change."""

import numpy as np
import pytest
from scipy.stats import binom

import armslength as al
from drawn_votes import Counted, released, vote_protocol
from populations import bundles
from statistical.limits import FALSE_ALARM

PARTIES, SEEDS, ROUNDS = 10, 10, 4
LEVEL, TAIL = 0.5, 0.025  # all intervals of ten parties together, and an end of each
PEOPLE = 3000
FOUND = 0.9


def changes(shared, *, shift, seeds=SEEDS, rounds=ROUNDS, people=PEOPLE, about="populations"):
    """Whether each party is said to have changed; a share of the people is in both releases, and the profile of the others may shift."""
    population = bundles(20, 0.5)
    chances = population.chances
    later = np.roll(chances, shift) if shift else chances
    rng = np.random.default_rng(3)
    stay = int(shared * people)
    for seed in range(seeds):
        protocol = vote_protocol(population.types.shape[1], 256, 3, f"drift {seed}", margin_share="0.3")
        counted = Counted.of(protocol, population)
        for _ in range(rounds):
            same = rng.multinomial(stay, chances, PARTIES)
            before, after = (
                released(
                    protocol,
                    counted.sums(same + rng.multinomial(people - stay, each, PARTIES), rng),
                    labels=[f"party {number}" for number in range(PARTIES)],
                )
                for each in (chances, later)
            )
            yield np.array(al.drift(before, after, level=LEVEL, about=about).verdict) == "differ"


@pytest.mark.parametrize("shared", [0, 0.5, 1])
def test_unchanged_populations_are_rarely_said_to_have_changed(shared):
    found = np.concatenate(list(changes(shared, shift=0)))
    assert found.sum() <= binom.isf(FALSE_ALARM, len(found), TAIL), f"{found.mean():.3f} of {TAIL}"


@pytest.mark.parametrize("shared", [0, 0.5])
def test_a_change_is_found(shared):
    found = np.concatenate(list(changes(shared, shift=3, seeds=2)))
    assert found.sum() >= binom.ppf(FALSE_ALARM, len(found), FOUND), f"{found.mean():.3f}"


def test_without_chance_new_people_are_a_change():
    # so that the test of false alarms could fail
    found = np.concatenate(list(changes(0, shift=0, seeds=2, about="people")))
    assert found.sum() > binom.isf(FALSE_ALARM, len(found), TAIL)
