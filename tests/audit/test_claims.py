"""The claims of the audit about calibration, recovery, float noise and averaging: each fails where it should."""

import pytest
from audit.averaging import Measured
from audit.calibration import (
    Calibrated,
    Mix,
    Point,
    Worth,
    calibrated,
    composed,
    gaussian_checks,
    has_scale,
    laplace_is_right,
)

from armslength.errors import ParameterError
from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.privacy.composition import compose, pure_loss
from audit import averaging, calibration, recovery


def test_a_calibrated_point():
    has_one, found = calibrated(Point("1", "1e-6", 50))
    assert has_one
    assert found.is_enough
    assert found.is_least
    assert found.to_peer == pytest.approx(1, abs=1e-9)
    assert found.peer_epsilon == pytest.approx(1, abs=1e-9)
    assert calibrated(Point("0.0001", "1e-100", 10**24)) == (False, None)
    assert calibrated(Point("700", "0.9", 1)).has_scale


def test_whether_there_is_a_scale_is_decided_at_the_end_of_the_range():
    unit = gaussian_scale(10**20, "1", "1e-6") / 10**10  # σ is in proportion to the root of Δ₂²
    most = (2.0**40 / unit) ** 2
    assert has_scale(Point("1", "1e-6", int(most * (1 - 1e-9))))
    assert not has_scale(Point("1", "1e-6", int(most * (1 + 1e-9))))


def test_a_scale_that_is_refused_in_the_range_is_noticed(monkeypatch):
    def refuses(*_):
        raise ParameterError("no scale must be given, got one")

    points = [Point("1", "1e-6", 50), Point("0.0001", "1e-100", 10**24)]
    assert all(check.holds for check in gaussian_checks([calibrated(point) for point in points]))
    monkeypatch.setattr(calibration, "gaussian_scale", refuses)
    monkeypatch.setattr(calibration, "laplace_scale", refuses)
    checks = gaussian_checks([calibrated(point) for point in points])
    assert not any(check.holds for check in checks)
    assert checks[0].found == "right at 1 of 2 points, of which 1 have one"
    assert checks[1].found == "at 0 of 1 points"
    assert not laplace_is_right(1, "1")
    assert laplace_is_right(10**9, "0.0001")  # beyond 2^40: so it should be


def test_gaussian_points_are_judged():
    right, refused = Calibrated(True, Worth(True, True, 1.0, 1.0)), Calibrated(False, None)

    def held(*changed):
        return [check.holds for check in gaussian_checks([right, refused, *changed])]

    assert held() == [True] * 4
    assert held(Calibrated(False, right.worth)) == [False, True, True, True]
    assert held(Calibrated(True, None)) == [False] * 4
    for number, worth in enumerate(
        [Worth(False, True, 1.0, 1.0), Worth(True, False, 1.0, 1.0), Worth(True, True, 1 - 2e-9, 1.0)], 1
    ):
        assert held(Calibrated(True, worth)) == [claim != number for claim in range(4)]
    assert not gaussian_checks([right])[0].holds  # no refusal was tried
    assert not gaussian_checks([refused])[0].holds


@pytest.mark.parametrize("factor", [1 - 1e-12, 1 + 1e-12])
def test_a_scale_that_is_off_is_noticed(factor, monkeypatch):
    monkeypatch.setattr(calibration, "gaussian_scale", lambda *point: factor * gaussian_scale(*point))
    monkeypatch.setattr(calibration, "laplace_scale", lambda *pair: factor * laplace_scale(*pair))
    found = calibrated(Point("0.3", "1e-9", 3)).worth
    assert (found.is_enough, found.is_least) == (factor > 1, factor < 1)
    assert not laplace_is_right(7, "0.3")


@pytest.mark.parametrize("sensitivity", [1, 7, 10**9])
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "16", "700"])
def test_a_laplace_scale(sensitivity, epsilon):
    assert laplace_is_right(sensitivity, epsilon)


def test_composition_is_held_against_privacy_loss_distributions(monkeypatch):
    assert 1 <= composed(Mix(1, 1, "0.1", "1e-6")) <= 4 / 3
    assert 1 <= composed(Mix(0, 3, "1", "1e-6")) <= 1.01

    def forgets_one(losses, delta):
        return compose(losses[1:], delta)

    monkeypatch.setattr(calibration, "compose", forgets_one)
    assert composed(Mix(0, 3, "1", "1e-6")) < 1
    assert pure_loss(1).epsilon == 1


@pytest.mark.parametrize(
    ("epsilon", "mean", "holds"),
    [
        (None, 19.9, True),
        (None, 19.0, False),
        (1, 0.20, True),
        (1, 0.30, False),
        (10_000, 5.0, True),
        (10_000, 0.2, False),
    ],
)
def test_recovery_is_judged(epsilon, mean, holds):
    assert recovery._judged("SparseJL", epsilon, round(5000 * mean), 5000).holds == holds


def sizes(gaussian=0.6, laplace=0.55, error=10.0):
    return [Measured(64, error, 10.0, (laplace, gaussian), (0.73, 0.6), 100_000)]


def test_averaging_is_judged():
    def holding(found, *, quick=False):
        return [check.holds for check in averaging._checks(found, quick=quick)]

    assert holding(sizes()) == [True] * 4
    assert holding(sizes(gaussian=0.611)) == [True, True, False, False]
    assert holding(sizes(laplace=0.74)) == [True, False, True, True]
    assert holding(sizes(error=11.5)) == [False, True, True, True]
    few = [sizes()[0]._replace(trials=10_000)]
    assert holding(few) == [True, True, True, False]
    assert holding(few, quick=True) == [True] * 3  # what cannot be told is not claimed
    assert averaging._ledger_checks(
        ["first", "second", "third", "fourth"], ["was released before", "does not fit the budget"]
    )[0].holds
    assert not averaging._ledger_checks(
        ["first", "first"], ["was released before", "does not fit the budget"]
    )[0].holds
