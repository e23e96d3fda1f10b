"""Rechecks a sketch file: recomputes what is public about it, and compares."""

import os
import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from armslength.errors import ArmslengthError, ParameterError, plural, printable
from armslength.laws import Law
from armslength.ledger.entry import Entry, ledger_entry
from armslength.ledger.ledger import Ledger
from armslength.privacy.calibration import is_private_enough
from armslength.privacy.exact_numbers import decimal_text
from armslength.protocol.neighbors import VOTE, gaussian_sensitivity_squared, margin_sensitivity
from armslength.protocol.protocol import Protocol
from armslength.results import Result
from armslength.sketches.card import release_card
from armslength.sketches.misfits import all_differing_settings
from armslength.sketches.plausibility import implausible, tested_rows
from armslength.sketches.sketch_file import DEFAULT_LIMIT, read_file
from armslength.sketches.sketch_format import FileHeader, margin_width, spread_width_of
from armslength.sketches.sketches import Sketches
from armslength.spelling import nfc
from armslength.transforms.transform import Transform, largest_column_norms
from armslength.version import __version__

HOLDS, FAILS, NOT_CHECKED = "holds", "fails", "not checked"
_MOST_ROWS_NAMED = 5
_MOST_COLUMNS, _MOST_ENTRIES = 2048, 1 << 24  # of a matrix that are rebuilt


@dataclass(frozen=True)
class Check:
    """One thing that was rechecked, and the result in one line."""

    subject: str
    state: str  # "holds", "fails" or "not checked"
    words: str


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The result of verifying a file.

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

    def to_arrow(self) -> pa.Table:
        """One line for each check: subject, state, words."""
        return pa.table(
            {name: [getattr(check, name) for check in self.checks] for name in Check.__match_args__}
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"file": self.path, "holds": self.holds, "checks": self.to_arrow().to_pylist()}

    def __repr__(self) -> str:
        lines = (f"  {check.subject:<12} {check.state:<12} {check.words}" for check in self.checks)
        return "\n".join([self._title(), *lines])

    def _title(self) -> str:
        failed = sum(check.state == FAILS for check in self.checks)
        checks = plural(len(self.checks), "check")
        return f"{self.path}: {f'{failed} of {checks} failed' if failed else f'no failure in {checks}'}"


def verify(
    path: str | os.PathLike[str],
    *,
    protocol: Protocol | None = None,
    ledger: Any = None,
    limit: int = DEFAULT_LIMIT,
) -> Verification:
    """Recomputes what is public about a sketch file, and says of each thing whether it holds.

    Sensitivity and scale from the protocol; columns of the matrix from the seed; a proof of the guarantee for the scale, by another way
    than the one that chose it; digests of all rows; the release card; and whether the numbers are plausible under the declared noise.
    A forger can recompute the digests. No file can prove that this noise was really added, or kept secret.

    Args:
        path: The sketch file.
        protocol: The protocol that was agreed on; None: any.
        ledger: The ledger of the party that released the file, or its path: does it have the line of this file?
        limit: What may be unpacked, in bytes.
    """
    if protocol is not None and not isinstance(protocol, Protocol):
        raise ParameterError(
            f"protocol must be al.Protocol, got {type(protocol).__name__}; Protocol.load reads one",
            "protocol",
        )
    opened = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger, read_only=True)
    name = printable(os.fspath(path))
    try:
        file = read_file(path, limit, {})
    except ArmslengthError as problem:
        return Verification(name, (Check("file", FAILS, str(problem)),))
    header, sketches = file.header, file.sketches
    rows = plural(len(sketches), "row")
    checks = (
        Check("file", HOLDS, f"the digests of the header and of every column of {rows} match"),
        check_matrix(sketches.protocols[0]),  # all of a file have one transform
        *map(check_calibration, sketches.protocols),
        _check_card(header, sketches),
        *_check_scalars(sketches),
        *_check_margins(sketches),
        _check_noise(sketches),
        _check_agreement(sketches, protocol),
        _check_ledger(sketches, opened),
    )
    return Verification(name, checks)


def _check_card(header: FileHeader, sketches: Sketches) -> Check:
    in_clear = any(sketches.in_clear)
    card = header.card
    if card["in_clear"] != in_clear:
        rows = "rows are in the clear" if in_clear else "no row is in the clear"
        return Check("card", FAILS, f"the card contradicts the rows: {rows}")
    if card.get("armslength") != __version__:
        words = "every fact matches the protocols; the text was written by another version of armslength"
        return Check("card", NOT_CHECKED, words)
    same = card == release_card(header.releases, in_clear=in_clear)
    words = "every fact and the text match the protocols" if same else "its text does not match its protocols"
    return Check("card", HOLDS if same else FAILS, words)


def _check_scalars(sketches: Sketches) -> tuple[Check, ...]:
    """Whether there are the totals, and the spread of votes, that all protocols release; nothing where they release none, or different ones."""
    if any(sketches.in_clear) or not all(protocol.total_share for protocol in sketches.protocols):
        return ()
    if sketches.totals is None or (spread_width_of(sketches.protocols) and sketches.spread is None):
        words = "the protocol releases numbers beside each sketch, and the file has not all of them: it is not the file that was released"
        return (Check("totals", FAILS, words),)
    return (Check("totals", HOLDS, "the numbers beside each sketch are there"),)


def _check_margins(sketches: Sketches) -> tuple[Check, ...]:
    """Whether there are the margins that all protocols release; nothing where they release none, or different ones."""
    width = margin_width(sketches.protocols)
    if not width or any(sketches.in_clear):
        return ()
    if sketches.margins is None:
        words = "the protocol releases margins, and the file has none: it is not the file that was released"
        return (Check("margins", FAILS, words),)
    groups = plural(width - 1, "item group")
    return (Check("margins", HOLDS, f"{groups} of the protocol in every row"),)


def _check_noise(sketches: Sketches) -> Check:
    reasons: dict[int, str] = {}
    for finding in implausible(sketches):
        reasons.setdefault(finding.row, f"{finding.label}: {finding.reason}")  # one for a row is enough
    if reasons:
        named = "; ".join(list(reasons.values())[:_MOST_ROWS_NAMED])
        more = len(reasons) - _MOST_ROWS_NAMED
        return Check("noise", FAILS, f"{named}; and {more} more rows" if more > 0 else named)
    if any(sketches.in_clear):
        return Check("noise", FAILS, "rows are in the clear: NOT PRIVATE")
    tested = tested_rows(sketches)
    words = "no row is implausible under the declared noise (which does not prove that it was added)"
    if tested == len(sketches):
        return Check("noise", HOLDS, words)
    words += f"; {tested:,} of {plural(len(sketches), 'row')} can be tested; the others were combined, or have their noise on the input"
    return Check("noise", NOT_CHECKED, words)


def _check_agreement(sketches: Sketches, protocol: Protocol | None) -> Check:
    if protocol is None:
        words = "give the protocol that was agreed on to compare it with the file"
        return Check("agreement", NOT_CHECKED, words)
    if sketches.protocols == (protocol,):
        return Check("agreement", HOLDS, f"every row names the protocol {protocol.fingerprint}")
    differing = {name for other in sketches.protocols for name in all_differing_settings(protocol, other)}
    words = f"rows name another protocol: different {', '.join(sorted(differing))}"
    return Check("agreement", FAILS, words)


def _check_ledger(sketches: Sketches, ledger: Ledger | None) -> Check:
    """Whether the ledger has the line of every release whose noise is in the file, for the same protocol and labels."""
    if ledger is None:
        words = "give the ledger of the party that released the file to look for its line"
        return Check("ledger", NOT_CHECKED, words)
    noises, lines = sketches.noises, {entry.release: entry for entry in ledger.entries()}
    costs = [ledger_entry(protocol, "") for protocol, _ in noises.releases]
    found, missing = dict[int, Entry](), set[str]()
    rows, are_released = noises.rows.tolist(), noises.are_released.tolist()
    for (release, place), row, number in zip(noises.origins.tolist(), rows, noises.numbers, strict=True):
        entry = lines.get(release.hex())
        if entry is None:
            missing.add(release.hex())
            continue
        found[entry.number] = entry
        if other := entry.differing_cost(costs[number]):
            return Check("ledger", FAILS, f"line {entry.number} was charged for another {other}")
        # A sum of rows may have any label.
        label = sketches.labels[row]
        if are_released[row] and entry.labels[place : place + 1] != (nfc(label),):
            words = f"line {entry.number} was charged for other labels than {printable(label)}"
            return Check("ledger", FAILS, words)
    if not found:
        return Check("ledger", FAILS, "this file is not in this ledger")
    if missing:
        words = f"{len(missing)} of {plural(len(missing) + len(found), 'release')} in this file are not in this ledger"
        return Check("ledger", FAILS, words)
    populations = ", ".join(sorted({entry.population for entry in found.values()}))
    numbers = ", ".join(map(str, sorted(found)))
    return Check(
        "ledger", HOLDS, f"charged in line{'s' * (len(found) > 1)} {numbers}, to {printable(populations)}"
    )


def _column_count(transform: Transform) -> int:
    """How many columns of the matrix are rebuilt."""
    limit = max(1, min(_MOST_COLUMNS, _MOST_ENTRIES // transform.sketch_dim))
    return limit if transform.input_dim is None else min(limit, transform.input_dim)


def check_matrix(protocol: Protocol) -> Check:
    """Columns of the matrix, from the seed: none is longer than the sensitivities say."""
    transform = protocol.transform
    count = _column_count(transform)
    every = count == transform.input_dim
    items: Any = range(count)
    if transform.input_dim is None:
        is_text = protocol.items == "string"
        items = [secrets.token_hex(8) if is_text else secrets.randbits(62) for _ in range(count)]
    elif not every:
        items = [secrets.randbelow(transform.input_dim) for _ in range(count)]
    l1, l2_squared = largest_column_norms(transform.columns(items))
    stated = transform.l1_sensitivity, transform.l2_sensitivity_squared
    which = f"all {plural(count, 'column')}" if every else f"{plural(count, 'column')} chosen at random"
    words = (
        f"{which} of {transform.name}, built from the public parameters: ℓ1 norms up to {l1}, squared ℓ2 norms up to {l2_squared}; "
        f"stated {stated[0]} and {stated[1]}"
    )
    agrees = (l1, l2_squared) == stated if every else l1 <= stated[0] and l2_squared <= stated[1]
    return Check("matrix", HOLDS if agrees else FAILS, words)


def check_calibration(protocol: Protocol) -> Check:
    """That the scale is enough for ε and δ: not by computing it again, but by proving its guarantee."""
    transform, radius, scale = protocol.transform, protocol.grid_radius, protocol.law.scale
    if protocol.noise == "laplace":
        sensitivity = radius * transform.l1_sensitivity
        words = f"scale {scale!r} times ε = {decimal_text(protocol.sketch_epsilon)} is at least the ℓ1 sensitivity {sensitivity}, in exact rationals"
    else:
        sensitivity = gaussian_sensitivity_squared(transform, radius, protocol.noise_site)
        words = f"scale {scale!r}: at ε = {decimal_text(protocol.sketch_epsilon)}, δ is at most {decimal_text(protocol.delta)}, in ball arithmetic"
    enough = _covers(protocol.law, sensitivity, protocol.sketch_epsilon, protocol.released_delta)
    if protocol.total_law is not None:
        moved, spread = radius, protocol.spread_law
        if spread is not None:  # twice the loss of T − Q, Q and F: docs/privacy.md, votes
            moved = 2 * VOTE + 1 if protocol.relation == "add_remove" else 4 * VOTE + 2
            enough = enough and _covers(spread, moved, protocol.totals_epsilon)
        share = protocol.totals_epsilon if spread is None else 2 * protocol.totals_epsilon
        enough = enough and _covers(protocol.total_law, moved, share)
        words += "; the noise of totals is enough for their share"
        if spread is not None:
            words += ", and that of the spread"
    if protocol.margin_law is not None and protocol.margins is not None:
        bound, groups = protocol.margin_contribution or 0, len(protocol.margins.names)
        moved = margin_sensitivity(bound, groups, protocol.relation)
        enough = enough and _covers(protocol.margin_law, moved, protocol.margins_epsilon)
        words += "; the noise of margins is enough for theirs"
    return Check("calibration", HOLDS if enough else FAILS, words)


def _covers(law: Law, sensitivity: int, epsilon: Fraction, delta: Fraction = Fraction(0)) -> bool:
    """Whether noise of this law has that ε and δ, for an ℓ1 sensitivity (Laplace) or a squared ℓ2 sensitivity (Gaussian)."""
    scale = Fraction(law.scale)
    if law.name == "laplace":
        return scale * epsilon >= sensitivity
    return is_private_enough(sensitivity / scale**2, epsilon, delta)
