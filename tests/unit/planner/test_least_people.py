"""From how many people on an answer can be expected: the same as a plan says for that many."""

import pytest

import armslength as al
from armslength.planner.least_people import least_people


def protocol(**known):
    return al.Protocol(al.SparseJL(sketch_dim=512, seed="t"), epsilon=1, contribution=7, unit="u", **known)


def test_a_plan_by_shape_sees_something_from_that_number_on():
    least = least_people(protocol(total_share="0.1"))

    def seen(people):
        known = {"epsilon": 1, "contribution": 7, "unit": "u", "total_share": "0.1", "max_sketch_dim": 512}
        return al.plan(people=people, by="shape", **known).seen

    assert seen(int(0.9 * least)) is None
    assert seen(int(1.1 * least)) is not None


def test_ten_times_the_noise_takes_ten_times_the_people():
    for known in ({}, {"total_share": "0.1"}):
        one, ten = (
            least_people(
                al.Protocol(
                    al.SparseJL(sketch_dim=512, seed="t"), epsilon=e, contribution=7, unit="u", **known
                )
            )
            for e in ("1", "0.1")
        )
        assert ten == pytest.approx(10 * one, rel=0.1)


def test_item_groups_may_show_something_where_mixes_show_nothing():
    margins = {"prefix": ["I"], "group": ["heart"]}
    mixes = protocol(total_share="0.02")
    both = protocol(total_share="0.02", margins=margins, margin_share="0.5", margin_contribution=1)
    assert least_people(both) < least_people(mixes)


def test_nothing_is_predicted_without_a_variance_or_a_contribution():
    assert least_people(al.Protocol(al.SparseJL(sketch_dim=4, seed="t"), epsilon=1, radius=1)) == 0
