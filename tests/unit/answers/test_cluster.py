"""Trees: what SciPy makes of the estimates; support as it is defined; and that supported groups are groups of the true tree."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

import armslength as al
from armslength.answers.cluster import LINKAGES, _members, _supported

PROTOCOL = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="cluster"), epsilon=1)
RNG = np.random.default_rng(3)


def three_groups():
    centers = RNG.integers(0, 300, (3, 300))
    data = np.repeat(centers, 3, axis=0) + RNG.integers(0, 2, (9, 300))
    labels = [f"{group}{member}" for group in "abc" for member in range(3)]
    return PROTOCOL.release(data, labels=labels, ledger=al.NO_LEDGER)


@pytest.mark.parametrize("linkage", LINKAGES)
def test_the_tree_is_scipys_for_the_estimates(linkage):
    sketches = three_groups()
    found = al.cluster(sketches, linkage=linkage)
    distances = al.distances(sketches).value
    expected = hierarchy.linkage(squareform(distances, checks=False), linkage)
    np.testing.assert_allclose(found.linkage[:, 2], expected[:, 2])
    assert (np.diff(found.linkage[:, 2]) >= 0).all()
    assert np.allclose(hierarchy.cophenet(found.linkage), hierarchy.cophenet(expected))
    assert sorted(found.order) == list(range(9))
    assert tuple(hierarchy.leaves_list(found.linkage)) == found.order
    assert found.labels == sketches.labels


@pytest.mark.parametrize("leaves", [2, 3, 5, 9, 16])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_support_is_what_its_definition_says(leaves, linkage):
    for _ in range(20):
        truth = squareform(pdist(RNG.normal(size=(leaves, 2)) ** 3))
        width = 10.0 ** RNG.uniform(-4, 0)
        lower, upper = np.maximum(truth - width, 0), truth + width
        np.fill_diagonal(upper, 0)
        merges = hierarchy.linkage(squareform(truth), linkage)
        supported = _supported(merges, lower, upper)
        for merge, members in enumerate(_members(merges)[:-1]):
            outside = [leaf for leaf in range(leaves) if leaf not in members]
            inside = upper[np.ix_(members, members)].max()
            assert supported[merge] == (inside < lower[np.ix_(members, outside)].min())
        parts = [int(part) - leaves for part in merges[-1, :2]]
        assert supported[-1] == all(part < 0 or supported[part] for part in parts)


@pytest.mark.parametrize("linkage", LINKAGES)
def test_a_supported_group_is_in_the_tree_of_any_distances_within_the_ends(linkage):
    seen = 0
    for _ in range(60):
        leaves = 7
        truth = squareform(pdist(RNG.normal(size=(leaves, 1)) ** 3))
        width = 10.0 ** RNG.uniform(-3, -0.5)
        lower, upper = np.maximum(truth - width, 0), truth + width
        np.fill_diagonal(upper, 0)
        # What was estimated, and what might be true: both within the ends.
        estimated, true = (
            lower + squareform(RNG.random(leaves * (leaves - 1) // 2)) * (upper - lower) for _ in range(2)
        )
        for matrix in (estimated, true):
            np.fill_diagonal(matrix, 0)
        merges = hierarchy.linkage(squareform(estimated, checks=False), linkage)
        supported = _supported(merges, lower, upper)
        true_groups = {
            frozenset(members) for members in _members(hierarchy.linkage(squareform(true), linkage))
        }
        for merge in np.flatnonzero(supported):
            seen += 1
            assert frozenset(_members(merges)[merge]) in true_groups
    assert seen > 60


def test_groups_that_are_far_apart_are_sure_though_their_insides_are_not():
    found = al.cluster(three_groups())
    assert {frozenset(group) for group in found.groups()} == {
        frozenset(f"{group}{member}" for member in range(3)) for group in "abc"
    }
    assert found.flat().tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    text = str(found)
    assert text.startswith("9 parties, average linkage: ")
    assert text.count("surely together: ") == 3


def test_equal_parties_are_no_groups():
    sketches = PROTOCOL.release(np.zeros((8, 300), dtype=int), ledger=al.NO_LEDGER)
    found = al.cluster(sketches, level=1 - 1e-8)
    assert not found.supported.any()
    assert found.groups() == ()
    assert found.flat().tolist() == list(range(8))
    assert "no group is sure" in str(found)


def test_support_is_by_simultaneous_ends():
    data = np.zeros((8, 300), dtype=int)
    for row in range(8):
        data[row, :150] = 3 * row**2
    differs = 0
    for _ in range(12):
        sketches = PROTOCOL.release(data, ledger=al.NO_LEDGER)
        found = al.cluster(sketches, level=0.5)
        together, alone = (
            _supported(found.linkage, *al.distances(sketches).interval(0.5, simultaneous=simultaneous))
            for simultaneous in (True, False)
        )
        assert found.supported.tolist() == together.tolist()
        differs += together.tolist() != alone.tolist()
    assert differs


def test_cuts():
    found = al.cluster(three_groups())
    assert found.flat(1).tolist() == [0] * 9
    assert found.flat(3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found.flat(9).tolist() == list(range(9))
    for count in range(1, 10):
        assert len(set(found.flat(count).tolist())) == count
    between = float(found.linkage[5, 2] + found.linkage[6, 2]) / 2
    assert found.flat(height=between).tolist() == found.flat(3).tolist()
    assert found.flat(height=float(found.linkage[6, 2])).tolist() == found.flat(2).tolist()
    assert found.flat(height=0).max() >= 6
    for wrong in ({"count": 0}, {"count": 10}, {"height": float("nan")}, {"count": 2, "height": 1}):
        with pytest.raises(al.ParameterError, match="must"):
            found.flat(**wrong)


def test_two_parties():
    sketches = three_groups()[:2]
    found = al.cluster(sketches)
    assert found.linkage.shape == (1, 4)
    assert found.supported.tolist() == [True]
    assert found.groups() == ()


def test_wrong_arguments_are_refused(monkeypatch):
    sketches = three_groups()
    with pytest.raises(al.ParameterError, match="linkage must be one of"):
        al.cluster(sketches, linkage="ward")
    with pytest.raises(al.ParameterError, match="at least 2 rows"):
        al.cluster(sketches[0])
    with pytest.raises(al.ParameterError, match="a collection of them, got ndarray"):
        al.cluster(sketches.values)
    with pytest.raises(al.ParameterError, match="level must"):
        al.cluster(sketches, level=2)
    monkeypatch.setattr("armslength.answers.cluster.MOST_ROWS", 8)
    with pytest.raises(al.ParameterError, match="at most 8 rows for a tree, got 9"):
        al.cluster(sketches)


def test_without_the_best_order_the_tree_is_the_same(monkeypatch):
    sketches = three_groups()
    best = al.cluster(sketches)
    monkeypatch.setattr("armslength.answers.cluster._MOST_ORDERED", 3)
    plain = al.cluster(sketches)
    assert np.array_equal(plain.linkage[:, 2], best.linkage[:, 2])
    assert sorted(plain.order) == sorted(best.order)
