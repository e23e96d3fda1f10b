"""Trees: what SciPy makes of the estimates; support as it is defined; groups and cuts that follow from it."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

import armslength as al
from armslength.answers import cluster as module
from armslength.answers.cluster import LINKAGES, Clusters, _largest_tails, _members
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants

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


def contrast(leaves, a, b):
    """M with d̄²(a, b) = Σ M_ij⟨u_i, u_j⟩."""
    matrix = np.zeros((leaves, leaves))
    matrix[a, a], matrix[b, b] = 1 / len(a), 1 / len(b)
    matrix[np.ix_(a, b)] = -1 / (len(a) * len(b))
    matrix[np.ix_(b, a)] = -1 / (len(a) * len(b))
    return matrix


@pytest.mark.parametrize("leaves", [3, 5, 9, 16])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_deviates_are_what_their_definition_says(leaves, linkage, monkeypatch):
    monkeypatch.setattr(module, "_pearson_tail", lambda z, _: -z)  # the smallest deviate has the largest tail
    model = ErrorModel.of(PROTOCOL)
    curve = model.variance_curve(Cumulants(1.0, 0.0))
    for _ in range(5):
        rows = 40 * RNG.normal(size=(leaves, 6)) ** 3
        squared = squareform(pdist(rows)) ** 2
        first = squareform(pdist(rows[:, :3])) ** 2
        k2, k4 = RNG.gamma(1, 1, (2, leaves))
        error = squareform(RNG.gamma(1, 1, leaves * (leaves - 1) // 2))
        merges = hierarchy.linkage(squareform(np.sqrt(squared)), linkage)
        order = tuple(hierarchy.leaves_list(merges).tolist())
        pairs = squared, k2[:, None] * squared, error, first, squared - first
        found = -_largest_tails(merges, order, pairs, (k2, k4), model, (0.0, 0.0))
        nodes = [[leaf] for leaf in range(leaves)] + _members(merges)
        alive = set(range(leaves))
        for merge, joined in enumerate(merges[:, :2].astype(int).tolist()):
            for group in (node for node in joined if node >= leaves):
                left, right = (nodes[part] for part in merges[group - leaves, :2].astype(int))
                expected = np.inf
                for other in alive - {group}:
                    m = contrast(leaves, nodes[group], nodes[other]) - contrast(leaves, left, right)
                    theta, part = -(m * squared).sum() / 2, -(m * first).sum() / 2
                    noise, shared = np.diag(k2), error[np.ix_(left, right)].mean()
                    shared += error[np.ix_(nodes[group], nodes[other])].mean()
                    variance = curve.b * max(-np.trace(noise @ m @ squared @ m) / 2, 0.0) + shared**2
                    variance += (
                        curve.c * np.trace(m @ noise @ m @ noise) + model.kurtosis * k4 @ np.diag(m) ** 2
                    )
                    expected = min(expected, theta / np.sqrt(variance) if 0 < part < theta else -np.inf)
                assert found[group - leaves] == pytest.approx(expected)
            alive = alive - set(joined) | {leaves + merge}


def test_groups_that_are_far_apart_are_supported_though_their_insides_are_not():
    found = al.cluster(three_groups())
    assert {frozenset(group) for group in found.groups()} == {
        frozenset(f"{group}{member}" for member in range(3)) for group in "abc"
    }
    assert found.supported.tolist() == (found.support <= 0.05).tolist()
    assert found.in_supported.all()
    assert found.flat().tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert all(label in str(found) for label in found.labels)
    assert found.to_arrow().column_names == ["label", "cluster", "supported", "in_clear"]


def test_groups_are_supported_by_shape_and_without_a_projection():
    rng = np.random.default_rng(4)
    shares = np.repeat(rng.gamma(0.5, 1, (3, 300)), 3, axis=0)
    counts = rng.poisson(shares / shares.sum(axis=1, keepdims=True) * rng.integers(20_000, 90_000, (9, 1)))
    for transform in (al.SparseJL(input_dim=300, sketch_dim=512, seed="shape"), al.Identity(input_dim=300)):
        sketches = al.Protocol(transform, epsilon=1, total_share="0.1").release(counts, ledger=al.NO_LEDGER)
        found = al.cluster(sketches, by="shape")
        members = [sorted(each) for each in _members(found.linkage)]
        supported = [
            each for each, is_supported in zip(members, found.supported, strict=True) if is_supported
        ]
        assert all(group in supported for group in ([0, 1, 2], [3, 4, 5], [6, 7, 8]))


def test_equal_parties_are_one_cluster_without_support():
    sketches = PROTOCOL.release(np.zeros((8, 300), dtype=int), ledger=al.NO_LEDGER)
    found = al.cluster(sketches, level=1 - 1e-8)
    assert not found.supported.any()
    assert not found.in_supported.any()
    assert found.groups() == ()
    assert found.flat().tolist() == [0] * 8
    assert str(found)


def test_nothing_is_claimed_of_rows_that_share_noise():
    sketches = three_groups()
    doubled = al.concat([sketches, sketches[:1] + sketches[1:2]])
    assert al.cluster(sketches).supported.any()
    assert (al.cluster(doubled).support == 1).all()


def test_clusters_beside_a_supported_group_stay_together():
    # ((0, 1), 2), ((3, 4), 5), and both: only (0, 1) is supported.
    linkage = np.array([[0, 1, 1, 2], [3, 4, 2, 2], [6, 2, 3, 3], [7, 5, 4, 3], [8, 9, 5, 6]], dtype=float)
    support = np.array([0.01, 1, 1, 1, 1])
    tree = Clusters(
        tuple("abcdef"), linkage, support, tuple(range(6)), "average", level=0.95, by="size", note=""
    )
    assert tree.flat().tolist() == [0, 0, 1, 2, 2, 2]
    assert tree.in_supported.tolist() == [True, True, False, False, False, False]
    assert tree.groups() == (("a", "b"),)
    nested = Clusters(
        tuple("abcdef"),
        linkage,
        np.array([0.01, 1, 0.02, 1, 1]),
        tuple(range(6)),
        "average",
        level=0.95,
        by="size",
        note="",
    )
    assert nested.groups() == (("a", "b", "c"),)
    assert nested.flat().tolist() == [0, 0, 0, 1, 1, 1]


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
    assert found.support.tolist() == [1.0]
    assert found.groups() == ()


def test_wrong_arguments_are_refused(monkeypatch):
    sketches = three_groups()
    with pytest.raises(al.ParameterError, match="linkage must be one of"):
        al.cluster(sketches, linkage="ward")
    with pytest.raises(al.ParameterError, match="at least 2 rows"):
        al.cluster(sketches[0])
    with pytest.raises(al.ParameterError, match=r"sketches must be al\.Sketches, got ndarray"):
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
