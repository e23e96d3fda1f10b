"""Public item weights: one hash however they are given, and what events count by them."""

from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.protocol.item_weights import item_amounts
from armslength.sketches.card import guarantee_in_words
from unit.ingest.tables_of_events import KEY

WEIGHTS = {"flu": 2, "É, coli": "0.5", "none": 0}
ITEMS = ["flu", "E\u0301, coli", "none", "unlisted"]


def protocol(weights=WEIGHTS, transform=None, **known):
    known = {"contribution": 10, "unit": "one patient", "resolution": "0.25", **known}
    transform = transform or al.SparseJL(sketch_dim=64, seed="weights")
    return al.Protocol(transform, epsilon=1, item_weights=weights, **known)


def sums(table, weights=WEIGHTS, vocabulary=None, **known):
    made = protocol(weights, **known)
    job = TableJob.of(
        table, made, EventColumns("who", "what"), PublicGroups(("all",), None), vocabulary, weights
    )
    return job.sums(KEY).values[0].tolist()


def test_one_hash_however_the_weights_are_given(tmp_path):
    names, numbers = list(WEIGHTS), [2.0, 0.5, 0.0]
    table = pa.table({"weight": numbers, "other": [1, 2, 3], "item": names})
    pq.write_table(table, tmp_path / "w.parquet")
    rows = [f'"{name}",{number}' for name, number in zip(names, ("2", "0.50", "0"), strict=True)]
    (tmp_path / "w.csv").write_text("\n".join(["item,weight", *rows[::-1]]), encoding="utf-8")
    given = [
        {"E\u0301, coli": Fraction(1, 2), "flu": Decimal(2), "none": 0},
        table,
        pd.DataFrame({"item": names, "weight": numbers}),
        tmp_path / "w.parquet",
        str(tmp_path / "w.csv"),
    ]
    hashed = protocol().item_weights
    assert [protocol(each).item_weights for each in given] == [hashed] * len(given)
    assert protocol(hashed) == al.Protocol.from_document(protocol().document()) == protocol()
    assert protocol({**WEIGHTS, "flu": 3}).item_weights != hashed
    assert protocol({**WEIGHTS, "new": 0}).item_weights != hashed


def test_an_event_counts_the_weight_of_its_item_in_grid_units():
    table = pa.table({"who": ["a"] * 4 + ["b"], "what": [*ITEMS, "flu"]})
    by_name = {"transform": al.Identity(input_dim=4), "vocabulary": ITEMS}
    left_out = LeftOut()
    expected = [16, 2, 0, 0]
    made = protocol(WEIGHTS, **by_name)
    groups = PublicGroups(("all",), None)
    job = TableJob.of(table, made, EventColumns("who", "what"), groups, ITEMS, WEIGHTS)
    assert job.sums(KEY).values[0].tolist() == expected
    assert list(job.kept_events(KEY, left_out))
    assert left_out.weight == 2  # the item of weight 0, and the one that is not listed
    clear = al.sketch_in_clear(protocol(), [[4, 0.5]], items=["flu", "\u00c9, coli"])
    assert sums(table) == clear.values[0].tolist()


@pytest.mark.parametrize(("count", "bound", "expected"), [("people", 10, 8), ("events", 10, 24), ("events", 5, 20), ("people", 1, 4)])  # fmt: skip
def test_the_weights_of_a_person_add_up_to_at_most_the_contribution(count, bound, expected):
    table = pa.table({"who": ["a"] * 3, "what": ["flu"] * 3})
    made = protocol(transform=al.Identity(input_dim=1), vocabulary=["flu"], count=count, contribution=bound)
    job = TableJob.of(
        table, made, EventColumns("who", "what"), PublicGroups(("all",), None), ["flu"], WEIGHTS
    )
    assert job.sums(KEY).values[0].tolist() == [expected]


def test_weights_are_rounded_down_to_the_grid():
    third = protocol({"flu": Fraction(1, 3), "cold": "0.999"})
    assert item_amounts({"flu": Fraction(1, 3), "cold": "0.999"}, third.item_weights, third.resolution) == {
        "flu": 1,
        "cold": 3,
    }


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"flu": -1},
        {"flu": 0.1},
        {"flu": 2**41},
        {"flu": float("nan")},
        {"flu": "x"},
        {"flu": None},
        {"": 1},
        {1: 1},
        {"\u00c9": 1, "E\u0301": 1},
        {"\ud800": 1},
        pa.table({"item": ["flu"]}),
        pa.table({"item": ["flu"], "weight": pa.array([None], pa.float64())}),
        pa.table({"item": [5], "weight": [1]}),
        ["flu"],
        7,
        "missing.csv",
        "missing.parquet",
        "https://example.org/w.csv",
    ],
    ids=str,
)
def test_weights_that_are_refused(weights):
    with pytest.raises(al.ParameterError):
        protocol(weights)


def test_protocols_that_cannot_have_item_weights():
    for known in ({"items": "int64"}, {"contribution": None}):
        with pytest.raises(al.ParameterError, match="item_weights"):
            protocol(**known)


def test_a_release_needs_the_weights_of_its_protocol():
    table = pa.table({"who": ["a"], "what": ["flu"], "w": [1]})
    ask = {"person": "who", "item": "what", "label": "all", "ledger": al.NO_LEDGER}
    protocol().release_table(table, item_weights=WEIGHTS, **ask)
    for weights in (None, {"flu": 3}, protocol().item_weights):
        with pytest.raises(al.ParameterError, match="item_weights"):
            protocol().release_table(table, item_weights=weights, **ask)
    with pytest.raises(al.ParameterError, match="item_weights"):
        protocol(None, resolution=1).release_table(table, item_weights=WEIGHTS, **ask)
    with pytest.raises(al.ParameterError, match="weight must be left out"):
        protocol(count="events").release_table(table, weight="w", item_weights=WEIGHTS, **ask)


def test_the_card_says_what_counts():
    words = guarantee_in_words(protocol(), "events")
    assert "public weight of the item" in words
    assert "0 or 1" not in words
