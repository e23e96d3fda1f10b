"""Norms of random matrices before they are made: the medians over seeds, for plans.

A protocol calibrates its noise to the exact number of its own matrix, never to these.
"""

import math

from scipy.special import chdtri, log_ndtr, ndtr


def typical_squared_norm(rows: float, columns: float) -> float:
    """About the squared operator norm of a matrix of independent entries of variance 1: (√d + √k)²."""
    return (math.sqrt(columns) + math.sqrt(rows)) ** 2


def median_level(count: int) -> float:
    """The level that the largest of that many independent variables stays below half of the time: 2^(−1/count)."""
    return math.exp(-math.log(2) / count)


def largest_chi_square(degrees: float, count: int) -> float:
    """The median of the largest of that many chi-square variables."""
    return float(chdtri(degrees, -math.expm1(-math.log(2) / count)))


def largest_l1(k: int, count: int) -> float:
    """The median of the largest of that many sums of k magnitudes of standard normals.

    By Lugannani and Rice's saddlepoint formula for one sum, whose cumulant function is k(s²/2 + ln 2Φ(s)).
    """
    tail = -math.expm1(-math.log(2) / count)
    low, high = 1e-6, 60.0
    for _ in range(60):
        s = (low + high) / 2
        low, high = (s, high) if _tail_of_l1(k, s)[1] > tail else (low, s)
    return _tail_of_l1(k, low)[0]


def _tail_of_l1(k: int, s: float) -> tuple[float, float]:
    """(t, P(sum > t)) at the saddlepoint s > 0."""
    log_phi = float(log_ndtr(s))
    mills = math.exp(-s * s / 2 - log_phi) / math.sqrt(2 * math.pi)
    t = k * (s + mills)
    w = math.sqrt(max(2 * (s * t - k * (s * s / 2 + math.log(2) + log_phi)), 1e-12))
    u = s * math.sqrt(k * (1 - mills * (s + mills)))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return t, float(ndtr(-w)) + density * (1 / u - 1 / w)
