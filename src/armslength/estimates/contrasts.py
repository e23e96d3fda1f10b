"""‖x−y‖² − ‖x−z‖² of three rows as one quantity: what is said of it is sharper than two distances are.

With p = z − y and q = 2x − y − z it is ⟨p, q⟩, and p and q are sketches like any other: their inner product, with the noises
that both have, is the difference of the two debiased squared distances.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from armslength.checks import number, one_of
from armslength.estimates.inner_products import inner_products
from armslength.estimates.intervals import METHODS
from armslength.estimates.squared_distances import clear_note, squared_distances
from armslength.estimates.variance import projection_coefficient
from armslength.protocol.sketches import Sketches


@dataclass(frozen=True)
class Contrast:
    """An estimate of ‖x−y‖² − ‖x−z‖² in data units, with ends that say on which side of 0 it surely lies."""

    value: float
    lower: float
    upper: float
    note: str


def contrast(x: Sketches, y: Sketches, z: Sketches, level: float, method: str) -> Contrast:
    """‖x−y‖² − ‖x−z‖² of three rows, unbiased over the public seed, with one-sided ends.

    Args:
        x: One row.
        y: One row.
        z: One row.
        level: 1 − the probability that an end is on the wrong side of 0, where the truth is not.
        method: "guaranteed" subtracts two intervals, each at half of the error: proven for all data, as an interval too.
            "spread" is Student's t for the k products of coordinates: approximate, and made for the comparison with 0; far from
            0 its ends miss more often, several times so for few coordinates.
    """
    one_of("method", method, METHODS)
    error = 1 - number("level", level, above=0.5, at_most=1 - 1e-12)
    value = float(inner_products(z - y, 2 * x - y - z).value[0, 0])
    note = clear_note(x, y, z)
    if method == "guaranteed":
        # An end is wrong only if one of the two intervals is. Chebyshev bounds both ends of one together: half of the error each.
        (y_low, y_high), (z_low, z_high) = (
            squared_distances(x, other).interval(1 - error / 2, method=method) for other in (y, z)
        )
        return Contrast(value, float((y_low - z_high)[0, 0]), float((y_high - z_low)[0, 0]), note)
    reach = float(stdtrit(x.transform.sketch_dim - 1, 1 - error)) * _std_error(z - y, 2 * x - y - z)
    return Contrast(value, value - reach, value + reach, note)


def _std_error(p: Sketches, q: Sketches) -> float:
    """Of ⟨p, q⟩: what its k products show, or what the formula says at the estimates, whichever is larger.

    The products are as good as independent, except where nothing is projected: those differ by the data, and have only the
    formula. Noise on the input makes them depend on each other, which the formula knows.
    """
    protocol = p.protocols[0]
    by_formula = float(inner_products(p, q).variance[0, 0])
    k = protocol.transform.sketch_dim
    if projection_coefficient(protocol.transform) == 0 or k < 2:
        return math.sqrt(by_formula)
    products = np.prod([side.values[0].astype(np.float64) + side.offsets[0] for side in (p, q)], axis=0)
    shown = k * float(np.var(products, ddof=1)) * protocol.unit_squared**2
    return math.sqrt(max(by_formula, shown))
