"""Pairs of queries and index rows that have a noise in common: few, found without a look at every pair."""

from typing import Any

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

    def pairs_with(self, block: Sketches, first_number: int, at_most: int) -> Pairs | None:
        """The pairs (query, row of the block) that share a noise, by query; None if there are more than so many.

        Args:
            block: Consecutive rows of the index.
            first_number: The number of the first of them.
            at_most: How many pairs are not too many.
        """
        mine, theirs = self._queries.noises, block.noises
        if self._within and mine.are_fresh:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        if mine.shared_count(theirs) > at_most:
            return None
        queries, rows = mine.shared_pairs(theirs)
        kept = (queries != first_number + rows) | (not self._within)
        return queries[kept], rows[kept]


def shared_values(queries: Sketches, block: Sketches, pairs: Pairs) -> tuple[NDArray[np.float64], PairNoises]:
    """The estimated squared distances of pairs that share a noise, and what is left of their noises."""
    merged = queries.noises.take(pairs[0]).plus(block.noises.take(pairs[1]), -1.0)
    classes, terms = merged.classes()
    groups: list[tuple[PairNoise, Any]] = [
        (PairNoise.of(each), np.flatnonzero(classes == number)) for number, each in enumerate(terms)
    ]
    noises = PairNoises((len(pairs[0]),), tuple(groups))
    protocol = queries.protocols[0]
    value = chosen_squares(queries, block, *pairs) - debias(protocol, noises.each("k2"))
    return protocol.unit_squared * value, noises
