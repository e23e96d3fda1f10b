"""A party that lies about its noise or sends garbage: it endangers only its own people, and what it can spoil is limited.

    python examples/attacks/lying_party.py

The liar can send any integers under any protocol. It learns nothing more from the others' sketches, which were released before and do not
depend on it. It cannot change a distance between two others, which is computed from their rows alone. The liar's own distances mean nothing,
and it can mislead answers over all rows together (clusters, outliers).

`armslength verify` flags rows that are implausible under the declared noise, with at most one false alarm in 10^9 calls. It cannot detect a
party that adds a little less noise than declared, or that adds true noise to invented numbers. Nobody can see that from outside.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import armslength as al

LABELS = ["north", "south", "west", "liar"]
WIDTH, LIAR = 256, 3


def honest_release() -> al.Sketches:
    """Four parties with counts of 2,000 items, ε = 0.5."""
    protocol = al.Protocol(
        al.SparseJL(input_dim=2000, sketch_dim=WIDTH, sparsity=1, seed="lying party"),
        epsilon="0.5",
        unit="one patient",
    )
    counts = np.random.default_rng(8).poisson([[0.2], [0.25], [0.9], [0.3]], (4, 2000))
    return al.release(protocol, counts, labels=LABELS, ledger=al.NO_LEDGER)


def with_lie(sketches: al.Sketches, row: np.ndarray[tuple[int], np.dtype[np.int64]]) -> al.Sketches:
    """The same sketches with the liar's row replaced and its card unchanged."""
    values = sketches.values.copy()
    values[LIAR] = row
    return al.Sketches(values, sketches.labels, sketches.noises, sketches.protocols)


def lies(sketches: al.Sketches) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The rows that the liar sends instead, by name."""
    generator = np.random.default_rng(9)
    clear = al.sketch_in_clear(sketches.protocol, generator.poisson(0.02, (1, 2000)))
    return {
        "nothing but zeros": np.zeros(WIDTH, dtype=np.int64),
        "its small counts without noise": clear.values[0],
        "a copy of north": sketches.values[0].copy(),
        "multiples of 1,000": 1000 * generator.integers(-50, 50, WIDTH),
        "enormous numbers": np.full(WIDTH, 2**62 + 1) + generator.integers(0, 2**40, WIDTH),
        "half of the noise": np.rint(generator.laplace(0, 1.0, WIDTH)).astype(np.int64),
        "nine tenths of the noise": np.rint(generator.laplace(0, 1.8, WIDTH)).astype(np.int64),
        "anything, with true noise": sketches.values[LIAR] + 500,
    }


def is_flagged(sketches: al.Sketches) -> bool:
    """Whether `verify` finds a row of a file with these sketches implausible under the declared noise."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sketches.parquet"
        sketches.save(path)
        return any(check.subject == "noise" and check.state == "fails" for check in al.verify(path).checks)


def main() -> None:
    """Print for each lie whether it is flagged, and whether distances between the others change."""
    honest = honest_release()
    print(f"Honest: {'flagged' if is_flagged(honest) else 'not flagged'}.")
    truth = al.squared_distances(honest).value[:LIAR, :LIAR]
    print(f"\n{'the liar sends':<34} {'flagged':<8} distances between the others")
    for name, row in lies(honest).items():
        lied = with_lie(honest, row)
        same = np.array_equal(al.squared_distances(lied).value[:LIAR, :LIAR], truth)
        print(f"{name:<34} {'yes' if is_flagged(lied) else 'no':<8} {'unchanged' if same else 'CHANGED'}")
    print("\nNobody can detect the last two: trusting a party's noise means trusting the party.")


if __name__ == "__main__":
    main()
