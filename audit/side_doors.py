"""Side doors: everything that a release shows beside its values, for many pairs of tables; attack (7)."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from attacks.side_doors import neighbor_pairs, open_doors

from armslength.progress import progress
from audit.sections import Check, Section


def audit(quick: bool) -> Section:
    """Every door for every pair, in two processes."""
    rounds = 1 if quick else 40
    found: dict[str, list[str]] = {}
    context = get_context("spawn")  # no process inherits threads of an engine
    with (
        ProcessPoolExecutor(2, mp_context=context) as pool,
        progress("pairs of tables", rounds, "rounds", shown=True) as advance,
    ):
        for opened in pool.map(_opened, range(rounds)):
            for kind, doors in opened.items():
                found.setdefault(kind, []).extend(doors)
            advance(1)
    pairs = rounds * len(found)
    wrong = sorted({door for doors in found.values() for door in doors})
    return Section(
        "Side doors",
        (
            "Two tables under the same public settings are released by the command, each in a folder of its own, and all that can be seen is compared: exit "
            "codes, standard output and error, warnings and logs, names and modes of files, what is left in the temporary folder, rows and labels, "
            "the types, encodings and metadata of the sketch file, its card, which digests it has, `inspect`, every row of the ledger, its listing and its size. Every release "
            "must have worked: two that fail alike count as a difference. Times, noise ids, values with noise and digests of them are left out; that noise ids are "
            "random bytes and nothing else is a test of its own. The size of a sketch file depends on its values with noise, as small integers take fewer bits: that it depends on "
            "nothing else is shown by making each file again from what was loaded of it: all bytes must be the same. "
            f"{pairs} pairs, {rounds} of each kind with other events; this is a comparison for equality and needs no confidence. Not covered: how long a release takes, "
            "refusals of data of the wrong form, and the progress bar of a terminal, which the data holder alone sees."
        ),
        ("the tables differ by", "pairs", "pairs with an open door"),
        tuple((kind, str(rounds), str(len(doors))) for kind, doors in found.items()),
        (
            Check(
                "Every release works, and all that is seen beside the noise is equal, whatever the table holds",
                not wrong,
                f"not so: {', '.join(wrong)}" if wrong else f"equal for all {pairs} pairs",
            ),
        ),
    )


def _opened(seed: int) -> dict[str, list[str]]:
    """The open doors of each kind of pair: one text for each pair that has any."""
    found = {kind: open_doors(pair) for kind, pair in neighbor_pairs(seed).items()}
    return {kind: [", ".join(doors)] if doors else [] for kind, doors in found.items()}
