"""What was released, events, rows or a stream, is a public fact of every noise: in memory, in files and on cards."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.sketches.card import check_card, release_card
from armslength.sketches.noises import UNKNOWN, NoiseSource
from armslength.sketches.sketch_file import load
from sealed import write_sealed

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=8, sketch_dim=4, sparsity=1, seed="sources"),
    epsilon=1,
    contribution=3,
    unit="one patient",
    items="int64",
)
EVENTS = pa.table({"who": ["a", "a", "b"], "what": [1, 3, 3]})


def of_events(label="west"):
    return PROTOCOL.release_table(EVENTS, person="who", item="what", label=label, ledger=al.NO_LEDGER)


def of_rows(labels=("north",)):
    return PROTOCOL.release(np.ones((len(labels), 8), int), labels=list(labels), ledger=al.NO_LEDGER)


def of_stream():
    return PROTOCOL.stream(label="east", ledger=al.NO_LEDGER).release()


MADE = {"events": of_events, "rows": of_rows, "stream": of_stream}


@pytest.mark.parametrize("source", list(MADE))
def test_every_door_says_what_was_released_and_files_keep_it(source, tmp_path):
    sketches = MADE[source]()
    assert sketches.releases == ((PROTOCOL, source),)
    assert (2 * sketches).releases == ((PROTOCOL, source),)
    sketches.save(tmp_path / "s.parquet")
    loaded = load(tmp_path / "s.parquet")
    assert loaded.released is not None  # arrays, not objects
    assert loaded.releases == ((PROTOCOL, source),)
    (card,) = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[b"armslength"])["card"]["releases"]
    assert card["source"] == source
    assert al.verify(tmp_path / "s.parquet", protocol=PROTOCOL).holds


def test_one_protocol_may_stand_in_a_file_with_several_sources(tmp_path):
    joined = al.concat([of_events(), of_rows(), of_stream()])
    joined.save(tmp_path / "s.parquet")
    loaded = load(tmp_path / "s.parquet")
    assert loaded.protocols == (PROTOCOL,)
    assert loaded.releases == joined.releases == tuple((PROTOCOL, source) for source in MADE)
    assert [noise.source for row in loaded.provenance for noise, _ in row.terms] == list(MADE)
    assert al.verify(tmp_path / "s.parquet", protocol=PROTOCOL).holds
    assert al.open_collection(tmp_path).releases == joined.releases
    words = [release["words"] for release in release_card(loaded.releases, in_clear=False)["releases"]]
    assert ["software enforces" in each for each in words] == [True, False, False]


def test_sums_keep_the_sources_of_all_their_noises():
    assert (of_rows() + of_events()).releases == ((PROTOCOL, "events"), (PROTOCOL, "rows"))


def test_rows_of_one_source_from_several_files_stay_arrays(tmp_path):
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    for path, label in zip(paths, "ab", strict=True):
        of_rows([label]).save(path)
    assert load(paths).released is not None


def test_a_protocol_before_any_release_claims_a_promise_only():
    (card,) = release_card([(PROTOCOL, UNKNOWN)], in_clear=False)["releases"]
    assert "The party promises" in card["words"]
    assert "the software enforces that" not in card["words"]


def test_a_protocol_without_rows_stays_in_the_file(tmp_path):
    other = al.Protocol(PROTOCOL.transform, epsilon=7, items="int64")
    both = al.concat(
        [of_rows(["a"]), other.release(np.zeros((1, 8), int), labels=["b"], ledger=al.NO_LEDGER)]
    )
    both[[0]].save(tmp_path / "s.parquet")
    assert load(tmp_path / "s.parquet").releases == ((PROTOCOL, "rows"), (other, UNKNOWN))


def test_a_row_with_noise_must_say_what_was_released(tmp_path):
    of_rows().save(tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    head = json.loads(table.schema.metadata[b"armslength"])
    card = release_card([(PROTOCOL, UNKNOWN)], in_clear=False)
    write_sealed(table, tmp_path / "s.parquet", head={**head, "sources": [UNKNOWN], "card": card})
    with pytest.raises(al.CorruptFileError, match="what was released"):
        load(tmp_path / "s.parquet")


def test_the_source_is_no_part_of_a_noise():
    assert NoiseSource("00", PROTOCOL, "rows") == NoiseSource("00", PROTOCOL, "stream")


def test_a_card_of_another_source_is_refused():
    card = release_card([(PROTOCOL, "rows")], in_clear=False)
    for source in ("events", "stream", "unknown"):
        with pytest.raises(al.CorruptFileError, match="release card"):
            check_card(card, [(PROTOCOL, source)], "file")


def test_a_file_that_passes_rows_off_as_events_needs_a_new_card(tmp_path):
    of_rows().save(tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    head = json.loads(table.schema.metadata[b"armslength"])
    write_sealed(table, tmp_path / "s.parquet", head={**head, "sources": ["events"]})
    with pytest.raises(al.CorruptFileError, match="release card"):
        load(tmp_path / "s.parquet")
