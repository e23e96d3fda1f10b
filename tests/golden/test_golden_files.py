"""Files of every format, written by the code of their time: they are read to the last bit, and other versions are refused."""

import json
import shutil

import numpy as np
import pytest

import armslength as al
from armslength.ledger.ledger_file import SCHEMA_VERSION
from armslength.protocol import schema
from armslength.sketches import sketch_format
from golden.write_files import FOLDER, content, protocols

SKETCHES = sorted(FOLDER.glob(f"sketches-v{sketch_format.VERSION}-*.parquet"))
PROTOCOLS = sorted(FOLDER.glob(f"protocol-v{schema.VERSION}-*.json"))
LEDGER = FOLDER / f"ledger-v{SCHEMA_VERSION}.sqlite"


def test_there_are_files_to_read():
    assert len(SKETCHES) == 6
    assert len(PROTOCOLS) == len(protocols())


def test_a_sketch_file_of_another_version_is_refused():
    with pytest.raises(al.UnsupportedVersionError, match=r"sketches-v2-release\.parquet must have version 3"):
        al.load(FOLDER / "sketches-v2-release.parquet")


@pytest.mark.parametrize("version", [1, 2])
def test_a_ledger_of_another_version_is_refused_and_left_alone(version, tmp_path):
    copied = shutil.copy(FOLDER / f"ledger-v{version}.sqlite", tmp_path / "ledger.sqlite")
    before = copied.read_bytes()
    with pytest.raises(
        al.UnsupportedVersionError, match=f"must have version {SCHEMA_VERSION}, got {version}"
    ):
        al.Ledger(copied)
    assert copied.read_bytes() == before


@pytest.mark.parametrize("path", SKETCHES, ids=lambda path: path.stem)
def test_a_sketch_file_holds_what_was_written(path, tmp_path):
    made = al.load(path)
    written = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert content(made) == written
    made.save(tmp_path / "again.parquet")
    assert content(al.load(tmp_path / "again.parquet")) == written


@pytest.mark.parametrize("path", PROTOCOLS, ids=lambda path: path.stem)
def test_a_protocol_is_the_one_that_was_written(path):
    protocol = al.Protocol.load(path)
    assert protocol == protocols()[int(path.stem[-2:])]
    assert protocol.document() == json.loads(path.read_text(encoding="utf-8"))


def test_a_ledger_has_its_lines_and_takes_more(tmp_path):
    copied = shutil.copy(LEDGER, tmp_path / "ledger.sqlite")
    before = copied.read_bytes()
    entries = al.Ledger(copied, read_only=True).entries()
    assert [(entry.labels, entry.period, entry.radius, entry.epsilon, entry.delta) for entry in entries] == [
        (("north",), "2026-11", "1", "0.5", "0"),
        (("south",), "2026-11", "2", "1", "0.0000001"),
    ]
    assert copied.read_bytes() == before
    protocol = al.Protocol(al.Identity(input_dim=4), epsilon="0.5", unit="one patient")
    row, where = np.zeros((1, 4), int), {"population": "visits", "ledger": copied}
    with pytest.raises(al.BudgetError, match="north"):
        protocol.release(row, labels=["north"], period="2026-11", **where)
    protocol.release(row, labels=["north"], period="2026-12", **where)
    assert len(al.Ledger(copied).entries()) == 3
