"""What one person contributes: each object refuses alone what is wrong, cannot be changed, and equals another of the same kind."""

import copy
import doctest
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from importlib import import_module

import pytest

import armslength as al
from armslength.protocol.contribution import contribution_of
from armslength.protocol.neighbors import VOTE

PREFIXES = {"prefix": ["I", "S"], "group": ["heart", "injuries"]}
GROUPS = al.ItemGroups(PREFIXES, share="0.3", limit=2)
RECORD = {"age": [18, 65], "sex": ["F", "M"]}


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: al.Votes(total_share=1), "total_share"),
        (lambda: al.Votes(total_share=math.nan), "total_share"),
        (lambda: al.Votes(spread_sample=0), "spread_sample"),
        (lambda: al.Votes(spread_sample=2), "spread_sample"),
        (lambda: al.Votes(record=["age"]), "record"),
        (lambda: al.Votes(record_pairs=[("age", "sex")]), "record_pairs"),
        (lambda: al.Votes(record=RECORD, record_pairs=[("age", "town")]), "record_pairs"),
        (lambda: al.Votes(total_share="0.1", item_groups=PREFIXES), "item_groups"),
        (lambda: al.Votes(item_groups=GROUPS), "item_groups"),
        (lambda: al.Votes(total_share="0.7", item_groups=GROUPS), "total_share"),
        (lambda: al.Votes("0.1", item_groups=al.ItemGroups(["age"], "0.1")), "record"),
        (lambda: al.Counts(0), "contribution"),
        (lambda: al.Counts(1.5), "contribution"),
        (lambda: al.Counts("vote"), "contribution"),
        (lambda: al.Counts(1, resolution=2), "contribution"),
        (lambda: al.Counts(2**40, resolution=2.0**-30), "contribution"),
        (lambda: al.Counts(1, total_share=-1), "total_share"),
        (lambda: al.Counts(1, resolution=3), "resolution"),
        (lambda: al.Arrays(radius=0), "radius"),
        (lambda: al.Arrays(radius=2**41), "radius"),
        (lambda: al.Arrays(resolution=3), "resolution"),
        (lambda: al.Arrays(resolution=2.0**-70), "resolution"),
        (lambda: al.Arrays(on_grid=1), "on_grid"),
        (lambda: al.Arrays(changed_entries=0), "changed_entries"),
        (lambda: al.Arrays(value_range=(2, 1)), "value_range"),
        (lambda: al.Arrays(value_range=(0, math.inf)), "value_range"),
        (lambda: al.Arrays(total_share=1), "total_share"),
        (lambda: al.ItemGroups(None, "0.3", 2), "item_groups"),
        (lambda: al.ItemGroups({}, "0.3", 2), "item_groups"),
        (lambda: al.ItemGroups([], "0.3"), "item_groups"),
        (lambda: al.ItemGroups(PREFIXES, 0, 2), "share"),
        (lambda: al.ItemGroups(PREFIXES, 1, 2), "share"),
        (lambda: al.ItemGroups(PREFIXES, "0.3"), "limit"),
        (lambda: al.ItemGroups(PREFIXES, "0.3", 0), "limit"),
    ],
)
def test_each_object_refuses_alone_what_is_wrong(make, argument):
    with pytest.raises((al.ParameterError, KeyError)) as refused:
        make()
    assert argument in refused.value.arguments
    assert argument in str(refused.value)
    assert str(refused.value).isprintable()


OBJECTS = {
    "votes": lambda: al.Votes(0.1, item_groups=al.ItemGroups(PREFIXES, 0.3, 2)),
    "record": lambda: al.Votes(
        "0.1",
        record=RECORD,
        record_pairs=[("age", "sex")],
        item_groups=al.ItemGroups(["sex", "age"], share=0.3),
    ),
    "counts": lambda: al.Counts(20, resolution="0.25"),
    "arrays": lambda: al.Arrays(2.5, resolution="auto", value_range=(0, 5)),
    "item groups": lambda: al.ItemGroups({"I10": "heart"}, 0.3, 2),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_values(name):
    made, same = OBJECTS[name](), OBJECTS[name]()
    assert made == same == copy.deepcopy(made) == pickle.loads(pickle.dumps(made))  # noqa: S301  # our own
    assert hash(made) == hash(same)
    assert all(made != OBJECTS[other]() for other in OBJECTS if other != name)
    assert "\n" not in repr(made)
    assert type(made).__name__ in repr(made)
    for field in vars(made):
        with pytest.raises(FrozenInstanceError):
            setattr(made, field, None)


def test_votes_counts_and_arrays_with_equal_fields_differ():
    assert len({al.Votes(), al.Counts(1), al.Arrays()}) == 3
    assert al.Arrays() != al.Arrays(radius=2)


def test_a_record_knows_how_many_item_groups_a_person_has():
    votes = OBJECTS["record"]()
    assert votes.item_groups.limit == 2
    assert votes.margins.columns == ("age", "sex")


@pytest.mark.parametrize(
    ("data", "radius", "of_two", "resolution"),
    [
        (al.Votes(), 1, 2, Fraction(1, VOTE)),
        (al.Counts(20, resolution=4), 20, 40, 4),
        (
            al.Arrays("2.5"),
            Fraction(5, 2),
            Fraction(5, 2),
            1,
        ),  # the radius is that of the neighbors, whatever they are
    ],
)
def test_what_neighbors_move(data, radius, of_two, resolution):
    transform = al.SparseJL(sketch_dim=8, seed="x")
    one, two = (
        al.Protocol(transform, data, epsilon=1, relation=relation) for relation in ("add_remove", "replace")
    )
    assert (one.radius, two.radius, one.resolution) == (radius, of_two, resolution)
    assert one.data is data


@pytest.mark.parametrize(
    ("flat", "data"),
    [
        ({}, al.Arrays()),
        ({"contribution": None, "radius": "2.5", "record_pairs": ()}, al.Arrays("2.5")),
        ({"contribution": 3, "total_share": "0.1"}, al.Counts(3, "0.1")),
        (
            {"contribution": "vote", "resolution": 2.0**-20, "on_grid": True, "spread_sample": None},
            al.Votes(),
        ),
        ({"record": RECORD}, al.Votes(record=RECORD)),
        (
            {"contribution": "vote", "total_share": "0.1", "margins": PREFIXES, "margin_share": "0.3"}
            | {"margin_contribution": 2},
            al.Votes("0.1", item_groups=GROUPS),
        ),
    ],
)
def test_flat_fields_make_the_same_objects(flat, data):
    rest = {**flat, "epsilon": 1}
    assert contribution_of(rest) == data
    assert rest == {"epsilon": 1}


@pytest.mark.parametrize(
    ("flat", "argument"),
    [
        ({"contribution": "vote", "radius": 1}, "radius"),
        ({"contribution": "vote", "resolution": 0.5}, "resolution"),
        ({"contribution": "vote", "on_grid": False}, "on_grid"),
        ({"contribution": 2, "radius": 2}, "radius"),
        ({"contribution": 2, "value_range": (0, 1)}, "value_range"),
        ({"contribution": 2, "record": RECORD}, "record"),
        ({"spread_sample": "0.5"}, "spread_sample"),
        ({"margin_share": "0.3"}, "item_groups"),
    ],
)
def test_flat_fields_of_another_kind_are_refused(flat, argument):
    with pytest.raises(al.ParameterError) as refused:
        contribution_of(dict(flat))
    assert argument in refused.value.arguments


@pytest.mark.parametrize("data", ["vote", 3, None, GROUPS, al.Votes])
def test_a_protocol_takes_one_of_these_objects(data):
    with pytest.raises(al.ParameterError, match="data must be"):
        al.Protocol(al.SparseJL(sketch_dim=8, seed="x"), data, epsilon=1)


@pytest.mark.parametrize(
    "name",
    [
        "protocol.contribution",
        "protocol.margins",
        "protocol.protocol",
        "releasing.release",
        "releasing.stream",
    ],
)
def test_examples_of_docstrings_run(name):
    done = doctest.testmod(import_module(f"armslength.{name}"))
    assert done.attempted
    assert not done.failed
