"""Files that go away or are cut off between the look at their schema and their reading: one line, and nothing is spent."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from audit.faults.party import LEDGER, NEW_LEDGER, RELEASE, TARGET
from click.testing import CliRunner

from armslength.cli.main import main
from armslength.ingest.engine import EventTable
from armslength.ingest.parquet_texts import ParquetTexts

pytestmark = pytest.mark.xdist_group("faults")  # one server for all


def _halved(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("parquet", Path.unlink),
        ("parquet", _halved),
        ("csv", Path.unlink),
        ("csv", _halved),  # Arrow files are read ahead as soon as they are opened
    ],
)
def test_a_source_that_changes_before_it_is_read(party, monkeypatch, kind, fault):
    monkeypatch.chdir(party.folder)
    path = Path(f"events.{kind}")
    visits = pa.concat_tables([pq.read_table("visits.parquet")] * 20)  # half of it is more than the footer
    write = {"parquet": pq.write_table, "csv": pc.write_csv}[kind]
    write(visits, str(path))
    if kind == "csv" and fault is _halved:
        # half of a text is a text: cut inside a quoted field, it is not
        path.write_text(
            path.read_text(encoding="utf-8").replace('"p25"', '"p25' + "x" * 9000), encoding="utf-8"
        )
    reader = {"parquet": ParquetTexts, "csv": EventTable}[kind]
    pieces = reader.pieces

    def late(*arguments, **known):
        fault(path)
        return pieces(*arguments, **known)

    monkeypatch.setattr(reader, "pieces", late)
    ended = CliRunner().invoke(main, [RELEASE[0], str(path), *RELEASE[2:], NEW_LEDGER])
    assert ended.exit_code == 2, ended.output
    assert ended.stderr.startswith("armslength: ")
    assert ended.stderr.count("\n") == 1
    assert not Path(LEDGER).exists()
    assert not Path(TARGET).exists()
