"""A changed seed or an edited file: refused by digests where the editor did not know better, by the others' space where he did."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.sketches.card import release_card
from golden.write_files import content
from sealed import write_sealed

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=50, sketch_dim=8, sparsity=1, seed="agreed"),
    al.Arrays(total_share="0.1"),
    epsilon=1,
    unit="one patient",
)
X = np.arange(100).reshape(2, 50) % 7


@pytest.fixture
def path(tmp_path):
    al.release(PROTOCOL, X, labels=["north", "south"], ledger=al.NO_LEDGER).save(tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


def changed(table, name, change):
    column = table.column(name).to_pylist()
    change(column)
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), pa.array(column, table.schema.field(name).type))


EDITS = {
    "a value": ("values", lambda rows: rows[0].__setitem__(3, rows[0][3] + 1)),
    "a label": ("label", lambda rows: rows.__setitem__(1, "west")),
    "swapped labels": ("label", lambda rows: rows.reverse()),
    "swapped rows of values": ("values", lambda rows: rows.reverse()),
    "a noise id": ("noise", lambda rows: rows[0][0].update(id=bytes(16))),
    "a coefficient": ("noise", lambda rows: rows[0][0].update(coefficient=-1.0)),
    "in the clear": ("in_clear", lambda rows: rows.__setitem__(0, True)),
    "a total": ("total", lambda rows: rows.__setitem__(0, rows[0] + 1)),
}


@pytest.mark.parametrize("edit", list(EDITS))
def test_an_edited_column_is_refused(edit, path):
    table = pq.read_table(path)
    edited = changed(table, *EDITS[edit])
    assert edited != table
    pq.write_table(table, path)
    al.load(path)  # a file that another tool wrote again, unchanged, is still the same file
    pq.write_table(edited, path)
    with pytest.raises(CorruptFileError, match="was edited"):
        al.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(events=5),
        lambda found: found.pop("rows"),
        lambda found: found["rows"].append(0),
        lambda found: found["groups"].append({}),
        lambda found: found["groups"][0].pop("values"),
        lambda found: found.update(head="0" * 64),
    ],
)
def test_digests_of_another_form_are_refused(change, path):
    table = pq.read_table(path)
    found = json.loads(table.schema.metadata[b"armslength digests"])
    change(found)
    metadata = {**table.schema.metadata, b"armslength digests": json.dumps(found).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(CorruptFileError, match="edited"):
        al.load(path)


def test_rows_that_were_taken_out_or_doubled_are_refused(path):
    table = pq.read_table(path)
    for other in (table.slice(0, 1), pa.concat_tables([table, table]), table.slice(0, 0)):
        pq.write_table(other, path)
        with pytest.raises(CorruptFileError, match="edited"):
            al.load(path)
    pq.write_table(table, path, row_group_size=1)
    with pytest.raises(CorruptFileError, match="edited"):
        al.load(path)


def head_of(path):
    return json.loads(pq.read_schema(path).metadata[b"armslength"])


def with_seed(head, seed, *, card):
    """The head with another seed, and a card to match if asked for."""
    head["protocols"][0]["transform"]["parameters"]["seed"] = seed
    if card:
        head["card"] = release_card(
            [(al.Protocol.from_document(head["protocols"][0]), *head["sources"])], in_clear=False
        )
    return head


def test_a_changed_seed_in_the_head_is_refused(path):
    table = pq.read_table(path)
    head = json.dumps(with_seed(head_of(path), "other", card=True)).encode()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"armslength": head}), path)
    with pytest.raises(CorruptFileError, match="edited"):
        al.load(path)


def test_a_changed_seed_with_new_digests_does_not_go_with_its_card(path):
    write_sealed(pq.read_table(path), path, head=with_seed(head_of(path), "other", card=False))
    with pytest.raises(CorruptFileError, match="release card"):
        al.load(path)


def test_a_changed_seed_with_everything_made_to_match_is_of_another_space(path, tmp_path):
    honest = al.load(path)
    write_sealed(pq.read_table(path), path, head=with_seed(head_of(path), "other", card=True))
    forged = al.load(path)
    with pytest.raises(al.IncompatibleSketchesError, match="seed"):
        al.squared_distances(honest, forged)
    verification = al.verify(path, protocol=PROTOCOL)
    assert [check.subject for check in verification.checks if check.state == "fails"] == ["agreement"]
    honest.save(tmp_path / "honest.parquet")
    with pytest.raises(al.IncompatibleSketchesError):
        al.load([path, tmp_path / "honest.parquet"])


def test_a_smaller_epsilon_in_the_head_is_refused(path):
    head = head_of(path)
    head["protocols"][0]["epsilon"] = "0.5"
    write_sealed(pq.read_table(path), path, head=head)
    with pytest.raises(CorruptFileError, match="edited by hand"):
        al.load(path)


def test_flipped_bits_are_refused_or_change_nothing(path):
    written = content(al.load(path))
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 29):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = content(al.load(path))
        except al.ArmslengthError:
            refused += 1
        else:
            assert found == written, place
    assert refused > 0.3 * len(range(0, len(whole), 29))
