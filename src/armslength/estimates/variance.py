"""V(D) = aD² + bD + c: the variance of a squared-distance estimate as a function of the unknown D = ‖z‖²."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength._numba import kernel
from armslength.laws import Cumulants
from armslength.protocol.protocol import Protocol
from armslength.threads import for_blocks
from armslength.transforms.transform import Transform


@kernel
def parabola(values: NDArray[np.float64], a: float, b: float, c: float, result: NDArray[np.float64]) -> None:
    """result = a·v² + b·v + c, where v is the value, or 0 if that is negative."""
    for i in range(len(values)):
        value = max(values[i], 0.0)
        result[i] = (a * value + b) * value + c


_ESTIMATES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class VarianceCurve:
    """The exact variance over seed and noise, in data units; an upper bound in that ‖z‖₄⁴ is taken as 0."""

    a: float
    b: float
    c: float

    def at_point(self, squared_distance: float) -> float:
        """V(D) of one number D ≥ 0: plain arithmetic, for plans, which need no compiled code."""
        return (self.a * squared_distance + self.b) * squared_distance + self.c

    def at(self, squared_distance: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """V(D), at 0 where D is negative."""
        d = np.asarray(squared_distance, dtype=np.float64, order="C")
        given, result = d.reshape(-1), np.empty(d.size)

        def evaluate(first: int, last: int) -> None:
            parabola(given[first:last], self.a, self.b, self.c, result[first:last])

        for_blocks(d.size, _ESTIMATES_AT_ONCE, evaluate)
        return result.reshape(d.shape)


def variance_curve(protocol: Protocol, noise: Cumulants) -> VarianceCurve:
    """The curve for a pair of this protocol's sketches with this noise in each coordinate (integer units)."""
    return curve_of(protocol.transform, protocol.noise_site, float(protocol.resolution), noise)


def curve_of(transform: Transform, noise_site: str, resolution: float, noise: Cumulants) -> VarianceCurve:
    """The curve for noise in each coordinate (integer units), before there is a protocol."""
    a, b, c = transform.variance_curve(noise, noise_site)
    return VarianceCurve(a, b * resolution**2, c * resolution**4)


def debias(protocol: Protocol, k2: NDArray[np.float64]) -> NDArray[np.float64]:
    """What noise of variance κ₂ a coordinate adds to a squared norm, in squared integer units of the sketch."""
    return protocol.transform.noise_bias(k2, protocol.noise_site)
