"""Noises have an identity, and what was released, events, rows or a stream, is a public fact of each: in memory, in files and on cards."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.sketches.card import check_card, release_card
from armslength.sketches.noises import UNKNOWN, Noises
from armslength.sketches.sketch_file import load
from sealed import write_sealed

PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=8, sketch_dim=4, sparsity=1, seed="sources"),
    al.Counts(3),
    epsilon=1,
    unit="one patient",
    items="int64",
)
EVENTS = pa.table({"who": ["a", "a", "b"], "what": [1, 3, 3]})


def of_events(label="west"):
    return al.release(PROTOCOL, EVENTS, person="who", item="what", label=label, ledger=al.NO_LEDGER)


def of_rows(labels=("north",)):
    return al.release(PROTOCOL, np.ones((len(labels), 8), int), labels=list(labels), ledger=al.NO_LEDGER)


def of_stream():
    return al.stream(PROTOCOL, label="east", ledger=al.NO_LEDGER).release()


MADE = {"events": of_events, "rows": of_rows, "stream": of_stream}


@pytest.mark.parametrize("source", list(MADE))
def test_every_door_says_what_was_released_and_files_keep_it(source, tmp_path):
    sketches = MADE[source]()
    assert sketches.releases == ((PROTOCOL, source),)
    assert (2 * sketches).releases == ((PROTOCOL, source),)
    sketches.save(tmp_path / "s.parquet")
    loaded = load(tmp_path / "s.parquet")
    assert loaded.noises == sketches.noises
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
    assert [loaded.noises.releases[number][1] for number in loaded.noises.numbers] == list(MADE)
    assert al.verify(tmp_path / "s.parquet", protocol=PROTOCOL).holds
    words = [release["words"] for release in release_card(loaded.releases, in_clear=False)["releases"]]
    assert ["software enforces" in each for each in words] == [True, False, False]


def test_sums_keep_the_sources_of_all_their_noises():
    assert (of_rows() + of_events()).releases == ((PROTOCOL, "events"), (PROTOCOL, "rows"))


def test_a_protocol_before_any_release_claims_a_promise_only():
    (card,) = release_card([(PROTOCOL, UNKNOWN)], in_clear=False)["releases"]
    assert "The party promises" in card["words"]
    assert "the software enforces that" not in card["words"]


def test_a_protocol_without_rows_stays_in_the_file(tmp_path):
    other = al.Protocol(PROTOCOL.transform, epsilon=7, items="int64")
    both = al.concat(
        [of_rows(["a"]), al.release(other, np.zeros((1, 8), int), labels=["b"], ledger=al.NO_LEDGER)]
    )
    both[[0]].save(tmp_path / "s.parquet")
    assert load(tmp_path / "s.parquet").releases == ((PROTOCOL, "rows"), (other, UNKNOWN))


def test_a_row_with_noise_must_say_what_was_released(tmp_path):
    of_rows().save(tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    head = json.loads(table.schema.metadata[b"armslength"])
    card = release_card([(PROTOCOL, UNKNOWN)], in_clear=False)
    write_sealed(table, tmp_path / "s.parquet", head={**head, "sources": [UNKNOWN], "card": card})
    with pytest.raises(CorruptFileError, match="what was released"):
        load(tmp_path / "s.parquet")


def test_the_source_is_no_part_of_a_noise():
    one, other = (Noises.fresh(bytes(16), PROTOCOL, source) for source in ("rows", "stream"))
    assert len(one.plus(other, -1.0).ids) == 0
    assert one.plus(other).coefficients.tolist() == [2.0]


def test_the_protocol_is_part_of_a_noise():
    stranger = al.Protocol(PROTOCOL.transform, epsilon=7, items="int64")
    one, other = (Noises.fresh(bytes(16), protocol, "rows") for protocol in (PROTOCOL, stranger))
    assert one.plus(other, -1.0).coefficients.tolist() == [1.0, -1.0]


def test_a_card_of_another_source_is_refused():
    card = release_card([(PROTOCOL, "rows")], in_clear=False)
    for source in ("events", "stream", "unknown"):
        with pytest.raises(CorruptFileError, match="release card"):
            check_card(card, [(PROTOCOL, source)])


def test_a_file_that_passes_rows_off_as_events_needs_a_new_card(tmp_path):
    of_rows().save(tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    head = json.loads(table.schema.metadata[b"armslength"])
    write_sealed(table, tmp_path / "s.parquet", head={**head, "sources": ["events"]})
    with pytest.raises(CorruptFileError, match="release card"):
        load(tmp_path / "s.parquet")


def by_row(noises):
    """For each row its coefficients by noise, as dictionaries."""
    ids, factors = noises.ids.tolist(), noises.coefficients.tolist()
    return [dict(zip(ids[i:j], factors[i:j], strict=True)) for i, j in pairwise(noises.starts.tolist())]


def random_noises(generator, rows):
    """Rows with 0 to 4 of the noises of a few, with whole coefficients."""
    fresh = Noises.fresh(bytes(range(96)), PROTOCOL, "rows")
    total = Noises.none(rows)
    for _ in range(4):
        other = Noises.concat([fresh.take(generator.integers(0, 6, rows))])
        total = total.plus(other, float(generator.integers(-1, 2)))
    return total


@pytest.mark.parametrize("seed", range(20))
def test_noises_are_those_of_dictionaries(seed):
    generator = np.random.default_rng(seed)
    a, b = (random_noises(generator, rows) for rows in (7, 5))
    left, right = by_row(a), by_row(b)
    wanted = generator.integers(0, 7, 9)
    assert by_row(a.take(wanted)) == [left[row] for row in wanted]
    assert by_row(a.take(slice(2, 6))) == left[2:6]
    assert by_row(Noises.concat([a, b])) == left + right
    for factor in (-1.0, 0.5, 3.0):
        expected = []
        for mine, theirs in zip(left, right, strict=False):
            sums = {key: mine.get(key, 0.0) + factor * theirs.get(key, 0.0) for key in {*mine, *theirs}}
            expected.append({key: each for key, each in sums.items() if each})
        assert by_row(a.take(slice(5)).plus(b, factor)) == expected
    each = generator.integers(-2, 3, 7).astype(float)
    scaled = [{key: each[row] * c for key, c in left[row].items() if each[row]} for row in range(7)]
    assert by_row(a.times(each)) == scaled
    shared = {(i, j) for i, mine in enumerate(left) for j, theirs in enumerate(right) if {*mine} & {*theirs}}
    assert set(zip(*(rows.tolist() for rows in a.shared_pairs(b)), strict=True)) == shared
    assert a.shared_count(b) == sum(len({*mine} & {*theirs}) for mine in left for theirs in right)
    total = {key: sum(row.get(key, 0.0) for row in left) for key in {key for row in left for key in row}}
    assert by_row(a.sum()) == [{key: each for key, each in total.items() if each}]
    classes, terms = a.classes
    for row in range(7):
        sizes = sorted(abs(coefficient) for _, coefficient in terms[classes[row]])
        assert sizes == sorted(map(abs, left[row].values()))
    assert a.are_merged


def test_fresh_noises_are_one_in_each_row_and_all_different():
    fresh = Noises.fresh(bytes(range(64)), PROTOCOL, "rows")
    assert fresh.are_fresh
    assert fresh.take([2, 0]).are_fresh
    for other in (fresh.times(2.0), fresh.take([0, 0]), fresh.plus(fresh.take([1, 2, 3, 0])), Noises.none(2)):
        assert not other.are_fresh
    half = Noises.fresh(bytes(8) + bytes(range(8)) + bytes(8) + bytes(range(1, 9)), PROTOCOL, "rows")
    assert half.are_fresh  # ids that agree in half of their bytes


def test_noises_cannot_be_written_to():
    noises = Noises.fresh(bytes(range(64)), PROTOCOL, "rows").times(2.0)
    with pytest.raises(ValueError, match="read-only"):
        noises.coefficients[0] = 0.0
