"""The limit of every statistical claim of the audit: a true one fails once in a million."""

import math
from statistics import NormalDist

FALSE_ALARM = 1e-6
LIMIT = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)  # standard errors, two-sided: 4.892


def limit_of_largest(tried: int) -> float:
    """The limit of the largest of so many deviations: each gets its part of the false alarm."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * tried))


def error_of_share(share: float, count: int) -> float:
    """The standard error of a share that was counted `count` times, with room for shares next to 0 and 1."""
    return math.sqrt(max(share * (1 - share), 1 / count) / count)
