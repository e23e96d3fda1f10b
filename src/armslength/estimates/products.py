"""Inner products and cosines. Their variance has several unknowns, so intervals are approximate and say so."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from armslength.checks import number, one_of
from armslength.estimates.distances import (
    checked_pair,
    clear_note,
    pair_estimate,
    squared_distances,
    squared_norms,
)
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Approximate, Bounds, Level, Rule
from armslength.estimates.pair_noise import row_noises, shared_cumulants
from armslength.estimates.variance import debias
from armslength.sketches.sketches import Sketches
from armslength.transforms.transform import ProductCoefficients

APPROXIMATE = "approximate: norms and products in the variance are themselves estimated"


def inner_products(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ for every row of a against every row of b, or within a.

    ⟨u, v⟩ − k·Σαβκ₂ over noises that both rows have, in data units; unbiased over the public seed.
    """
    left, right = checked_pair(a, b)
    protocol = left.protocols[0]
    u, v = (side.values.astype(np.float64) + side.offsets[:, None] for side in (left, right))
    shared = shared_cumulants(left, right)
    value = protocol.unit_squared * (u @ v.T - debias(protocol, shared[0]))
    x, y = (np.maximum(squared_norms(side).value, 0.0) for side in (left, right))
    kx, ky = (row_noises(side).each("k2") for side in (left, right))
    coefficients = protocol.transform.product_coefficients(protocol.noise_site)
    rule = Product(coefficients, float(protocol.resolution) ** 2, value, (x, y), (kx, ky), shared)
    return pair_estimate("inner products", value, (left, right), rule, within=b is None, note=APPROXIMATE)


@dataclass(frozen=True)
class Product(Approximate):
    """The rule of inner products.

    Attributes:
        coefficients: Of the transform's variance.
        unit: Squared data units in a squared grid unit.
        value: The estimates.
        norms: ‖x‖² and ‖y‖² as estimated, at least 0, for each row and column.
        noises: κ₂ of each row and column, in integer units.
        shared: Σαβκ₂ and Σα²β²κ₄ of each pair, in integer units.
    """

    coefficients: ProductCoefficients
    unit: float
    value: NDArray[np.float64]
    norms: tuple[NDArray[np.float64], NDArray[np.float64]]
    noises: tuple[NDArray[np.float64], NDArray[np.float64]]
    shared: tuple[NDArray[np.float64], NDArray[np.float64]]

    @property
    def variance(self) -> NDArray[np.float64]:
        """P(x,y) + κ₂(μ)‖x‖² + κ₂(η)‖y‖² + 2⟨x,y⟩Σαβκ₂ + k(κ₂κ₂ + (Σαβκ₂)² + Σα²β²κ₄), at the estimates."""
        x, y = self.norms[0][:, None], self.norms[1][None, :]
        # By Cauchy and Schwarz no product is larger than its norms allow.
        inner = np.clip(self.value, -np.sqrt(x * y), np.sqrt(x * y))
        kx, ky = self.noises[0][:, None] * self.unit, self.noises[1][None, :] * self.unit
        s2, s4 = self.shared[0] * self.unit, self.shared[1] * self.unit**2
        of = self.coefficients
        noise = of.linear * (kx * y + ky * x + 2 * inner * s2)
        own = of.norms * x * y + of.inner * inner**2
        return own + noise + of.own * kx * ky + of.shared * s2**2 + of.fourth * s4


def cosines(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ / (‖x‖·‖y‖) for every row of a against every row of b, or within a; 0 where a norm is not positive.

    The interval combines those of the product and of both norms at a third of the error each: approximate, and wide
    rather than narrow.
    """
    left, right = checked_pair(a, b)
    products, x, y = inner_products(a, b), squared_norms(left), squared_norms(right)
    size = np.sqrt(np.maximum(x.value, 0.0))[:, None] * np.sqrt(np.maximum(y.value, 0.0))[None, :]
    value = np.divide(products.value, size, out=np.zeros_like(size), where=size > 0)
    rule = Cosine(products.rule, x.rule, y.rule)
    return replace(products, quantity="cosines", value=np.clip(value, -1, 1), rule=rule)


@dataclass(frozen=True)
class Cosine:
    """The rule of cosines: from those of the product and of both squared norms."""

    products: Rule
    x: Rule
    y: Rule
    variance: None = None

    def interval(self, level: Level) -> Bounds:
        """The cosines that all three intervals allow."""
        (low, high), (x_low, x_high), (y_low, y_high) = (
            rule.interval(level.share(1 / 3)) for rule in (self.products, self.x, self.y)
        )
        smallest = np.sqrt(x_low[:, None] * y_low[None, :])
        largest = np.sqrt(x_high[:, None] * y_high[None, :])
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(low >= 0, low / largest, low / smallest)
            upper = np.where(high >= 0, high / smallest, high / largest)
        return np.clip(np.nan_to_num(lower, nan=-1.0), -1, 1), np.clip(np.nan_to_num(upper, nan=1.0), -1, 1)


@dataclass(frozen=True)
class Contrast:
    """An estimate of ‖x−y‖² − ‖x−z‖² in data units, with ends that say on which side of 0 it surely lies."""

    value: float
    lower: float
    upper: float
    note: str


def contrast(x: Sketches, y: Sketches, z: Sketches, level: float, method: str) -> Contrast:
    """‖x−y‖² − ‖x−z‖² of three rows, unbiased over the public seed, with one-sided ends: sharper than two distances are.

    With p = z − y and q = 2x − y − z it is ⟨p, q⟩, and p and q are sketches like any other: their inner product, with the
    noises that both have, is the difference of the two debiased squared distances.

    Args:
        x: One row.
        y: One row.
        z: One row.
        level: 1 − the probability that an end is on the wrong side of 0, where the truth is not.
        method: "guaranteed" subtracts two intervals, each at half of the error: proven for all data, as an interval too.
            "asymptotic" is Student's t for the k products of coordinates: approximate, and made for the comparison with 0; far from
            0 its ends miss more often, several times so for few coordinates.
    """
    one_of("method", method, METHODS)
    error = 1 - number("level", level, above=0.5, at_most=1 - 1e-12)
    p, q = z - y, 2 * x - y - z
    product = inner_products(p, q)
    value = float(product.value[0, 0])
    note = clear_note(x, y, z)
    if method == "guaranteed":
        # An end is wrong only if one of the two intervals is. Chebyshev bounds both ends of one together: half of the error each.
        (y_low, y_high), (z_low, z_high) = (
            squared_distances(x, other).interval(1 - error / 2, method=method) for other in (y, z)
        )
        return Contrast(value, float((y_low - z_high)[0, 0]), float((y_high - z_low)[0, 0]), note)
    reach = float(stdtrit(x.transform.sketch_dim - 1, 1 - error)) * _std_error(p, q, product)
    return Contrast(value, value - reach, value + reach, note)


def _std_error(p: Sketches, q: Sketches, product: Estimate) -> float:
    """Of ⟨p, q⟩: what its k products show, or what the formula says at the estimates, whichever is larger.

    The products are as good as independent, except where nothing is projected: those differ by the data, and have only the
    formula. Noise on the input makes them depend on each other, which the formula knows.
    """
    protocol = p.protocols[0]
    by_formula = float(product.variance[0, 0])
    k = protocol.transform.sketch_dim
    if protocol.transform.projection_variance == 0 or k < 2:
        return math.sqrt(by_formula)
    products = np.prod([side.values[0].astype(np.float64) + side.offsets[0] for side in (p, q)], axis=0)
    by_sample = k * float(np.var(products, ddof=1)) * protocol.unit_squared**2
    return math.sqrt(max(by_formula, by_sample))
