"""Everything public about a sketch file, computed anew: what it says of itself is held against what it must be."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from armslength.errors import ArmslengthError, ParameterError, counted, printable
from armslength.ledger.ledger import Entry, Ledger
from armslength.protocol.card import release_card
from armslength.protocol.checked_guarantee import (
    FAILS,
    HOLDS,
    NOT_CHECKED,
    Check,
    checked_calibration,
    checked_matrix,
    matrix_check_work,
)
from armslength.protocol.files import DEFAULT_LIMIT, opened, rows_of
from armslength.protocol.plausible import implausible, tested_rows
from armslength.protocol.protocol import Protocol
from armslength.protocol.release import ledger_entry
from armslength.protocol.sketch_file import SketchFile
from armslength.protocol.sketches import Sketches
from armslength.protocol.work import DEFAULT_WORK, WorkBudget
from armslength.version import __version__

_MOST_NAMED = 5


@dataclass(frozen=True)
class Verification:
    """What came of verifying a file.

    Attributes:
        path: The file.
        checks: All checks, in order.
    """

    path: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether no check fails."""
        return all(check.state != FAILS for check in self.checks)

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"file": self.path, "holds": self.holds, "checks": [asdict(check) for check in self.checks]}


def verify(
    path: str | os.PathLike[str],
    *,
    protocol: Protocol | None = None,
    ledger: Any = None,
    limit: int = DEFAULT_LIMIT,
    max_work: int | None = DEFAULT_WORK,
) -> Verification:
    """Computes all that is public about a sketch file anew, and says of each thing whether it holds.

    Sensitivity and scale from the protocol; columns of the matrix from the seed; the guarantee from the scale, by another way than the
    one that chose it; digests of all rows; the release card; and whether the numbers are plausible under the noise that is declared. That
    this noise was really added, no file can prove.

    Args:
        path: The sketch file.
        protocol: The protocol that was agreed on; None: any.
        ledger: The ledger of the party that released the file, or its path: is there a line for it?
        limit: What may be unpacked, in bytes.
        max_work: How much work its protocol may ask for, in operations of about a nanosecond; None: no limit.
    """
    if protocol is not None and not isinstance(protocol, Protocol):
        raise ParameterError("protocol must be a Protocol, got something else; Protocol.load reads one")
    known = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger, read_only=True)
    name, budget = printable(os.fspath(path)), WorkBudget(max_work)
    try:
        file = opened(path, limit, {}, budget)
        budget.charge(matrix_check_work(file.head.protocols[0]), name)
        sketches = rows_of([file])
    except ArmslengthError as problem:
        return Verification(name, (Check("file", FAILS, str(problem)),))
    checks = [_file(file)]
    checks.append(checked_matrix(sketches.protocols[0]))  # all of a file have one transform
    checks += map(checked_calibration, sketches.protocols)
    checks += [
        _card(file, sketches),
        _plausible(sketches),
        _agreed(sketches, protocol),
        _charged(sketches, known),
    ]
    return Verification(name, tuple(checks))


def _file(file: SketchFile) -> Check:
    rows = counted(file.rows, "row")
    return Check(
        "file", HOLDS, f"digests of the head and of every column of {rows} are those that were written"
    )


def _card(file: SketchFile, sketches: Sketches) -> Check:
    in_clear = any(sketches.in_clear)
    card = file.head.card
    if card["in_clear"] != in_clear:
        found = "rows are in the clear" if in_clear else "no row is in the clear"
        return Check("card", FAILS, f"the card says something else than the rows: {found}")
    if card.get("armslength") != __version__:
        return Check(
            "card",
            NOT_CHECKED,
            "every fact is that of the protocols; its words are of another version of armslength",
        )
    same = card == release_card(file.head.releases, in_clear=in_clear)
    words = (
        "every fact and every word is that of the protocols"
        if same
        else "its words are not those of its protocols"
    )
    return Check("card", HOLDS if same else FAILS, words)


def _plausible(sketches: Sketches) -> Check:
    found: dict[int, str] = {}
    for each in implausible(sketches):
        found.setdefault(each.row, f"{each.label}: {each.reason}")  # one reason for a row is enough
    if found:
        named = "; ".join(list(found.values())[:_MOST_NAMED])
        more = f"; and {len(found) - _MOST_NAMED} more rows" if len(found) > _MOST_NAMED else ""
        return Check("noise", FAILS, f"{named}{more}")
    if any(sketches.in_clear):
        return Check("noise", FAILS, "rows are in the clear: NOT PRIVATE")
    tested = tested_rows(sketches)
    words = "no row is implausible under the noise that it declares (which does not prove that it was added)"
    if tested == len(sketches):
        return Check("noise", HOLDS, words)
    return Check(
        "noise",
        NOT_CHECKED,
        f"{words}; {tested:,} of {counted(len(sketches), 'row')} can be tested: others were combined, or have their noise on the input",
    )


def _agreed(sketches: Sketches, protocol: Protocol | None) -> Check:
    if protocol is None:
        return Check(
            "agreement", NOT_CHECKED, "name the protocol that was agreed on to hold the file against it"
        )
    if sketches.protocols == (protocol,):
        return Check("agreement", HOLDS, f"released under the protocol {protocol.fingerprint}")
    others = [each for each in sketches.protocols if each != protocol]
    differing = sorted(set(_differing(protocol, others)))
    return Check("agreement", FAILS, f"released under another protocol: other {', '.join(differing)}")


def _differing(agreed: Protocol, others: list[Protocol]) -> Iterator[str]:
    expected = agreed.document()
    for other in others:
        found = other.document()
        yield from (name for name in expected if expected[name] != found[name])


def _charged(sketches: Sketches, ledger: Ledger | None) -> Check:
    """Whether the ledger has the line that this release must have written."""
    if ledger is None:
        return Check(
            "ledger", NOT_CHECKED, "name the ledger of the party that released it to look for its line"
        )
    if sketches.released is None:
        return Check(
            "ledger",
            NOT_CHECKED,
            "rows were combined or are of several releases, which are charged one by one",
        )
    expected = ledger_entry(sketches.protocol, "", list(sketches.labels))
    under = [entry for entry in ledger.entries() if entry.protocol == expected.protocol]
    lines = [entry for entry in under if _same_release(entry, expected)]
    if lines:
        return Check(
            "ledger", HOLDS, f"charged to {printable(', '.join(sorted({line.population for line in lines})))}"
        )
    if under:
        words = "lines under this protocol, but for other labels: rows of several releases, a part of one, or one that was not charged"
        return Check("ledger", NOT_CHECKED, words)
    return Check(
        "ledger", FAILS, "no line under this protocol: another ledger, or a release that was not charged"
    )


def _same_release(line: Entry, expected: Entry) -> bool:
    """Whether a line is for this release: all that is public agrees."""
    own = {"population", "version", "time"}  # of the line alone
    found = asdict(line)
    return all(found[name] == value for name, value in asdict(expected).items() if name not in own)
