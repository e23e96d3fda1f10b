"""A plan's protocol can be released with, and the library and the command plan alike."""

import pyarrow as pa
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main

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
VOTES = {"by": "shape"}
KINDS = {
    "amounts": {"by": "size", "contribution": 3},
    "votes": VOTES,
    "listed record": VOTES | {"record": {"age": [18, 40], "sex": ["F", "M"]}},
    "open record": VOTES | {"record": {"age": [18, 40], "sex": "category"}},
}
SETTINGS = {
    "plain": {},
    "replace": {"relation": "replace"},
    "delta": {"delta": "1e-6"},
    "totals": {"total_share": "0.1"},
    "explain": {"explain": 3},
    "an open vocabulary": {"open_vocabulary": True},
    "columns": {"input_dim": 40},
    "names": {"input_dim": 3, "vocabulary": ["a", "b", "c"]},
    "numbers": {"items": "int64"},
    "halves": {"resolution": 0.5},
    "a range": {"value_range": (0, 5)},
    "off the grid": {"on_grid": False, "changed_entries": 2},
    "margins": {"margins": GROUPS},
    "margins of a record": {"margins": ["sex"]},
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
    "margins": {"amounts"},
    "margins of a record": {"amounts", "votes", "open record"},
}
KNOWN = {"epsilon": 30, "people": 20_000, "unit": "one patient", "max_sketch_dim": 64, "seed": "alike"}


def released(protocol, settings):
    """The table under this protocol, with what its settings need again."""
    again = {name: settings[name] for name in ("vocabulary",) if name in settings}
    if settings.get("margins") is GROUPS:
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
        ({"contribution": 2, "delta": "1e-6"}, ("--contribution", 2, "--delta", "1e-6")),
        ({"parties": 9, "items_per_person": 7}, ("--parties", 9, "--items-per-person", 7)),
        (
            {"record": {"age": [18, 40], "sex": "category"}, "people": (9_000, 50_000)},
            ("--record", "age:18,40", "--record", "sex", "--people", "9000:50000"),
        ),
        (
            {"record": {"sex": ["F", "M"]}, "margins": ["sex"]},
            ("--record", "sex=F,M", "--margin-column", "sex"),
        ),
        (
            {"record": {"sex": ["F", "M"]}, "open_vocabulary": True},
            ("--record", "sex=F,M", "--open-vocabulary"),
        ),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:This is a weak promise")
def test_the_library_and_the_command_plan_alike(settings, more, tmp_path):
    path = tmp_path / "protocol.json"
    command = [f"--{name.replace('_', '-')}={value}" for name, value in KNOWN.items()]
    done = CliRunner().invoke(main, ["plan", *command, *map(str, more), "-o", str(path)])
    assert done.exit_code == 0, done.output
    planned = al.plan(**KNOWN | settings)
    assert al.Protocol.load(path).document() == planned.protocol.document()
    assert done.stdout == f"{planned}\n"
