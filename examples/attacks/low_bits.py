"""Floating point reveals secrets: low bits break ordinary float noise, but not integers with exact noise.

    python examples/attacks/low_bits.py

The attacker knows the code, the public matrix, ε, and all of the data except one entry, which is 0 or 1. The attack uses one released number
(Mironov 2012, "On significance of the least significant bits for differential privacy"). A float sampler makes its noise from one of 2^53 uniform
numbers, so only some floats are possible. For each of the two entries, the attacker asks whether the observed number is possible at all. If
it is possible for only one, the attacker knows the entry, whatever ε promised. The proof of ε is about real numbers, and the program had none.

`broken_release` is what most people would write. It is here to be broken: never use it. armslength releases integers. Every integer is possible
under both entries, with exactly the probabilities of the law, so low bits reveal nothing beyond ε.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

import armslength as al

SPARSITY = 3
SCALE = 1 / math.sqrt(SPARSITY)  # c: how far the entry moves each of three coordinates of the float sketch
EPSILON = 1
NOISE = SPARSITY * SCALE / EPSILON  # Δ₁/ε
_STEPS = 4  # neighbors of a uniform number to try: more than rounding can hide
CANNOT_TELL = -1


def broken_release(entry: int, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """BROKEN, only for the attack: one float coordinate c·entry plus float Laplace noise, released `count` times."""
    return entry * SCALE + generator.laplace(0.0, NOISE, count)


def our_release(entry: int, count: int) -> NDArray[np.int64]:
    """A release by armslength: the three coordinates that the entry moves by 1 in integer units, `count` x 3."""
    protocol = al.Protocol(
        al.SparseJL(input_dim=1, sketch_dim=SPARSITY, sparsity=SPARSITY, seed="low-bits"),
        epsilon=EPSILON,
        noise="laplace",
    )
    signs = protocol.transform.apply(np.ones((1, 1), dtype=np.int64))[0]
    released: NDArray[np.int64] = (
        al.release(protocol, np.full((count, 1), entry), ledger=al.NO_LEDGER).values * signs
    )
    return released


def in_data_units(integers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Our integers in data units: c times each."""
    return integers.astype(np.float64) * SCALE


# Not cached: a cache would survive changes of this file.
@numba.njit(nogil=True)
def _comes_out(seen: float, start: float, noise: float) -> bool:
    """Whether `start` plus noise from some uniform number gives exactly the observed float.

    NumPy's sampler takes U = i/2^53 and returns b·log(U + U) if U < ½, and −b·log(2 − U − U) otherwise.
    """
    wanted = seen - start
    share = math.exp(-abs(wanted) / noise)  # 2U, or 2 − 2U
    nearest = math.floor(share * 2.0**52 + 0.5)
    for step in range(-_STEPS, _STEPS + 1):
        i = nearest + step
        if 0 < i <= 2.0**52:
            small = i * 2.0**-53
            large = 1.0 - small
            made = noise * math.log(small + small) if wanted < 0 else -noise * math.log(2.0 - large - large)
            if start + made == seen:
                return True
    return False


@numba.njit(nogil=True)
def _guesses(seen: NDArray[np.float64], one: float, noise: float, guesses: NDArray[np.int64]) -> None:
    for i in range(len(seen)):
        zero_fits, one_fits = _comes_out(seen[i], 0.0, noise), _comes_out(seen[i], one, noise)
        if zero_fits and not one_fits:
            guesses[i] = 0
        elif one_fits and not zero_fits:
            guesses[i] = 1


def attack(seen: NDArray[np.float64]) -> NDArray[np.int64]:
    """The entry that each released number reveals, or −1 if both entries or none are possible."""
    guesses = np.full(len(seen), CANNOT_TELL)
    _guesses(seen, SCALE, NOISE, guesses)
    return guesses


def likely_guess(seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best possible guess: the entry under which these three integers are more likely."""
    return np.where(np.abs(seen).sum(axis=1) > np.abs(seen - 1).sum(axis=1), 1, 0)


def allowed_accuracy(epsilon: float) -> float:
    """The largest share of right guesses about a fair coin under ε-DP: e^ε/(1 + e^ε)."""
    return 1 / (1 + math.exp(-epsilon))


def main() -> None:
    """Attack both releases and count."""
    count = 200_000
    generator = np.random.default_rng(2026)  # for the broken release; exact noise has no seed
    print(
        f"One entry is 0 or 1. ε = {EPSILON} allows at most {allowed_accuracy(EPSILON):.1%} right guesses.\n"
    )
    broken = [attack(broken_release(entry, count, generator)) for entry in (0, 1)]
    for entry, guesses in enumerate(broken):
        told, wrong = (guesses != CANNOT_TELL).mean(), (guesses == 1 - entry).sum()
        print(
            f"  float noise, entry {entry}: {told:6.1%} of {count:,} releases reveal it; {wrong} of these guesses are wrong"
        )
    ours = [our_release(entry, count) for entry in (0, 1)]
    both = np.intersect1d(ours[0], ours[1])
    for entry, seen in enumerate(ours):
        guesses = attack(in_data_units(seen[:, 0]))
        told = guesses != CANNOT_TELL
        right = f"{(guesses[told] == entry).mean():.1%} of them right" if told.any() else "no guesses"
        print(f"  armslength,  entry {entry}: the same attack guesses in {told.mean():.1%}; {right}")
    right = np.mean([(likely_guess(seen) == entry).mean() for entry, seen in enumerate(ours)])
    print(
        f"\n  armslength releases integers, and every integer is possible under both entries: {len(both)} occurred under both, from {both.min()} to {both.max()}."
    )
    print(
        f"  The best possible guess from all three coordinates is right in {right:.1%}, no more than ε allows."
    )


if __name__ == "__main__":
    main()
