"""A plan's protocol can be released with, and the library and the command plan alike."""

from itertools import product

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
RECORDS = {
    "none": None,
    "listed": {"age": [18, 40], "sex": ["F", "M"]},
    "open": {"age": [18, 40], "sex": "category"},
}
SETTINGS = {
    "plain": {},
    "events": {"count": "events"},
    "one group": {"one_group": True},
    "replace": {"relation": "replace"},
    "delta": {"delta": "1e-6"},
    "totals": {"total_share": "0.1"},
    "explain": {"explain": 3},
    "an open vocabulary": {"open_vocabulary": True},
    "columns": {"input_dim": 40},
    "names": {"input_dim": 3, "vocabulary": ["a", "b", "c"]},
    "numbers": {"items": "int64"},
    "half people": {"resolution": 0.5},
    "half events": {"resolution": 0.5, "count": "events"},
    "a range": {"value_range": (0, 5)},
    "off the grid": {"on_grid": False, "changed_entries": 2},
    "margins": {"margins": GROUPS},
    "margins of one group": {"margins": GROUPS, "one_group": True},
    "margins of a record": {"margins": ["sex"]},
}
# Settings that no table can be released with are refused before any release.
REFUSED = {"half people", "a range"}
KNOWN = {"epsilon": 30, "people": 20_000, "unit": "one patient"}


def released(protocol, settings):
    """The table under this protocol, with what its settings need again."""
    again = {name: settings[name] for name in ("margins", "vocabulary") if name in settings}
    if again.get("margins") is not GROUPS:
        again.pop("margins", None)
    if protocol.record is None:
        by_number = protocol.items == "int64" or ("input_dim" in settings and "vocabulary" not in settings)
        again["item"] = "number" if by_number else "item"
    return protocol.release_table(TABLE, person="id", label="x", ledger=al.NO_LEDGER, **again)


@pytest.mark.filterwarnings("ignore:This is a weak promise")
@pytest.mark.parametrize("name", SETTINGS)
def test_every_planned_protocol_can_be_released_with(name):
    settings, count = SETTINGS[name], 0
    for record, by in product(RECORDS, ("size", "shape")):
        known = {**KNOWN, **settings, "by": by, "record": RECORDS[record], "contribution": 3}
        try:
            protocol = al.plan(**known).protocol
        except (al.ParameterError, al.NotResolvableError):
            continue
        assert len(released(protocol, settings)) == 1
        count += 1
    assert (count == 0) == (name in REFUSED)


@pytest.mark.filterwarnings("ignore:This is a weak promise")
@pytest.mark.parametrize(
    ("record", "options"),
    [
        (RECORDS["listed"], ("--record", "age:18,40", "--record", "sex=F,M")),
        (RECORDS["open"], ("--record", "age:18,40", "--record", "sex")),
        ({"sex": ["F", "M"]}, ("--record", "sex=F,M")),
    ],
)
@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({}, ()),
        ({"contribution": 2, "one_group": True}, ("--contribution", 2, "--one-group")),
        ({"by": "shape", "parties": 9}, ("--by", "shape", "--parties", 9)),
        ({"open_vocabulary": True}, ("--open-vocabulary",)),
        ({"delta": "1e-6", "count": "events"}, ("--delta", "1e-6", "--count", "events")),
    ],
)
def test_the_library_and_the_command_plan_alike(record, options, settings, more, tmp_path):
    path = tmp_path / "protocol.json"
    known = {**KNOWN, **settings, "record": record, "seed": "alike"}
    command = ("plan", *options, *more, "--epsilon", 30, "--people", 20_000, "--unit", "one patient")
    done = CliRunner().invoke(main, list(map(str, (*command, "--seed", "alike", "-o", path))))
    assert done.exit_code == 0, done.output
    planned = al.plan(**known)
    assert al.Protocol.load(path).document() == planned.protocol.document()
    assert done.stdout == f"{planned}\n"


def test_both_refuse_a_contribution_below_the_items_of_a_row():
    record = {"age": [18, 40], "sex": ["F", "M"]}
    with pytest.raises(al.ParameterError, match="contribution must be at least 2"):
        al.plan(**KNOWN, record=record, contribution=1)
    command = "plan --record age:18,40 --record sex=F,M --contribution 1 --epsilon 30 --people 20000"
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 2
    assert "--contribution must be at least 2" in done.output
