"""What changed between two releases: party by party, matched by label, and what it assumes."""

import numpy as np
import pyarrow as pa
import pytest

import armslength as al

TRANSFORM = al.SparseJL(input_dim=400, sketch_dim=64, sparsity=1, seed="questions")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1)


def released(data, labels=None, protocol=PROTOCOL):
    return al.release(protocol, np.atleast_2d(data), labels=labels, ledger=al.NO_LEDGER)


def ends_of(estimate, level):
    """(value, lower, upper) of one pair."""
    return [float(end[0, 0]) for end in (estimate.value, *estimate.interval(level))]


def steps(*heights):
    """Rows that differ on 100 coordinates each."""
    x = np.zeros((len(heights), 400), dtype=int)
    for row, height in enumerate(heights):
        x[row, 100 * (row % 4) : 100 * (row % 4) + 100] = height
    return x


def test_drift_is_matched_by_label_and_shares_noise():
    before = released(steps(20, 20, 20), ["a", "b", "c"])
    new = released(steps(20, 500)[1:], ["b"])
    after = al.concat([before["c"], new, before["a"]])
    found = al.drift(before, after)
    assert found.labels == ("a", "b", "c")
    assert (found.about, found.similarity, found.each) == ("counts", None, False)
    assert not found.distance[[0, 2]].any()
    assert found.verdict == ("inconclusive", "differ", "inconclusive")
    for each, level in ((False, 1 - 0.05 / 3), (True, 0.95)):
        distance = al.drift(before, after, each=each).distance[1]
        assert distance == pytest.approx(ends_of(al.distances(before["b"], after["b"]), level), rel=1e-12)
    assert al.drift(before, after, alike=1).verdict == ("alike", "differ", "alike")
    table = found.to_arrow()
    assert table.column_names == ["party", "verdict", "distance", "lower", "upper", "in_clear"]
    assert table["verdict"].to_pylist() == list(found.verdict)
    named = [line.split()[0] for line in str(found).splitlines() if line[:2] in ("a ", "b ", "c ")]
    assert named == ["b", "a", "c"]


def test_the_drift_of_the_drift():
    months = [released(steps(height, 20), ["a", "b"]) for height in (20, 520, 1020)]
    first, second = al.drift(months[0], months[1]), al.drift(months[1], months[2])
    assert first.change.labels == ("a", "b")
    again = al.drift(first.change, second.change)
    assert first.verdict[0] == second.verdict[0] == "differ"
    # twice the same step: the noise of the middle month counts twice, (m3 − m2) − (m2 − m1)
    middle = [coefficient for _, coefficient in again.change.noises.terms(0)]
    assert sorted(middle) == [-2.0, 1.0, 1.0]
    assert again.distance[0, 0] < 0.2 * first.distance[0, 0]


def test_parties_that_only_one_release_has_are_listed():
    before, after = released(steps(1, 2, 3), ["a", "b", "c"]), released(steps(1, 2), ["b", "d"])
    found = al.drift(before, after)
    assert (found.labels, found.only_before, found.only_after) == (("b",), ("a", "c"), ("d",))
    assert "a, c" in str(found)
    for other in (released(steps(1), ["z"]), al.concat([after["b"], after["b"]])):
        with pytest.raises(al.ParameterError, match="label") as caught:
            al.drift(before["b"], other)
        assert "after" in caught.value.arguments


def test_drift_keeps_totals_so_that_changes_of_size_can_be_read():
    protocol = al.Protocol(TRANSFORM, al.Arrays(total_share="0.5"), epsilon=1)
    before, after = (released(steps(height), ["a"], protocol) for height in (20, 500))
    change = al.drift(before, after).change
    assert change.totals.tolist() == (after.totals - before.totals).tolist()


def test_drift_of_shapes_is_that_of_each_pair_whatever_the_sizes():
    rng = np.random.default_rng(7)
    shapes = rng.multinomial(10**6, np.full(300, 1 / 300), 3)
    protocol = al.Protocol(
        al.SparseJL(input_dim=300, sketch_dim=64, sparsity=1, seed="drift"),
        al.Arrays(total_share="0.2"),
        epsilon=2,
    )
    before = al.release(protocol, shapes, labels=["a", "b", "c"], ledger=al.NO_LEDGER)
    # b has grown to twice its size, and c has another shape
    after = al.release(
        protocol,
        np.array([np.roll(shapes[2], 7) * np.arange(300) // 100, shapes[0], 2 * shapes[1]]),
        labels=["c", "a", "b"],
        ledger=al.NO_LEDGER,
    )
    found = al.drift(before, after)
    assert (found.about, found.labels) == ("people", ("a", "b", "c"))
    assert found.verdict == ("alike", "alike", "differ")
    assert al.drift(before, after, about="counts").verdict == ("inconclusive", "differ", "differ")
    for row, label in enumerate(found.labels):
        pair = before[label], after[label]
        for estimate, ends in ((al.distances, found.distance), (al.similarities, found.similarity)):
            expected = ends_of(estimate(*pair, about="people"), 1 - 0.05 / 3)
            assert ends[row] == pytest.approx(expected, rel=1e-9)
    assert not al.drift(before, before).distance.any()
    assert al.drift(before, before).verdict == ("alike",) * 3
    with pytest.raises(al.ParameterError) as caught:
        al.drift(before, after, about="populations")
    assert caught.value.arguments == ("about",)


def people_in(groups, changed=0):
    """900 people, the same in every release: each has one of 50 items, but for those of so many items, who have another."""
    transform = al.SparseJL(sketch_dim=256, seed="people")
    protocol = al.Protocol(transform, al.Votes(total_share="0.5"), epsilon=50, unit="one person")
    events = pa.table(
        {
            "who": [str(person) for person in range(900)],
            "what": [f"{person % 50}" if person % 50 >= changed else "other" for person in range(900)],
            "where": ["north", "south", "east"] * 300,
        }
    )
    columns = {"person": "who", "item": "what", "group": "where", "public_groups": groups}
    return al.release(protocol, events, **columns, ledger=al.NO_LEDGER)


def test_drift_says_what_it_assumes_of_people_in_both_releases():
    first, second = (people_in(["north", "south", "east"]) for _ in range(2))
    notes = [al.drift(first, second, about=about).note for about in ("populations", "people")]
    assert ["both releases" in note for note in notes] == [True, False]


def test_people_in_both_releases_do_not_hide_a_change():
    """They make no difference by chance, so that taking away what chance adds for others leaves less than nothing."""
    labels = ["north", "south", "east"]
    first, second = people_in(labels), people_in(labels, changed=1)
    found = al.drift(first, second, level=1 - 1e-6, alike=1)
    assert found.about == "populations"
    exact = np.sqrt(2) / 50  # one of 50 equal shares went to an item that nobody had
    value, lower, upper = found.distance.T
    assert (value < exact / 2).all()
    assert not lower.any()
    assert set(found.verdict) == {"inconclusive"}
    assert (exact < upper).all()
    assert (upper < 5 * exact).all()
    # The same where it is asked who is the nearest.
    assert al.nearest(first["north"], second, about="populations").distance[..., 2].min() > exact


def test_a_change_beyond_chance_is_found():
    labels = ["north", "south", "east"]
    found = al.drift(people_in(labels), people_in(labels, changed=25))
    assert found.verdict == ("differ",) * 3
    exact = np.sqrt(25 / 50**2 + 0.25)
    assert (found.distance[:, 1] < exact).all()
    assert (found.distance[:, 2] > exact).all()


def test_alike_wins_where_a_small_change_is_found():
    labels = ["north", "south", "east"]
    first, second = people_in(labels), people_in(labels, changed=15)
    found = al.drift(first, second, alike=float(al.drift(first, second).similarity[0, 1]))
    assert found.verdict[0] == "alike"
    assert found.distance[0, 1] > 0
    more = np.nextafter(found.similarity[0, 1], 1)
    assert al.drift(first, second, alike=float(more)).verdict[0] == "differ"


def test_a_party_without_a_mix_is_nobodys_nearest():
    rows = people_in(["north", "nowhere", "south", "east"])
    found = al.nearest(rows, count=2, about="people")
    assert found.queries == ("north", "south", "east")
    assert "nowhere" not in {label for labels in found.labels for label in labels}
    assert found.note.count("nowhere") == 1


def test_a_party_that_became_tiny_is_inconclusive_and_named():
    before, after = people_in(["north", "south", "nowhere"]), people_in(["north", "south", "nowhere"])
    found = al.drift(before, after)
    assert found.verdict[2] == "inconclusive"
    assert np.isinf(found.distance[2, 2])
    assert found.note.count("nowhere") == 1
    assert "nan" not in str(found).replace("nothing", "")
