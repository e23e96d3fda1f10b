"""Repeated releases: averaging works as composition says, and the ledger stops it."""

import math

import numpy as np
import pytest
from attacks.averaging import (
    ITEMS,
    allowed_guesses,
    error_of_mean,
    main,
    protocol_of,
    released_until_refused,
    right_guesses,
)

import armslength as al
from statistical.limits import LIMIT, WRONG


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_error_of_the_mean_falls_with_the_root_of_n(noise):
    protocol = protocol_of(noise)
    for times, trials in ((1, 4000), (25, 1500)):  # limits.draws_for_variance, over 16 coordinates
        squared = error_of_mean(protocol, np.arange(ITEMS), times, trials) ** 2
        expected = protocol.law.second_moment / times
        kurtosis = 3 + (protocol.law.fourth_moment / protocol.law.second_moment**2 - 3) / times
        error = LIMIT * expected * math.sqrt((kurtosis - 1) / (16 * trials))
        assert abs(squared - expected) < error
        assert all(abs(squared - factor * expected) > error for factor in WRONG)


@pytest.mark.parametrize("times", [1, 16, 100])
def test_gaussian_guesses_are_as_good_as_composition_says(times):
    protocol, trials = protocol_of("gaussian"), 100_000 // times
    found, expected = right_guesses(protocol, times, trials), allowed_guesses(protocol, times)
    error = LIMIT * math.sqrt(expected * (1 - expected) / (2 * trials))
    assert abs(found - expected) < error
    if times == 100:  # without composition it would be the same as once
        assert found - error > allowed_guesses(protocol, 1)


@pytest.mark.parametrize("times", [1, 16])
def test_laplace_guesses_are_better_each_time_and_never_better_than_allowed(times):
    protocol, trials = protocol_of("laplace"), 100_000 // times
    found, allowed = right_guesses(protocol, times, trials), allowed_guesses(protocol, times)
    error = LIMIT * math.sqrt(0.25 / (2 * trials))
    assert found < allowed + error
    assert found > {1: 0.51, 16: 0.56}[times]


def test_what_is_allowed():
    laplace, gaussian = protocol_of("laplace"), protocol_of("gaussian")
    assert allowed_guesses(laplace, 4) == pytest.approx(math.e / (1 + math.e))
    # Four times as often is half of the noise.
    half = al.Protocol(
        gaussian.transform,
        al.Arrays(radius=2),
        epsilon="0.25",
        delta="1e-6",
        noise="gaussian",
        unit="one person",
    )
    assert half.law.scale == pytest.approx(2 * gaussian.law.scale)
    assert allowed_guesses(half, 16) == pytest.approx(allowed_guesses(gaussian, 4))


def test_the_ledger_refuses_the_second_time_and_then_the_fifth(tmp_path):
    released, refusals = released_until_refused(tmp_path)
    assert released == ["first", "second", "third", "fourth"]
    assert len(refusals) == 2
    assert "'first' was released before for population 'people'" in refusals[0]
    assert "does not fit the budget" in refusals[1]
    spent = al.Ledger(tmp_path / "ledger.sqlite").spent("people")[0]
    assert float(spent.epsilon) == 1


def test_the_story(capsys):
    main()
    told = capsys.readouterr().out
    assert told.count("refused:") == 2
    assert "at most 73.1%" in told
