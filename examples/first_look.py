"""A first look: a public transform, its card, exact noise, and that lengths are preserved."""

import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.laws.discrete_laplace import DiscreteLaplace
from armslength.noise.draw import draw
from armslength.privacy.calibration import laplace_scale

DIMENSIONS = 70_000
PATIENTS = 1_000
SEEDS = 400


def diagnosis_counts(generator: np.random.Generator) -> NDArray[np.int64]:
    """How often each of 70,000 codes occurs among the patients of one hospital, Zipf-like."""
    frequencies = 1 / np.arange(1, DIMENSIONS + 1)
    return generator.multinomial(10 * PATIENTS, frequencies / frequencies.sum())


def main() -> None:
    """Prints a card, some noise, and E‖Sz‖² beside ‖z‖²."""
    generator = np.random.default_rng(2026)  # for the generated data; noise knows no seed
    north, south = diagnosis_counts(generator), diagnosis_counts(generator)
    difference = north - south
    truth = float((difference.astype(float) ** 2).sum())

    transform = al.SparseJL(input_dim=DIMENSIONS, sketch_dim=256, seed="trial-2026")
    print("The public transform that all parties share\n")
    print(transform.card())

    law = DiscreteLaplace(laplace_scale(transform.l1_sensitivity, epsilon=1))
    noise = draw(law, (1_000_000,))
    print(f"\nExact noise for epsilon = 1: discrete Laplace of scale {law.scale:g}, in integer units")
    print(f"  first ten of a million draws: {noise[:10].tolist()}")
    print(f"  variance: {np.mean(noise.astype(float) ** 2):.4f} measured, {law.second_moment:.4f} exact")
    for n in range(4):
        print(f"  P(noise = {n}): {np.mean(noise == n):.4f} measured, {law.pmf(n):.4f} exact")

    norms = np.array(
        [
            (al.SparseJL(DIMENSIONS, 256, seed=f"seed {number}").apply(difference[None, :]) ** 2).sum()
            for number in range(SEEDS)
        ],
        dtype=float,
    )
    l4_fourth = float((difference.astype(float) ** 4).sum())
    predicted = transform.norm_variance(truth, l4_fourth) ** 0.5
    print(f"\nLengths are preserved: two hospitals of {PATIENTS} patients, {SEEDS} seeds")
    print(f"  true squared distance ‖z‖²:        {truth:12,.0f}")
    print(f"  mean of ‖Sz‖² over the seeds:      {norms.mean():12,.0f}")
    print(f"  standard deviation, measured:      {norms.std():12,.0f}")
    print(f"  standard deviation, by formula:    {predicted:12,.0f}")


if __name__ == "__main__":
    main()
