"""Finds rows that are implausible under the noise they declare: too little noise, copies, numbers out of range.

True noise leaves marks whatever the data is, and each test looks for one. A call flags any row that was released as declared with a
probability of at most 1e-9, over all tests and rows. A row that is not flagged need not be true. See docs/guides/release-card.md.
"""

import math
import secrets
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from armslength.laws import Law
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import Protocol
from armslength.sketches.sketches import Sketches

FALSE_ALARM = 1e-9
_TESTS = 4  # kinds of finding that share the false alarms, as many again for margins, and one for votes
_WINDOWS = (0.04, 0.2, 0.6, 1.4)  # lengths in scales, beside those of one and two integers
_LARGEST_SUM = 2**62
_FIRST_STEPS = 12
_BEYOND = "numbers beyond what its range and its noise can reach"
_NO_COUNTS = (
    "margins: numbers below 0, or more people in an item group than in the row, beyond what noise explains"
)
_NO_VOTES = "people or spread below 0, or more spread than people can have, beyond what noise explains"


@dataclass(frozen=True)
class Finding:
    """A row that was not released as it declares: its number, its label, and what is implausible about it."""

    row: int
    label: str
    reason: str


def implausible(sketches: Sketches) -> list[Finding]:
    """Rows whose numbers are implausible under the noise that their protocol declares, each with its reasons.

    Not tested are rows that were combined or are in the clear, which declare no noise of their own, and rows with noise on the
    input, whose numbers are not independent; `tested_rows` counts the others. Data that varies far more than its noise hides
    whether there is any.

    Args:
        sketches: Released rows, as they were loaded.
    """
    findings: list[Finding] = []
    tests = _TESTS if sketches.margins is None else 2 * _TESTS
    tests += sketches.spread is not None
    limit = FALSE_ALARM / (tests * max(1, len(sketches)))
    for protocol, numbers in _released_rows(sketches):
        values = sketches.values[numbers].astype(np.int64, copy=False)
        ids = sketches.noises.ids[sketches.noises.starts[numbers]]
        reasons = [*_reasons(protocol.law, values, ids, limit)]
        reasons.append((_BEYOND, _beyond(protocol, values, limit)))
        if sketches.margins is not None and protocol.margin_law is not None:
            margins, law = _whole_numbers(sketches.margins[numbers]), protocol.margin_law
            reasons += [(f"margins: {reason}", rows) for reason, rows in _reasons(law, margins, ids, limit)]
            totals = None if sketches.totals is None else sketches.totals[numbers].astype(float)
            reasons.append((_NO_COUNTS, _no_counts(protocol, margins, totals, limit)))
        if sketches.spread is not None and sketches.totals is not None and protocol.votes:
            totals, spread = sketches.totals[numbers].astype(float), sketches.spread[numbers].astype(float)
            reasons.append((_NO_VOTES, _no_votes(protocol, totals, spread, limit)))
        for reason, rows in reasons:
            findings += [Finding(row, sketches.labels[row], reason) for row in numbers[rows].tolist()]
    findings += _fractions_of_people(sketches)
    findings += _shared_noises(sketches)
    return sorted(set(findings), key=lambda finding: (finding.row, finding.reason))


def tested_rows(sketches: Sketches) -> int:
    """How many rows `implausible` can say anything about."""
    return sum(len(numbers) for _, numbers in _released_rows(sketches))


def _released_rows(sketches: Sketches) -> Iterator[tuple[Protocol, NDArray[np.int64]]]:
    """For each protocol the numbers of the rows that are as they were released under it, with noise on the output."""
    noises = sketches.noises
    rows = np.flatnonzero(noises.are_released & _whole_rows(sketches.values))
    numbers = noises.numbers[noises.starts[rows]]
    by_protocol: dict[Protocol, list[NDArray[np.int64]]] = {}
    for number in np.unique(numbers).tolist():
        by_protocol.setdefault(noises.releases[number][0], []).append(rows[numbers == number])
    for protocol, parts in by_protocol.items():
        if protocol.noise_site == "output":
            yield protocol, np.sort(np.concatenate(parts))


def _whole_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are of integers, whatever they are stored as."""
    if values.dtype == np.int64:
        return np.ones(len(values), dtype=bool)
    whole: NDArray[np.bool_] = ((np.rint(values) == values) & (np.abs(values) < 2.0**63)).all(axis=1)
    return whole


def _reasons(
    law: Law, values: NDArray[np.int64], ids: NDArray[Any], limit: float
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """What is implausible about numbers that each have their own draw of a law, whatever they stand for."""
    ordered = np.sort(values, axis=1)
    less = "less noise than declared: "
    yield f"{less}too many of its numbers are close together", _crowded(law, ordered, limit)
    yield f"{less}its numbers are multiples of one number", _multiples(law, ordered, limit)
    wraps = (ordered[:, 0] < -_LARGEST_SUM) | (ordered[:, -1] > _LARGEST_SUM)
    yield "numbers beyond 2^62, where sums wrap and mean nothing", wraps
    copies = _copies(law, values, ids, limit)
    yield "the numbers of another row, with a noise that says it is another", copies


def _crowded(law: Law, ordered: NDArray[np.int64], limit: float) -> NDArray[np.bool_]:
    """Rows with too many numbers in some short interval.

    Wherever the data puts a number, its noise falls into a given interval of L integers with a probability of at most p, that of
    the L most central ones, for the law is symmetric and falls to both sides. So of the k − 1 others at least c − 1 lie in the interval that
    begins at a given number with at most a binomial probability, and there are k numbers at which it may begin.
    """
    rows, width = ordered.shape
    crowded = np.zeros(rows, dtype=bool)
    lengths = {1, 2, *(math.floor(part * law.scale) + 1 for part in _WINDOWS)}
    for length in lengths:
        central = _central(law, length)
        count = _too_many(width, len(lengths), central, limit)
        if count is not None:
            # in unsigned words, where the difference of ordered numbers cannot overflow
            spans = ordered[:, count - 1 :].view(np.uint64) - ordered[:, : width - count + 1].view(np.uint64)
            crowded |= (spans < np.uint64(length)).any(axis=1)
    return crowded


def _too_many(width: int, lengths: int, central: float, limit: float) -> int | None:
    """The smallest count c with lengths·k·P(Bin(k − 1, p) ≥ c − 1) ≤ limit; None if even k numbers are no surprise."""

    def is_enough(count: int) -> bool:
        return bool(lengths * width * special.bdtrc(count - 2, width - 1, central) <= limit)

    if width < 2 or not central < 1 or not is_enough(width):
        return None
    return bisect_left(range(width + 1), True, lo=2, hi=width, key=is_enough)  # the tail falls with the count


def _central(law: Law, length: int) -> float:
    """P(N is one of the `length` most central integers), a hair above."""
    upper = float(length // 2)
    ends = law.cdf(np.array([upper, upper - length]))
    return min(1.0, float(ends[0] - ends[1]) * (1 + 1e-6) + 1e-12)


def _multiples(law: Law, ordered: NDArray[np.int64], limit: float) -> NDArray[np.bool_]:
    """Rows whose numbers are all the same modulo some q.

    A law that rises to a peak and falls puts at most 1/q + P(0) on any residue modulo q. Over all q together, with weights
    1/(q(q+1)) that add up to less than 1.
    """
    width = ordered.shape[1]
    steps = ordered[:, 1:] - ordered[:, :1]
    steps[ordered[:, -1].astype(float) - ordered[:, 0].astype(float) > 2.0**62] = (
        1  # differences that may wrap
    )
    divisors = np.gcd.reduce(steps[:, :_FIRST_STEPS], axis=1)
    open_rows = np.flatnonzero(divisors != 1)  # few: for most rows the first steps settle it
    divisors[open_rows] = np.gcd.reduce(steps[open_rows], axis=1)
    divisors = divisors.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        residue = np.minimum(1 / divisors + _central(law, 1), 1.0)
        chances = divisors * (divisors + 1) * residue ** (width - 1)
    flags: NDArray[np.bool_] = (divisors >= 2) & (chances <= limit)
    return flags


def _beyond(protocol: Protocol, values: NDArray[np.int64], limit: float) -> NDArray[np.bool_]:
    """Rows with a number farther out than clamped data and its noise reach."""
    transform = protocol.transform
    if protocol.value_range is None or transform.input_dim is None:
        return np.zeros(len(values), dtype=bool)
    largest = max(abs(end) for end in protocol.value_range) / protocol.resolution + 1
    data = math.ceil(largest) * transform.input_dim * transform.l1_sensitivity
    reach = data + _largest_noise(protocol.law, values.shape[1], limit)
    if reach >= 2**63:
        return np.zeros(len(values), dtype=bool)
    return np.asarray(((values < -reach) | (values > reach)).any(axis=1))


def _largest_noise(law: Law, width: int, limit: float) -> int:
    """What one of so many draws is beyond with at most this probability."""
    # P(|N| > t·scale) ≤ 2e^−t for both laws (2e^(−t²/2) for the normal one, and here t > 2); the rest covers rounding
    return math.ceil(law.scale * math.log(2 * width / limit)) + 1


def _no_counts(
    protocol: Protocol, margins: NDArray[np.int64], totals: NDArray[np.float64] | None, limit: float
) -> NDArray[np.bool_]:
    """Rows in which a margin is below 0, or an item group has more people than there are, by more than noise can explain.

    Somebody has at least half a vote in the total, also after floors, and at most one in an item group.
    """
    if protocol.margin_law is None:
        return np.zeros(len(margins), dtype=bool)
    draws = margins.shape[1] + 2  # and two of the total
    reach, counts = _largest_noise(protocol.margin_law, draws, limit), margins.astype(float)
    flags: NDArray[np.bool_] = counts.min(axis=1) < -reach
    if totals is not None:
        flags |= counts[:, :-1].max(axis=1) - reach > 2 * (
            totals + _largest_noise_of_total(protocol, draws, limit)
        )
    return flags


def _no_votes(
    protocol: Protocol, totals: NDArray[np.float64], spread: NDArray[np.float64], limit: float
) -> NDArray[np.bool_]:
    """Rows in which T − Q, Q or F is below 0, or F above Q and a grid unit of each person, by more than noise can explain."""
    if protocol.total_law is None or protocol.spread_law is None:
        return np.zeros(len(totals), dtype=bool)
    alone, reach = (_largest_noise(law, 3, limit) for law in (protocol.total_law, protocol.spread_law))
    flags: NDArray[np.bool_] = (totals - spread[:, 0] < -alone) | (spread.min(axis=1) < -reach)
    if spread.shape[1] == 2:
        people = 2 * (np.maximum(totals, 0) + alone + reach) / VOTE
        flags |= spread[:, 1] - spread[:, 0] > 2 * reach + people
    return flags


def _largest_noise_of_total(protocol: Protocol, draws: int, limit: float) -> int:
    """What the noise of a total is beyond with at most twice the probability of one of so many draws; of votes, it is the sum of two."""
    laws = (protocol.total_law, protocol.spread_law)
    return sum(_largest_noise(law, draws, limit) for law in laws if law is not None)


def _whole_numbers(margins: NDArray[Any]) -> NDArray[np.int64]:
    """Margins as integers; what is beyond 2^62 stays beyond it."""
    if margins.dtype == np.int64:
        return margins
    whole: NDArray[np.int64] = np.rint(margins).clip(-1.5 * _LARGEST_SUM, 1.5 * _LARGEST_SUM).astype(np.int64)
    return whole


def _fractions_of_people(sketches: Sketches) -> Iterator[Finding]:
    """Rows that say they are as released, with margins that are not whole, by more than scaling and scaling back can leave."""
    if sketches.margins is None or sketches.margins.dtype == np.int64:
        return
    away = np.abs(np.rint(sketches.margins) - sketches.margins) > 1e-12 * (1 + np.abs(sketches.margins))
    for row in np.flatnonzero(sketches.noises.are_released & away.any(axis=1)).tolist():
        yield Finding(row, sketches.labels[row], "margins that are not whole")


def _copies(law: Law, values: NDArray[np.int64], ids: NDArray[Any], limit: float) -> NDArray[np.bool_]:
    """Rows that have the numbers of another one and another noise: two noises agree with at most P(0)^k, for each pair."""
    rows, width = values.shape
    agree = _central(law, 1)
    if width * math.log(agree) + math.log(max(1, rows)) > math.log(limit):
        return np.zeros(rows, dtype=bool)
    # Rows that agree have the same fingerprint; the few that share one are compared in full.
    weights = np.frombuffer(secrets.token_bytes(8 * width), dtype=np.int64) | 1
    fingerprints = values @ weights
    _, kinds, counts = np.unique(fingerprints, return_inverse=True, return_counts=True)
    alike = np.flatnonzero(counts[kinds.ravel()] > 1)
    copied = np.zeros(rows, dtype=bool)
    if len(alike):
        _, kinds = np.unique(values[alike], axis=0, return_inverse=True)
        _, noises = np.unique(ids[alike], return_inverse=True)
        # a row that was loaded twice is one pair
        pairs = np.unique(np.stack([kinds.ravel(), noises.ravel()]), axis=1)
        copied[alike] = np.bincount(pairs[0])[kinds.ravel()] > 1
    return copied


def _shared_noises(sketches: Sketches) -> Iterator[Finding]:
    """Rows that say they have the same noise and are not the same: their difference is data without any."""
    if sketches.noises.are_fresh:
        return
    first: dict[bytes, int] = {}
    released = np.flatnonzero(sketches.noises.are_released).tolist()
    ids = sketches.noises.ids[sketches.noises.starts[released]].tolist()
    for row, noise in zip(released, ids, strict=True):
        other = first.setdefault(noise, row)
        # a row that was scaled and scaled back differs in its last digits
        arrays = sketches.values, sketches.totals, sketches.spread, sketches.margins
        there = (array for array in arrays if array is not None)
        if not all(np.allclose(array[other], array[row], rtol=1e-9, atol=1e-9) for array in there):
            reason = "with the same noise: their difference is data in the clear"
            yield Finding(row, sketches.labels[row], f"other numbers than row {other}, {reason}")
