"""Which hospitals are alike? 24 hospitals in 4 hidden regions release one sketch each; nobody shares a diagnosis.

Generated data: 70,000 diagnosis codes with Zipf frequencies, 500 to 2000 patients a hospital, one code a patient; regions
differ in which codes are common. Each hospital releases its sketch under ε = 1; all pairs are then compared.
"""

import time

import numpy as np
from numpy.typing import NDArray

import armslength as al

HOSPITALS, REGIONS, CODES = 24, 4, 70_000


def hospital_counts(generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One row of diagnosis counts for each hospital, and its hidden region."""
    frequencies = 1 / np.arange(1, CODES + 1)
    # A region has its own order among the common codes: what is frequent here is rarer there.
    orders = [np.concatenate([generator.permutation(60), np.arange(60, CODES)]) for _ in range(REGIONS)]
    regions = np.arange(HOSPITALS) % REGIONS
    counts = np.zeros((HOSPITALS, CODES), dtype=np.int64)
    for number, region in enumerate(regions):
        patients = generator.integers(500, 2001)
        shares = frequencies[orders[region]]
        counts[number] = generator.multinomial(patients, shares / shares.sum())
    return counts, regions


def true_distances(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """True distances, for the comparison."""
    rows = counts.astype(float)
    return np.array([np.sqrt(((rows - row) ** 2).sum(axis=1)) for row in rows])


def main() -> None:
    """Releases, compares, and shows the closest and farthest pairs beside the truth."""
    generator = np.random.default_rng(2026)  # for the generated data; noise knows no seed
    counts, regions = hospital_counts(generator)
    labels = [f"hospital {number + 1:02d} (region {'ABCD'[region]})" for number, region in enumerate(regions)]

    # Before any data: hospitals of this size should be some dozens apart, and all 276 pairs are to hold together.
    plan = al.plan(
        CODES,
        epsilon=1,
        distance=(60, 600),
        contribution=1,
        unit="one patient",
        pairs=HOSPITALS * (HOSPITALS - 1) // 2,
        seed="trial-2026",
    )
    print(f"Will it work?\n\n{plan.summary}\n")

    protocol = plan.protocol
    print("What the hospitals agreed on\n")
    print(protocol.transform.card())
    print(f"  noise: {protocol.noise}, scale {protocol.law.scale:g}; unit of protection: {protocol.unit}\n")

    start = time.perf_counter()
    releases = [
        protocol.release(row[None, :], labels=[label], ledger=al.NO_LEDGER)
        for row, label in zip(counts, labels, strict=True)
    ]
    sketches = al.concat(releases)
    estimate = al.distances(sketches)
    lower, upper = estimate.interval(0.95)
    resolved = estimate.resolved(0.95, simultaneous=True)
    seconds = time.perf_counter() - start

    truth = true_distances(counts)
    left, right = np.triu_indices(HOSPITALS, 1)
    order = np.argsort(estimate.value[left, right])

    def show(title: str, chosen: NDArray[np.int64]) -> None:
        print(f"{title:44}estimate      95% interval    truth")
        for pair in chosen:
            i, j = left[pair], right[pair]
            mark = "" if resolved[i, j] else "   not resolved from 0"
            print(
                f"  {labels[i]} and {labels[j][9:]:15} {estimate.value[i, j]:7.1f}   "
                f"[{lower[i, j]:6.1f}, {upper[i, j]:6.1f}]  {truth[i, j]:7.1f}{mark}"
            )
        print()

    show("Closest pairs", order[:5])
    show("Farthest pairs", order[-5:])
    held = (lower[left, right] <= truth[left, right]) & (truth[left, right] <= upper[left, right])
    same = regions[left] == regions[right]
    found = np.array([regions[np.argsort(estimate.value[i])[1]] for i in range(HOSPITALS)])
    print(f"{held.mean():.0%} of {len(held)} intervals at 95% hold the truth")
    print(f"{resolved[left, right].mean():.0%} of the pairs are told apart from 0, all together at 95%")
    print(f"{np.mean(found == regions):.0%} of the hospitals have their nearest neighbor in their own region")
    print(
        f"median distance within a region {np.median(truth[left, right][same]):.0f}, across {np.median(truth[left, right][~same]):.0f}"
    )
    print(f"24 releases and {len(held)} comparisons in {seconds:.1f} s")


if __name__ == "__main__":
    main()
