"""From how many people on an answer can be expected: the same as a plan says for that many. Against releases: tests/statistical/test_plan_power.py."""

import pytest

import armslength as al
from armslength.planner.least_people import least_people
from flat_protocol import flat_protocol


def protocol(epsilon=1, sketch_dim=512, **known):
    transform = al.SparseJL(sketch_dim=sketch_dim, seed="t")
    return flat_protocol(
        transform, **{"epsilon": epsilon, "contribution": "vote", "unit": "u", "total_share": "0.1"} | known
    )


def test_it_depends_on_the_protocol_alone():
    few, many = (
        al.plan(epsilon=1, people=3000, unit="u", parties=parties, max_sketch_dim=64) for parties in (2, 50)
    )
    assert few.protocol.transform.sketch_dim == many.protocol.transform.sketch_dim
    assert few.least_people == many.least_people == least_people(many.protocol)


@pytest.mark.parametrize("smallest", [50, 200, 500, 2000])
def test_smaller_parties_should_not_take_part(smallest):
    plan = al.plan(epsilon=1, people=(smallest, 9000), parties=9, max_sketch_dim=512)
    assert ("should not take part" in " ".join(str(plan).split())) == (smallest < plan.least_people)


@pytest.mark.parametrize("known", [{}, {"contribution": 7, "total_share": 0}])
def test_ten_times_the_noise_takes_ten_times_the_people(known):
    one, ten = (least_people(protocol(epsilon, **known)) for epsilon in ("1", "0.1"))
    assert ten == pytest.approx(10 * one, rel=0.1)


def test_item_groups_may_show_something_where_profiles_show_nothing():
    margins = {"prefix": ["I"], "group": ["heart"]}
    given = {"sketch_dim": 4096, "epsilon": "0.1"}
    shares = {"margins": margins, "margin_share": "0.3", "margin_contribution": 1}
    assert least_people(protocol(**given, **shares)) < least_people(protocol(**given))


def test_nothing_is_predicted_without_a_variance_or_a_contribution():
    assert least_people(al.Protocol(al.SparseJL(sketch_dim=4, seed="t"), al.Arrays(radius=1), epsilon=1)) == 0
