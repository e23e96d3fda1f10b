"""Probabilities of the laws of noise, correct to the last digit of a float: what the library's numbers are compared with."""

from functools import partial

import numpy as np
from flint import arb

from armslength._flint import precision

_FAR = 1000  # scales; beyond them every probability is below the smallest float


def pmf(law, n):
    """P(N = n) for an integer or an array of integers."""
    values = np.asarray(n)
    magnitudes, back = np.unique([abs(value) for value in values.ravel().tolist()], return_inverse=True)
    exact = {"laplace": _laplace, "gaussian": _rounded_normal}[law.name]
    each = [
        _to_float(partial(exact, law.scale, magnitude)) if magnitude < _FAR * law.scale else 0.0
        for magnitude in magnitudes.tolist()
    ]
    probabilities = np.array(each)[back].reshape(values.shape)
    return float(probabilities) if values.ndim == 0 else probabilities


def _laplace(scale, magnitude):
    """tanh(1/2b)·e^(−|n|/b)."""
    b = arb(scale)
    return (1 / (2 * b)).tanh() * (-magnitude / b).exp()


def _rounded_normal(scale, magnitude):
    """Φ((n+½)/σ) − Φ((n−½)/σ), by the complementary error function, so that tails keep their digits."""
    unit = 2 * arb(2).sqrt() * arb(scale)
    if magnitude == 0:
        return (1 / unit).erf()
    return (((2 * magnitude - 1) / unit).erfc() - ((2 * magnitude + 1) / unit).erfc()) / 2


def _to_float(number):
    """The number to a relative error of 2^−53 + 2^−60; computed again at more bits until that is proved."""
    bits = 128
    while True:
        with precision(bits):
            ball = number()
            if ball.rel_accuracy_bits() >= 60:
                return float(ball.mid())
            if ball.is_zero():
                return 0.0
        bits *= 2
