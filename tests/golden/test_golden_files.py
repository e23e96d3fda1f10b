"""Files of every format, written by the code of their time: they are read to the last bit, and other versions are refused."""

import json
import shutil

import numpy as np
import pytest

import armslength as al
from armslength.errors import UnsupportedVersionError
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


OLD = [
    *(path for path in sorted(FOLDER.glob("sketches-v*.parquet")) if path not in SKETCHES),
    *(path for path in sorted(FOLDER.glob("protocol-v*.json")) if path not in PROTOCOLS),
    *(path for path in sorted(FOLDER.glob("ledger-v*.sqlite")) if path != LEDGER),
]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_files_of_armslength_0_2_are_refused_and_left_alone(path, tmp_path):
    copied = shutil.copy(path, tmp_path / path.name)
    before = copied.read_bytes()
    read = {".parquet": al.load, ".json": al.Protocol.load, ".sqlite": al.Ledger}[path.suffix]
    with pytest.raises(UnsupportedVersionError, match=r"armslength 0\.2") as caught:
        read(copied)
    assert str(caught.value).isprintable()
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
        al.release(protocol, row, labels=["north"], period="2026-11", **where)
    al.release(protocol, row, labels=["north"], period="2026-12", **where)
    assert len(al.Ledger(copied).entries()) == 3
