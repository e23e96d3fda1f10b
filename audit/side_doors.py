"""Side doors: everything that a release shows beside its values, for many pairs of tables; attack (7)."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from attacks.side_doors import PROTOCOLS, neighbor_pairs, open_doors

from armslength.progress import progress
from audit.sections import Check, Section


def audit(quick: bool) -> Section:
    """Every door for every pair, in two processes."""
    rounds = 1 if quick else 40
    found: dict[str, list[str]] = {}
    context = get_context("spawn")  # no process inherits threads of an engine
    with (
        ProcessPoolExecutor(2, mp_context=context) as pool,
        progress("pairs of tables", rounds, "rounds", show=True) as advance,
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
            "The command releases two tables under the same public settings, each in its own folder: people vote, with margins, or amounts are added up. Everything visible is "
            "compared: exit codes, standard output and error, warnings and logs, names and modes of files, files left in the "
            "temporary folder, rows and labels, the types, encodings and metadata of the sketch file, its card, the digests it "
            "has, `show`, every row of the ledger, its listing and its size. Every release must succeed: two equal failures "
            "count as a difference. Times, noise ids, noisy values and their digests are excluded; a separate test shows that "
            "noise ids are random bytes. The size of a sketch file depends on its noisy values, because small integers take fewer "
            "bits. To show that it depends on nothing else, each file is written again from its loaded contents, and all bytes "
            "must be the same.\n\n"
            f"{pairs} pairs, {rounds} of each kind with different events. This compares for equality and needs no confidence "
            "level. Not covered: the time a release takes, refusals of malformed data, and the progress bar, which only the data "
            "holder sees."
        ),
        ("the tables differ by", "pairs", "pairs with an open door"),
        tuple((kind, str(rounds), str(len(doors))) for kind, doors in found.items()),
        (
            Check(
                "Every release succeeds, and everything visible except the noise is the same, whatever the table contains",
                not wrong,
                f"not so: {', '.join(wrong)}" if wrong else f"equal for all {pairs} pairs",
            ),
        ),
    )


def _opened(seed: int) -> dict[str, list[str]]:
    """The open doors of each kind of pair: one text for each pair that has any."""
    pairs = neighbor_pairs(seed).items()
    found = {f"{name}, {kind}": open_doors(pair, kind) for name, pair in pairs for kind in PROTOCOLS}
    return {kind: [", ".join(doors)] if doors else [] for kind, doors in found.items()}
