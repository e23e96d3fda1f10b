"""Memory of a search: blocks of the index are bounded in bytes, and only one is held at a time."""

import weakref

import numpy as np
import pytest

import armslength as al
from armslength.answers import candidates, nearest
from armslength.estimates.intervals import Level


class Watched(al.Collection):
    """An index that knows how many rows it was asked for, and that no block outlives its turn."""

    def __init__(self, whole):
        self._whole, self.protocols = whole, whole.protocols
        self.asked, self.given = 0, 0

    def __len__(self):
        return len(self._whole)

    def blocks(self, rows):
        self.asked = rows
        for start in range(0, len(self._whole), rows):
            given = [self._whole.span(start, min(start + rows, len(self._whole)))]
            left = weakref.ref(given[0])
            yield given.pop()
            assert left() is None, "a block is held while the next is read"
            self.given += 1

    def rows(self, numbers):
        return self._whole.rows(numbers)


def released(rows, coordinates):
    protocol = al.Protocol(
        al.SparseJL(input_dim=coordinates, sketch_dim=coordinates, sparsity=1, seed="memory"), epsilon=1
    )
    return protocol.release(np.ones((rows, coordinates), dtype=np.int32), ledger=al.NO_LEDGER)


@pytest.mark.parametrize("classes", [0, 32], ids=["tiles", "candidates"])
def test_a_block_is_gone_before_the_next_is_read(monkeypatch, classes):
    monkeypatch.setattr(nearest, "_ROWS", 40)
    monkeypatch.setattr(candidates, "MOST_NOISES", classes)
    index = Watched(released(100, 16))
    al.nearest(released(3, 16), index, 2)
    assert (index.asked, index.given) == (40, 3)


@pytest.mark.parametrize(("coordinates", "rows"), [(1, 65_536), (256, 65_536), (1000, 16_777), (2**20, 32)])
def test_longer_rows_come_in_shorter_blocks(coordinates, rows):
    assert candidates.rows_at_once(coordinates, nearest._ROWS, nearest._NUMBERS) == rows


@pytest.mark.parametrize(("coordinates", "rows"), [(1, 4096), (256, 4096), (1000, 2097), (2**20, 32)])
def test_rows_as_floats_fit_into_a_cache(coordinates, rows):
    assert candidates.rows_at_once(coordinates, candidates.ROWS, candidates._NUMBERS) == rows


def test_products_are_never_those_of_all_pairs(monkeypatch):
    sizes, squares = [], candidates.chosen_squares

    def watched(queries, rows, i, j):
        sizes.append(len(i))
        return squares(queries, rows, i, j)

    monkeypatch.setattr(candidates, "chosen_squares", watched)
    monkeypatch.setattr(candidates, "ROWS", 30)
    monkeypatch.setattr(candidates, "QUERIES", 20)
    equal = al.concat([released(1, 16)] * 100)  # nothing is ruled out
    al.nearest(released(50, 16), equal, 2)
    assert max(sizes) == 20 * 30


def test_both_sizes_are_used(monkeypatch):
    monkeypatch.setattr(nearest, "_NUMBERS", 48 * 16)
    monkeypatch.setattr(candidates, "_NUMBERS", 33 * 16)
    index, done = Watched(released(100, 16)), []
    al.nearest(released(3, 16), index, 2)
    assert (index.asked, index.given) == (48, 3)
    search = candidates.Candidates(released(1, 16), 2, Level.of(0.9, "asymptotic", 100), within=False)
    assert search.search(released(100, 16), 0, nearest.Shortlist(1, 2), done.append)
    assert sum(done) == 100
    assert max(done) == 33
