"""Sketches for the tests of the report: like released ones, but the same in every run."""

import numpy as np

import armslength as al
from armslength.sketches.noises import Noises
from armslength.sketches.sketches import Sketches
from margin_rows import PREFIXES, item_groups

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
    return Sketches(values, labels, Noises.fresh(ids, protocol, "rows"), [protocol])


def hospitals(count, regions=4, *, epsilon=1, sketch_dim=256, labels=None):
    """Hospitals in regions: near inside of a region, far across."""
    names = labels or [
        f"hospital {number + 1:02d} ({'ABCDEFGHIJKL'[number % regions]})" for number in range(count)
    ]
    return sketches_of(hospital_counts(count, regions), names, protocol_of(epsilon, sketch_dim))


def with_margins(prevalences, people=5000, labels=None):
    """Parties with these prevalences of item groups, and a mix of items for each different line of them, with seeded noise."""
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=256, sparsity=1, seed="margins"),
        epsilon=4,
        contribution=5,
        unit="one patient",
        one_group=True,
        total_share="0.1",
        margins=item_groups(PREFIXES),
        margin_share="0.2",
        margin_contribution=2,
    )
    generator = np.random.default_rng(9)
    mixes = {line: generator.dirichlet(np.full(256, 0.3)) for line in dict.fromkeys(map(tuple, prevalences))}
    values = np.array([generator.multinomial(3 * people, mixes[tuple(line)]) for line in prevalences])
    counts = np.column_stack([generator.binomial(people, prevalences), np.full(len(values), people)])
    laws = protocol.law, protocol.total_law, protocol.margin_law
    drawn = [
        np.rint(array + generator.laplace(0, law.scale, array.shape)).astype(np.int64)
        for array, law in zip((values, values.sum(axis=1), counts), laws, strict=True)
    ]
    ids = b"".join(number.to_bytes(16, "big") for number in range(len(values)))
    names = labels or [f"ward {number + 1}" for number in range(len(values))]
    return Sketches(drawn[0], names, Noises.fresh(ids, protocol, "events"), [protocol], *drawn[1:])
