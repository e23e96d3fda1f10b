"""alike and drift: the rules by which they decide, what they say, and what they refuse."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import armslength as al

TRANSFORM = al.SparseJL(input_dim=400, sketch_dim=64, sparsity=1, seed="questions")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1)
BEYOND = {"by": "shape", "beyond_chance": True}
CLEAR = "data in the clear is part of it: not private"


def released(data, labels=None, protocol=PROTOCOL):
    return al.release(protocol, np.atleast_2d(data), labels=labels, ledger=al.NO_LEDGER)


def steps(*heights):
    """Rows that differ on 100 coordinates each."""
    x = np.zeros((len(heights), 400), dtype=int)
    for row, height in enumerate(heights):
        x[row, 100 * (row % 4) : 100 * (row % 4) + 100] = height
    return x


A, B = (released(x, [name]) for x, name in zip(steps(20, 20), ("a", "b"), strict=True))


def test_alike_by_one_sided_ends():
    lower, upper = (float(end[0, 0]) for end in al.distances(A, B).interval(0.9))
    found = al.alike(A, B, within=1e6)
    assert found.interval == pytest.approx((lower, upper), rel=1e-12)
    lower, upper = found.interval
    assert found.distance == al.distances(A, B).value[0, 0]
    for within, verdict in [
        (upper, "alike"),
        (np.nextafter(upper, 0), "undecided"),
        (lower, "undecided"),
        (np.nextafter(lower, 0), "different"),
        (0, "different"),
    ]:
        assert al.alike(A, B, within=within).verdict == verdict


def test_alike_takes_two_sided_ends_where_the_bound_is_on_both():
    found = al.alike(A, B, within=1, method="guaranteed")
    expected = al.distances(A, B).interval(0.95, method="guaranteed")
    assert found.interval == pytest.approx([float(end[0, 0]) for end in expected], rel=1e-12)
    rows = released(
        steps(20, 30), ["a", "b"], al.Protocol(TRANSFORM, al.Arrays(total_share="0.5"), epsilon=4)
    )
    shapes = al.alike(rows[0], rows[1], within=1, by="shape")
    expected = al.shape_distances(rows[0], rows[1]).interval(0.95)
    assert shapes.interval == pytest.approx([float(end[0, 0]) for end in expected], rel=1e-12)


def test_many_questions_at_once_need_wider_ends():
    one, many = (al.alike(A, B, within=300, pairs=pairs) for pairs in (1, 100))
    expected = al.distances(A, B).interval(1 - 0.1 / 100)
    assert many.interval == pytest.approx([float(end[0, 0]) for end in expected], rel=1e-9)
    assert many.interval[0] < one.interval[0] < one.interval[1] < many.interval[1]


def test_what_alike_says():
    assert str(al.alike(A, B, within=1000)).startswith("a and b are alike: their distance is at most ")
    assert str(al.alike(A, B, within=1000)).endswith("; saying so is wrong with probability at most 0.05")
    assert "are not alike: their distance is at least" in str(al.alike(A, B, within=10, level=0.99))
    undecided = al.alike(A, B, within=al.distances(A, B).value[0, 0])
    lower, upper = undecided.interval
    assert (
        f"may be alike or not: their distance is at least {lower:.6g} and at most {upper:.6g}; the limit is "
        in str(undecided)
    )
    assert "wrong" not in str(undecided)
    assert "has no known upper limit; the limit is " in str(replace(undecided, interval=(lower, math.inf)))
    clear = al.sketch_in_clear(PROTOCOL, steps(20), labels=["query"])
    assert al.alike(clear, B, within=1).note == CLEAR
    assert al.alike(A, A, within=0).verdict == "alike"  # the same release


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"within": float("nan")}, "within must be a number"),
        ({"within": 1, "level": 0.5}, "level must be a number above 0.5"),
        ({"within": 1, "by": "color"}, "by must be one of"),
    ],
)
def test_wrong_limits_and_levels_are_refused(known, message):
    with pytest.raises(al.ParameterError, match=message):
        al.alike(A, B, **known)


def test_questions_are_about_one_row_each():
    two = al.concat([A, B])
    with pytest.raises(al.ParameterError, match="a must be one row, got 2; choose one by its label"):
        al.alike(two, B, within=1)
    with pytest.raises(al.ParameterError, match=r"b must be al\.Sketches, got list"):
        al.alike(A, [1], within=1)


def test_drift_is_matched_by_label_and_shares_noise():
    before = released(steps(20, 20, 20), ["a", "b", "c"])
    new = released(steps(20, 500)[1:], ["b"])
    after = al.concat([before["c"], new, before["a"]])
    found = al.drift(before, after)
    assert found.labels == ("a", "b", "c")
    assert found.value[[0, 2]].tolist() == [0, 0]
    assert found.upper[[0, 2]].tolist() == [0, 0]
    assert found.resolved.tolist() == [False, True, False]
    pair = al.distances(before["b"], after["b"])
    assert found.value[1] == pair.value[0, 0]
    ends = pair.interval(1 - 0.05 / 3)
    assert (found.lower[1], found.upper[1]) == pytest.approx((ends[0][0, 0], ends[1][0, 0]), rel=1e-12)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["b", "a", "c"]
    assert ["not resolved" in line for line in lines[1:4]] == [False, True, True]
    assert "1 of 3 parties" in lines[4]
    assert found.to_arrow().column("resolved").to_pylist() == [False, True, False]


def test_the_drift_of_the_drift():
    months = [released(steps(height, 20), ["a", "b"]) for height in (20, 520, 1020)]
    first, second = al.drift(months[0], months[1]), al.drift(months[1], months[2])
    assert first.change.labels == ("a", "b")
    again = al.drift(first.change, second.change)
    assert first.resolved[0]
    assert second.resolved[0]
    # twice the same step: the noise of the middle month counts twice, (m3 − m2) − (m2 − m1)
    middle = [coefficient for _, coefficient in again.change.noises.terms(0)]
    assert sorted(middle) == [-2.0, 1.0, 1.0]
    assert again.value[0] < 0.2 * first.value[0]


def test_parties_that_are_missing_are_reported_or_refused():
    before, after = released(steps(1, 2, 3), ["a", "b", "c"]), released(steps(1, 2), ["b", "d"])
    with pytest.raises(
        al.ParameterError, match="2 labels are only in before and 1 only in after; partial=True"
    ):
        al.drift(before, after)
    found = al.drift(before, after, partial=True)
    assert (found.labels, found.only_before, found.only_after) == (("b",), ("a", "c"), ("d",))
    assert "only before: a, c" in str(found)
    assert "only after: d" in str(found)
    with pytest.raises(al.ParameterError, match="no label in common"):
        al.drift(before, released(steps(1), ["z"]), partial=True)
    with pytest.raises(al.ParameterError, match="after has several rows"):
        al.drift(before["b"], al.concat([after["b"], after["b"]]))


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
    found = al.drift(before, after, by="shape")
    assert found.labels == ("a", "b", "c")
    assert found.resolved.tolist() == [False, False, True]
    assert al.drift(before, after).resolved.tolist() == [False, True, True]
    for row, label in enumerate(found.labels):
        one = al.shape_distances(before[label], after[label])
        lower, upper = one.interval(1 - 0.05 / 3)
        assert found.value[row] == float(one)
        assert (found.lower[row], found.upper[row]) == pytest.approx((lower[0, 0], upper[0, 0]))
    assert "mixes" in found.note
    assert al.drift(before, before, by="shape").upper.tolist() == [0, 0, 0]
    with pytest.raises(al.ParameterError, match="by must be one of"):
        al.drift(before, after, by="weight")


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
    assert "people who are in both releases" in al.drift(first, second, by="shape", beyond_chance=True).note
    assert "people who are in both" not in al.drift(first, second, by="shape").note


def test_people_in_both_releases_do_not_hide_a_change():
    """They make no difference by chance, so that taking away what chance adds for others leaves less than nothing."""
    labels = ["north", "south", "east"]
    first, second = people_in(labels), people_in(labels, changed=1)
    found = al.drift(first, second, 1 - 1e-6, by="shape", beyond_chance=True)
    exact = np.sqrt(2) / 50  # one of 50 equal shares went to an item that nobody had
    assert (found.value < exact / 2).all()
    assert not found.resolved.any()
    assert (exact < found.upper).all()
    assert (found.upper < 5 * exact).all()
    # The same where it is asked whether two parties are alike, and who is the nearest.
    assert al.alike(first["north"], second["north"], within=exact, **BEYOND).verdict != "alike"
    assert al.nearest(first["north"], second, **BEYOND).upper.min() > exact


def test_a_change_beyond_chance_is_found():
    labels = ["north", "south", "east"]
    found = al.drift(people_in(labels), people_in(labels, changed=25), **BEYOND)
    assert found.resolved.all()
    assert (found.lower < np.sqrt(25 / 50**2 + 0.25)).all()
    assert (found.upper > np.sqrt(25 / 50**2 + 0.25)).all()


def test_a_party_without_a_mix_is_nobodys_nearest():
    rows = people_in(["north", "nowhere", "south", "east"])
    found = al.nearest(rows, count=2, by="shape")
    assert found.queries == ("north", "south", "east")
    assert "nowhere" not in {label for labels in found.labels for label in labels}
    assert "left out, because they have too few people to say anything: nowhere" in found.note
