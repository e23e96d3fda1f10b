"""Records in `plan`, `protocol`, `check` and `release`."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.cli import check as check_file
from unit.cli.commands import run

PATIENTS = pa.table(
    {"id": [1, 2, 3], "age": [17, 50, None], "sex": ["F", "M", "x"], "seen": ["2024-03-01", None, "x"]}
)
RECORD = ("--record", "age:18,40", "--record", "sex=F,M")
NEW = ("protocol", "new", "--epsilon", 1, "--unit", "one patient", "-o", "protocol.json")
RELEASE = ("release", "patients.parquet", "--person", "id", "--label", "north", "--protocol", "protocol.json")
RELEASE = (*RELEASE, "--no-ledger", "-o", "sketches.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(PATIENTS, "patients.parquet")


def new(*options):
    made = run(*NEW, *options)
    assert made.exit_code == 0, made.output
    return made.output, al.Protocol.load("protocol.json")


def test_a_recipe_with_all_categories_lists_its_items():
    shown, protocol = new(*RECORD, "--pair", "sex,age", "--transform", "Identity")
    assert protocol.transform.input_dim == 4 + 4 + 16
    assert protocol.contribution == "vote"
    assert "age:18,40; sex=F,M; age & sex" in shown
    done = run(*RELEASE)
    assert done.exit_code == 0, done.output
    assert al.load("sketches.parquet").values.shape == (1, 24)


def test_other_recipes_have_an_open_vocabulary():
    record = ("--record", "age:-1.5,18", "--record", "sex", "--record", "seen:quarter")
    _, protocol = new(*record, "--sketch-dim", 16)
    assert protocol.document()["record"] == {"age": "-1.5,18", "seen": "quarter", "sex": "category"}
    assert protocol.transform.input_dim is None
    done = run(*RELEASE)
    assert done.exit_code == 0, done.output
    _, protocol = new(*RECORD, "--open-vocabulary", "--sketch-dim", 16, "--overwrite")
    assert protocol.transform.input_dim is None


def test_a_release_takes_the_recipe_from_the_protocol_alone():
    new(*RECORD, "--pair", "age,sex", "--transform", "Identity")
    for other in (RECORD, ("--item", "sex")):
        refused = run(*RELEASE, *other)
        assert refused.exit_code == 2, refused.output
        assert other[0] in refused.output
    pq.write_table(PATIENTS.drop_columns(["age"]), "patients.parquet")
    refused = run(*RELEASE)
    assert refused.exit_code == 2
    assert "age" in refused.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--record", "age:18,x"),
        ("--record", "age:months"),
        ("--pair", "age,sex"),
        ("--record", "sex", "--input-dim", 5),
        ("--record", "sex", "--items", "int64"),
    ],
)
def test_what_is_no_recipe_is_refused(options):
    refused = run(*NEW, "--sketch-dim", 16, *options)
    assert refused.exit_code == 2, refused.output
    assert refused.exception is None or isinstance(refused.exception, SystemExit | al.ArmslengthError)


CHECK = ("check", "patients.parquet", "--person", "id", "--label", "north", "--protocol", "protocol.json")


def test_check_shows_what_is_missing_or_other_in_each_column():
    new(*RECORD, "--transform", "Identity")
    checked = run(*CHECK, "--format", "json")
    assert checked.exit_code == 7, checked.output  # three people are too few
    result = json.loads(checked.output)
    items = {"median": 2, "most": 2}
    assert result["people"] == 3
    assert result["votes"] == {"several_groups": 0, "per_person": items, "without": 0}
    assert (result["share_kept"], result["people_over_contribution"]) == (None, 0)  # of amounts alone
    one_other = {"rows": 3, "missing": 0, "other": 1}
    assert result["columns"] == {"age": {"rows": 3, "missing": 1, "other": 0}, "sex": one_other}


@pytest.mark.parametrize("listed", [True, False])
def test_check_flags_categories_that_the_table_writes_otherwise(monkeypatch, listed):
    monkeypatch.setattr(check_file, "is_terminal", lambda _: True)
    coded = pa.table({"id": range(10), "age": [50] * 10, "sex": [0, 1] * 5})
    pq.write_table(coded, "patients.parquet")
    dimension = ("--transform", "Identity") if listed else ("--open-vocabulary", "--sketch-dim", 16)
    new(*RECORD, "--pair", "age,sex", *dimension)
    checked = run(*CHECK)
    assert checked.exit_code == 7, checked.output
    (line,) = (line for line in checked.stdout.splitlines() if "needs a look" in line)
    assert "sex" in line
    assert "age" not in line
    assert "F, M" in checked.stdout
    assert "100.0% (other)" in checked.stdout


def test_messages_name_what_is_wrong():
    def refused(*options):
        result = run(*NEW, *options)
        assert result.exit_code == 2, result.output
        return result.stderr

    assert "--record sex=" in refused("--record", "age:18", "--record", "sex", "--transform", "Identity")
    assert "'sx'" in refused(*RECORD, "--pair", "age,sx", "--sketch-dim", 16)
    assert "leave out --record" in refused(*RECORD, "--contribution", 2, "--transform", "Identity")
    assert run("plan", *RECORD, "--contribution", 1, "--epsilon", 1, "--people", 500).exit_code == 2


def test_plan_takes_a_record():
    common = (
        "plan",
        *RECORD,
        "--pair",
        "age,sex",
        "--epsilon",
        1,
        "--unit",
        "one patient",
        "--format",
        "json",
    )
    planned = run(*common, "--people", 2000, "-o", "protocol.json")
    assert planned.exit_code == 0, planned.output
    protocol = al.Protocol.load("protocol.json")
    assert (protocol.contribution, protocol.transform.input_dim) == ("vote", 24)
    assert run(*RELEASE).exit_code == 0


def test_few_items_get_a_histogram_and_pairs_a_sketch():
    """As docs/guides/records.md says of four hospitals."""
    listed = {"sex": ["0", "1"], "cp": list("1234"), "exang": ["0", "1"], "num": list("01234")}
    record = {"age": [40, 50, 60, 70], "trestbps": [120, 140, 160], "chol": [1, 200, 240, 280], **listed}
    pairs = [("age", "sex"), *((name, "num") for name in ("cp", "age", "sex", "chol", "exang"))]
    known = {"epsilon": 1, "people": 800, "parties": 4, "unit": "one patient", "record": record}
    single = al.plan(**known)
    assert single.protocol.transform.name == "Identity"
    joint = al.plan(record_pairs=pairs, **known)
    assert joint.protocol.transform.name == "SparseJL"
    assert joint.protocol.votes
