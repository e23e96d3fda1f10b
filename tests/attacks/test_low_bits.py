"""Float noise is broken by its low bits; ours is not."""

import numpy as np
import pytest
from attacks.low_bits import (
    CANNOT_TELL,
    EPSILON,
    NOISE,
    SCALE,
    _comes_out,
    allowed_accuracy,
    attack,
    broken_release,
    in_data_units,
    likely_guess,
    main,
    our_release,
)
from audit.float_noise import judged_claims, judged_excess, largest_excess

from statistical.limits import LIMIT

COUNT = 40_000


@pytest.mark.parametrize("entry", [0, 1])
def test_float_noise_gives_an_entry_away_and_is_never_mistaken(entry):
    guesses = attack(broken_release(entry, COUNT, np.random.default_rng(entry)))
    assert (guesses == entry).mean() > 0.75
    assert not (guesses == 1 - entry).any()
    assert (guesses == CANNOT_TELL).any()


def test_what_was_made_of_an_entry_can_always_come_out_of_it():
    for entry in (0, 1):
        for seen in broken_release(entry, 2000, np.random.default_rng(9)).tolist():
            assert _comes_out(seen, entry * SCALE, NOISE)
    seen = np.nextafter(broken_release(0, 2000, np.random.default_rng(9)), np.inf)
    # The last bit decides: of the floats next to these hardly any can come out.
    assert np.mean([_comes_out(one, 0.0, NOISE) for one in seen.tolist()]) < 0.1


def test_the_same_attack_learns_nothing_certain_from_ours():
    ours = [our_release(entry, COUNT) for entry in (0, 1)]
    claimed = [attack(in_data_units(seen[:, 0])) for seen in ours]
    claims = sum((guesses != CANNOT_TELL).sum() for guesses in claimed)
    right = sum((guesses == entry).sum() for entry, guesses in enumerate(claimed)) / claims
    best = np.mean([(likely_guess(seen) == entry).mean() for entry, seen in enumerate(ours)])
    allowed = allowed_accuracy(EPSILON)
    assert claims > COUNT / 10
    assert right < allowed
    # A false alarm once in a million; the true share is 0.625, far from a coin.
    assert 0.6 < best <= allowed + LIMIT * np.sqrt(allowed * (1 - allowed) / (2 * COUNT))


def test_no_integer_is_likelier_than_its_share_of_epsilon_allows():
    zero, one = (our_release(entry, 200_000)[:, 0] for entry in (0, 1))
    assert largest_excess(zero, one)[1] > 20
    assert judged_excess(*largest_excess(zero, one)).holds
    # It has teeth: the next entry, two away, would be noticed.
    assert not judged_excess(*largest_excess(zero, one + 1)).holds


def test_an_integer_that_comes_out_under_one_entry_alone_is_noticed():
    zero, one = (our_release(entry, 50_000)[:, 0] for entry in (0, 1))
    assert judged_excess(*largest_excess(zero, one)).holds
    never = np.where(one == 3, 1000, one)
    assert (zero == 3).sum() > 1000
    assert not judged_excess(*largest_excess(zero, never)).holds


def test_the_limit_is_for_all_that_were_tried():
    assert judged_excess(LIMIT, 1).holds
    assert not judged_excess(LIMIT + 0.01, 1).holds
    assert judged_excess(LIMIT + 0.5, 68).holds
    assert not judged_excess(LIMIT + 1, 68).holds
    assert not judged_excess(-np.inf, 0).holds


def test_claims_are_judged():
    assert judged_claims(7000, 10_000).holds
    assert not judged_claims(7600, 10_000).holds
    assert not judged_claims(0, 0).holds


def test_the_story(capsys):
    main()
    told = capsys.readouterr().out
    assert "0 of these guesses are wrong" in told
    assert "no more than ε allows" in told
