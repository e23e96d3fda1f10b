"""The claims of the audit about calibration, recovery, float noise and averaging: each fails where it should."""

import pytest
from audit.averaging import Measured
from audit.calibration import Mix, Point, calibrated, composed, laplace_is_right

from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.privacy.composition import compose, pure_loss
from audit import averaging, calibration, recovery


def test_a_calibrated_point():
    found = calibrated(Point("1", "1e-6", 50))
    assert found.is_enough
    assert found.is_least
    assert found.to_peer == pytest.approx(1, abs=1e-9)
    assert found.peer_epsilon == pytest.approx(1, abs=1e-9)
    assert calibrated(Point("0.0001", "1e-100", 10**24)) is None  # beyond the range of scales
    assert calibrated(Point("700", "0.9", 1)) is not None


@pytest.mark.parametrize("factor", [1 - 1e-12, 1 + 1e-12])
def test_a_scale_that_is_off_is_noticed(factor, monkeypatch):
    monkeypatch.setattr(calibration, "gaussian_scale", lambda *point: factor * gaussian_scale(*point))
    monkeypatch.setattr(calibration, "laplace_scale", lambda *pair: factor * laplace_scale(*pair))
    found = calibrated(Point("0.3", "1e-9", 3))
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
        ["first", "second", "third", "fourth"], ["labels must be new", "must fit the budget"]
    )[0].holds
    assert not averaging._ledger_checks(["first", "first"], ["labels must be new", "must fit the budget"])[
        0
    ].holds
