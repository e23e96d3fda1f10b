"""Where the number of people is too coarse for the law of far distances, a pair may still be told from equal ones."""

import numpy as np
import pytest

from armslength.estimates.shape_law import ShapeLaw, ShapeRows, Spread
from armslength.estimates.variance import VarianceCurve
from armslength.laws import DiscreteLaplace

SIZE, PEOPLE, TAIL = 64, 1000.0, 0.05 / 66 / 2


def law_of(total_deviation):
    """ε = 1: a party in which a tenth of all votes are for one of 64 items, and one where each has as many."""
    noise, one = DiscreteLaplace(1 / 0.9), np.ones(1)
    k2, k4 = noise.cumulants.k2 * one, noise.cumulants.k4 * one
    sides = []
    for popular in (0.1, 0.0):
        values = np.full((1, SIZE), (1 - popular) * PEOPLE / SIZE)
        values[0, 0] += popular * PEOPLE
        variance = total_deviation**2 * one
        rows = ShapeRows.of(
            values, PEOPLE * one, (k2, k4, noise.higher_cumulants[0] * one), SIZE * k2, variance
        )
        spread = Spread(PEOPLE * one, PEOPLE * one, 150 * one, one, one, one)
        sides.append(rows.sampled(spread, 1.0))
    x, y = sides
    k2, k4 = (x.k2 + y.k2)[:, None], (x.k4 + y.k4)[:, None]
    return ShapeLaw.of(x, y, VarianceCurve(2 / SIZE, 4 * k2, SIZE * (k4 + 2 * k2**2)), 1.0)


def test_a_lower_end_moves_down_to_where_totals_are_precise_enough():
    law = law_of(25.0)
    lower, _ = law.interval(TAIL)
    tried = np.linspace(0, lower[0, 0], 2001)
    fine = [d for d in tried if not law.is_coarse(np.full((1, 1), d), TAIL).any()]
    assert 0 < fine[-1] < 0.9 * lower[0, 0]
    assert law.known_from(lower, TAIL)[0, 0] == pytest.approx(fine[-1], abs=2 * tried[1])


def test_nothing_is_known_where_totals_are_too_coarse_even_for_equal_parties():
    law = law_of(300.0)
    assert law.is_coarse(np.zeros((1, 1)), TAIL).all()
    assert law.known_from(np.full((1, 1), 0.001), TAIL) == 0


def test_precise_totals_leave_lower_ends_as_they_are():
    law = law_of(1.0)
    lower, _ = law.interval(TAIL)
    assert lower > 0
    assert law.known_from(lower, TAIL) == lower
