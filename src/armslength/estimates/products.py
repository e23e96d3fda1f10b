"""Inner products and cosines, with approximate intervals: their variance has several unknowns."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from armslength.checks import one_of
from armslength.estimates.distances import checked_pair, pair_estimate, squared_norms
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Bounds, Level, Rule
from armslength.estimates.pair_noise import Floats, PairNoises, shared_cumulants
from armslength.sketches.sketches import Sketches
from armslength.transforms.transform import ProductCoefficients

APPROXIMATE = "approximate: norms and products in the variance are themselves estimated"


def inner_products(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ for every row of a against every row of b, or within a.

    ⟨u, v⟩ − k·Σαβκ₂ over noises that both rows have, in data units; unbiased over the public seed.
    """
    left, right = checked_pair(a, b)
    protocol, transform = left.protocols[0], left.protocols[0].transform
    u, v = (side.values.astype(np.float64) + side.offsets[:, None] for side in (left, right))
    shared = shared_cumulants(left, right)
    value = protocol.unit_squared * (u @ v.T - transform.noise_bias(shared[0], protocol.noise_site))
    x, y = (np.maximum(squared_norms(side).value, 0.0) for side in (left, right))
    kx, ky = (PairNoises.of_rows(side.noises).each("k2") for side in (left, right))
    coefficients = transform.product_coefficients(protocol.noise_site)
    rule = Product(coefficients, float(protocol.resolution) ** 2, value, (x, y), (kx, ky), shared)
    return pair_estimate("inner products", value, (left, right), rule, within=b is None, note=APPROXIMATE)


@dataclass(frozen=True)
class Product:
    """The rule of inner products. Its variance is itself an estimate, so nothing is guaranteed."""

    coefficients: ProductCoefficients
    unit: float  # squared data units in a squared grid unit
    value: Floats
    norms: tuple[Floats, Floats]  # estimated ‖x‖² and ‖y‖², at least 0
    noises: tuple[Floats, Floats]  # κ₂ of each row and column, in integer units
    shared: tuple[Floats, Floats]  # Σαβκ₂ and Σα²β²κ₄ of each pair, in integer units

    @property
    def variance(self) -> Floats:
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

    def interval(self, level: Level) -> Bounds:
        """value ± z·√variance."""
        one_of("method of an approximate interval", level.method, METHODS[:1])
        reach = -ndtri(level.tail) * np.sqrt(self.variance)
        return self.value - reach, self.value + reach


def cosines(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ / (‖x‖·‖y‖) for every row of a against every row of b, or within a; 0 where a norm is not positive.

    The interval combines those of the product and of both norms, each with a third of the error: approximate, and
    wide rather than narrow.
    """
    left, right = checked_pair(a, b)
    products, x, y = inner_products(a, b), squared_norms(left), squared_norms(right)
    size = np.sqrt(np.maximum(x.value, 0.0))[:, None] * np.sqrt(np.maximum(y.value, 0.0))[None, :]
    value = np.divide(products.value, size, out=np.zeros_like(size), where=size > 0)
    rule = Cosine(products.rule, x.rule, y.rule)
    return replace(products, quantity="cosines", value=np.clip(value, -1, 1), rule=rule)


@dataclass(frozen=True)
class Cosine:
    """The rule of cosines."""

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
