"""`al.release_table`: rows from public input alone, the ledger first, and one clear line for bad input."""

import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from unit.tables.events import GROUPS, as_table, counting_protocol, random_events

SECRET = "zq-secret-zq"  # noqa: S105  # a value that no message may show
# noise that is 0 almost surely: e^(-1000) a coordinate
EXACT = al.Protocol(al.SparseJL(None, 32, seed="t"), 1000, contribution=1, unit="one person")


def release(source, protocol=EXACT, **known):
    arguments = {
        "person": "who",
        "item": "what",
        "group": "where",
        "public_groups": GROUPS,
        "ledger": al.NO_LEDGER,
        **known,
    }
    return al.release_table(source, protocol, **arguments)


def table(rows):
    return as_table(rows, text_items=True)


def test_rows_are_the_public_groups_whatever_the_data_is():
    none = table([("p", "unlisted", 1, 1)])
    some = table([("p", "south", 1, 1), ("q", "unlisted", 1, 1)])
    nobody = table([(None, "south", 1, 1)])
    for source in (none, some, nobody, some.slice(0, 0)):
        sketches = release(source)
        assert sketches.labels == tuple(GROUPS)
    assert not release(none).values.any()
    assert not release(nobody).values.any()
    assert np.flatnonzero(release(some).values.any(axis=1)).tolist() == [1]
    order = GROUPS[::-1]
    assert release(some, public_groups=order).labels == tuple(order)


def test_one_group_by_a_label():
    source = table([("p", "anything", 1, 1), ("q", None, 1, 1)])
    sketches = release(source, group=None, public_groups=None, label="my hospital")
    assert sketches.labels == ("my hospital",)
    expected = al.sketch_in_clear(EXACT, [[2]], items=["i1"]).values
    assert sketches.values.tolist() == expected.tolist()


def test_a_release_of_a_table_is_that_of_its_counts():
    events = random_events(4, weighted=False)
    protocol = al.Protocol(
        al.SparseJL(None, 32, seed="t"), 10**6, contribution=1000, unit="u", total_share="0.5"
    )
    sketches = release(table(events), protocol)
    kept = [e for e in events if e[0] and e[2] is not None and e[1] in GROUPS]
    counts = [[sum(e[1] == g and e[2] == i for e in kept) for i in range(12)] for g in GROUPS]
    expected = al.sketch_in_clear(protocol, counts, items=[f"i{i}" for i in range(12)])
    assert sketches.values.tolist() == expected.values.tolist()
    assert sketches.totals.tolist() == expected.totals.tolist()


@pytest.mark.parametrize(
    "transform",
    [
        al.SparseJL(12, 8, seed="x"),
        al.HadamardJL(12, 8, seed="x"),
        al.GaussianJL(12, 8, seed="x"),
        al.SignJL(12, 8, seed="x"),
    ],
    ids=lambda transform: transform.name,
)
@pytest.mark.parametrize("counted_at_once", [True, False])
def test_every_transform_with_a_vocabulary(transform, counted_at_once, monkeypatch):
    monkeypatch.setattr("armslength.tables.partial._MOST_COUNTS", 10**6 if counted_at_once else 0)
    names = [f"i{number}" for number in range(12)]
    protocol = al.Protocol(transform, 10**9, contribution=1000, unit="u", vocabulary=names)
    events = random_events(5, weighted=False)
    source = pa.concat_tables([table(events), table([("p", "north", "not in the list", 1)])])
    sketches = release(source, protocol, vocabulary=names)
    kept = [e for e in events if e[0] and e[2] is not None and e[1] in GROUPS]
    counts = [[sum(e[1] == g and e[2] == i for e in kept) for i in range(12)] for g in GROUPS]
    assert sketches.values.tolist() == al.sketch_in_clear(protocol, counts).values.tolist()


def test_the_ledger_is_charged_once_with_the_groups_as_labels(tmp_path):
    path = tmp_path / "ledger.sqlite"
    source = table([("p", "south", 1, 1)])
    release(source, population="visits", ledger=path)
    (entry,) = al.Ledger(path).entries()
    assert entry.label == "north, south, empty, east"
    assert entry.unit == "one person"
    with pytest.raises(al.BudgetError):
        release(source, population="visits", ledger=path)
    assert len(al.Ledger(path).entries()) == 1


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"public_groups": None}, "public_groups must list every group"),
        ({"public_groups": []}, "1 to 10000000 groups"),
        ({"public_groups": "north"}, "list of names"),
        ({"public_groups": ["a", "a"]}, "differ from each other"),
        ({"public_groups": [1]}, "list of strings"),
        ({"group": None}, "must go with a group column"),
        ({"group": None, "public_groups": None}, "groups must be public"),
        ({"label": "x"}, "label must be left out"),
        ({"person": "nobody"}, "person must be a column of source, got 'nobody'; its columns are"),
        ({"person": "WHO"}, "person must be a column of source"),
        ({"item": "who"}, "different columns"),
        ({"weight": ""}, "weight must be the name of a column"),
        ({"ledger": None}, "ledger must be given"),
        ({"ledger": "unused.sqlite"}, "population must name"),
        ({"memory": "lots"}, "memory must be a size"),
        ({"threads": 0}, "threads must be"),
        ({"vocabulary": ["a"]}, "vocabulary must be left out"),
    ],
)
def test_bad_arguments_get_one_line(known, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(al.ArmslengthError, match=says) as caught:
        release(table([("p", "south", 1, 1)]), **known)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (al.Protocol(al.SparseJL(None, 8, seed="x"), 1, unit="u"), "contribution must be set"),
        (al.Protocol(al.SparseJL(None, 8, seed="x"), 1, contribution=1), "unit must say in the protocol"),
        (counting_protocol(value_range=(0, 1)), "value_range must be None"),
        (al.Protocol(al.Identity(3), 1, contribution=1, unit="u"), "items must be 'int64'"),
        (
            al.Protocol(al.Identity(1), 1, contribution=1, unit="u", vocabulary=["a"]),
            "vocabulary must list the names",
        ),
        (
            al.Protocol(al.FastJL(30, 8, seed="x"), 1, 1e-6, noise_site="input", contribution=1, unit="u"),
            "noise_site must be 'output'",
        ),
        ("protocol.json", "protocol must be al.Protocol"),
    ],
)
def test_protocols_that_do_not_fit_are_refused(protocol, says):
    with pytest.raises(al.ParameterError, match=says):
        release(table([("p", "south", 1, 1)]), protocol)


def test_another_vocabulary_is_refused():
    protocol = al.Protocol(al.Identity(2), 1, contribution=1, unit="u", vocabulary=["a", "b"])
    with pytest.raises(al.ParameterError, match="list that the protocol was made with"):
        release(table([("p", "south", 1, 1)]), protocol, vocabulary=["b", "a"])


def test_column_numbers_beyond_the_input_are_refused():
    with pytest.raises(al.InputError, match="column number below"):
        release(as_table([("p", "south", 12, 1)]), counting_protocol())


DAMAGED = {
    "e.parquet": b"PAR1 this is not a Parquet file PAR1",
    "e.csv": f'who,where,what\n"{SECRET},x,y\n1,2,3,4,5\n'.encode(),
    "ragged.csv": f"who,where,what\n1,2\n{SECRET},2,3,4\n".encode(),
    "latin.csv": b"who,where,what\na,b,\xff\xfe" + SECRET.encode() + b"\n",
    "e.csv.gz": b"\x1f\x8b" + SECRET.encode(),
    "e.jsonl": f'{{"who": 1, "where": "a", "what": "x"}}\n{{"who": "{SECRET}\n'.encode(),
    "e.arrow": b"ARROW1" + SECRET.encode(),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_get_one_line_without_data_and_cost_nothing(name, tmp_path):
    (tmp_path / name).write_bytes(DAMAGED[name])
    ledger = tmp_path / "ledger.sqlite"
    with pytest.raises(al.InputError) as caught:
        release(tmp_path / name, population="p", ledger=ledger)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere.parquet", "file that is there"),
        ("events.xlsx", "whose name ends in"),
        ([], "must be a file, a list of files"),
        (3, "must be a file, a list of files"),
        (np.zeros((2, 2)), "must be a file, a list of files"),
    ],
)
def test_sources_that_are_none(source, says):
    with pytest.raises(al.ArmslengthError, match=says):
        release(source)


def test_an_empty_folder_is_no_source(tmp_path):
    with pytest.raises(al.ParameterError, match="folder with event files"):
        release(tmp_path)


def test_nothing_stays_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    release(table([("p", "south", 1, 1)]))
    with pytest.raises(al.InputError):
        release(table([("p", "south", 1, 1)]), item="nothing")
    assert list(tmp_path.iterdir()) == []


def test_spilled_rows_are_for_their_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []
    add = "armslength.tables.partial.GroupSums.add"

    def look(self, events):
        del self, events
        seen.extend(inside.stat().st_mode & 0o777 for inside in tmp_path.iterdir())

    monkeypatch.setattr(add, look)
    release(table([("p", "south", 1, 1)]))
    assert seen == [0o700]


def test_a_small_memory_spills_and_gives_the_same(tmp_path):
    count = 1_500_000
    rng = np.random.default_rng(0)
    big = pa.table(
        {"who": rng.integers(0, 50_000, count).astype(str), "what": rng.integers(0, 999, count).astype(str)}
    )
    pq.write_table(big, tmp_path / "big.parquet")
    protocol = al.Protocol(al.SparseJL(None, 16, seed="t"), 10**6, contribution=1000, unit="u")
    known = {"group": None, "public_groups": None, "label": "all"}
    small = release(tmp_path / "big.parquet", protocol, memory="64MB", **known)
    assert small.values.tolist() == release(big, protocol, **known).values.tolist()
    with pytest.raises(al.InputError, match="within the memory given"):
        release(tmp_path / "big.parquet", protocol, memory="2MB", **known)
