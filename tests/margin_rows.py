"""Released rows with margins from counts that a test knows, without a table of events."""

import os

import numpy as np

import armslength as al
from armslength.sketches.noises import Noises

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
