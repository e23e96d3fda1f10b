"""Text in a stranger's file: what would take forever to normalize, and what a terminal would act on."""

import csv
import io
import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.cli.output import as_csv
from armslength.errors import CorruptFileError
from armslength.sketches.sketch_format import KEY
from flat_protocol import flat_protocol
from sealed import write_sealed

# Normalizing this takes hours.
MARKS = "a" + "\u0301\u0316" * 200_000
FEW_MARKS = "a" + "\u0301\u0316" * 16  # short enough for every limit
ACTING = ["a\x1b[31mb", "a\nnoise: laplace, scale 1000000", "a\x9b2Jb", "a\u202eb", "a\u2066b", "a\u2028b"]
OPEN = al.SparseJL(sketch_dim=8, sparsity=2, seed="x")
MARGINS = {
    "margins": {"prefix": ["a", "b"], "group": ["one", "two"]},
    "margin_share": "0.2",
    "margin_contribution": 1,
    "total_share": "0.1",
}
RECORD = {"record": {"sex": ["F", "M"], "age": [18, 65]}}


def document(**fields):
    common = {"epsilon": 1, "unit": "one patient"}
    return flat_protocol(OPEN, **common, contribution="vote", **fields).document()


def places():
    """Every text of a document that a stranger chooses freely, as a function that sets it."""

    def in_unit(text):
        return document() | {"unit": text}

    def in_seed(text):
        edited = document()
        edited["transform"]["parameters"]["seed"] = text
        return edited

    def in_category(text):
        edited = document(**RECORD)
        edited["record"]["sex"] = ["F", text]
        return edited

    def in_column(text):
        edited = document(**RECORD)
        edited["record"] = {"age": "18,65", text: ["F", "M"]}
        return edited

    def in_prefix(text):
        edited = document(**MARGINS)
        edited["margins"]["prefixes"] = [[text], ["b"]]
        return edited

    def in_group(text):
        edited = document(**MARGINS)
        edited["margins"]["names"] = [text, "two"]
        return edited

    def in_table_group(text):
        edited = document(**MARGINS | {"margins": {"x": "one", "y": "two"}})
        edited["margins"]["names"] = [text, "two"]
        return edited

    return [in_unit, in_seed, in_category, in_column, in_prefix, in_group, in_table_group]


PLACES = pytest.mark.parametrize("place", places(), ids=lambda place: place.__name__)


@PLACES
@pytest.mark.parametrize("text", [MARKS, FEW_MARKS, *ACTING], ids=lambda text: ascii(text[:12]))
def test_no_protocol_holds_such_text(place, text, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(place(text), ensure_ascii=False))
    with pytest.raises(CorruptFileError) as caught:
        al.Protocol.load(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    for command in (["show"], ["show", "--card"]):
        result = CliRunner().invoke(main, [*command, str(path)])
        assert result.exit_code == 5
        assert all(line.isprintable() for line in result.output.split("\n"))


@PLACES
def test_other_text_in_the_same_places_is_read(place):
    assert al.Protocol.from_document(place("c")).document() == place("c")


@pytest.mark.parametrize("text", [MARKS, FEW_MARKS, *ACTING], ids=lambda text: ascii(text[:12]))
def test_such_text_is_refused_when_a_protocol_is_made(text):
    for fields in (
        {"record": {"sex": ["F", text]}},
        {"record": {text: "category"}},
        {**MARGINS, "margins": {"prefix": [text], "group": ["one"]}},
        {**MARGINS, "margins": {"prefix": ["a"], "group": [text]}},
        {**MARGINS, "margins": {"x": text}},
    ):
        with pytest.raises(al.ParameterError) as caught:
            flat_protocol(OPEN, epsilon=1, unit="one patient", contribution="vote", **fields)
        assert str(caught.value).isprintable()
    with pytest.raises(al.ParameterError):
        al.SparseJL(sketch_dim=8, seed=text)


@pytest.mark.parametrize("text", [MARKS, FEW_MARKS])
def test_public_lists_with_too_many_marks_are_refused(text, tmp_path):
    (tmp_path / "margins.csv").write_text(f"item,group\n{text},one\n", encoding="utf-8")
    known = {"epsilon": 1, "unit": "one patient", "contribution": "vote"}
    with pytest.raises(al.ParameterError, match="at most 30 combining marks"):
        flat_protocol(OPEN, **known, **MARGINS | {"margins": tmp_path / "margins.csv"})
    with pytest.raises(al.ParameterError, match="at most 30 combining marks"):
        flat_protocol(al.Identity(input_dim=2), **known, vocabulary=["a", text])


@pytest.mark.parametrize("text", [FEW_MARKS, *ACTING], ids=lambda text: ascii(text[:12]))
def test_labels_of_sketch_files_and_releases(text, tmp_path):
    protocol = al.Protocol(al.Identity(input_dim=2), epsilon=1)
    path = tmp_path / "s.parquet"
    al.release(protocol, np.zeros((1, 2), dtype=int), labels=["north"], ledger=al.NO_LEDGER).save(path)
    table = pq.read_table(path)
    label = table.schema.get_field_index("label")
    edited = table.set_column(label, table.schema.field(label), pa.array([text]))
    write_sealed(edited, path, head=json.loads(table.schema.metadata[KEY]))
    with pytest.raises(CorruptFileError, match="labels"):
        al.load(path)
    with pytest.raises(al.ParameterError, match="labels"):
        al.release(protocol, np.zeros((1, 2), dtype=int), labels=[text], ledger=al.NO_LEDGER)


@pytest.mark.parametrize("column", ["population", "label"])
def test_ledgers_with_too_many_marks_are_damaged(column, tmp_path):
    path = tmp_path / "ledger.sqlite"
    protocol = al.Protocol(OPEN, al.Counts(2), epsilon=1, unit="one patient")

    def release():
        return al.release(
            protocol, np.zeros((1, 1), dtype=int), items=["a"], labels=["b"], population="visits", ledger=path
        )

    al.Ledger(path, create=True).set_budget("visits", 10, unit="one patient")
    release()
    table = "labels" if column == "label" else "entries"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if column == "population":
            connection.execute("UPDATE budgets SET population = ?", (MARKS,))
        connection.execute(f"UPDATE {table} SET {column} = ?", (MARKS,))  # names of ours
    with pytest.raises(CorruptFileError):
        release()


def test_a_ledger_of_many_populations_is_summed_once(tmp_path):
    path = tmp_path / "ledger.sqlite"
    book = al.Ledger(path, create=True)
    book.set_budget("visits", 10, unit="one patient")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        columns = "unit, relation, per, epsilon, delta, version, time"
        connection.execute("BEGIN")
        connection.executemany(
            f"INSERT INTO budgets (population, {columns}) SELECT ?, {columns} FROM budgets WHERE number = 1",  # ours
            ((f"p{number}",) for number in range(20_000)),
        )
        connection.execute("COMMIT")
    assert len(book.spent()) == 20_001  # comparing each with each would take minutes


def test_csv_of_commands_holds_nothing_that_acts():
    signs = "=+-@＝＋－＠"
    rows = [{"a": f"{sign}1"} for sign in signs] + [{"a": text} for text in ACTING] + [{"a": -1.5}]
    text = as_csv(rows)
    assert all(line.isprintable() for line in text.split("\n"))
    read = [row["a"] for row in csv.DictReader(io.StringIO(text))]
    assert read[: len(signs)] == [f"'{sign}1" for sign in signs]
    assert len(read) == len(rows)
    assert read[-1] == "-1.5"
