"""The targets of the audit, with a few inputs each that a seed decides; and every input that once broke something."""

import faulthandler
import json
import re
from pathlib import Path
from random import Random

import pytest
from audit.fuzzing import run, workspace
from audit.fuzzing.ledgers import HOSTILE_SCHEMAS
from audit.fuzzing.mutate import change_bytes, change_json, change_parquet
from audit.fuzzing.targets import BY_NAME, TARGETS
from audit.fuzzing.verdicts import Changes, Finding, Target, reached, seeds_of, verdict
from audit.fuzzing.worker import Account

import armslength as al
from armslength.errors import CorruptFileError
from armslength.ledger import budgets
from armslength.privacy import composition

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*"))


def folder_of(name):
    return re.sub("[^a-z]+", "-", name.lower())


@pytest.fixture(autouse=True)
def _remember_compositions(monkeypatch):
    for module in (composition, budgets):
        monkeypatch.setattr(module, "compose", module.compose)  # so that it is set back
    workspace.remember_compositions()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_changed_inputs_end_in_one_line_of_ours(target):
    changes = Changes(target, seed=0)
    ended = [verdict(target, changes.one()) for _ in range(max(8, min(150, target.runs // 1500)))]
    assert sum(map(reached, ended)) > 0.7 * len(ended)  # nearly all become files that a reader is given


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_something_no_longer_does(path):
    (target,) = (target for target in TARGETS if folder_of(target.name) == path.parent.name)
    seeds_of(target)
    assert verdict(target, path.read_bytes())


def test_every_hostile_schema_is_refused():
    target = BY_NAME["ledger, lines and schema"]
    ended = [verdict(target, data) for data in HOSTILE_SCHEMAS()]
    assert ended[0] == "accepted"
    assert ended[-2:] == ["accepted", "CorruptFileError"]  # a journal of another kind is still a ledger
    assert set(ended[1:-2]) == {"CorruptFileError", "UnsupportedVersionError"}


def test_only_what_reaches_a_reader_counts_and_seeds_are_not_accepted_changes(tmp_path):
    account = Account(tmp_path / "out.json", 2)
    account.add("no file", 0.0, is_reached=reached("no file"), is_seed=False)
    account.add("accepted", 0.0, is_reached=reached("accepted"), is_seed=True)
    assert (account.executions, account.accepted, account.is_full) == (1, 0, False)
    account.add("accepted, full", 0.0, is_reached=reached("accepted, full"), is_seed=False)
    faulthandler.cancel_dump_traceback_later()
    assert (account.executions, account.accepted, account.is_full) == (2, 1, True)
    assert json.loads((tmp_path / "out.json").read_text())["executions"] == 2


def test_a_target_whose_inputs_never_reach_a_reader_ends(tmp_path):
    account = Account(tmp_path / "out.json", 2)
    for _ in range(6):
        assert not account.is_full
        account.add("no file", 0.0, is_reached=False, is_seed=False)
    faulthandler.cancel_dump_traceback_later()
    assert account.is_full
    assert account.executions == 0


def measured_as(**changed):
    known = {
        "executions": 20,
        "accepted": 1,
        "seconds": 1.0,
        "verdicts": {"accepted": 21},
        "slowest": 0.1,
        "peak": 300,
        "finding": "",
        "features": 9,
    }
    return {**known, **changed}


@pytest.mark.parametrize(
    ("changed", "claim"),
    [
        ({"accepted": 0}, "not seeds"),
        ({"finding": "x"}, "a finding"),
        ({"executions": 19}, "reach the readers"),
        ({"peak": 2000}, "MB"),
        ({"slowest": 21.0}, " s for"),
    ],
)
def test_one_target_that_falls_short_breaks_its_claim(changed, claim, monkeypatch):
    monkeypatch.setattr(run, "_WANTED", 40)
    targets = TARGETS[:2]
    for first, holds in (({}, True), (changed, False)):
        found = list(zip(targets, (measured_as(**first), measured_as()), strict=True))
        (check,) = (check for check in run._section(found, quick=False).checks if claim in check.claim)
        assert check.holds is holds


def raising(problem):
    def read(_):
        raise problem

    return Target("protocols", "planted", lambda: [b"{}"], read, change_bytes, 1)


@pytest.mark.parametrize(
    "problem",
    [
        KeyError("x"),
        MemoryError(),
        RecursionError(),
        UserWarning("x"),
    ],
)
def test_a_planted_fault_is_found(problem):
    with pytest.raises(Finding):
        verdict(raising(problem), b"")


def test_a_seed_that_is_refused_is_found():
    with pytest.raises(Finding, match="a valid input"):
        seeds_of(raising(al.InputError("refused")))


def test_one_line_of_ours_is_a_verdict():
    assert verdict(raising(CorruptFileError("a file must be whole, got half")), b"") == "CorruptFileError"


@pytest.mark.parametrize("change", [change_bytes, change_json, change_parquet])
def test_a_seed_decides_what_is_changed(change):
    data = (
        seeds_of(BY_NAME["sketch file, bytes"])[0]
        if change is change_parquet
        else json.dumps({"a": [1, "b"]}).encode()
    )
    made = [[change(data, Random(seed)) for seed in range(50)] for _ in range(2)]  # noqa: S311  # repeatable by design
    assert made[0] == made[1]
    assert len(set(made[0])) > 25
