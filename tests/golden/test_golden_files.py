"""Files of every version of every format, written by the code of their time: they are read for ever, to the last bit."""

import json
import shutil

import numpy as np
import pytest

import armslength as al
from armslength.ledger.file import SCHEMA_VERSION
from armslength.protocol import file_layout, schema
from golden.write_files import FOLDER, content, protocols

SKETCHES = sorted(FOLDER.glob("sketches-*.parquet"))
PROTOCOLS = sorted(FOLDER.glob("protocol-*.json"))
LEDGERS = sorted(FOLDER.glob("ledger-*.sqlite"))


def versions(paths):
    return {int(path.stem.split("-")[1].removeprefix("v")) for path in paths}


def test_every_version_of_every_format_has_files():
    assert versions(SKETCHES) == set(range(1, file_layout.VERSION + 1))
    assert versions(PROTOCOLS) == set(range(1, schema.VERSION + 1))
    assert versions(LEDGERS) == set(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("path", SKETCHES, ids=lambda path: path.stem)
def test_a_sketch_file_holds_what_was_written(path, tmp_path):
    made = al.load(path)
    written = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    if versions([path]) <= {1, 2}:  # which did not say what was released
        written["sources"] = [["unknown"] * len(row) for row in written["noise"]]
    assert content(made) == written
    made.save(tmp_path / "again.parquet")
    assert content(al.load(tmp_path / "again.parquet")) == written


def test_sketches_of_every_version_compare_with_each_other():
    joined = al.load([path for path in SKETCHES if path.stem.endswith("release")])
    assert len(joined) == 2 * len([path for path in SKETCHES if path.stem.endswith("release")])
    assert np.isfinite(al.squared_distances(joined).value).all()


@pytest.mark.parametrize("path", PROTOCOLS, ids=lambda path: path.stem)
def test_a_protocol_is_the_one_that_was_written(path):
    protocol = al.Protocol.load(path)
    assert protocol == protocols()[int(path.stem[-2:])]
    assert protocol.document() == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_a_ledger_has_its_lines_and_takes_more(path, tmp_path):
    copied = tmp_path / "ledger.sqlite"
    shutil.copy(path, copied)
    before = copied.read_bytes()
    entries = al.Ledger(copied, read_only=True).entries()
    assert [(entry.label, entry.norm, entry.radius, entry.epsilon, entry.delta) for entry in entries] == [
        ("north", "l1", "1", "0.5", "0"),
        ("south", "l2", "2", "1", "0.0000001"),
    ]
    assert copied.read_bytes() == before
    protocol = al.Protocol(al.Identity(4), "0.5", unit="one patient")
    with pytest.raises(al.BudgetError, match="north"):
        protocol.release(np.zeros((1, 4), int), labels=["north"], population="visits", ledger=copied)
    protocol.release(np.zeros((1, 4), int), labels=["west"], population="visits", ledger=copied)
    assert len(al.Ledger(copied).entries()) == 3
