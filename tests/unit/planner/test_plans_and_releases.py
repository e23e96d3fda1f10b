"""A plan's protocol can be released with, and the library and the command plan alike."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.cli.output import finite
from armslength.planner.least_people import least_people

TABLE = pa.table(
    {
        "id": [1, 2, 3, 3],
        "item": ["a", "b", "c", "a"],
        "number": [1, 2, 0, 1],
        "age": [17, 50, None, 3],
        "sex": ["F", "M", "x", "F"],
    }
)
GROUPS = {"a": "A", "b": "B"}
PEOPLE = {"people": 20_000}
KINDS = {
    "amounts": {"distance": 350, "contribution": 3},
    "votes": PEOPLE,
    "listed record": PEOPLE | {"record": {"age": [18, 40], "sex": ["F", "M"]}},
    "open record": PEOPLE | {"record": {"age": [18, 40], "sex": "category"}},
}
SETTINGS = {
    "plain": {},
    "replace": {"relation": "replace"},
    "delta": {"delta": "1e-6"},
    "totals": {"total_share": "0.1"},
    "listed items": {"listed_items": 3},
    "columns": {"input_dim": 40},
    "names": {"input_dim": 3, "vocabulary": ["a", "b", "c"]},
    "numbers": {"items": "int64"},
    "halves": {"resolution": 0.5},
    "a range": {"value_range": (0, 5)},
    "off the grid": {"on_grid": False, "changed_entries": 2},
    "item groups": {"item_groups": GROUPS},
    "item groups of a record": {"item_groups": ["sex"]},
}
# What a kind of release cannot have is refused before any; everything else can be released with.
RECORDS = {"listed record", "open record"}
REFUSED = {
    "delta": KINDS.keys() - {"amounts"},
    "columns": RECORDS,
    "numbers": RECORDS,
    "halves": KINDS.keys() - {"amounts"},
    "a range": KINDS.keys(),
    "off the grid": KINDS.keys() - {"amounts"},
    "item groups": {"amounts"},
    "item groups of a record": {"amounts", "votes", "open record"},
}
KNOWN = {"epsilon": 30, "unit": "one patient", "max_sketch_dim": 64, "seed": "alike"}


def released(protocol, settings):
    """The table under this protocol, with what its settings need again."""
    again = {"vocabulary": settings["vocabulary"]} if "vocabulary" in settings else {}
    if settings.get("item_groups") is GROUPS:
        again["item_groups"] = GROUPS
    if protocol.record is None:
        again["item"] = "number" if protocol.items == "int64" else "item"
    return al.release(protocol, TABLE, person="id", label="x", ledger=al.NO_LEDGER, **again)


@pytest.mark.filterwarnings("ignore:This is a weak promise")
@pytest.mark.parametrize("name", SETTINGS)
def test_every_planned_protocol_can_be_released_with(name):
    settings = SETTINGS[name]
    for kind, known in KINDS.items():
        try:
            protocol = al.plan(**{**KNOWN, **known, **settings}).protocol
        except (al.ParameterError, al.NotResolvableError):
            assert kind in REFUSED.get(name, ()), kind
            continue
        assert kind not in REFUSED.get(name, ())
        assert len(released(protocol, settings)) == 1


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"distance": (60, 300), "contribution": 2}, ("--distance=60:300", "--contribution=2")),
        (
            {"distance": 60, "input_dim": 50, "about": "counts"},
            ("--distance=60", "--input-dim=50", "--about=counts"),
        ),
        (
            {"people": 3000, "parties": 9, "items_per_person": 7},
            ("--people=3000", "--parties=9", "--items-per-person=7"),
        ),
        ({"people": 3000, "about": "people"}, ("--people=3000", "--about=people")),
        ({"people": 3000, "listed_items": 20}, ("--people=3000", "--listed-items=20")),
        (
            {"people": 3000, "item_groups": "groups.csv", "item_groups_per_person": 1.5},
            ("--people=3000", "--item-groups=groups.csv", "--item-groups-per-person=1.5"),
        ),
        (
            {
                "record": {"age": [18, 40], "sex": "category"},
                "record_pairs": [("age", "sex")],
                "people": (9_000, 50_000),
            },
            ("--record=age:18,40", "--record=sex", "--pair=age,sex", "--people=9000:50000"),
        ),
        (
            {"people": 3000, "record": {"sex": ["F", "M"]}, "item_groups": ["sex"]},
            ("--people=3000", "--record=sex=F,M", "--item-groups=sex"),
        ),
    ],
    ids=str,
)
def test_the_library_and_the_command_plan_alike(settings, more, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("groups.csv").write_text("item,group\na,A\nb,B\n", encoding="utf-8")
    shared = {"epsilon": "2", "unit": "one patient"}
    command = ["plan", *(f"--{name}={value}" for name, value in shared.items()), *more]
    done = CliRunner().invoke(main, [*command, "-o", "protocol.json"])
    assert done.exit_code == 0, done.output
    protocol = al.Protocol.load("protocol.json")
    seed = protocol.transform.parameters().get("seed")  # a new one each time; Identity has none
    planned = al.plan(**shared, **settings, seed=seed)
    assert protocol.document() == planned.protocol.document()
    if seed is not None:
        assert done.stdout == f"{planned}\n"
    document = json.loads(CliRunner().invoke(main, [*command, "--format=json"]).stdout)
    assert document.keys() == planned.document().keys()
    same = document.keys() - {"seed", "protocol"}
    assert {name: document[name] for name in same} == {
        name: finite(planned.document()[name]) for name in same
    }
    for name in same - {"settings", "needs"}:
        assert document[name] == finite(getattr(planned, name))
    assert document["settings"] == finite(planned.to_arrow().to_pylist())


@pytest.mark.parametrize(
    "known", [{}, {"parties": 9}, {"item_groups": GROUPS}, {"record": {"sex": ["F", "M"]}}], ids=str
)
def test_the_plan_and_show_name_the_same_smallest_party(known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planned = al.plan(epsilon=1, people=3000, unit="one patient", **known)
    assert planned.least_people == least_people(planned.protocol)
    sentence = f"parties with fewer than about {planned.least_people:,} people will be inconclusive about nearly everything, even in a single pair"
    assert sentence in " ".join(str(planned).split())
    planned.protocol.save("protocol.json")
    shown = CliRunner().invoke(main, ["show", "protocol.json"])
    assert sentence in " ".join(shown.stdout.split())
