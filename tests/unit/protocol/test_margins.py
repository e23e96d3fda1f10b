"""Margins: one list however it is given, the item group of each item, and noise that covers what a person moves."""

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.laws import DiscreteLaplace
from armslength.ledger.entry import ledger_entry
from armslength.protocol.margins import margin_table
from armslength.protocol.neighbors import VOTE
from flat_protocol import flat_protocol

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/reference/protocol.schema.json").read_text(encoding="utf-8")
)
TRANSFORM = al.SparseJL(sketch_dim=16, seed="margins")
ITEMS = {"S06": "Injuries", "É1": "Ümlaut", "T1": "Injuries"}
PREFIXES = {"prefix": ["S", "T", "S0", "É"], "group": ["Injuries", "Injuries", "Heads", "Ümlaut"]}
RECORD = {"age": [18, 40], "sex": ["F", "(M)"], "town": "category"}


def protocol(margins=ITEMS, transform=TRANSFORM, **known):
    votes = {"contribution": "vote", "total_share": "0.1", "unit": "one patient", "margin_contribution": 3}
    return flat_protocol(
        transform, margins=margins, **{"epsilon": 1, "margin_share": "0.2", **votes, **known}
    )


def record_protocol(columns=("sex", "age"), **known):
    known = {"contribution": None, "record": RECORD, "margin_contribution": None, **known}
    return protocol(list(columns), **known)


def names_of(protocol, texts, table=None):
    margins = protocol.margins
    codes = margins.codes(texts, margin_table(table, margins))
    assert codes.dtype == np.int32
    return [margins.names[code] for code in codes]


def as_columns(key, pairs):
    return {key: list(pairs), "group": list(pairs.values())}


@pytest.mark.parametrize("key", ["item", "prefix"])
def test_one_protocol_however_the_list_is_given(tmp_path, key):
    columns = as_columns(key, ITEMS)
    table = pa.table({**columns, "note": [1, 2, 3]})
    pq.write_table(table, tmp_path / "m.parquet")
    lines = [f'"{text}",7,"{name}"' for text, name in ITEMS.items()]
    (tmp_path / "m.csv").write_text("\n".join([f"{key},more,group", *lines[::-1]]), encoding="utf-8")
    decomposed = as_columns(key, {"E\u03011": "U\u0308mlaut", "T1": "Injuries", "S06": "Injuries"})
    given = [
        columns,
        table,
        pd.DataFrame(columns),
        tmp_path / "m.parquet",
        str(tmp_path / "m.csv"),
        decomposed,
    ]
    assert len({protocol(each).fingerprint for each in given}) == 1
    if key == "item":
        assert protocol(ITEMS) == protocol(columns)
        assert protocol({**ITEMS, "T1": "Ümlaut"}).margins.table_hash != protocol().margins.table_hash
        assert protocol({**ITEMS, "T2": "Injuries"}).margins.names == protocol().margins.names
    assert protocol(columns).margins.names == ("Injuries", "Ümlaut", "(other)")


def test_a_table_puts_whole_items_into_groups():
    texts = ["S06", "S061", "É1", "T1", "", "(other)"]
    assert names_of(protocol(), texts, ITEMS) == [
        "Injuries", "(other)", "Ümlaut", "Injuries", "(other)", "(other)",
    ]  # fmt: skip


def test_the_longest_prefix_decides():
    texts = ["S1", "S06.1", "S0", "T", "t", "É", "xS", "", "S"]
    assert names_of(protocol(PREFIXES), texts) == [
        "Injuries", "Heads", "Heads", "Injuries", "(other)", "Ümlaut", "(other)", "(other)", "Injuries",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_prefixes_agree_with_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    some = ["".join(rng.choice(list("abé"), size)) for size in rng.integers(1, 6, 40)]
    prefixes = {text: f"g{rng.integers(5)}" for text in some}
    made = protocol(as_columns("prefix", prefixes))
    texts = ["".join(rng.choice(list("abéc"), size)) for size in rng.integers(0, 9, 300)]
    fitting = [[each for each in prefixes if text.startswith(each)] for text in texts]
    expected = [prefixes[max(each, key=len)] if each else "(other)" for each in fitting]
    assert names_of(made, texts) == expected


def test_the_values_of_columns_of_a_record_are_item_groups():
    made = record_protocol()
    assert made.margins.names == (
        "age=..18", "age=18..40", "age=40..", "age=(missing)",
        "sex=F", "sex=%28M)", "sex=(other)", "sex=(missing)",
    )  # fmt: skip
    none = len(made.margins.names)  # other columns and pairs belong to no item group
    codes = made.margins.codes(
        ["sex=F", "town=x", "age=40..", "age=..18 & sex=F"], margin_table(None, made.margins)
    )
    assert codes.tolist() == [4, none, 2, none]
    assert made.margin_contribution == 2
    assert record_protocol(record={"age": [18], "sex": ["F"]}).margin_contribution == 2
    assert record_protocol(margin_contribution=1).margin_contribution == 1


def test_a_release_needs_the_table_and_nothing_else():
    for given in (None, {**ITEMS, "S06": "Ümlaut"}, {"S06": "Injuries"}, ["S06"], protocol().margins, 7):
        with pytest.raises(al.ParameterError, match="group"):
            margin_table(given, protocol().margins)
    for given in (ITEMS, PREFIXES, []):
        for margins in (None, protocol(PREFIXES).margins, record_protocol().margins):
            with pytest.raises(al.ParameterError, match="leave item_groups out"):
                margin_table(given, margins)
    assert margin_table(None, None) is None


def test_many_prefixes_and_many_items_are_read():
    prefixes = [f"{number:05d}" for number in range(100_000)]
    many = protocol({"prefix": prefixes, "group": [each[:3] for each in prefixes]})
    assert len(many.margins.names) == 1001
    assert al.Protocol.from_document(many.document()) == many
    codes = many.margins.codes(
        [f"{number:07d}" for number in range(0, 10**7, 97)], margin_table(None, many.margins)
    )
    assert codes.tolist() == [number // 10_000 for number in range(0, 10**7, 97)]
    with pytest.raises(al.ParameterError, match="at most 100000"):
        protocol({"prefix": [*prefixes, "x"], "group": ["g"] * 100_001})
    with pytest.raises(al.ParameterError, match="1 to 9999 item groups"):
        protocol({each: each for each in prefixes[:10_000]})


@pytest.mark.parametrize(
    "margins",
    [
        {},
        {"flu": "(other)"},
        {"flu": 7},
        {"flu": "a\nb"},
        {"flu": "x" * 201},
        {"flu": " g"},
        {"\u00c9": "g", "E\u0301": "g"},
        {"prefix": ["S", "S"], "group": ["a", "b"]},
        {"prefix": [""], "group": ["a"]},
        {"prefix": ["é" * 101], "group": ["a"]},
        {"prefix": ["S"], "item": ["S"], "group": ["a"]},
        {"item": ["S", "T"], "group": ["a"]},
        pa.table({"item": ["flu"], "group": pa.array([None], pa.string())}),
        7,
    ],
    ids=str,
)
def test_lists_that_are_refused(margins):
    with pytest.raises(al.ParameterError):
        protocol(margins)


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet"])
def test_a_missing_list_is_named(name):
    with pytest.raises(FileNotFoundError, match=name):
        protocol(name)


def test_a_private_file_that_is_named_by_mistake_is_not_quoted(tmp_path):
    ragged, typed = tmp_path / "ragged.csv", tmp_path / "typed.csv"
    ragged.write_text("patient,code\nsecret,A,B\n")
    typed.write_text("patient,code\n" + "1,A\n" * 400_000 + "secret,B\n")  # the first block is of numbers
    for path in (ragged, typed):
        with pytest.raises(al.ParameterError, match="group") as refused:
            protocol(path)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "columns",
    [["town"], ["age", "age"], []],
    ids=str,
)
def test_columns_that_are_refused(columns):
    with pytest.raises(al.ParameterError, match="group"):
        record_protocol(columns)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"margin_share": 0}, "share must be above 0"),
        ({"margin_share": 1}, "share must be above 0"),
        ({"margin_share": float("nan")}, "share must be a finite number"),
        ({"margin_share": "0.5", "total_share": "0.5"}, "below 1 together"),
        ({"margin_contribution": None}, "limit is missing"),
        ({"margin_contribution": 10_001}, "limit must be an integer from 1 to 10000"),
        ({"contribution": None}, "item_groups: it is not for arrays"),
        ({"contribution": 4}, "item_groups: it is not for counts"),
        ({"total_share": 0}, "item_groups need a total_share"),
        ({"items": "int64"}, "item_groups cannot be combined with items='int64'"),
        ({"margins": None}, "item_groups is missing"),
    ],
)
def test_protocols_that_cannot_have_margins(known, words):
    with pytest.raises(al.ParameterError, match=words):
        protocol(**known)


MADE = {
    "table": protocol,
    "prefix": lambda: protocol(PREFIXES, total_share="0.15", spread_sample="0.5"),
    "record": record_protocol,
    "thirds": lambda: protocol(margin_share="1/3", total_share="1/3", relation="replace"),
}


@pytest.mark.parametrize("name", MADE)
def test_a_document_is_read_back(name, tmp_path):
    made = MADE[name]()
    document = made.document()
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    made.save(tmp_path / "p.json")
    for again in (al.Protocol.from_document(document), al.Protocol.load(tmp_path / "p.json")):
        assert (again, again.margins, again.margin_law) == (made, made.margins, made.margin_law)
        assert (
            again.margins
            == al.Protocol(
                made.transform,
                al.Votes(
                    total_share="0.1",
                    record=RECORD if made.record else None,
                    item_groups=al.ItemGroups(made.margins, share="0.1", limit=1),
                ),
                epsilon=1,
            ).margins
        )
    assert str(made.margins) in made.to_arrow().column("value").to_pylist()


def test_a_protocol_without_margins_does_not_mention_them():
    plain = protocol(None, margin_share=0, margin_contribution=None)
    assert not [name for name in plain.document() if "margin" in name]
    assert not [name for name in plain.document()["derived"] if "margin" in name]
    nothing = plain.margins, plain.margin_contribution, plain.margin_law, plain.margin_sensitivity
    assert (nothing, plain.margin_share, plain.margins_epsilon) == ((None,) * 4, 0, 0)
    assert plain.sketch_epsilon == Fraction(9, 10)
    for wrong in ({"margins": None}, {"margin_share": "0"}, {"margin_contribution": None}):
        with pytest.raises(CorruptFileError):
            al.Protocol.from_document({**plain.document(), **wrong})


def test_sketches_with_and_without_margins_share_a_space():
    assert len({made.space for made in (protocol(), protocol(PREFIXES), protocol(None, margin_share=0, margin_contribution=None))}) == 1  # fmt: skip
    assert protocol().fingerprint != protocol(PREFIXES).fingerprint


TABLE = {"rule": "table", "names": ["a", "b"], "hash": "0" * 64}
PREFIX = {"rule": "prefix", "names": ["a", "b"], "prefixes": [["S"], ["T"]]}


@pytest.mark.parametrize(
    "margins",
    [
        None,
        {},
        {"rule": "table"},
        {"rule": "other", "columns": ["age"]},
        {"rule": ["table"], "names": ["a"], "hash": "0" * 64},
        {**TABLE, "hash": "0" * 63},
        {**TABLE, "names": []},
        {**TABLE, "names": ["b", "a"]},
        {**TABLE, "names": ["a", 7]},
        {**PREFIX, "prefixes": []},
        {**PREFIX, "prefixes": "ST"},
        {**PREFIX, "prefixes": [["S"]]},
        {**PREFIX, "prefixes": [["S"], ["S"]]},
        {**PREFIX, "prefixes": [["S"], ["U", "T"]]},
        {**PREFIX, "prefixes": [["S"], ["E\u0301"]]},
        {**PREFIX, "names": ["a"]},
        {"rule": "record", "columns": ["age"]},
    ],
    ids=str,
)
def test_documents_that_are_refused(margins):
    document = protocol().document()
    with pytest.raises(CorruptFileError):
        al.Protocol.from_document({**document, "margins": margins})


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin_share": "0.20"},
        {"margin_share": "0.3"},
        {"margin_share": 0.2},
        {"margin_share": None},
        {"margin_contribution": 2},
        {"margin_contribution": "3"},
        {"margin_contribution": None},
        {"contribution": 1},
        {"relation": "replace", "radius": "2"},
    ],
    ids=str,
)
def test_numbers_of_a_document_that_are_refused(wrong):
    document = protocol().document()
    with pytest.raises(CorruptFileError):
        al.Protocol.from_document({**document, **wrong})
    for name in ("margins", "margin_share", "margin_contribution"):
        less = {key: value for key, value in document.items() if key != name}
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(less)
        with pytest.raises(CorruptFileError):
            al.Protocol.from_document(less)


def test_names_of_a_document_are_those_of_the_table():
    """The hash is that of the table, and the names are not: forged, or damaged."""
    document = protocol().document()
    document["margins"]["names"] = ["A", "B"]
    forged = al.Protocol.from_document(document)
    with pytest.raises(al.ParameterError, match="is not the table"):
        margin_table(ITEMS, forged.margins)


@pytest.mark.parametrize(
    ("known", "votes"),
    [
        # three item groups, with (other): G·R of them, and four times what somebody in all of them lacks
        ({}, 3),
        ({"margin_contribution": 1}, 1 + 4 * (1 - Fraction(1, 3))),
        ({"margin_contribution": 2}, 2 + 4 * (1 - Fraction(2, 3))),
        ({"margin_contribution": 10}, 3),
        ({"margin_contribution": 1, "relation": "replace"}, 2 * (1 + 4 * (1 - Fraction(1, 3)))),
    ],
)
def test_the_noise_covers_what_one_person_moves(known, votes):
    made = protocol(**known)
    assert votes * VOTE <= made.margin_sensitivity <= votes * VOTE + 8  # the floor of a weight
    assert isinstance(made.margin_law, DiscreteLaplace)
    scale = Fraction(made.margin_law.scale)
    assert scale * made.margins_epsilon >= made.margin_sensitivity
    assert Fraction(np.nextafter(made.margin_law.scale, 0)) * made.margins_epsilon < made.margin_sensitivity
    sketch = made.grid_radius * made.transform.l1_sensitivity
    assert Fraction(made.law.scale) * made.sketch_epsilon >= sketch


def test_parts_of_epsilon_add_up():
    for make in MADE.values():
        made = make()
        assert made.sketch_epsilon + made.totals_epsilon + made.margins_epsilon == made.epsilon
        assert made.margins_epsilon == made.epsilon * made.margin_share > 0
        assert made.released_delta == 0


def test_the_ledger_counts_all_of_epsilon_as_pure():
    entry = ledger_entry(protocol(delta="1e-6"), "visits")
    assert (entry.law, entry.epsilon, entry.delta) == ("laplace", "1", "0")
    assert (entry.totals_epsilon, entry.sensitivity_squared) == ("0.3", "")
    assert entry.loss.pure == 1


def test_rows_and_streams_say_that_they_have_no_margins(tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    made = protocol(transform=al.Identity(input_dim=2), vocabulary=["S06", "T1"])
    for release in (
        lambda: al.release(made, [[1, 2]], ledger=ledger, population="visits"),
        lambda: al.stream(made, label="all", ledger=ledger, population="visits"),
    ):
        with pytest.raises(al.ParameterError, match="arrays and streams"):
            release()
    assert ledger.entries() == []
