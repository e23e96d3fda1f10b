"""A party that lies about its noise, or sends garbage: no danger to anybody's privacy but that of its own people, and a limited nuisance.

What the liar can do: send any integers under any protocol it likes. What it cannot do: learn more from the others' sketches, which
were released before and do not depend on it; or change a distance between two others, which is computed from their rows alone.
Its own distances mean nothing, and what is decided over all rows together (clusters, outliers) can be led astray by it.

`armslength inspect` flags rows that the declared noise makes implausible, with at most one false alarm in 10^9 calls. Who adds a
little less noise than declared, or makes numbers up from true noise, is not found: nobody can see that from outside.

    python examples/attacks/lying_party.py
"""

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
    return protocol.release(counts, labels=LABELS, ledger=al.NO_LEDGER)


def with_lie(sketches: al.Sketches, row: np.ndarray[tuple[int], np.dtype[np.int64]]) -> al.Sketches:
    """The same sketches with the liar's row replaced, under the card that the liar had before."""
    values = sketches.values.copy()
    values[LIAR] = row
    return al.Sketches(values, sketches.labels, sketches.noises, sketches.protocols)


def lies(sketches: al.Sketches) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """What the liar sends instead, by name."""
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


def main() -> None:
    """Prints for each lie whether it is flagged, and that the others do not notice it."""
    honest = honest_release()
    flagged = [finding.label for finding in al.implausible(honest)]
    print(f"Honest: {len(flagged)} of 4 rows flagged.")
    truth = al.squared_distances(honest).value[:LIAR, :LIAR]
    print(f"\n{'the liar sends':<34} {'flagged':<8} distances between the others")
    for name, row in lies(honest).items():
        lied = with_lie(honest, row)
        found = {finding.label for finding in al.implausible(lied)}
        same = np.array_equal(al.squared_distances(lied).value[:LIAR, :LIAR], truth)
        print(
            f"{name:<34} {'yes' if 'liar' in found else 'no':<8} {'the same, to the last bit' if same else 'CHANGED'}"
        )
    print("\nThe last two are not found, and cannot be: trust in a party's noise is trust in the party.")


if __name__ == "__main__":
    main()
