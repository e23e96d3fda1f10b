"""Released rows with margins from counts that a test knows, without a table of events."""

import os
import secrets

import numpy as np
import pyarrow as pa

import armslength as al
from armslength.noise.draw import add_noise
from armslength.sketches.noises import Noises

TRANSFORM = al.SparseJL(sketch_dim=16, sparsity=1, seed="margins")
PREFIXES = {"prefix": ["A", "S", "T"], "group": ["Infections", "Injuries", "Injuries"]}
CHAPTERS = {"I10": "Circulatory", "S72": "Injuries", "A09": "Infections", "O80": "Births"}


def protocol(epsilon=1, margins=CHAPTERS, **known):
    """Five item groups: the chapters, in the order of their names, and (other)."""
    chosen = {"contribution": 3, "margin_contribution": 2, "margin_share": "0.4", "total_share": "0.1"}
    transform = al.SparseJL(sketch_dim=256, seed="margins")
    return al.Protocol(transform, epsilon=epsilon, margins=margins, **(chosen | known))


def noise(law, shape, rng):
    """Draws of a law of noise."""
    if law.name == "gaussian":
        return np.rint(law.scale * rng.standard_normal(shape)).astype(np.int64)
    stop = -np.expm1(-1 / law.scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def rows(used, labels, people, counts, rng):
    """A row for each label: so many people, so many of them with an item of each group, and items to match in the sketch."""
    k = used.transform.sketch_dim
    exact = np.column_stack([counts, people])
    items = np.column_stack([counts, np.zeros((len(labels), k - np.shape(counts)[1]), dtype=int)])
    values = items + noise(used.law, (len(labels), k), rng)
    totals = items.sum(axis=1) + noise(used.total_law, len(labels), rng)
    margins = exact + noise(used.margin_law, exact.shape, rng)
    noises = Noises.fresh(os.urandom(16 * len(labels)), used, "events")
    return al.Sketches(values, labels, noises, (used,), totals, margins)


def sampled(used, labels, people, shares, rng):
    """Rows of people who are samples of populations with these prevalences."""
    return rows(used, labels, people, rng.binomial(np.asarray(people)[:, None], shares), rng)


def margin_protocol(**fields):
    """A protocol with three item groups: Infections, Injuries and (other)."""
    known = {"epsilon": 1, "contribution": 5, "unit": "one patient", "one_group": True}
    margins = {"margins": item_groups(PREFIXES), "margin_share": "0.2", "margin_contribution": 2}
    return al.Protocol(TRANSFORM, **{**known, **margins, **fields})


def item_groups(columns):
    """Margins as a table."""
    return pa.table(columns)


def many_groups(count):
    """A table with so many item groups, of one prefix each, beside (other)."""
    names = [f"{number:05}" for number in range(count)]
    return item_groups({"prefix": names, "group": names})


def rows_with_margins(protocol, counts, labels=None):
    """Sketches of no events, with noise, and of these true margins, with noise."""
    values = np.zeros((len(counts), protocol.transform.sketch_dim), dtype=np.int64)
    margins = np.array(counts, dtype=np.int64)
    totals = None if protocol.total_law is None else np.zeros(len(counts), dtype=np.int64)
    for array, law in ((values, protocol.law), (totals, protocol.total_law), (margins, protocol.margin_law)):
        if array is not None:
            add_noise(array, law)
    noises = Noises.fresh(secrets.token_bytes(16 * len(counts)), protocol, "events")
    return al.Sketches(values, labels, noises, [protocol], totals, margins)
