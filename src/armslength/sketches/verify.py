"""Everything public about a sketch file, computed anew: what it says of itself is held against what it must be."""

import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from armslength.errors import ArmslengthError, ParameterError, counted, printable
from armslength.ledger.entry import ledger_entry
from armslength.ledger.ledger import Entry, Ledger
from armslength.privacy.calibration import is_private_enough
from armslength.privacy.exact_numbers import written
from armslength.protocol.neighbors import gaussian_sensitivity_squared
from armslength.protocol.protocol import Protocol
from armslength.protocol.work_budget import DEFAULT_WORK, WorkBudget
from armslength.sketches.card import release_card
from armslength.sketches.plausibility import implausible, tested_rows
from armslength.sketches.sketch_file import DEFAULT_LIMIT, SketchFile, opened, rows_of
from armslength.sketches.sketches import Sketches
from armslength.transforms.transform import Transform
from armslength.version import __version__

# The guarantee of a protocol by another way than the one that chose its noise: columns from the seed, a proof for the scale.


HOLDS, FAILS, NOT_CHECKED = "holds", "fails", "not checked"
_MOST_COLUMNS, _MOST_ENTRIES = 2048, 1 << 24  # of a matrix that are built anew


@dataclass(frozen=True)
class Check:
    """One thing that was computed anew.

    Attributes:
        subject: What it is about.
        state: "holds", "fails" or "not checked".
        words: What was compared and found, in one line.
    """

    subject: str
    state: str
    words: str


def _most_columns(transform: Transform) -> int:
    return max(1, min(_MOST_COLUMNS, _MOST_ENTRIES // transform.sketch_dim))


def matrix_check_work(protocol: Protocol) -> int:
    """How much work `checked_matrix` is beside computing the sensitivities, in the units of transforms/transform.py."""
    transform = protocol.transform
    most = _most_columns(transform)
    return transform.columns_work(most if transform.input_dim is None else min(most, transform.input_dim))


def checked_matrix(protocol: Protocol) -> Check:
    """Columns of the matrix, from the seed: none is longer than the sensitivities say."""
    transform = protocol.transform
    most = _most_columns(transform)
    items: Any
    if transform.input_dim is None:
        text = protocol.items == "string"
        items = [secrets.token_hex(8) if text else secrets.randbits(62) for _ in range(most)]
    elif transform.input_dim <= most:
        items = range(transform.input_dim)
    else:
        items = [secrets.randbelow(transform.input_dim) for _ in range(most)]
    every = len(items) == transform.input_dim
    columns: Any = transform.columns(items)
    magnitudes = abs(columns)
    l1 = int(magnitudes.sum(axis=0).max())
    if int(magnitudes.max()) ** 2 * transform.sketch_dim < 2**63:
        l2_squared = int((magnitudes * magnitudes).sum(axis=0).max())
    else:  # as Python's integers: entries of a matrix that somebody brings have squares beyond 64 bits
        l2_squared = max(
            sum(int(entry) ** 2 for entry in _entries(columns, place)) for place in range(len(items))
        )
    stated = transform.l1_sensitivity, transform.l2_sensitivity_squared
    which = (
        f"all {counted(len(items), 'column')}"
        if every
        else f"{counted(len(items), 'column')} chosen at random"
    )
    words = (
        f"{which} of {transform.name}, built from the public parameters: ℓ1 norms up to {l1}, squared ℓ2 norms up to {l2_squared}; "
        f"stated {stated[0]} and {stated[1]}"
    )
    agrees = (l1, l2_squared) == stated if every else l1 <= stated[0] and l2_squared <= stated[1]
    return Check("matrix", HOLDS if agrees else FAILS, words)


def _entries(columns: Any, place: int) -> list[int]:
    """The entries of one column that are not zero."""
    column = (
        columns[:, place]
        if isinstance(columns, np.ndarray)
        else columns.data[columns.indptr[place] : columns.indptr[place + 1]]
    )
    return list(column[column != 0].tolist())


def checked_calibration(protocol: Protocol) -> Check:
    """That the scale is enough for ε and δ: not by computing it again, but by proving its guarantee."""
    scale, epsilon = Fraction(protocol.law.scale), protocol.sketch_epsilon
    if protocol.noise == "laplace":
        sensitivity = protocol.neighbors.l1_sensitivity(protocol.transform)
        enough = scale * epsilon >= sensitivity
        words = f"scale {protocol.law.scale:g} times ε = {written(epsilon)} is at least the ℓ1 sensitivity {sensitivity}, in exact rationals"
    else:
        squared = gaussian_sensitivity_squared(protocol.transform, protocol.neighbors, protocol.noise_site)
        enough = is_private_enough(squared / scale**2, epsilon, protocol.delta)
        words = (
            f"scale {protocol.law.scale:g}: δ at ε is at most {float(protocol.delta):g}, in ball arithmetic"
        )
    if protocol.total_law is not None:
        totals = Fraction(protocol.total_law.scale) * protocol.totals_epsilon
        enough = enough and totals >= protocol.neighbors.radius
        words += "; the noise of totals is enough for their share"
    return Check("calibration", HOLDS if enough else FAILS, words)


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
