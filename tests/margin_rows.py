"""Released rows with margins whose true numbers a test chooses."""

import secrets

import numpy as np
import pyarrow as pa

import armslength as al
from armslength.noise.draw import add_noise
from armslength.sketches.noises import Noises

TRANSFORM = al.SparseJL(sketch_dim=16, sparsity=1, seed="margins")
PREFIXES = {"prefix": ["A", "S", "T"], "group": ["Infections", "Injuries", "Injuries"]}


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
