"""Recipes for records: what is refused, how the document holds them, and items that cannot be confused."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.errors import CorruptFileError
from armslength.protocol.record import escaped, prefix
from flat_protocol import flat_protocol

OPEN = al.SparseJL(sketch_dim=8, seed="records")
RECORD = {"age": [18, "40", 65.5], "sex": ["F", "M"], "admitted": "month", "city": "category"}


def protocol(record=None, pairs=(), **known):
    return flat_protocol(
        OPEN, epsilon=1, unit="one patient", record=record or RECORD, record_pairs=pairs, **known
    )


def test_the_document_holds_the_recipe_and_reads_back():
    first = protocol(pairs=[("sex", "age")])
    document = json.loads(json.dumps(first.document()))
    kinds = {"age": "18,40,65.5", "sex": ["F", "M"], "admitted": "month", "city": "category"}
    assert document["record"] == kinds
    assert document["record_pairs"] == [["age", "sex"]]
    assert al.Protocol.from_document(document) == first == protocol(kinds, [("age", "sex")])
    assert str(first.record) == "admitted:month; age:18,40,65.5; city; sex=F,M; age & sex"


def test_the_order_of_columns_and_pairs_does_not_matter():
    turned = dict(reversed(RECORD.items()))
    pairs = [("sex", "age"), ("city", "sex")]
    assert protocol(turned, pairs[::-1]) == protocol(RECORD, [("age", "sex"), ("sex", "city")])


def test_people_vote_and_amounts_are_refused():
    for known in ({}, {"contribution": "vote"}, {"pairs": [("age", "sex"), ("age", "city")]}):
        assert protocol(**known).votes
        assert protocol(**known).contribution == "vote"
    for known, name in (
        ({"contribution": 2}, "record"),
        ({"radius": 2}, "radius"),
        ({"items": "int64"}, "items"),
    ):
        with pytest.raises(al.ParameterError, match=name):
            protocol(**known)


def test_other_recipes_cannot_be_compared():
    spaces = {
        protocol().space,
        protocol(pairs=[("age", "sex")]).space,
        protocol({**RECORD, "age": [18, 40]}).space,
        al.Protocol(OPEN, al.Counts(4), epsilon=1, unit="one patient").space,
    }
    assert len(spaces) == 4


def test_a_protocol_without_a_record_has_no_such_field():
    plain = al.Protocol(OPEN, al.Counts(4), epsilon=1)
    assert plain.record is None
    assert not {"record", "record_pairs"} & plain.document().keys()


def test_all_items_of_listed_columns():
    record = {"sex": ["F", "M"], "age": [18, 40]}
    ages, sexes = ["..18", "18..40", "40..", "(missing)"], ["F", "M", "(other)", "(missing)"]
    single = [f"age={age}" for age in ages] + [f"sex={sex}" for sex in sexes]
    both = [f"age={age} & sex={sex}" for age in ages for sex in sexes]
    assert al.record_items(record) == single
    assert al.record_items(record, [("sex", "age")]) == single + both


def test_listed_items_are_the_vocabulary():
    record = {"sex": ["F", "M"], "age": [18, 40]}
    items = al.record_items(record)
    known = {"epsilon": 1, "unit": "one patient", "record": record}
    fixed = flat_protocol(al.Identity(input_dim=len(items)), **known)
    assert fixed == flat_protocol(al.Identity(input_dim=len(items)), vocabulary=items, **known)
    assert al.Protocol.from_document(fixed.document()) == fixed
    with pytest.raises(al.ParameterError, match="8"):
        flat_protocol(al.Identity(input_dim=9), **known)
    with pytest.raises(al.ParameterError, match="input_dim"):
        flat_protocol(al.Identity(input_dim=8), **{**known, "record": RECORD})
    with pytest.raises(al.ParameterError, match="list"):
        al.record_items(RECORD)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"a\nb": "category"},
        {"a": None},
        {"a": [40, 18]},
        {"a": [18, 18]},
        {"a": [18, "x"]},
        {"a": [float("nan")]},
        {"a": [float("inf")]},
        {"a": [2**54]},
        {"a": ["F", "F"]},
        {"a": ["F", 1j]},
        {"a": ["\ud800"]},
        {"\u00c9": "category", "E\u0301": "category"},
        {str(number): "category" for number in range(1001)},
        {"a": [str(number) for number in range(10_001)]},
        {str(column): [str(number) for number in range(10_000)] for column in range(21)},
    ],
    ids=lambda record: repr(record)[:40].encode("ascii", "replace").decode(),
)
def test_recipes_that_are_refused(record):
    with pytest.raises(al.ParameterError):
        al.Protocol(OPEN, al.Votes(record=record), epsilon=1)


@pytest.mark.parametrize(
    "pairs",
    ["age", ["age"], [("age",)], [("age", "age")], [("age", "sex"), ("sex", "age")], 3, [3]],
)
def test_pairs_that_are_refused(pairs):
    with pytest.raises(al.ParameterError):
        protocol(pairs=pairs)


def test_a_pair_names_columns_of_the_record():
    with pytest.raises(KeyError, match="no column 'x'"):
        protocol(pairs=[("age", "x")])
    document = protocol(pairs=[("age", "sex")]).document()
    with pytest.raises(CorruptFileError, match="no column 'x'"):
        al.Protocol.from_document({**document, "record_pairs": [["age", "x"]]})


@pytest.mark.parametrize("known", [{"radius": 2}, {"items": "int64"}])
def test_protocols_that_cannot_have_a_record(known):
    with pytest.raises(al.ParameterError):
        protocol(**known)
    with pytest.raises(al.ParameterError, match="record"):
        flat_protocol(OPEN, epsilon=1, record_pairs=[("a", "b")])


@pytest.mark.parametrize(
    "change",
    [
        {"record": {"age": [18, 40]}},
        {"record": {"age": "18,40,40"}},
        {"record": {"age": "18.0,40"}},
        {"record": 3},
        {"record_pairs": [["sex", "age"]]},
        {"record_pairs": None},
    ],
    ids=repr,
)
def test_documents_that_are_refused(change):
    document = {**protocol({"age": "18,40", "sex": "category"}, [("age", "sex")]).document(), **change}
    with pytest.raises(CorruptFileError):
        al.Protocol.from_document(document)


def test_a_document_without_its_pairs_is_refused():
    document = protocol().document()
    del document["record_pairs"]
    with pytest.raises(CorruptFileError, match="record_pairs"):
        al.Protocol.from_document(document)


def test_too_many_items_for_a_list():
    record = {name: [str(number) for number in range(1000)] for name in "ab"}
    with pytest.raises(al.ParameterError, match="open vocabulary"):
        al.record_items(record, [("a", "b")])


MARKS = st.text(st.sampled_from("ab%&=( )≠\u0338\u00e9e\u0301."), min_size=1, max_size=5)


@given(
    st.lists(st.tuples(MARKS, MARKS), min_size=2, max_size=2), st.lists(st.tuples(MARKS, MARKS), max_size=2)
)
def test_two_rows_have_an_item_in_common_only_if_their_values_are_the_same(left, right):
    def item(cells):
        return canonical(" & ".join(prefix(name) + escaped(value) for name, value in cells))

    def meaning(cells):
        return [(canonical(name), canonical(value)) for name, value in cells]

    for one in (left, left[:1]):
        assert (item(one) == item(right)) == (meaning(one) == meaning(right))
        assert "(missing)" not in [item(one).split("=", 1)[-1] for one in (left[:1], right[:1])]


def canonical(text):
    return unicodedata.normalize("NFC", text)


def test_columns_may_have_names_that_are_not_ascii(tmp_path):
    known = {"record": {"größe": [150, 180], "😀": ["a", "b"]}, "unit": "one patient", "epsilon": 1}
    made = flat_protocol(al.SparseJL(sketch_dim=16, seed="names"), **known)
    made.save(tmp_path / "protocol.json")
    assert al.Protocol.load(tmp_path / "protocol.json") == made
