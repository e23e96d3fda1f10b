"""Releases with a fault, so that the audit can show that it would see one. Nothing in the package makes them."""

import copy
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.laws import Law
from armslength.protocol.neighbors import VOTE
from audit.membership_cases import Case

Releaser = Callable[[Case, NDArray[np.generic]], al.Sketches]

WEAK = 0.8  # of the scale: the fault that must be seen


def release(case: Case, X: NDArray[np.generic]) -> al.Sketches:
    """The release that everybody makes."""
    return al.release(case.protocol, X, items=case.items, ledger=al.NO_LEDGER, threads=1)


def release_weakly(case: Case, X: NDArray[np.generic]) -> al.Sketches:
    """A release with a fault: the same, but all noise has 0.8 of its scale."""
    return al.release(weakened(case.protocol), X, items=case.items, ledger=al.NO_LEDGER, threads=1)


def weakened(protocol: al.Protocol, factor: float = WEAK) -> al.Protocol:
    """The protocol with less noise than it promises; no argument of the package makes one."""
    weak = copy.copy(protocol)
    weak.__dict__["law"] = _scaled(protocol.law, factor)
    for name in ("total_law", "spread_law", "margin_law"):
        law = getattr(protocol, name)
        if law is not None:
            weak.__dict__[name] = _scaled(law, factor)
    return weak


def without_the_undercount(protocol: al.Protocol) -> al.Protocol:
    """The protocol with noise on margins that covers the item groups of a person and not what is left out of them."""
    less = copy.copy(protocol)
    if protocol.margin_law is None or protocol.margin_sensitivity is None:
        raise TypeError("protocol must have margins, got none")
    covered = VOTE * (protocol.margin_contribution or 0) / protocol.margin_sensitivity
    less.__dict__["margin_law"] = _scaled(protocol.margin_law, covered)
    return less


def _scaled(law: Law, factor: float) -> Law:
    return type(law)(factor * law.scale)


def release_with_minus_zero(case: Case, X: NDArray[np.generic]) -> al.Sketches:
    """A release with a fault: a sign and a geometric magnitude, where "minus zero" is not drawn again, so that 0 is too likely."""
    clear = al.sketch_in_clear(case.protocol, X)
    generator = np.random.default_rng()
    signs = generator.choice([-1, 1], clear.values.shape)
    magnitudes = generator.geometric(-np.expm1(-1 / case.protocol.law.scale), clear.values.shape) - 1
    return al.Sketches(clear.values + signs * magnitudes, None, clear.noises, clear.protocols)


def release_for_a_smaller_radius(case: Case, X: NDArray[np.generic]) -> al.Sketches:
    """A release with a fault: its noise is for a radius that is smaller by one."""
    smaller = al.Protocol(
        case.protocol.transform, al.Arrays(radius=case.protocol.radius - 1), epsilon=case.protocol.epsilon
    )
    return al.release(smaller, X, ledger=al.NO_LEDGER, threads=1)


# For each fault, the case in which it is tried.
FAULTS: dict[str, tuple[str, Releaser]] = {
    "zero drawn twice as often": ("Identity, Laplace", release_with_minus_zero),
    "a radius too small by one": ("Identity, Laplace, radius 3", release_for_a_smaller_radius),
}
