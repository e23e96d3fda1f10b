"""Inner products and cosines. Their variance has several unknowns, so intervals are approximate and say so."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from armslength.checks import number, one_of
from armslength.estimates.distances import checked_pair, clear_note, squared_distances, squared_norms
from armslength.estimates.estimate import Bounds, Estimate
from armslength.estimates.intervals import METHODS, approximate_interval
from armslength.estimates.pair_noise import row_noises
from armslength.estimates.variance import debias
from armslength.laws import uniform_cumulants
from armslength.sketches.sketches import Sketches

APPROXIMATE = "approximate: norms and products in the variance are themselves estimated"


def inner_products(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ for every row of a against every row of b, or within a.

    ⟨u, v⟩ − k·Σαβκ₂ over noises that both rows have, in data units; unbiased over the public seed.
    """
    left, right = checked_pair(a, b)
    protocol = left.protocols[0]
    u, v = (side.values.astype(np.float64) + side.offsets[:, None] for side in (left, right))
    shared2, shared4 = shared_cumulants(left, right)
    value = protocol.unit_squared * (u @ v.T - debias(protocol, shared2))
    notes = "; ".join(note for note in (APPROXIMATE, clear_note(left, right)) if note)
    variance = partial(_variance, left, right, value, shared2, shared4)
    return Estimate(
        "inner products",
        value,
        (left.labels, right.labels),
        (left.in_clear, right.in_clear),
        b is None,
        notes,
        variance,
        partial(approximate_interval, value, variance),
    )


def shared_cumulants(left: Sketches, right: Sketches) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Σαβκ₂ and Σα²β²κ₄ over the noises that both rows have, in integer units."""
    second, fourth = np.zeros((len(left), len(right))), np.zeros((len(left), len(right)))
    holders: dict[str, list[tuple[int, float]]] = {}
    for j, row in enumerate(right.provenance):
        for source, coefficient in row.terms:
            holders.setdefault(source.id, []).append((j, coefficient))
    for i, row in enumerate(left.provenance):
        for source, alpha in row.terms:
            each = source.law.cumulants + uniform_cumulants(source.protocol.dropped_bits)
            for j, beta in holders.get(source.id, ()):
                second[i, j] += alpha * beta * each.k2
                fourth[i, j] += (alpha * beta) ** 2 * each.k4
    return second, fourth


def _variance(
    left: Sketches,
    right: Sketches,
    product: NDArray[np.float64],
    shared2: NDArray[np.float64],
    shared4: NDArray[np.float64],
) -> NDArray[np.float64]:
    """P(x,y) + κ₂(μ)‖x‖² + κ₂(η)‖y‖² + 2⟨x,y⟩Σαβκ₂ + k(κ₂κ₂ + (Σαβκ₂)² + Σα²β²κ₄), at the estimates."""
    protocol = left.protocols[0]
    x, y = (np.maximum(squared_norms(side).value, 0.0) for side in (left, right))
    x, y = x[:, None], y[None, :]
    # By Cauchy and Schwarz no product is larger than its norms allow.
    inner = np.clip(product, -np.sqrt(x * y), np.sqrt(x * y))
    scale = float(protocol.resolution) ** 2
    kx, ky = (row_noises(side).each("k2") * scale for side in (left, right))
    kx, ky = kx[:, None], ky[None, :]
    s2, s4 = shared2 * scale, shared4 * scale**2
    of = protocol.transform.product_coefficients(protocol.noise_site)
    noise = of.linear * (kx * y + ky * x + 2 * inner * s2)
    return (
        of.norms * x * y + of.inner * inner**2 + noise + of.own * kx * ky + of.shared * s2**2 + of.fourth * s4
    )


def cosines(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ / (‖x‖·‖y‖) for every row of a against every row of b, or within a; 0 where a norm is not positive.

    The interval combines those of the product and of both norms at a third of the error each: approximate, and wide
    rather than narrow.
    """
    left, right = checked_pair(a, b)
    products = inner_products(a, b)
    norms = squared_norms(left), squared_norms(right)
    roots = [np.sqrt(np.maximum(norm.value, 0.0)) for norm in norms]
    size = roots[0][:, None] * roots[1][None, :]
    value = np.divide(products.value, size, out=np.zeros_like(size), where=size > 0)
    return replace(
        products,
        quantity="cosines",
        value=np.clip(value, -1, 1),
        _variance=None,
        _interval=partial(_cosine_interval, products, norms),
    )


def _cosine_interval(
    products: Estimate, norms: tuple[Estimate, Estimate], confidence: float, method: str, pairs: int
) -> Bounds:
    third = 1 - (1 - number("level", confidence, above=0.0, at_most=1.0 - 1e-13)) / 3
    low, high = products.interval(third, method=method, comparisons=pairs)
    (x_low, x_high), (y_low, y_high) = (
        norm.interval(third, method=method, comparisons=pairs) for norm in norms
    )
    smallest = np.sqrt(x_low[:, None] * y_low[None, :])
    largest = np.sqrt(x_high[:, None] * y_high[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(low >= 0, low / largest, low / smallest)
        upper = np.where(high >= 0, high / smallest, high / largest)
    return np.clip(np.nan_to_num(lower, nan=-1.0), -1, 1), np.clip(np.nan_to_num(upper, nan=1.0), -1, 1)


# ‖x−y‖² − ‖x−z‖² of three rows as one quantity: what is said of it is sharper than two distances are.
#
# With p = z − y and q = 2x − y − z it is ⟨p, q⟩, and p and q are sketches like any other: their inner product, with the noises
# that both have, is the difference of the two debiased squared distances.


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
    if protocol.transform.projection_variance == 0 or k < 2:
        return math.sqrt(by_formula)
    products = np.prod([side.values[0].astype(np.float64) + side.offsets[0] for side in (p, q)], axis=0)
    shown = k * float(np.var(products, ddof=1)) * protocol.unit_squared**2
    return math.sqrt(max(by_formula, shown))
