"""Released rows with margins from counts that a test knows, without a table of events."""

import os
import secrets
from typing import Any

import numpy as np
import pyarrow as pa

import armslength as al
from armslength.ingest.sums import Sums
from armslength.protocol.neighbors import VOTE
from armslength.releasing.release import noised
from armslength.sketches.noises import Noises
from flat_protocol import flat_protocol

TRANSFORM = al.SparseJL(sketch_dim=16, sparsity=1, seed="margins")
PREFIXES = {"prefix": ["A", "S", "T"], "group": ["Infections", "Injuries", "Injuries"]}
CHAPTERS = {"I10": "Circulatory", "S72": "Injuries", "A09": "Infections", "O80": "Births"}


def protocol(epsilon: Any = 1, margins: Any = CHAPTERS, **known: Any) -> al.Protocol:
    """Five item groups: the chapters, in the order of their names, and (other)."""
    chosen: dict[str, Any] = {
        "contribution": "vote",
        "margin_contribution": 2,
        "margin_share": "0.4",
        "total_share": "0.1",
    }
    transform = al.SparseJL(sketch_dim=256, seed="margins")
    return flat_protocol(transform, epsilon=epsilon, margins=margins, **chosen | known)


def noise(law: Any, shape: Any, rng: np.random.Generator) -> Any:
    """Draws of a law of Laplace noise."""
    stop = -np.expm1(-1 / law.scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def rows(
    used: al.Protocol, labels: Any, people: Any, counts: Any, rng: np.random.Generator, exact: Any = None
) -> al.Sketches:
    """A row for each label: so many people, so many of them with an item of each item group, and votes to match in the sketch.

    Everybody has the same number of items, on average; nobody has more item groups than count in full, unless exact margins are given.
    """
    counts, people = np.asarray(counts), np.asarray(people)
    groups, k = counts.shape[1], used.transform.sketch_dim
    items = np.maximum(counts.sum(axis=1), 1) / np.maximum(people, 1)
    values = np.zeros((len(labels), k), dtype=np.int64)
    values[:, :groups] = VOTE * counts / items[:, None]
    squares = (VOTE * people / items).astype(np.int64)
    values += noise(used.law, values.shape, rng)
    spread = np.column_stack([squares, (VOTE * _norms(people, counts, items)).astype(np.int64)])
    spread = (spread if used.releases_norm else spread[:, :1]) + noise(
        used.spread_law, (len(labels), 1 + used.releases_norm), rng
    )
    totals = VOTE * people - squares + noise(used.total_law, len(labels), rng) + spread[:, 0]
    if exact is None:
        exact = np.column_stack([VOTE * counts, np.zeros(len(labels), dtype=np.int64)])
    margins = exact + noise(used.margin_law, exact.shape, rng)
    noises = Noises.fresh(os.urandom(16 * len(labels)), used, "events")
    return al.Sketches(values, labels, noises, (used,), totals, margins, spread)


def _norms(people: Any, counts: Any, items: Any) -> Any:
    """F in votes, of people whose item groups are independent."""
    together = counts[:, :, None] * counts[:, None, :] / np.maximum(people, 1)[:, None, None]
    places = np.arange(counts.shape[1])
    together[:, places, places] = counts
    return np.sqrt((together**2).sum(axis=(1, 2))) / items**2


def sampled(
    used: al.Protocol, labels: Any, people: Any, shares: Any, rng: np.random.Generator
) -> al.Sketches:
    """Rows of people who are samples of populations with these prevalences."""
    return rows(used, labels, people, rng.binomial(np.asarray(people)[:, None], shares), rng)


def of_people(
    used: al.Protocol, labels: Any, parties: Any, rng: np.random.Generator, *, knows_undercount: bool = True
) -> al.Sketches:
    """Rows of people of whom is known which item groups they have, people x item groups: with more than G they count in part.

    Without the undercount, a release would say that nothing is missing.
    """
    assert used.margins is not None
    bound, groups = used.margin_contribution or 0, len(used.margins.names)
    has = [np.pad(people, ((0, 0), (0, groups - people.shape[1]))).astype(np.int64) for people in parties]
    of_each = [people.sum(axis=1) for people in has]
    weights = [np.where(each > bound, bound * VOTE // np.maximum(each, 1), VOTE) for each in of_each]
    exact = [
        np.append(weight @ people, 4 * knows_undercount * (VOTE - weight).sum())
        for people, weight in zip(has, weights, strict=True)
    ]
    return rows(
        used, labels, list(map(len, has)), [people.sum(axis=0) for people in has], rng, np.array(exact)
    )


def margin_protocol(**fields: Any) -> al.Protocol:
    """A protocol with three item groups: Infections, Injuries and (other)."""
    known: dict[str, Any] = {
        "epsilon": 1,
        "contribution": "vote",
        "unit": "one patient",
        "total_share": "0.1",
    }
    margins: dict[str, Any] = {
        "margins": item_groups(PREFIXES),
        "margin_share": "0.2",
        "margin_contribution": 2,
    }
    return flat_protocol(TRANSFORM, **{**known, **margins, **fields})


def item_groups(columns: dict[str, list[str]]) -> pa.Table:
    """Margins as a table."""
    return pa.table(columns)


def many_groups(count: int) -> pa.Table:
    """A table with so many item groups, of one prefix each, beside (other)."""
    names = [f"{number:05}" for number in range(count)]
    return item_groups({"prefix": names, "group": names})


def rows_with_margins(protocol: al.Protocol, counts: Any, labels: Any = None) -> al.Sketches:
    """Sketches of no events, with noise, and of these true margins in votes, with noise; as many people as the largest item group has."""
    values = np.zeros((len(counts), protocol.transform.sketch_dim), dtype=np.int64)
    margins = VOTE * np.array(counts, dtype=np.int64)
    people = margins[:, :-1].max(axis=1)
    sums = Sums(values, people, "events", margins=margins, spread=np.column_stack([people, people]) // 2)
    released = noised(protocol, sums)
    noises = Noises.fresh(secrets.token_bytes(16 * len(counts)), protocol, "events")
    numbers = released.totals, released.margins, released.spread
    return al.Sketches(released.values, labels, noises, [protocol], *numbers)
