"""`al.verify` computes all that is public anew, and says what does not hold."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.sketches import verify as module
from golden.write_files import protocols
from margin_rows import rows_with_margins
from sealed import write_sealed

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=50, sketch_dim=64, sparsity=1, seed="agreed"),
    al.Arrays(total_share="0.1"),
    epsilon=1,
    unit="one patient",
)
X = np.arange(100).reshape(2, 50) % 7


@pytest.fixture
def path(tmp_path):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    sketches = al.release(PROTOCOL, X, labels=["north", "south"], population="visits", ledger=ledger)
    sketches.save(tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


def states(verification):
    return {check.subject: check.state for check in verification.checks}


def test_a_true_file_holds(path):
    verification = al.verify(path, protocol=PROTOCOL, ledger=path.with_name("ledger.sqlite"))
    assert verification.holds
    assert states(verification) == dict.fromkeys(
        ("file", "matrix", "calibration", "card", "totals", "noise", "agreement", "ledger"), "holds"
    )
    assert "line 1, to visits" in verification.checks[-1].words


@pytest.mark.parametrize("kept", [0, 1])
def test_a_file_that_lost_its_people_or_their_spread_is_noticed(tmp_path, kept):
    table = pa.table({"who": ["a", "b"], "what": ["x", "y"]})
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="v"), al.Votes(total_share="0.1"), epsilon=1, unit="u"
    )
    rows = al.release(protocol, table, person="who", item="what", label="n", ledger=al.NO_LEDGER)
    beside = (rows.totals, rows.margins, rows.spread)
    for numbers, state in ((beside, "holds"), (beside[:kept], "fails")):
        al.Sketches(rows.values, rows.labels, rows.noises, rows.protocols, *numbers).save(tmp_path / state)
        assert states(al.verify(tmp_path / state))["totals"] == state


def test_what_was_not_given_is_not_checked(path):
    verification = al.verify(path)
    assert verification.holds
    found = states(verification)
    assert (found["agreement"], found["ledger"]) == ("not checked", "not checked")


@pytest.mark.parametrize("protocol", protocols(), ids=lambda protocol: protocol.fingerprint[:8])
def test_releases_of_every_transform_and_law_hold(protocol, tmp_path):
    width = protocol.transform.input_dim
    if protocol.margins is not None:
        sketches = rows_with_margins(protocol, np.zeros((1, len(protocol.margins.names) + 1)))
    elif protocol.votes:
        table = pa.table({"who": ["a", "a"], "what": [0, 1]})
        columns = {"person": "who", "item": "what", "label": "all"}
        sketches = al.release(protocol, table, ledger=al.NO_LEDGER, **columns)
    elif width is None:
        sketches = al.release(protocol, np.zeros((1, 3), int), items=[1, 2, 3], ledger=al.NO_LEDGER)
    else:
        sketches = al.release(protocol, np.zeros((1, width), int), ledger=al.NO_LEDGER)
    sketches.save(tmp_path / "s.parquet")
    assert al.verify(tmp_path / "s.parquet", protocol=protocol).holds


def test_another_protocol_than_agreed(path):
    other = al.Protocol(
        al.SparseJL(input_dim=50, sketch_dim=64, sparsity=1, seed="agreed"),
        al.Arrays(total_share="0.1"),
        epsilon="0.5",
        unit="one patient",
    )
    verification = al.verify(path, protocol=other)
    assert not verification.holds
    (failing,) = [check for check in verification.checks if check.state == "fails"]
    assert failing.words.endswith("different epsilon")


def test_only_the_charged_file_is_in_the_ledger(path, tmp_path):
    """The same protocol, rows and labels, but released without the ledger, is another file."""
    ledger = tmp_path / "ledger.sqlite"
    al.release(PROTOCOL, X, labels=["north", "south"], ledger=al.NO_LEDGER).save(path)
    check = al.verify(path, ledger=ledger).checks[-1]
    assert (check.subject, check.state) == ("ledger", "fails")
    assert "not in this ledger" in check.words
    again = al.release(
        PROTOCOL, X, labels=["north", "south"], population="visits", period="2026-12", ledger=ledger
    )
    again[1].save(path)  # a part of a release is charged with it
    check = al.verify(path, ledger=ledger).checks[-1]
    assert check.state == "holds"
    assert "line 2" in check.words
    with pytest.raises(FileNotFoundError, match="no such ledger"):
        al.verify(path, ledger=tmp_path / "none.sqlite")


def test_every_release_in_a_file_must_be_in_the_ledger(path, tmp_path):
    ledger, first = tmp_path / "ledger.sqlite", al.load(path)
    second = al.release(PROTOCOL, X[:1], labels=["west"], population="visits", ledger=ledger)
    uncharged = al.release(PROTOCOL, X[:1], labels=["east"], ledger=al.NO_LEDGER)
    for rows, state in (
        (al.concat([first, second]), "holds"),
        (first[0] + second, "holds"),  # a sum may have any label
        (al.concat([first, uncharged]), "fails"),
        (first[0] - uncharged, "fails"),
    ):
        rows.save(path)
        assert states(al.verify(path, ledger=ledger))["ledger"] == state


def test_rows_under_other_labels_were_not_charged(path, tmp_path):
    rows = al.load(path)
    al.Sketches(rows.values, ["north", "west"], rows.noises, [PROTOCOL], rows.totals).save(path)
    check = al.verify(path, ledger=tmp_path / "ledger.sqlite").checks[-1]
    assert check.state == "fails"
    assert "west" in check.words


def test_an_edited_file_fails_and_nothing_else_is_said(path):
    pq.write_table(pq.read_table(path).slice(1), path)
    (check,) = al.verify(path).checks
    assert (check.subject, check.state) == ("file", "fails")
    assert "edited" in check.words


def test_a_file_that_is_not_there_fails(tmp_path):
    assert not al.verify(tmp_path / "none.parquet").holds


def test_a_card_in_other_words_fails(path):
    head = json.loads(pq.read_schema(path).metadata[b"armslength"])
    head["card"]["releases"][0]["words"] = "Perfectly anonymous."
    write_sealed(pq.read_table(path), path, head=head)
    assert states(al.verify(path))["card"] == "fails"
    head["card"]["armslength"] = "0.0.1"
    write_sealed(pq.read_table(path), path, head=head)
    assert states(al.verify(path))["card"] == "not checked"


def test_a_card_that_hides_rows_in_the_clear_fails(path):
    head = json.loads(pq.read_schema(path).metadata[b"armslength"])
    clear = al.concat([al.load(path), al.sketch_in_clear(PROTOCOL, X[:1], labels=["query"])])
    clear.save(path)
    found = states(al.verify(path))
    assert (found["card"], found["noise"]) == ("holds", "fails")
    write_sealed(pq.read_table(path), path, head=head)
    (card,) = [check for check in al.verify(path).checks if check.subject == "card"]
    assert card.state == "fails"
    assert "rows are in the clear" in card.words


def test_implausible_rows_fail_by_name(path):
    honest = al.load(path)
    al.Sketches(np.zeros((2, 64), np.int64), honest.labels, honest.noises, [PROTOCOL], honest.totals).save(
        path
    )
    (failing,) = [check for check in al.verify(path).checks if check.state == "fails"]
    assert failing.subject == "noise"
    assert failing.words.startswith("north: less noise than declared")
    assert "; south: " in failing.words


def test_too_little_noise_fails_however_it_came_about(path, monkeypatch):
    """A calibration that chose too small a scale is caught by the proof, which does not choose."""
    assert module.check_calibration(PROTOCOL).state == "holds"
    for protocol in (
        PROTOCOL,
        al.Protocol(al.Identity(input_dim=4), epsilon=1, delta="1e-6", noise="gaussian"),
    ):
        law = type(protocol.law)(protocol.law.scale * (1 - 1e-6))
        monkeypatch.setitem(protocol.__dict__, "law", law)
        assert module.check_calibration(protocol).state == "fails"
    monkeypatch.undo()
    law = type(PROTOCOL.total_law)(PROTOCOL.total_law.scale * 0.99)
    monkeypatch.setitem(PROTOCOL.__dict__, "total_law", law)
    assert states(al.verify(path))["calibration"] == "holds"  # the file's protocol is built anew
    assert module.check_calibration(PROTOCOL).state == "fails"


@pytest.mark.parametrize("wrong", [0, 2])
def test_a_sensitivity_that_is_not_the_matrix_s_fails(wrong, monkeypatch):
    assert module.check_matrix(PROTOCOL).state == "holds"
    monkeypatch.setattr(al.SparseJL, "l1_sensitivity", wrong)
    assert module.check_matrix(PROTOCOL).state == "fails"


def test_a_line_that_differs_is_not_that_of_the_release(tmp_path):
    path, ledger = tmp_path / "s.parquet", tmp_path / "ledger.sqlite"
    protocol = al.Protocol(al.Identity(input_dim=4), epsilon=1, delta="1e-6", noise="gaussian")
    book = al.Ledger(ledger, create=True)
    al.release(protocol, np.zeros((1, 4), int), labels=["a"], population="p", ledger=book).save(path)
    for change, state in (
        ("time = time", "holds"),
        ("epsilon = '0.1'", "fails"),
        ("epsilon = '1', sensitivity_squared = '7'", "fails"),
        ("protocol = 'another'", "fails"),
    ):
        with closing(sqlite3.connect(ledger)) as connection, connection:
            connection.execute(f"UPDATE entries SET {change}")
        assert states(al.verify(path, ledger=ledger))["ledger"] == state


def test_a_population_from_elsewhere_does_not_act_on_a_terminal(path):
    ledger = path.with_name("ledger.sqlite")
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE entries SET population = ?", ("\x1b]0;x\x07",))
    words = al.verify(path, ledger=ledger).checks[-1].words
    assert words.isprintable()
    assert "charged in line 1" in words


def test_rows_that_cannot_be_tested_are_said_to_be_so(path, tmp_path):
    honest = al.load(path)
    zeros = al.Sketches(np.zeros((2, 64)), honest.labels, honest.noises, [PROTOCOL])
    zeros.save(path)  # as floats, and yet as they were released
    assert states(al.verify(path))["noise"] == "fails"
    (2 * zeros).save(path)
    assert states(al.verify(path))["noise"] == "not checked"
    al.concat([honest[0], 2 * honest[1]]).save(path)
    check = next(check for check in al.verify(path).checks if check.subject == "noise")
    assert check.state == "not checked"
    assert "1 of 2 rows" in check.words
    fast = al.Protocol(
        al.FastJL(input_dim=16, sketch_dim=8, seed="x"), epsilon=1, delta="1e-6", noise_site="input"
    )
    al.release(fast, np.zeros((1, 16), int), ledger=al.NO_LEDGER).save(tmp_path / "fast.parquet")
    assert states(al.verify(tmp_path / "fast.parquet"))["noise"] == "not checked"


def test_a_few_bytes_cannot_ask_for_much(tmp_path):
    wide = al.Protocol(al.SparseJL(input_dim=4096, sketch_dim=2**24, seed="a"), epsilon=1)
    empty = al.release(wide, np.zeros((1, 4096), int), ledger=al.NO_LEDGER)[[]]
    empty.save(tmp_path / "wide.parquet")
    check = next(check for check in al.verify(tmp_path / "wide.parquet").checks if check.subject == "matrix")
    assert check.state == "holds"
    assert check.words.startswith("1 column chosen at random")


def test_a_protocol_must_be_one(path):
    with pytest.raises(al.ParameterError, match=r"Protocol\.load"):
        al.verify(path, protocol="protocol.json")
