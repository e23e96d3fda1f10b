"""Contribution bounds: no person adds more than C to a release, over all of its groups and items.

Guarantee: what is kept of a person's events is a function of that person's events and the release's key alone, with
Σ|amount| ≤ ⌊C/γ⌋ grid units. So adding or removing a person moves all rows together by at most that in ℓ1 norm, and replacing
one by at most twice that: the protocol's radius.
Reference: docs/privacy.md, event tables.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from armslength._numba import Integers, kernel
from armslength.errors import InputError, ParameterError
from armslength.protocol.protocol import Protocol

KEY_BYTES = 32
_COLUMNS = ("person", "group", "item", "amount", "occurrence")
_FARTHEST = 2**62
_MOST_WAITING = 1 << 20  # rows of one person that wait before those that cannot be kept are left out


@dataclass(frozen=True)
class BoundedEvents:
    """Events within everybody's bound: the number of the group, the item, and what is kept of the amount (not 0)."""

    groups: NDArray[np.int32]
    items: pa.Array
    amounts: NDArray[np.int64]


def contribution_in_grid_units(protocol: Protocol) -> int:
    """⌊C/γ⌋, the most that one person may add to a release."""
    if protocol.contribution is None:
        raise ParameterError("contribution must be set for an event table: the most that one person adds")
    bound = math.floor(protocol.contribution / protocol.resolution)
    if not 1 <= bound < 2**62:
        raise ParameterError("contribution must be 1 to 2^62 times the resolution, got another")
    return bound


class KeyedOrder:
    """The order in which a person's events are kept: by a keyed hash of (person, group, item, occurrence number).

    Privacy does not depend on it; the key, drawn for each release, keeps anybody from arranging for their favorite events to come first.
    Reference: docs/reference/contributions.md, the specification by which every engine chooses the same events under the same key.

    Args:
        key: Secret random bytes of this release.
        groups: The labels of all groups, in order.
        each_once: Whether a person counts at most once for each group and item.
        one_group: Whether all that is kept of a person is in one group: the first of theirs by a keyed hash of (person, group).
    """

    def __init__(
        self, key: bytes, groups: Sequence[str], *, each_once: bool = False, one_group: bool = False
    ) -> None:
        self.each_once, self.one_group = each_once, one_group
        self._key = key
        cipher_key = hashlib.blake2b(b"", digest_size=32, key=key, person=b"cipher").digest()
        self._cipher = Cipher(algorithms.AES(cipher_key), modes.ECB())  # noqa: S305  # one block at a time: the chain is below
        self._groups = self._digests("group", [label.encode() for label in groups])
        self.group_count = len(groups)

    def hashes(
        self,
        persons: pa.Array,
        person_index: Integers,
        groups: NDArray[np.int32],
        items: pa.Array,
        occurrences: Integers,
    ) -> NDArray[np.uint64]:
        """The hash of each event as two words, the high one first: n x 2; `person_index` is the place of its person."""
        coded = items.dictionary_encode()
        item_bytes = [
            item.encode() if isinstance(item, str) else item.to_bytes(8, "little", signed=True)
            for item in coded.dictionary.to_pylist()
        ]
        numbers = np.zeros((len(occurrences), 2), dtype="<u8")
        numbers[:, 0] = occurrences
        state = self._group_states(persons, person_index, groups)
        state = self._encrypted(state ^ self._digests("item", item_bytes)[coded.indices.to_numpy()])
        state = self._encrypted(state ^ numbers)
        return state.view(">u8").astype(np.uint64)

    def in_first_group(
        self, persons: pa.Array, person_index: Integers, groups: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Whether each event is in the one group in which its person counts: the first by the hash of (person, group)."""
        hashes = self._group_states(persons, person_index, groups).view(">u8")
        order = np.lexsort((groups, hashes[:, 1], hashes[:, 0], person_index))
        firsts = order[np.searchsorted(person_index[order], np.arange(len(persons)))]
        is_first: NDArray[np.bool_] = groups == groups[firsts][person_index]
        return is_first

    def _group_states(
        self, persons: pa.Array, person_index: Integers, groups: NDArray[np.int32]
    ) -> NDArray[np.uint64]:
        """The chain after the person and the group; its first step is the same for all events of a person."""
        digests = self._digests("person", [person.encode() for person in persons.to_pylist()])
        return self._encrypted(self._encrypted(digests)[person_index] ^ self._groups[groups])

    def _digests(self, kind: str, texts: list[bytes]) -> NDArray[np.uint64]:
        """16 bytes for each text, as two words."""
        digest = partial(hashlib.blake2b, digest_size=16, key=self._key, person=kind.encode())
        return np.frombuffer(b"".join(digest(text).digest() for text in texts), dtype="<u8").reshape(-1, 2)

    def _encrypted(self, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Each block of 16 bytes by itself."""
        encryptor = self._cipher.encryptor()
        ciphertext = encryptor.update(np.ascontiguousarray(blocks).tobytes())
        return np.frombuffer(ciphertext, dtype="<u8").reshape(-1, 2)


def bounded(batches: Iterable[pa.RecordBatch], order: KeyedOrder, bound: int) -> Iterator[BoundedEvents]:
    """The events that are kept, from batches of (person, group, item, amount) that are sorted by all four.

    How rows are cut into batches changes nothing. Batches are checked, so the guarantee does not depend on an engine. Memory is a batch
    and at most as many rows of one person as the bound.
    """
    for rows, starts in _whole_persons(batches, order, bound):
        yield _cut(rows, starts, order, bound)


def bounded_in_parts(
    parts: Iterable[Iterable[pa.RecordBatch]], order: KeyedOrder, bound: int
) -> Iterator[BoundedEvents]:
    """The events that are kept, from several streams like that of `bounded`, where a person may be in all of them.

    All events of one person, group and item must be in one part. What its own part does not keep cannot be kept at all.
    """
    possible = [
        _still_possible(rows, starts, order, bound)
        for batches in parts
        for rows, starts in _whole_persons(batches, order, bound)
    ]
    if possible:
        rows = pa.concat_batches(possible)
        rows = rows.take(pc.sort_indices(rows.column("person")))
        yield _cut(rows, _starts(rows), order, bound)


@dataclass(frozen=True)
class PersonTotals:
    """How much each of some persons has before the bound; no person comes twice. **Not private**."""

    persons: pa.Array
    totals: NDArray[
        np.float64
    ]  # Σ|amount| of what `bounded` could keep, in grid units; exact where each event counts 1


def person_totals(batches: Iterable[pa.RecordBatch], order: KeyedOrder) -> Iterator[PersonTotals]:
    """What each person has before the bound, from batches like those of `bounded`.

    Guarantee: a person's total is a function of that person's events and the release's key alone. It counts what `bounded` would keep under
    an endless bound: each (group, item) once where the order says so, and one group where it says so.
    """
    waiting: list[pa.RecordBatch] = []
    for runs in _group_runs(batches, order):
        together = pa.concat_batches([*waiting, runs])
        starts = _starts(together)
        whole = int(starts[-2])  # where the last person begins, who may go on in the next batch
        if whole:
            yield _totals(together.slice(0, whole), starts[:-1], order)
        waiting = [together.slice(whole)]
    for rest in waiting:
        yield _totals(rest, np.array([0, rest.num_rows]), order)


def person_totals_in_parts(
    parts: Iterable[Iterable[pa.RecordBatch]], order: KeyedOrder
) -> Iterator[PersonTotals]:
    """The same from several streams like those of `bounded_in_parts`, where a person may be in all of them."""
    runs = [each for batches in parts for each in _group_runs(batches, order)]
    if runs:
        together = pa.concat_batches(runs)
        together = together.take(pc.sort_indices(together.column("person")))
        yield _totals(together, _starts(together), order)


def _group_runs(batches: Iterable[pa.RecordBatch], order: KeyedOrder) -> Iterator[pa.RecordBatch]:
    """For each batch, (person, group, Σ|amount|) of every run of rows of one person and group."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        check_batch(batch, order.group_count, None if last is None else last.column("person")[0])
        rows = _numbered(batch, last)
        last = rows.slice(rows.num_rows - 1)
        person, group = rows.column("person"), rows.column("group")
        is_new = pc.or_(pc.not_equal(person[1:], person[:-1]), pc.not_equal(group[1:], group[:-1]))
        starts = np.append(0, np.flatnonzero(is_new.to_numpy(zero_copy_only=False)) + 1)
        if order.each_once:
            amounts = rows.column("occurrence").to_numpy() == 0
        else:
            amounts = np.abs(rows.column("amount").to_numpy())
        totals = np.add.reduceat(amounts, starts, dtype=np.float64)  # weights may add up to more than 2^63
        columns = [person.take(pa.array(starts)), group.take(pa.array(starts)), pa.array(totals)]
        yield pa.RecordBatch.from_arrays(columns, ("person", "group", "total"))


def _totals(runs: pa.RecordBatch, starts: Integers, order: KeyedOrder) -> PersonTotals:
    """The totals of whole persons from their runs."""
    amounts = runs.column("total").to_numpy()
    if order.one_group:
        amounts = np.where(_in_first_group(runs, starts, order), amounts, 0)
    persons = runs.column("person").take(pa.array(starts[:-1]))
    return PersonTotals(persons, np.add.reduceat(amounts, starts[:-1]))


@kernel
def mark_persons_over(starts: Integers, amounts: Integers, bound: int, is_over: NDArray[np.bool_]) -> None:
    """Whether each person's Σ|amount| exceeds the bound; person i has rows starts[i] … starts[i+1]−1."""
    for person in range(len(starts) - 1):
        left = bound
        over = False
        for row in range(starts[person], starts[person + 1]):
            magnitude = abs(amounts[row])
            if not 0 <= magnitude <= left:  # the smallest int64 has no magnitude
                over = True
                break
            left -= magnitude
        is_over[person] = over


@kernel
def cap_contributions(
    starts: Integers, order: Integers, amounts: Integers, bound: int, result: Integers
) -> None:
    """What of each amount is kept: in order, until Σ|amount| reaches the bound; the last one is truncated.

    Person i has the places starts[i] … starts[i+1]−1 of the order.
    """
    for person in range(len(starts) - 1):
        left = bound
        for place in range(starts[person], starts[person + 1]):
            row = order[place]
            magnitude = abs(amounts[row])
            part = min(magnitude, left) if magnitude >= 0 else left
            left -= part
            result[row] = part if amounts[row] > 0 else -part


def _whole_persons(
    batches: Iterable[pa.RecordBatch], order: KeyedOrder, bound: int
) -> Iterator[tuple[pa.RecordBatch, Integers]]:
    """Sorted rows of whole persons with occurrence numbers, as far as they could be kept; and where each person begins."""
    waiting: pa.RecordBatch | None = None
    last: pa.RecordBatch | None = None
    most = _MOST_WAITING
    for batch in batches:
        if batch.num_rows == 0:
            continue
        check_batch(batch, order.group_count, None if last is None else last.column("person")[0])
        rows = _numbered(batch, last)
        last = rows.slice(rows.num_rows - 1)
        if order.each_once:
            rows = rows.filter(pc.equal(rows.column("occurrence"), 0))
            if rows.num_rows == 0:
                continue
        if waiting is not None:
            rows = pa.concat_batches([waiting, rows])
        starts = _starts(rows)
        whole = int(starts[-2])  # where the last person begins, who may go on in the next batch
        if whole:
            yield rows.slice(0, whole), starts[:-1]
        waiting = rows.slice(whole)
        most = most if whole == 0 else _MOST_WAITING
        if waiting.num_rows > most:
            waiting = _still_possible(waiting, np.array([0, waiting.num_rows]), order, bound)
            # so that a large bound is not hashed again with every batch
            most = max(_MOST_WAITING, 2 * waiting.num_rows)
    if waiting is not None:
        yield waiting, np.array([0, waiting.num_rows])


def check_batch(batch: pa.RecordBatch, group_count: int, last_person: pa.Scalar | None) -> None:
    """Refuses a batch with missing values, broken text, impossible amounts or groups, or persons out of order."""
    person, group, _, amount = batch.columns
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        raise InputError("events must be valid text and numbers, got something else") from None
    broken = InputError(
        "events must come sorted by person, complete, within 2^62; got others from the engine"
    )
    if any(column.null_count for column in batch.columns):
        raise broken
    amounts, groups = (column.to_numpy(zero_copy_only=False) for column in (amount, group))
    if not (
        (amounts >= -_FARTHEST).all()
        and (amounts <= _FARTHEST).all()
        and (groups >= 0).all()
        and (groups < group_count).all()
        and pc.all(pc.less_equal(person[:-1], person[1:]), min_count=0).as_py()
        and (last_person is None or pc.less_equal(last_person, person[0]).as_py())
    ):
        raise broken


def _numbered(batch: pa.RecordBatch, last: pa.RecordBatch | None) -> pa.RecordBatch:
    """The batch with occurrence numbers, which continue from the last row of the batch before."""
    is_same = np.zeros(batch.num_rows, dtype=np.bool_)
    is_same[1:] = True
    for column in batch.columns[:3]:
        is_same[1:] &= pc.equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    before = -1
    if last is not None:
        is_same[0] = all(last.column(place)[0] == batch.column(place)[0] for place in range(3))
        before = last.column("occurrence")[0].as_py()
    # where each row's run of equal rows begins; for the run that goes on, before the batch
    places = np.arange(batch.num_rows)
    numbers = places - np.maximum.accumulate(np.where(is_same, -1 - before, places))
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(numbers)], _COLUMNS)


def _starts(rows: pa.RecordBatch) -> Integers:
    """Where each person's rows begin, and where the last one's end."""
    person = rows.column("person")
    changes = pc.not_equal(person[1:], person[:-1]).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(changes) + 1, [len(person)]]).astype(np.int64)


def _cut(rows: pa.RecordBatch, starts: Integers, order: KeyedOrder, bound: int) -> BoundedEvents:
    """What is kept of the rows of whole persons."""
    amounts = _kept_amounts(rows, starts, order, bound)
    if not amounts.all():
        places = np.flatnonzero(amounts)
        rows, amounts = rows.take(pa.array(places)), amounts[places]
    return BoundedEvents(rows.column("group").to_numpy(), rows.column("item"), amounts)


def _still_possible(rows: pa.RecordBatch, starts: Integers, order: KeyedOrder, bound: int) -> pa.RecordBatch:
    """The rows that could still be kept when more rows of the same persons come: those before the bound is reached."""
    amounts = _kept_amounts(rows, starts, order, bound)
    return rows if amounts.all() else rows.take(pa.array(np.flatnonzero(amounts)))


def _kept_amounts(rows: pa.RecordBatch, starts: Integers, order: KeyedOrder, bound: int) -> Integers:
    """What is kept of each row if these are all rows of their persons."""
    amounts: Integers = rows.column("amount").to_numpy()
    if order.one_group:
        amounts = np.where(_in_first_group(rows, starts, order), amounts, 0)
    is_over = np.empty(len(starts) - 1, dtype=np.bool_)
    mark_persons_over(starts, amounts, bound, is_over)
    if not is_over.any():
        return amounts
    # only events of persons over the bound need an order
    places = np.flatnonzero(np.repeat(is_over, np.diff(starts)))
    over = rows.take(pa.array(places))
    over_starts = np.concatenate([[0], np.cumsum(np.diff(starts)[is_over])]).astype(np.int64)
    capped = np.empty(len(places), dtype=np.int64)
    cap_contributions(over_starts, _in_order(over, over_starts, order), amounts[places], bound, capped)
    amounts = amounts.copy()
    amounts[places] = capped
    return amounts


def _in_first_group(rows: pa.RecordBatch, starts: Integers, order: KeyedOrder) -> NDArray[np.bool_]:
    """Whether each row is in its person's one group; nearly all persons are in one group anyway."""
    groups = rows.column("group").to_numpy()
    is_in_several = np.minimum.reduceat(groups, starts[:-1]) != np.maximum.reduceat(groups, starts[:-1])
    is_kept = np.ones(len(groups), dtype=np.bool_)
    if is_in_several.any():
        counts = np.diff(starts)
        places = np.flatnonzero(np.repeat(is_in_several, counts))
        person_index = np.repeat(np.arange(is_in_several.sum()), counts[is_in_several])
        persons = rows.column("person").take(pa.array(starts[:-1][is_in_several]))
        is_kept[places] = order.in_first_group(persons, person_index, groups[places])
    return is_kept


def _in_order(rows: pa.RecordBatch, starts: Integers, order: KeyedOrder) -> Integers:
    """The rows, person by person, in the order in which they are kept."""
    person_index = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    persons = rows.column("person").take(pa.array(starts[:-1]))
    groups, occurrences = rows.column("group").to_numpy(), rows.column("occurrence").to_numpy()
    hashes = order.hashes(persons, person_index, groups, rows.column("item"), occurrences)
    return np.lexsort((hashes[:, 1], hashes[:, 0], person_index))
