"""Sketches for the tests of the report: like released ones, but the same in every run."""

import numpy as np

import armslength as al
from armslength.sketches.noises import Released
from armslength.sketches.sketches import Sketches

CODES = 2000


def hospital_counts(count, regions, seed=7):
    """Diagnosis counts of hospitals that differ by their regions."""
    generator = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, CODES + 1)
    orders = [np.concatenate([generator.permutation(60), np.arange(60, CODES)]) for _ in range(regions)]
    rows = []
    for number in range(count):
        shares = frequencies[orders[number % regions]]
        rows.append(generator.multinomial(generator.integers(500, 2001), shares / shares.sum()))
    return np.array(rows)


def protocol_of(epsilon=1, sketch_dim=256, **fields):
    transform = al.SparseJL(
        input_dim=CODES, sketch_dim=sketch_dim, seed="trial-2026", construction="balanced"
    )
    return al.Protocol(transform, epsilon=epsilon, contribution=1, unit="one patient", **fields)


def sketches_of(counts, labels, protocol, seed=8):
    """The rows with noise of the protocol's scale from a seeded generator, and ids that tell their number."""
    generator = np.random.default_rng(seed)
    scale = protocol.law.scale
    shape = (len(counts), protocol.transform.sketch_dim)
    draws = (
        np.rint(generator.laplace(0, scale, shape))
        if protocol.noise == "laplace"
        else np.rint(generator.normal(0, scale, shape))
    )
    ids = b"".join(number.to_bytes(16, "big") for number in range(len(counts)))
    values = protocol.transform.apply(counts) + draws.astype(np.int64)
    return Sketches(values, labels, Released.of(ids, protocol, "rows"), [protocol])


def hospitals(count, regions=4, *, epsilon=1, sketch_dim=256, labels=None):
    """Hospitals in regions: near inside of a region, far across."""
    names = labels or [
        f"hospital {number + 1:02d} ({'ABCDEFGHIJKL'[number % regions]})" for number in range(count)
    ]
    return sketches_of(hospital_counts(count, regions), names, protocol_of(epsilon, sketch_dim))
