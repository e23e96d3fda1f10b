"""The constants of all statistical tests, and what they promise.

A test accepts the truth and rejects 0.9 and 1.1 of it. Each comparison is a normal deviate; at
LIMIT = 4.892 a true one is outside with probability 1e-6 (two-sided). To reject a value that is wrong by
a tenth just as surely, the tenth must be 2·LIMIT standard errors wide: for the variance of a variable with
kurtosis κ that is n = (κ−1)·(2·LIMIT/0.1)² draws.
"""

import math
from statistics import NormalDist

FALSE_ALARM = 1e-6
LIMIT = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)
WRONG = (0.9, 1.1)


def draws_for_variance(kurtosis):
    """How many draws tell a variance from 0.9 and 1.1 of it."""
    return math.ceil((kurtosis - 1) * (2 * LIMIT / 0.1) ** 2)


def check_variance(values, mean, variance):
    """The values have this variance about this mean, and neither 0.9 nor 1.1 of it."""
    squares = (values - mean) ** 2
    estimate = squares.mean()
    error = squares.std() / math.sqrt(len(values))
    assert abs(estimate - variance) < LIMIT * error, f"{estimate / variance:.4f} of the variance stated"
    for factor in WRONG:
        assert abs(estimate - factor * variance) > LIMIT * error, "too few draws to tell"


def check_mean(values, mean, variance):
    """The values have this mean, given their variance, and neither 0.9 nor 1.1 of it."""
    error = math.sqrt(variance / len(values))
    assert abs(values.mean() - mean) < LIMIT * error, f"{values.mean() / mean:.4f} of the mean stated"
    for factor in WRONG:
        assert abs(values.mean() - factor * mean) > LIMIT * error, "too few draws to tell"
