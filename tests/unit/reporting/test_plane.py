"""Classical scaling: points come back, noise does not become points, and ellipses are as large as they say."""

import math

import numpy as np
import pytest

import armslength as al
from armslength.reporting.plane import noise_of_rows, scaling
from report_parties import hospitals
from statistical.limits import check_variance, draws_for_variance

LEVEL = 0.95
RADIUS = math.sqrt(-2 * math.log(0.05))


def squared(points):
    return ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)


def test_points_of_a_plane_come_back_as_they_are():
    points = np.random.default_rng(1).normal(size=(9, 2)) * [30, 5]
    plane = scaling(squared(points), np.zeros(9), 10, 0.0, LEVEL)
    assert plane.axes == 2
    np.testing.assert_allclose(squared(plane.places), squared(points), atol=1e-9)
    assert plane.share == pytest.approx(1)
    assert plane.against == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(plane.reach, 0, atol=1e-6)


def test_the_share_that_the_plane_shows_is_that_of_its_eigenvalues():
    points = np.random.default_rng(2).normal(size=(30, 4))
    centered = points - points.mean(axis=0)
    variances = np.sort(np.linalg.eigvalsh(centered.T @ centered))[::-1]
    plane = scaling(squared(points), np.zeros(30), 10, 0.0, LEVEL)
    assert plane.share == pytest.approx(variances[:2].sum() / variances.sum())


def test_negative_estimates_have_no_picture():
    negative = -np.ones((4, 4)) + np.eye(4)
    plane = scaling(negative, np.ones(4), 10, 0.1, LEVEL)
    assert plane.axes == 0
    assert not plane.places.any()


def test_two_parties_have_one_axis():
    plane = scaling(np.array([[0.0, 100.0], [100.0, 0.0]]), np.ones(2), 4, 0.0, LEVEL)
    assert plane.axes == 1
    assert abs(plane.places[0, 0] - plane.places[1, 0]) == pytest.approx(10)
    assert not plane.places[:, 1].any()
    # λ = 50 and Σσ²v² = 1: the noise is stretched by 1 + 4/50
    np.testing.assert_allclose(plane.reach, RADIUS * math.sqrt(1.08))


def test_the_same_estimates_give_the_same_signs():
    points = np.random.default_rng(3).normal(size=(7, 2)) * [3, 1]
    places = scaling(squared(points), np.zeros(7), 2, 0.0, LEVEL).places
    assert (places[np.argmax(np.abs(places), axis=0), [0, 1]] > 0).all()


def test_eigenvalues_below_zero_are_counted():
    points = np.random.default_rng(4).normal(size=(6, 2)) * 10
    noisy = squared(points) - 50 * (1 - np.eye(6))
    plane = scaling(noisy, np.zeros(6), 2, 0.0, LEVEL)
    eigenvalues = np.linalg.eigvalsh(-(np.eye(6) - 1 / 6) @ noisy @ (np.eye(6) - 1 / 6) / 2)
    expected = -eigenvalues[eigenvalues < 0].sum() / eigenvalues[eigenvalues > 0].sum()
    assert expected > 0.01
    assert plane.against == pytest.approx(expected)


def axes_of(estimates):
    count = len(estimates)
    center = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-center @ estimates @ center / 2)
    return values[::-1][:2], vectors[:, ::-1][:, :2]


def test_noise_moves_a_mark_as_far_as_its_ellipse_says():
    # The mark of the first party under 20,000 draws of its noise, by the axes of the map: Σⱼ vⱼ⟨u, uⱼ⟩/√λ.
    generator = np.random.default_rng(5)
    count, width, deviation = 40, 50, 3.0
    points = np.zeros((count, width))
    points[:, :2] = generator.normal(size=(count, 2)) * [30, 20]
    others = points + generator.normal(0, deviation, (count, width))
    estimates = squared(others) - 2 * width * deviation**2 * (1 - np.eye(count))
    noise = np.full(count, deviation**2)
    plane = scaling(estimates, noise, width, 0.0, LEVEL)
    values, vectors = axes_of(estimates)
    draws = draws_for_variance(3.0)
    centered = others - others.mean(axis=0)
    drawn = generator.normal(0, deviation, (draws, width))
    for axis in range(2):
        direction = vectors[:, axis] @ centered / math.sqrt(values[axis])
        check_variance(drawn @ direction, 0.0, (plane.reach[0, axis] / RADIUS) ** 2)


def test_the_projection_moves_a_mark_as_far_as_its_ellipse_says():
    # Signs and buckets of the sparse projection, drawn anew; differences are spread, so that ‖z‖₄ is small.
    generator = np.random.default_rng(6)
    count, dim, width = 12, 600, 64
    basis = np.linalg.qr(generator.normal(size=(dim, 2)))[0]
    points = (generator.normal(size=(count, 2)) * [30, 20]) @ basis.T + generator.normal(size=(count, dim))
    points -= points.mean(axis=0)
    estimates = squared(points)
    plane = scaling(estimates, np.zeros(count), width, 2 / width, LEVEL)
    values, vectors = axes_of(estimates)
    draws = draws_for_variance(3.2)
    marks = np.empty((draws, 2))
    directions = (vectors / np.sqrt(values)).T @ points
    both = np.vstack([points[0], directions])
    for draw in range(draws):
        bins, signs = generator.integers(0, width, dim), generator.choice([-1.0, 1.0], dim)
        first, one, two = (np.bincount(bins, row * signs, width) for row in both)
        marks[draw] = first @ one, first @ two
    for axis in range(2):
        mean = points[0] @ directions[axis]
        check_variance(marks[:, axis], mean, (plane.reach[0, axis] / RADIUS) ** 2)


def test_noise_of_rows_is_in_data_units_and_zero_in_the_clear():
    sketches = hospitals(3)
    protocol = sketches.protocol
    expected = protocol.law.second_moment * protocol.unit_squared
    np.testing.assert_allclose(noise_of_rows(sketches, "counts"), expected)
    np.testing.assert_allclose(noise_of_rows(3 * sketches, "counts"), 9 * expected)
    clear = al.sketch_in_clear(protocol, np.ones((1, 2000), dtype=np.int64))
    assert noise_of_rows(clear, "counts") == [0.0]
