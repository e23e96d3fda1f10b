"""Small files that ask for much: matrices of any size, many protocols, all refused or made once."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.protocol import document as documents
from armslength.protocol.file_layout import KEY


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sketches.parquet"
    protocol = al.Protocol(al.SparseJL(6, 8, 2, "x"), 1)
    protocol.release(np.zeros((2, 6), dtype=int), ledger=al.NO_LEDGER).save(path)
    return path


def with_protocols(path, protocols):
    """Writes the file again with other protocols in its head."""
    table = pq.read_table(path)
    head = json.loads(table.schema.metadata[KEY])
    head["protocols"] = [protocol.document() for protocol in protocols]
    text = json.dumps(head)
    pq.write_table(
        table.replace_schema_metadata({KEY: text}),
        path,
        use_dictionary=False,
        write_statistics=False,
    )


def test_the_transform_of_a_hundred_protocols_is_built_once(path, monkeypatch):
    transform, nothing = al.SparseJL(6, 8, 2, "x"), np.zeros((1, 6), dtype=int)
    protocols = [al.Protocol(transform, number) for number in range(1, 101)]
    al.concat([each.release(nothing, ledger=al.NO_LEDGER) for each in protocols]).save(path)
    built, build = [], documents.schema.read_transform
    monkeypatch.setattr(documents.schema, "read_transform", lambda text: built.append(1) or build(text))
    loaded = al.load(path)
    assert len(loaded.protocols) == 100
    assert built == [1]
    assert len({id(protocol.transform) for protocol in loaded.protocols}) == 1


def test_other_transforms_in_one_file_are_refused_before_they_are_scanned(path, monkeypatch):
    with_protocols(path, [al.Protocol(al.SparseJL(6, 8, 2, seed), 1) for seed in ("x", "y")])
    built, build = [], documents.schema.read_transform
    monkeypatch.setattr(documents.schema, "read_transform", lambda text: built.append(1) or build(text))
    with pytest.raises(al.IncompatibleSketchesError, match="different transforms"):
        al.load(path)
    assert built == [1]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"density": (1.0).hex(), "input_dim": 2**17, "sketch_dim": 2**17}, "must be at most 2\\^25"),
        ({"density": (1.0).hex(), "input_dim": 2**13, "sketch_dim": 2**13}, "must be at most 2\\^25"),
        ({"input_dim": 2**25 + 1}, "input_dim must be an integer from 1 to 33554432"),
        ({"sketch_dim": 2**24, "input_dim": 2**20}, "must be at most 2\\^34"),
    ],
)
def test_a_protocol_cannot_ask_for_a_matrix_that_does_not_fit(changes, match):
    document = al.Protocol(al.FastJL(6, 8, "x"), 1).document()
    document["transform"]["parameters"] |= changes
    with pytest.raises(al.CorruptFileError, match=match):
        al.Protocol.from_document(document)


def test_a_fast_transform_at_the_limit_is_scanned_by_one_thread(monkeypatch):
    """Every thread holds rows of its own: on many cores they would take more than there is."""
    from armslength.transforms import fast_jl  # noqa: PLC0415  # its module, of which the package shows the class

    seen = []
    monkeypatch.setattr(fast_jl, "available_threads", lambda: 64)
    monkeypatch.setattr(fast_jl, "_SCANNED_BYTES", 24 * 64 * 3)
    scan = fast_jl.for_blocks
    monkeypatch.setattr(fast_jl, "for_blocks", lambda *given: seen.append(given[3]) or scan(*given))
    al.Protocol(al.FastJL(64, 8, "x"), 1)
    al.Protocol(al.FastJL(256, 8, "x"), 1)
    assert seen == [3, 1]
