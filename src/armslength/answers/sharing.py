"""Pairs of queries and index rows that have a noise in common: few, found without a look at every pair."""

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.distances import chosen_squares
from armslength.estimates.pair_noise import PairNoise, PairNoises
from armslength.estimates.variance import debias
from armslength.sketches.sketches import Sketches

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


class Holders:
    """Which query holds which noise.

    Args:
        queries: Whose noises they are.
        within: Whether blocks are rows of the queries themselves: a row and itself are no pair.
    """

    def __init__(self, queries: Sketches, *, within: bool) -> None:
        self._queries, self._within = queries, within
        self._rows: dict[str, list[int]] | None = None
        self._words = None if queries.released is None else np.unique(_first_words(queries.released.ids))

    def pairs_with(self, block: Sketches, first_number: int, at_most: int) -> Pairs | None:
        """The pairs (query, row of the block) that share a noise, by query; None if there are more than so many.

        Args:
            block: Consecutive rows of the index.
            first_number: The number of the first of them.
            at_most: How many pairs are not too many.
        """
        rows = np.arange(len(block))
        if block.released is not None and self._words is not None:
            # Half of an id rules nearly all rows out, without an object for each.
            if self._within and len(self._words) == len(self._queries):
                rows = rows[:0]
            else:
                rows = np.flatnonzero(np.isin(_first_words(block.released.ids), self._words))
            if not len(rows):
                return rows, rows
        if self._rows is None:
            self._rows = {}
            for query, noises in enumerate(self._queries.provenance):
                for source, _ in noises.terms:
                    self._rows.setdefault(source.id, []).append(query)
        found = [
            (self._rows[source.id], row)
            for row in rows.tolist()
            for source, _ in block.provenance[row].terms
            if source.id in self._rows
        ]
        if sum(len(queries) for queries, _ in found) > at_most:
            return None
        pairs = sorted(
            {
                (query, row)
                for queries, row in found
                for query in queries
                if not (self._within and query == first_number + row)
            }
        )
        return (
            np.array([query for query, _ in pairs], dtype=np.int64),
            np.array([row for _, row in pairs], dtype=np.int64),
        )


def _first_words(ids: NDArray[np.void]) -> NDArray[np.uint64]:
    """The first half of every id."""
    return np.frombuffer(ids.tobytes(), dtype=np.uint64)[::2]


def shared_values(queries: Sketches, block: Sketches, pairs: Pairs) -> tuple[NDArray[np.float64], PairNoises]:
    """The estimated squared distances of pairs that share a noise, and what is left of their noises."""
    different: dict[PairNoise, int] = {}
    numbers = []
    for i, j in zip(*(each.tolist() for each in pairs), strict=True):
        noise = PairNoise.of(queries.provenance[i].plus(block.provenance[j], -1.0).terms)
        numbers.append(different.setdefault(noise, len(different)))
    noises = PairNoises.of(list(different), np.array(numbers, dtype=np.int64))
    protocol = queries.protocols[0]
    value = chosen_squares(queries, block, *pairs) - debias(protocol, noises.each("k2"))
    return protocol.unit_squared * value, noises
