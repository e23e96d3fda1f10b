"""The guide to Spark: its blocks run as they stand, in the shared session."""

import re
from pathlib import Path

import armslength as al

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"
FOLDER = "hdfs:///clinic/visits"


def test_the_blocks_of_the_guide_run(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session.sql("CREATE DATABASE clinic")
    visits = session.createDataFrame(
        [("ann", "D1", "north"), ("bob", "D2", "south"), ("bob", "D2", "elsewhere")],
        "patient STRING, code STRING, hospital STRING",
    )
    visits.write.saveAsTable("clinic.visits")
    visits.write.parquet(str(tmp_path / "visits"))
    profiles = [("north", list(range(512)))]
    session.createDataFrame(profiles, "hospital STRING, profile ARRAY<INT>").write.saveAsTable(
        "clinic.profiles"
    )
    transform = al.SparseJL(input_dim=None, sketch_dim=64, seed="s")
    al.Protocol(transform, al.Counts(5), epsilon=1, unit="one patient").save("protocol.json")
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert FOLDER in blocks[1]
    blocks[1] = blocks[1].replace(FOLDER, str(tmp_path / "visits")).replace("ledger.sqlite", "another.sqlite")
    for ledger in ("ledger.sqlite", "another.sqlite"):
        al.Ledger(ledger, create=True).set_budget("patients-2026", 4, unit="one patient")
    names: dict[str, object] = {"session": session}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102  # our own document
    assert al.load("sketches.parquet").labels == ("north", "south", "west")
    assert len(al.Ledger("ledger.sqlite").entries()) == 2
    assert len(al.Ledger("another.sqlite").entries()) == 1
    session.sql("DROP DATABASE clinic CASCADE")
