"""The others: what they protect, and the exact variance of their estimates of a squared distance.

The modules beside this one run the mechanisms. docs/comparison.md says when each is the right choice instead of ours.
Noise is continuous here, as in their papers.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar


class Comparator(ABC):
    """Another way to a squared distance D = ‖x − y‖² of two vectors."""

    name: ClassVar[str]
    unit: ClassVar[str]

    @abstractmethod
    def variance(self, squared_distance: float) -> float:
        """The variance of its unbiased estimate at D, in data units."""


@dataclass(frozen=True)
class RandomizedResponse(Comparator):
    """Each bit of a binary vector is flipped with probability 1/(1 + e^ε); D is the Hamming distance.

    With ρ = tanh(ε/2), a pair of bits agrees after the flips with expectation (1 ± ρ²)/2.
    Reference: Warner 1965; errata, "also settled".
    """

    name: ClassVar[str] = "randomized response"
    unit: ClassVar[str] = "one bit of the vector, at each of the two parties; nobody needs to be trusted"

    input_dim: int
    epsilon: float

    def variance(self, squared_distance: float) -> float:  # noqa: ARG002  # the same at every distance
        """d(1 − ρ⁴)/(4ρ⁴), whatever D is."""
        kept = math.tanh(self.epsilon / 2) ** 2
        # 1 − ρ⁴ = (1 + ρ²)/cosh²(ε/2), which does not round to 0
        return self.input_dim * (1 + kept) / (4 * math.cosh(self.epsilon / 2) ** 2 * kept**2)


@dataclass(frozen=True)
class NoisyHistogram(Comparator):
    """Laplace noise of scale ρ/ε on every coordinate, no projection."""

    name: ClassVar[str] = "noisy histogram"
    unit: ClassVar[str] = "whatever moves a vector by at most ρ in l1 norm, such as one person; at each party"

    input_dim: int
    epsilon: float
    radius: float = 1.0

    def variance(self, squared_distance: float) -> float:
        """16b²D + 56db⁴ with b = ρ/ε."""
        b = self.radius / self.epsilon
        return 16 * b**2 * squared_distance + 56 * self.input_dim * b**4


@dataclass(frozen=True)
class Kenthapadi(Comparator):
    """Normal noise of standard deviation σ on a projection with independent N(0, 1/k) entries.

    Private only if σ belongs to the sensitivity of the very matrix that is used (paper, note on σ; erratum 2).
    """

    name: ClassVar[str] = "Kenthapadi et al."
    unit: ClassVar[str] = (
        "whatever moves a vector by at most ρ in l1 norm, if σ fits the matrix at hand; at each party"
    )

    sketch_dim: int
    sigma: float

    def variance(self, squared_distance: float) -> float:
        """(2/k)D² + 8σ²D + 8kσ⁴."""
        d, k, s2 = squared_distance, self.sketch_dim, self.sigma**2
        return 2 / k * d**2 + 8 * s2 * d + 8 * k * s2**2


@dataclass(frozen=True)
class Central(Comparator):
    """One curator holds both vectors and adds Laplace noise of scale ρ/ε to the exact distance.

    One person moves ‖x − y‖₂ by at most ρ. The square of the noisy distance, less 2b², is unbiased for D.
    """

    name: ClassVar[str] = "central curator"
    unit: ClassVar[str] = (
        "whatever moves either vector by at most ρ, such as one person; every pair spends ε again"
    )

    epsilon: float
    radius: float = 1.0

    def variance(self, squared_distance: float) -> float:
        """8b²D + 20b⁴ with b = ρ/ε."""
        b = self.radius / self.epsilon
        return 8 * b**2 * squared_distance + 20 * b**4


@dataclass(frozen=True)
class SecretProjection(Comparator):
    """One curator publishes r secret normal projections of all vectors: M·X + w·G, M and G standard normal.

    Guarantee: (ε, δ)-DP for X' = X + c·vᵀ with ‖c‖₂, ‖v‖₂ ≤ 1 (one coordinate of all parties, or one party's vector, by a
    step of norm at most 1), for every n. The width is ours, and its proof is in docs/comparison.md.
    Reference: Blocki, Blum, Datta & Sheffet 2012.

    Args:
        rows: r, how many projections are published; they are the sketch.
        epsilon: ε.
        delta: δ.
        radius: How long a step is protected.
    """

    name: ClassVar[str] = "secret projection (Blocki et al.)"
    unit: ClassVar[str] = (
        "a change of one coordinate, or of one vector, by norm at most ρ, while one curator keeps the matrix secret"
    )

    rows: int
    epsilon: float
    delta: float
    radius: float = 1.0

    @property
    def width(self) -> float:
        """w: β = min(1, 2ε/(K + √(K² + 2rε))) with K = √(r·ln(1/δ)) + ln(1/δ), and w = ρ(1 + √(1 + β))/β."""
        tail = math.log(1 / self.delta)
        reach = math.sqrt(self.rows * tail) + tail
        beta = min(1.0, 2 * self.epsilon / (reach + math.sqrt(reach**2 + 2 * self.rows * self.epsilon)))
        return self.radius * (1 + math.sqrt(1 + beta)) / beta

    def variance(self, squared_distance: float) -> float:
        """2(D + 2w²)²/r: the width is a distance that every pair gets on top."""
        return 2 * (squared_distance + 2 * self.width**2) ** 2 / self.rows


@dataclass(frozen=True)
class CroppedSecondMoment(Comparator):
    """One bit for each coordinate of x − y, which one curator sees: the cropped second moment Σmin(zᵢ², τ).

    A bit is 1 with probability ½ − t/2 + t·min(zᵢ², τ)/τ, t = tanh(ε/2): between 1/(1 + e^ε) and e^ε/(1 + e^ε) whatever
    zᵢ is, which is ε-DP for one coordinate, 2ε for a replaced one. A reconstruction: the printed mechanism works on a stream.
    Reference: Mir, Muthukrishnan, Nikolov & Wright 2010 (paper, related work).
    """

    name: ClassVar[str] = "cropped second moment (Mir et al.)"
    unit: ClassVar[str] = "everything about one coordinate of x − y, which one curator must see"

    input_dim: int
    threshold: float
    epsilon: float

    def variance(self, squared_distance: float) -> float:
        """At most τ²d/(4t²); the exact one needs every coordinate, see `exact_variance`."""
        del squared_distance
        return self.threshold**2 * self.input_dim / (4 * math.tanh(self.epsilon / 2) ** 2)

    def exact_variance(self, shares: list[float]) -> float:
        """τ²Σp(1−p)/t², p = ½ − t/2 + t·share, for shares min(zᵢ², τ)/τ of all coordinates."""
        t = math.tanh(self.epsilon / 2)
        chances = (0.5 - t / 2 + t * share for share in shares)
        return self.threshold**2 * math.fsum(p * (1 - p) for p in chances) / t**2


def hamming_lower_bound(input_dim: int, epsilon: float) -> float:
    """No pair of ε-DP releases of two uniform binary vectors has a smaller mean squared error: d/(4cosh⁴(ε/2)).

    An explicit form of the bound that the paper cites (McGregor et al. 2010), for one bit as the unit and δ = 0; the proof is in
    docs/comparison.md.
    """
    return input_dim / (4 * math.cosh(epsilon / 2) ** 4)


def count_lower_bound(epsilon: float) -> float:
    """No ε-DP estimate of a count has a smaller worst mean absolute error: max over m of (m/2)/(1 + e^(mε)), near 0.139/ε.

    Two databases that are m apart; the bound that the paper cites (Hardt & Talwar 2010) says Ω(1/ε).
    """
    best = (
        1.2785 / epsilon
    )  # where m/(1 + e^(mε)) is largest among all numbers; it rises before and falls after
    return max(
        m / 2 / (1 + math.exp(min(m * epsilon, 700.0))) for m in (max(1, math.floor(best)), math.ceil(best))
    )
