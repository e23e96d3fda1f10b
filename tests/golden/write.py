"""Writes the golden vectors of version 1. Run once for a version, never again: `python tests/golden/write.py`.

The vectors freeze what every party computes. A change of any of them breaks every sketch in the world.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

import armslength as al
from armslength.randomness.hashing import hash_coefficients, hash_value, item_words
from armslength.randomness.sampling import uniform_permutation, uniform_sample
from armslength.randomness.seeds import Stream

FOLDER = Path(__file__).parent / "v1"
SEED = "armslength golden vectors"
STRINGS = ["", "a", "A", "0042", "café", "北京", "🜁", "E11.9"]

TRANSFORMS = [
    al.SparseJL(input_dim=1000, sketch_dim=64, sparsity=1, seed=SEED),
    al.SparseJL(input_dim=1000, sketch_dim=64, sparsity=8, seed=SEED),
    al.SparseJL(input_dim=1000, sketch_dim=60, sparsity=4, seed=SEED, construction="block", independence=32),
    al.SparseJL(input_dim=1000, sketch_dim=64, sparsity=7, seed=SEED, construction="graph"),
    al.SparseJL(input_dim=1000, sketch_dim=64, sparsity=4, seed=SEED, construction="balanced"),
    al.HadamardJL(input_dim=1000, sketch_dim=64, seed=SEED),
    al.FastJL(input_dim=1000, sketch_dim=64, seed=SEED),
    al.FastJL(input_dim=1000, sketch_dim=16, seed=SEED, density=0.5),
    al.GaussianJL(input_dim=1000, sketch_dim=64, seed=SEED),
    al.SignJL(input_dim=1000, sketch_dim=64, seed=SEED),
    al.SignJL(input_dim=1000, sketch_dim=64, seed=SEED, construction="sparse"),
    al.Identity(input_dim=10),
]


def digest(matrix):
    """SHA-256 of the entries as 8-byte little-endian integers, column after column."""
    array = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
    return hashlib.sha256(array.T.astype("<i8", order="C").tobytes()).hexdigest()


def column(transform, number):
    array = transform.columns([number])
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array)[:, 0].tolist()


def transform_vectors():
    return [
        {
            "name": transform.name,
            "parameters": json.loads(json.dumps(dict(transform.parameters()))),
            "sha256": digest(transform.matrix()),
            "column 7": column(transform, 7),
            "l1_sensitivity": transform.l1_sensitivity,
            "l2_sensitivity_squared": transform.l2_sensitivity_squared,
            "scale_squared": str(transform.scale_squared),
        }
        for transform in TRANSFORMS
    ]


def open_vocabulary_vectors():
    transform = al.SparseJL(sketch_dim=64, sparsity=4, seed=SEED)
    ids = [0, 1, -1, 2**63 - 1, -(2**63)]
    return {
        "parameters": dict(transform.parameters()),
        "strings": STRINGS,
        "strings sha256": digest(transform.columns(STRINGS)),
        "ids": ids,
        "ids sha256": digest(transform.columns(ids)),
        "graph strings sha256": digest(
            al.SparseJL(sketch_dim=64, sparsity=4, seed=SEED, construction="graph").columns(STRINGS)
        ),
    }


def block_vectors():
    coefficients = hash_coefficients(SEED, "golden", 1, 16)[0]
    high, low = hash_value(coefficients, np.uint64(0), np.uint64(12345))
    return {
        "words 0-7": [str(word) for word in Stream(SEED, "golden").words(0, 8).tolist()],
        "words 2^40": [str(word) for word in Stream(SEED, "golden").words(2**40, 2).tolist()],
        "items": {
            item: str((int(high) << 64) | int(low))
            for item, (high, low) in zip(STRINGS, item_words(STRINGS), strict=True)
        },
        "hash of 12345": str(int(high) << 64 | int(low)),
        "permutation of 20": uniform_permutation(SEED, "golden", 20).tolist(),
        "sample of 5 out of 1024": uniform_sample(SEED, "golden", 5, 1024).tolist(),
    }


def vectors():
    """All golden files by name."""
    return {
        "blocks.json": block_vectors(),
        "open_vocabulary.json": open_vocabulary_vectors(),
        "transforms.json": transform_vectors(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in vectors().items():
        target = FOLDER / name
        if target.exists():
            print(f"{target.name} is frozen; nothing written")
            continue
        target.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"wrote {target.name}")
