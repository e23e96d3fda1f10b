"""What several releases about the same people cost together: exact rationals, proved bounds, no float decides.

Three proofs are tried, and the smallest ε counts. Each holds by itself:

    sum        (Σεᵢ, Σδᵢ), whatever the releases are
    gaussian   all Gaussian noise as one exact curve at μ² = Σμᵢ², and all pure ε added to it
    renyi      divergences of one order added up, which is zCDP or better, and turned into (ε, δ)

Rounded normal noise on integers is a function of normal noise on them, so its releases are post-processing of the textbook
mechanism, and so is what several of them say together.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from armslength.privacy.gaussian_curve import gaussian_epsilon
from armslength.privacy.renyi import renyi_epsilon

_MU_BITS = 80
_STEPS = 12


@dataclass(frozen=True)
class Loss:
    """What one release costs.

    Attributes:
        epsilon: Its whole ε, at its own δ.
        delta: Its own δ; 0 for a pure release.
        pure: The part of ε that is spent without a δ: all of it for a pure release, that of totals beside Gaussian noise.
        mu_squared: (Δ₂/σ)² of its Gaussian noise; 0 for a pure release.
    """

    epsilon: Fraction
    delta: Fraction
    pure: Fraction
    mu_squared: Fraction


@dataclass(frozen=True)
class Guarantee:
    """A proved (ε, δ) of several releases together.

    Attributes:
        epsilon: ε.
        delta: δ, at most the one that was asked for.
        method: "sum", "gaussian" or "renyi": how it was proved.
    """

    epsilon: Fraction
    delta: Fraction
    method: str


def pure_loss(epsilon: Fraction) -> Loss:
    """The loss of an ε-DP release."""
    return Loss(epsilon, Fraction(0), epsilon, Fraction(0))


def gaussian_loss(
    epsilon: Fraction, delta: Fraction, sensitivity_squared: int, sigma: Fraction, totals_epsilon: Fraction
) -> Loss:
    """The loss of Gaussian noise, with totals beside it that are released under pure DP.

    Args:
        epsilon: The whole ε.
        delta: δ of the Gaussian part at ε − totals_epsilon.
        sensitivity_squared: Δ₂², in integer units.
        sigma: σ, in integer units.
        totals_epsilon: The part of ε that totals spend.
    """
    return Loss(epsilon, delta, totals_epsilon, _rounded_up(Fraction(sensitivity_squared) / sigma**2))


def compose(losses: Iterable[Loss], delta: Fraction) -> Guarantee | None:
    """The smallest proved ε of all releases together at a δ of at most `delta`; None if there is no proof at this δ.

    Guarantee: releases with these losses, each chosen in view of the ones before, are together (ε, δ)-DP. The order does not
    matter, and one more release never makes ε smaller.
    """
    every = list(losses)
    proofs = []
    own_delta = sum((loss.delta for loss in every), Fraction(0))
    if own_delta <= delta:
        proofs.append(Guarantee(sum((loss.epsilon for loss in every), Fraction(0)), own_delta, "sum"))
    if delta > 0:
        pure = Counter(loss.pure for loss in every if loss.pure)
        mu_squared = sum((loss.mu_squared for loss in every), Fraction(0))
        exact = gaussian_epsilon(mu_squared, delta) if mu_squared else None
        if exact is not None:
            added = sum((epsilon * count for epsilon, count in pure.items()), Fraction(0))
            proofs.append(Guarantee(added + exact, delta, "gaussian"))
        if pure or mu_squared:
            proofs.append(Guarantee(renyi_epsilon(pure, mu_squared, delta), delta, "renyi"))
    return min(proofs, key=lambda proof: (proof.epsilon, proof.delta), default=None)


def largest_pure_epsilon(losses: Iterable[Loss], epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ε of a further pure release that keeps all within (ε, δ), to about 1e-4, rounded down; 0 if none does."""
    every = list(losses)
    so_far = compose(every, delta)
    if so_far is None or so_far.epsilon >= epsilon:
        return Fraction(0)
    fits, too_much = epsilon - so_far.epsilon, epsilon  # whatever the proof, a pure ε can be added to it
    if not _within([*every, pure_loss(fits)], epsilon, delta):
        fits = Fraction(0)  # by a last bit
    if fits == too_much:
        return fits
    for _ in range(_STEPS):
        middle = (fits + too_much) / 2
        if _within([*every, pure_loss(middle)], epsilon, delta):
            fits = middle
        else:
            too_much = middle
    return fits


def _within(losses: list[Loss], epsilon: Fraction, delta: Fraction) -> bool:
    together = compose(losses, delta)
    return together is not None and together.epsilon <= epsilon


def _rounded_up(number: Fraction) -> Fraction:
    """The number to 80 bits, rounded up: sums of many exact quotients would grow without end."""
    shift = _MU_BITS - (number.numerator.bit_length() - number.denominator.bit_length())
    scaled = number * Fraction(2) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift
