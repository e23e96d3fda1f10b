"""Writes files of one kind as this version writes them. Run once for a version of a format, never again.

    python tests/golden/write_files.py sketches|protocol|ledger VERSION

Beside each sketch file lies what is in it, as JSON: a later version must read just that. The noise in them is of nobody's data.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

import armslength as al
from margin_rows import rows_with_margins

FOLDER = Path(__file__).parent / "files"
SEED = "armslength golden files"
X = np.array([[0, 3, 0, 5, 1, 0, 0, 2], [7, 0, 0, 0, 0, 0, 1, 1]])


def sketches():
    """Sketches of every kind that a file can hold, by name."""
    transform = al.SparseJL(input_dim=8, sketch_dim=4, sparsity=1, seed=SEED)
    exact = al.Protocol(transform, al.Counts(3, total_share="0.25"), epsilon="0.5", unit="one patient")
    noisy = al.Protocol(transform, al.Counts(3), epsilon="0.01", unit="one patient")
    normal = al.Protocol(transform, epsilon=1, delta="1e-6", noise="gaussian")
    names = ["north", "süd"]
    first = al.release(exact, X, labels=names, ledger=al.NO_LEDGER)
    second = al.release(noisy, X, labels=names, ledger=al.NO_LEDGER)
    third = al.release(normal, X, labels=names, ledger=al.NO_LEDGER)
    clear = al.sketch_in_clear(exact, X, labels=["query", "other"])
    margins = rows_with_margins(_totals_and_margins(transform), [[3, 5, 0, 7], [0, 2, 9, 9]], names)
    return {
        "release": first,
        "combined": al.concat([first - second, 0.5 * third, 3 * first, first - clear]),
        "sources": _of_every_source(
            al.Protocol(transform, al.Counts(3), epsilon="0.5", unit="one patient", items="int64")
        ),
        "margins": margins,
        "margins-scaled": al.concat([margins / 3, margins - margins[1]]),
        "votes": _votes(transform),
    }


def _votes(transform):
    """Events of people who vote."""
    protocol = al.Protocol(
        transform,
        al.Votes(total_share="0.1", spread_sample="0.5"),
        epsilon="0.5",
        unit="one patient",
        items="int64",
    )
    table = pa.table({"who": ["a", "a", "b"], "what": [1, 3, 3]})
    return al.release(protocol, table, person="who", item="what", label="west", ledger=al.NO_LEDGER)


def _totals_and_margins(transform):
    """A protocol of votes with totals and three item groups."""
    return al.Protocol(
        transform,
        al.Votes(
            total_share="0.25",
            item_groups=al.ItemGroups(
                pa.table({"prefix": ["A", "S", "T"], "group": ["Infections", "Injuries", "Injuries"]}),
                share="0.25",
                limit=2,
            ),
        ),
        epsilon="0.5",
        unit="one patient",
    )


def _of_every_source(protocol):
    """Events, rows and a stream under one protocol."""
    table = pa.table({"who": ["a", "a", "b"], "what": [1, 3, 3]})
    events = al.release(protocol, table, person="who", item="what", label="west", ledger=al.NO_LEDGER)
    rows = al.release(protocol, X, labels=["north", "süd"], ledger=al.NO_LEDGER)
    stream = al.stream(protocol, label="east", ledger=al.NO_LEDGER)
    stream.update([1, 3], 2)
    return al.concat([events, rows, stream.release()])


def content(made):
    """What is in a file, as JSON that says everything exactly."""
    return {
        "labels": list(made.labels),
        "values": [
            [number.hex() if isinstance(number, float) else number for number in row]
            for row in made.values.tolist()
        ],
        "totals": None if made.totals is None else [float(total).hex() for total in made.totals],
        **{
            name: [[float(n).hex() for n in row] for row in numbers]
            for name, numbers in (("margins", made.margins), ("spread", made.spread))
            if numbers is not None
        },
        "protocols": [protocol.fingerprint for protocol in made.protocols],
        "noise": [
            [
                [noise.hex(), protocol.fingerprint, float(factor).hex()]
                for noise, (protocol, factor) in zip(ids, made.noises.terms(row), strict=True)
            ]
            for row, ids in enumerate(_by_row(made.noises, made.noises.ids.tolist()))
        ],
        "sources": _by_row(made.noises, [made.noises.releases[number][1] for number in made.noises.numbers]),
        "in_clear": list(made.in_clear),
    }


def _by_row(noises, terms):
    return [terms[start:stop] for start, stop in pairwise(noises.starts.tolist())]


def protocols():
    """Protocols that together set every field of a document."""
    transforms = [
        al.SparseJL(input_dim=70_000, sketch_dim=256, sparsity=1, seed=SEED),
        al.SparseJL(input_dim=1000, sketch_dim=64, sparsity=4, seed=SEED, construction="graph"),
        al.SparseJL(input_dim=1000, sketch_dim=64, sparsity=4, seed=SEED, construction="balanced"),
        al.HadamardJL(input_dim=1000, sketch_dim=64, seed=SEED),
        al.FastJL(input_dim=1000, sketch_dim=16, seed=SEED, density=0.5),
        al.GaussianJL(input_dim=100, sketch_dim=16, seed=SEED),
        al.SignJL(input_dim=100, sketch_dim=16, seed=SEED, construction="sparse"),
        al.Identity(input_dim=10),
    ]
    plain = [al.Protocol(transform, epsilon="0.3") for transform in transforms]
    return [
        *plain,
        al.Protocol(transforms[0], al.Arrays(radius=2), epsilon=1, delta="1e-9", noise="gaussian"),
        al.Protocol(transforms[4], epsilon=2, delta="1e-5", noise_site="input"),
        al.Protocol(
            transforms[7],
            al.Arrays(resolution=0.25, on_grid=False, changed_entries=3, value_range=(-5, 100)),
            epsilon=1,
        ),
        al.Protocol(
            al.SparseJL(sketch_dim=64, sparsity=1, seed=SEED),
            al.Counts(20),
            epsilon=1,
            relation="replace",
            items="int64",
            unit="a device",
        ),
        al.Protocol(transforms[0], al.Counts(3), epsilon=1),
        al.Protocol(
            transforms[0],
            al.Votes(total_share="0.1", spread_sample="1/3"),
            epsilon=1,
            items="int64",
            unit="one patient",
        ),
        al.Protocol(
            al.SparseJL(input_dim=4, sketch_dim=4, sparsity=1, seed=SEED),
            al.Arrays(total_share="0.1"),
            epsilon=1,
            vocabulary=["a", "b", "c", "d"],
        ),
        *_with_margins(),
    ]


def _with_margins():
    """By a table, by prefixes and by columns of a record."""
    transform = al.SparseJL(sketch_dim=64, sparsity=1, seed=SEED)
    items, prefixes = {"É1": "Süd", "S06": "Injuries"}, {"prefix": ["S", "S0"], "group": ["Injuries", "Süd"]}
    record = {"age": [18, 40], "sex": ["F", "M"], "admitted": "month"}
    return [
        al.Protocol(
            transform,
            al.Votes("0.1", item_groups=al.ItemGroups(items, "0.3", limit=3)),
            epsilon=1,
            unit="one patient",
        ),
        al.Protocol(
            transform,
            al.Votes("0.1", item_groups=al.ItemGroups(prefixes, "0.3", limit=1)),
            epsilon=1,
            relation="replace",
        ),
        al.Protocol(
            transform,
            al.Votes(
                record=record, total_share="1/3", item_groups=al.ItemGroups(["age", "sex"], share="0.1")
            ),
            epsilon=1,
        ),
    ]


def write_sketches(version):
    for name, made in sketches().items():
        target = FOLDER / f"sketches-{version}-{name}.parquet"
        made.save(target)
        target.with_suffix(".json").write_text(json.dumps(content(made), indent=1) + "\n", encoding="utf-8")


def write_protocol(version):
    for number, protocol in enumerate(protocols()):
        protocol.save(FOLDER / f"protocol-{version}-{number:02d}.json")


def write_ledger(version):
    ledger = al.Ledger(FOLDER / f"ledger-{version}.sqlite", create=True)
    for label, protocol in (
        ("north", al.Protocol(al.Identity(input_dim=4), epsilon="0.5", unit="one patient")),
        (
            "south",
            al.Protocol(
                al.Identity(input_dim=4),
                al.Arrays(radius=2),
                epsilon=1,
                delta="1e-7",
                noise="gaussian",
                unit="one patient",
            ),
        ),
    ):
        where = {"population": "visits", "period": "2026-11", "ledger": ledger}
        al.release(protocol, np.zeros((1, 4), dtype=int), labels=[label], **where)
    ledger.set_budget("visits", 5, delta="1e-6", unit="one patient")


if __name__ == "__main__":
    kind, version = sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    if any(FOLDER.glob(f"{kind}-{version}[-.]*")):
        sys.exit(f"{kind} {version} is frozen; nothing written")
    {"sketches": write_sketches, "protocol": write_protocol, "ledger": write_ledger}[kind](version)
