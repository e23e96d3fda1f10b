"""Groups: no two parties that differ are in one, nothing else keeps two apart, and the tree is SciPy's for the estimates."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

import armslength as al
from armslength.answers.cluster import _members, cluster_estimate
from report_parties import with_margins

PROTOCOL = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="cluster"), epsilon=1)
SURELY = 1 - 1e-9


def three_groups():
    """Three parties of each of three mixes that are far apart."""
    data = np.repeat(np.random.default_rng(3).integers(0, 300, (3, 300)), 3, axis=0)
    labels = [f"{group}{member}" for group in "abc" for member in range(3)]
    return al.release(PROTOCOL, data, labels=labels, ledger=al.NO_LEDGER)


def found_of(sketches, differ):
    """The groups, if these pairs of rows are all that differ."""
    matrix = np.zeros((len(sketches), len(sketches)), dtype=bool)
    for i, j in differ:
        matrix[i, j] = matrix[j, i] = True
    return cluster_estimate(al.squared_distances(sketches), matrix, level=0.95, about="counts", note="")


def check(found):
    """What holds of every answer: no pair in a group differs, each two groups have a pair that does, and merges rise."""
    groups = found.group_rows()
    assert sorted(row for rows in groups for row in rows) == list(range(len(found.labels)))
    assert not any(found.differ[np.ix_(rows, rows)].any() for rows in groups)
    assert all(found.differ[np.ix_(a, b)].any() for a in groups for b in groups if a is not b)
    assert found.merges == len(found.labels) - len(groups)
    inside = [sorted(rows) for rows in _members(found.linkage)[: found.merges]]
    assert all(any(set(rows) <= set(group) for group in groups) for rows in inside)
    assert hierarchy.is_valid_linkage(found.linkage)
    heights = np.append(np.zeros(len(found.labels)), found.linkage[:, 2])
    for parts, height in zip(found.linkage[:, :2].astype(int), found.linkage[:, 2], strict=True):
        assert (heights[parts] <= height).all()
    assert tuple(hierarchy.leaves_list(found.linkage)) == found.order


def test_groups_that_are_far_apart_are_found():
    found = al.cluster(three_groups(), level=SURELY)
    check(found)
    assert found.flat().tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found.groups() == (("a0", "a1", "a2"), ("b0", "b1", "b2"), ("c0", "c1", "c2"))
    assert all(found.is_apart(rows) for rows in found.group_rows())
    text = str(found)
    assert [next(label for label in rows if label in text) for rows in found.groups()] == ["a0", "b0", "c0"]
    table = found.to_arrow()
    assert table.column_names == ["party", "group", "apart", "in_clear"]
    assert all(table["apart"].to_pylist())
    assert found.within_group.tolist() == [True] * 6 + [False] * 2


def test_the_pairs_that_differ_are_those_of_the_intervals():
    sketches = three_groups()
    for level in (0.5, 0.95, SURELY):
        lower, upper = al.distances(sketches).interval(level, simultaneous=True)
        assert np.array_equal(al.cluster(sketches, level=level).differ, lower > 0)
        limit = np.median(upper[np.isfinite(upper)])
        alike = al.cluster(sketches, level=level, alike=limit)
        assert np.array_equal(alike.differ, (lower > 0) & (upper > limit))


def test_without_a_pair_that_differs_the_tree_is_scipys():
    sketches = three_groups()
    found = found_of(sketches, [])
    check(found)
    expected = hierarchy.linkage(squareform(al.distances(sketches).value, checks=False), "average")
    np.testing.assert_allclose(found.linkage[:, 2], expected[:, 2])
    np.testing.assert_allclose(hierarchy.cophenet(found.linkage), hierarchy.cophenet(expected))
    assert found.groups() == (sketches.labels,)
    assert str(found)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_parties_of_a_group_differ_whatever_pairs_do(seed):
    """Differing need not be transitive: small parties may differ from nobody, and large ones from each other."""
    rng = np.random.default_rng(seed)
    sketches = al.release(PROTOCOL, rng.integers(0, 60, (12, 300)), ledger=al.NO_LEDGER)
    pairs = [(i, j) for i in range(12) for j in range(i) if rng.random() < rng.choice([0.05, 0.3, 0.8])]
    check(found_of(sketches, pairs))


def test_one_party_that_differs_from_nobody_joins_the_nearest_group():
    rows = np.zeros((5, 300), dtype=int)
    rows[2:4, :150], rows[4, :150] = 900, 700
    found = found_of(al.release(PROTOCOL, rows, ledger=al.NO_LEDGER), [(0, 2), (0, 3), (1, 2), (1, 3)])
    check(found)
    assert found.groups() == (("2", "3", "4"), ("0", "1"))
    assert not found.is_apart([2, 3, 4])
    assert not found.is_apart([0, 1])


def test_all_differ():
    found = found_of(three_groups()[:3], [(0, 1), (0, 2), (1, 2)])
    check(found)
    assert found.groups() == ()
    assert all(label in str(found) for label in found.labels)


def test_votes_beyond_chance():
    low, high = [0.1, 0.1, 0.3], [0.1, 0.6, 0.3]
    sketches = with_margins([low] * 3 + [high] * 3 + [low], people=[3000] * 6 + [15])
    found = al.cluster(sketches, about="populations")
    check(found)
    assert found.groups() == (("ward 1", "ward 2", "ward 3"), ("ward 4", "ward 5", "ward 6"))
    assert found.about == "populations"
    assert found.note.count("ward 7") == 1
    assert "ward 7" not in found.labels


def test_equal_parties_are_one_group():
    sketches = al.release(PROTOCOL, np.zeros((8, 300), dtype=int), ledger=al.NO_LEDGER)
    found = al.cluster(sketches, level=SURELY)
    check(found)
    assert found.groups() == (sketches.labels,)
    assert not found.differ.any()
    assert found.to_arrow()["apart"].to_pylist() == [True] * 8  # there is nobody else


def test_rows_that_share_noise():
    sketches = three_groups()
    doubled = al.concat([sketches, sketches[:1] + sketches[1:2]])
    check(al.cluster(doubled))


def test_two_parties():
    found = al.cluster(three_groups()[:2])
    check(found)
    assert found.linkage.shape == (1, 4)


def test_wrong_arguments_are_refused(monkeypatch):
    sketches = three_groups()
    with pytest.raises(al.ParameterError, match="at least 2 rows"):
        al.cluster(sketches[0])
    with pytest.raises(al.ParameterError, match=r"sketches must be al\.Sketches, got ndarray"):
        al.cluster(sketches.values)
    with pytest.raises(al.ParameterError, match="level must"):
        al.cluster(sketches, level=2)
    for known in ({"about": "populations"}, {"about": "shape"}, {"alike": -1}):
        with pytest.raises(al.ParameterError, match=next(iter(known))):
            al.cluster(sketches, **known)
    monkeypatch.setattr("armslength.answers.cluster.MOST_ROWS", 8)
    with pytest.raises(al.ParameterError, match="at most 8 rows for a tree, got 9"):
        al.cluster(sketches)


def test_without_the_best_order_the_tree_is_the_same(monkeypatch):
    sketches = three_groups()
    best = al.cluster(sketches)
    monkeypatch.setattr("armslength.answers.cluster._MOST_ORDERED", 3)
    plain = al.cluster(sketches)
    assert np.allclose(plain.linkage[:, 2], best.linkage[:, 2], rtol=1e-12)
    assert sorted(plain.order) == sorted(best.order)
