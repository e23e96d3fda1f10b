"""Sketches for the tests of answers and of the report: like released ones, but the same in every run."""

import os

import numpy as np
import pyarrow as pa

import armslength as al
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.protocol.neighbors import VOTE
from armslength.sketches.noises import Noises
from armslength.sketches.sketches import Sketches
from flat_protocol import flat_protocol

CODES = 2000
CHAPTERS = {"I10": "Circulatory", "S72": "Injuries", "A09": "Infections", "O80": "Births"}
ITEM_GROUPS = {"A": "Infections", "S": "Injuries"}  # all others are "(other)"


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
    return flat_protocol(transform, epsilon=epsilon, unit="one patient", **fields)


def drawn(law, array, generator):
    """The numbers with seeded noise of this law."""
    draw = generator.laplace if law.name == "laplace" else generator.normal
    return array + np.rint(draw(0, law.scale, array.shape)).astype(np.int64)


def noise_ids(count, first=0):
    """Ids of noises that tell their number."""
    return b"".join(number.to_bytes(16, "big") for number in range(first, first + count))


def sketches_of(counts, labels, protocol, seed=8):
    """The rows with noise of the protocol's scale from a seeded generator."""
    values = drawn(protocol.law, protocol.transform.apply(counts), np.random.default_rng(seed))
    return Sketches(values, labels, Noises.fresh(noise_ids(len(counts)), protocol, "rows"), [protocol])


def hospitals(count, regions=4, *, epsilon=1, sketch_dim=256, labels=None):
    """Hospitals in regions: near inside of a region, far across."""
    names = labels or [
        f"hospital {number + 1:02d} ({'ABCDEFGHIJKL'[number % regions]})" for number in range(count)
    ]
    return sketches_of(hospital_counts(count, regions), names, protocol_of(epsilon, sketch_dim))


def votes(epsilon=4, margins=ITEM_GROUPS, sketch_dim=256, **fields):
    """A protocol with votes, and margins whose item groups are of prefixes."""
    known = {"contribution": "vote", "unit": "one patient", "total_share": "0.1"}
    if margins is not None:
        table = pa.table({"prefix": list(margins), "group": list(margins.values())})
        known |= {"margins": table, "margin_share": "0.3", "margin_contribution": 2}
    transform = al.SparseJL(sketch_dim=sketch_dim, seed="votes")
    return flat_protocol(transform, epsilon=epsilon, **known | fields)


def released(protocol, parties, labels=None, seed=9, first=0):
    """Votes of parties with seeded noise; a party is a list of people, a person a list of items."""
    names = labels or [f"ward {number + 1}" for number in range(len(parties))]
    events = [
        (f"{name} {number}", item, name)
        for name, people in zip(names, parties, strict=True)
        for number, items in enumerate(people)
        for item in items
    ]
    columns = dict(zip(("person", "item", "group"), map(list, zip(*events, strict=True)), strict=True))
    return released_table(protocol, pa.table(columns), names, seed, first)


def released_table(protocol, events, names, seed=9, first=0, margins=None):
    """Votes of a table with the columns person, item and group, with seeded noise and a fixed key."""
    groups = public_groups_of("group", names, None)
    columns = EventColumns("person", "item", "group", None)
    job = TableJob.of(events, protocol, columns, groups, None, item_groups=margins)
    sums = job.sums(bytes(32))
    generator = np.random.default_rng(seed)
    values = drawn(protocol.law, sums.values, generator)
    rest = drawn(protocol.total_law, sums.totals - sums.spread[:, 0], generator)
    spread = drawn(protocol.spread_law, sums.spread, generator)
    counts = None if sums.margins is None else drawn(protocol.margin_law, sums.margins, generator)
    noises = Noises.fresh(noise_ids(len(names), first), protocol, "events")
    return Sketches(values, names, noises, [protocol], rest + spread[:, 0], counts, spread)


def with_margins(prevalences, people=2000, labels=None, protocol=None, **known):
    """Parties with these prevalences of item groups: infections, injuries and others; each has ten items, of which a person has one."""
    generator = np.random.default_rng(9)
    parties = []
    for line in prevalences:
        size = people if isinstance(people, int) else people[len(parties)]
        has = generator.random((size, len(line))) < line
        codes = (10 * generator.random((size, len(line))) ** 2).astype(int)  # the first are more frequent
        letters = "ASB"
        parties.append(
            [
                [f"{letters[group]}{codes[person, group]}" for group in np.flatnonzero(has[person])] or ["Z0"]
                for person in range(size)
            ]
        )
    return released(protocol or votes(**known), parties, labels)


def counted(protocol, labels, people, counts, rng, missing=0):
    """Rows with these numbers of people and of people with each item group, of whom so many are missing at most; seeded noise.

    Everybody's vote is for one item, of which each item group has one.
    """
    counts, people = np.asarray(counts), np.asarray(people)
    groups = len(protocol.margins.names)
    counts = np.pad(counts, ((0, 0), (0, groups - counts.shape[1])))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    votes = np.zeros((len(labels), protocol.transform.sketch_dim))
    votes[:, :groups] = people[:, None] * shares
    missing = np.broadcast_to(missing, people.shape)
    squares = np.column_stack([people, np.linalg.norm(votes, axis=1)])
    exact = [
        np.rint(VOTE * array).astype(np.int64)
        for array in (votes, np.zeros(len(labels)), squares, np.column_stack([counts, 4 * missing]))
    ]
    laws = protocol.law, protocol.total_law, protocol.spread_law, protocol.margin_law
    values, rest, spread, margins = (drawn(law, array, rng) for law, array in zip(laws, exact, strict=True))
    noises = Noises.fresh(os.urandom(16 * len(labels)), protocol, "events")
    return Sketches(values, labels, noises, [protocol], rest + spread[:, 0], margins, spread)


def chapters(epsilon=1, margins=CHAPTERS, **fields):
    """A protocol with the item groups Births, Circulatory, Infections, Injuries and (other)."""
    known = {"margin_contribution": 2, "margin_share": "0.4", "total_share": "0.1"} | fields
    transform = al.SparseJL(sketch_dim=256, seed="chapters")
    return flat_protocol(transform, epsilon=epsilon, contribution="vote", margins=margins, **known)
