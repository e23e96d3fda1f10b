"""What tasks do, without Spark: the integers of one machine for any sharing of the work; nothing is drawn; nothing counts twice."""

import pickle
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.errors import OutOfMemoryError
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.sums import SumShape
from armslength.spark import tasks
from armslength.spark.summing import (
    ARRIVED,
    LISTING,
    PROBLEM,
    AddingJob,
    DriverSums,
    Layout,
    in_batches,
    packed_senders,
    rows_of,
    tag_of,
    unpacked_bins,
)
from armslength.spark.tasks import PartitionJob
from spark.tables import (
    COUNTED,
    NAMES,
    PROTOCOL,
    as_partition,
    events,
    on_one_machine,
    same,
    voting,
    with_margins,
)
from unit.ingest.tables_of_events import KEY, SECRET, as_table

TABLE = events()
BY_ITEM = {"i1": "one", "i2": "two", "i11": "one"}


def job_of(protocol=PROTOCOL, most_cells=40, **known):
    release = on_one_machine(None, protocol, **known)
    columns = EventColumns("person", "item", "group", release.columns.weight and "weight")
    release = type(release)(**{**vars(release), "columns": columns})
    return PartitionJob(release, KEY, Layout(4, SumShape.of(protocol, 4).columns, most_cells))


def shared(table, tasks_of_persons, size=50):
    """The partitions of a table; a person is in the task of its bucket, which is its number."""
    buckets = [int(person[1:]) if person else 0 for person in table.column("who").to_pylist()]
    of_row = np.array(tasks_of_persons)[buckets]
    for task in sorted(set(of_row)):
        chosen = np.flatnonzero(of_row == task)
        yield as_partition(table.take(pa.array(chosen)), [buckets[row] for row in chosen], size)


def rows_from(job, partitions):
    return [list(job.rows(iter(batches))) for batches in partitions]


def added(job, rows):
    """What the tasks that add up make of rows, through Arrow."""
    adding = AddingJob.of(job.table.protocol, job.layout)
    return list(rows_of(in_batches(adding.rows(in_batches(rows)))))


def gathered(job, rows):
    together = DriverSums(job.table.protocol, job.layout)
    for row in rows:
        together.add(row)
    return together.sums()


def all_added(job, rows):
    """What two tasks that add up make of all rows."""
    return [row for task in in_tasks(rows, [0, 1]) for row in added(job, task)]


def in_tasks(rows, numbers):
    """The rows that come to each task, chunk by chunk: all of a chunk to one of them."""
    of_chunk = {chunk: numbers[chunk % len(numbers)] for chunk, _, _ in rows}
    for task in sorted(set(numbers)):
        yield sorted((row for row in rows if of_chunk[row[0]] == task), key=lambda row: row[0])


@settings(max_examples=30)
@given(st.data())
def test_any_sharing_of_the_work_gives_the_integers_of_one_machine(data):
    kinds = [
        (PROTOCOL, {}),
        (voting(), {}),
        (voting(spread_sample="0.3"), {}),
        (voting(total_share=0), {}),
        (with_margins(), {}),
        (voting(margins=BY_ITEM, margin_share="0.2", margin_contribution=1), {"item_groups": BY_ITEM}),
        (COUNTED, {"vocabulary": NAMES}),
    ]
    protocol, known = data.draw(st.sampled_from(kinds))
    job = job_of(protocol, data.draw(st.sampled_from([1, 7, 9, 33, 40, 1000])), **known)
    sharing = data.draw(st.lists(st.integers(0, 5), min_size=60, max_size=60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_MOST_BINS", data.draw(st.sampled_from([10, 10**6])))
        sent = rows_from(job, shared(TABLE, sharing, data.draw(st.sampled_from([1, 13, 1000]))))
    rows = data.draw(st.permutations([row for task in sent for row in task]))
    sharing = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=7))
    rows = [row for task in in_tasks(rows, sharing) for row in added(job, task)]
    assert same(gathered(job, rows), on_one_machine(TABLE, protocol, **known).sums(KEY))


def test_text_with_too_many_marks_is_left_out_as_on_one_machine():
    many, enough = "a" + "\u0301\u0316" * 100_000, "a" + "\u0301" * 30
    rows = [("p0", "i1"), ("p0", many), ("p1", enough), (None, "i1")]
    table = pa.table(
        {
            "who": [who for who, _ in rows],
            "where": ["north"] * len(rows),
            "what": [what for _, what in rows],
            "amount": [1] * len(rows),
        }
    )
    (sent,) = rows_from(job_of(), shared(table, [0] * 60))
    sums = gathered(job_of(), sent)
    assert same(sums, on_one_machine(table).sums(KEY))
    assert sums.totals.tolist()[0] == 2


def test_sums_that_are_too_many_to_hold_go_early(monkeypatch):
    monkeypatch.setattr(tasks, "_MOST_BUFFERED", 33)  # one group
    job = job_of(most_cells=1000)
    (sent,) = rows_from(job, shared(TABLE, [0] * 60))
    assert len([row for row in sent if row[0] >= 0]) > 1
    assert same(gathered(job, sent), on_one_machine(TABLE).sums(KEY))


def test_a_chunk_that_went_early_twice_is_not_the_other_one(monkeypatch):
    monkeypatch.setattr(tasks, "_MOST_BUFFERED", 33)
    job = job_of(most_cells=1000)
    (sent,) = rows_from(job, shared(TABLE, [0] * 60))
    numbers = [struct.unpack("<qQQ", row[2])[2] for row in sent if row[0] >= 0]
    assert len(numbers) > len({row[0] for row in sent if row[0] >= 0})  # one chunk, several times
    assert len(set(numbers)) == len(numbers)
    # equal in all but their number, they are still two
    name = struct.unpack("<qQ", sent[0][2][:16])
    assert tag_of(*name, 0, 0, b"") != tag_of(*name, 0, 1, b"")


def test_senders_are_told_once_for_all_chunks_of_a_task():
    job = job_of(most_cells=1)
    sent = [row for task in rows_from(job, shared(TABLE, [0, 1] * 30)) for row in task]
    (task,) = in_tasks(sent, [0])
    rows = added(job, task)
    assert [row[0] for row in rows if row[2] and row[0] != LISTING] == [ARRIVED]
    assert len(rows) == 3 * 33 + 1 + 2  # of the groups that occur, their senders, two listings
    assert same(gathered(job, rows), on_one_machine(TABLE).sums(KEY))


def test_a_task_that_runs_again_sends_the_same(monkeypatch):
    def drawn(*_):
        raise AssertionError("a task has drawn something")

    for name in (
        "armslength.noise.draw.add_noise",
        "armslength.noise.draw.draw",
        "armslength.noise.draw.SecretBits.__init__",
    ):
        monkeypatch.setattr(name, drawn)
    for protocol in (PROTOCOL, voting()):
        job = pickle.loads(pickle.dumps(job_of(protocol)))  # noqa: S301  # our own
        first, again = (rows_from(job, shared(TABLE, [0, 1] * 30, size)) for size in (7, 100))
        assert first == again


@pytest.mark.parametrize("protocol", [PROTOCOL, voting()], ids=["amounts", "votes"])
def test_the_order_of_the_rows_changes_nothing(protocol):
    # otherwise a task that runs again would send other rows than those that have arrived
    job = job_of(protocol)
    turned = TABLE.take(pa.array(range(len(TABLE))[::-1]))
    assert rows_from(job, shared(TABLE, [0] * 60)) == rows_from(job, shared(turned, [0] * 60))


def test_another_key_takes_other_events():
    job = job_of()
    other = PartitionJob(job.table, bytes(32), job.layout)
    (first,), (second,) = (rows_from(each, shared(TABLE, [0] * 60)) for each in (job, other))
    assert first[0] != second[0]


def test_a_task_without_events_sends_nothing():
    assert rows_from(job_of(), [[], as_partition(TABLE.slice(0, 0), [], 10)]) == [[], []]


def test_a_task_whose_events_are_all_left_out_still_lists_its_buckets():
    nobody = as_table([("p1", "unlisted", 1, 1)], text_items=True)
    nothing = nobody.set_column(2, "what", pa.nulls(1))  # of no type
    job = job_of()
    for table in (nobody, nothing):
        ((listing,),) = rows_from(job, shared(table, [0] * 60))
        assert listing[0] == LISTING
        assert not gathered(job, [listing]).values.any()


def test_a_reading_has_a_name_when_it_is_done_and_the_same_one_for_the_same_events():
    (batches,) = shared(TABLE, [0] * 60, 7)
    names = []
    for looked_at in (0, 1, 5):
        reading = tasks.PartitionReader(iter(batches))
        stream = reading.events()
        for _ in range(looked_at):
            stream.read_next_batch()
        with pytest.raises(RuntimeError, match="read to its end"):
            reading.name  # noqa: B018  # the access is the test
        reading.finish()
        names.append(reading.name)
    assert len(set(names)) == 1


def test_a_bucket_in_two_tasks_is_refused():
    # what would happen if an engine split a partition: each part alone is within the bound
    job = job_of()
    halves = [TABLE.slice(0, 100), TABLE.slice(100)]
    rows = [row for half in halves for task in rows_from(job, shared(half, [0] * 60)) for row in task]
    with pytest.raises(al.InputError, match="two tasks"):
        gathered(job, rows)


def retagged(row, number, cells):
    """The senders of the row with this number, as an attempt with the same name but other cells would have them."""
    ((bucket, word, _),) = struct.iter_unpack("<qQQ", row[2])
    return packed_senders({(bucket, word): tag_of(bucket, word, row[0], number, cells)})


@pytest.mark.parametrize(
    "what", ["lost", "twice", "swapped", "listing lost", "other reading", "other words", "other sums"]
)
@pytest.mark.parametrize("kind", ["sums", "bins"])
def test_rows_that_are_not_those_of_one_reading_are_refused(what, kind):
    job = job_of(voting())

    def places(rows):
        is_bins = kind == "bins"
        return [n for n, row in enumerate(rows[:-1]) if (row[0] >= job.layout.chunks) == is_bins]

    first, second = rows_from(job, shared(TABLE, [0, 1] * 30))
    other = rows_from(job, shared(TABLE.slice(0, len(TABLE) - 50), [0, 1] * 30))[0]
    reworded = TABLE.set_column(
        2, "what", pa.array([f"{item}!" for item in TABLE.column("what").to_pylist()])
    )
    other_words = rows_from(job, shared(reworded, [0, 1] * 30))[0]
    at = places(first)[0]
    row = first[at]
    other_cells = next(other[place][1] for place in places(other) if other[place][1] != row[1])
    changed = {
        "other words": [other_words[places(other_words)[0]]],
        "other sums": [(row[0], other_cells, retagged(row, at, other_cells))],
        "lost": [],
        "twice": [row, row],
        "swapped": [first[at + 1]],
        "listing lost": [row],
        "other reading": [other[places(other)[0]]],
    }[what]
    sent = [*first[:at], *changed, *first[at + 1 :]]
    sent = sent[:-1] if what == "listing lost" else sent
    assert same(gathered(job, all_added(job, first + second)), on_one_machine(TABLE, voting()).sums(KEY))
    with pytest.raises(al.InputError, match="other rows"):
        gathered(job, all_added(job, sent + second))


def test_problems_come_back_as_rows_without_data():
    events = as_table([("p1", "north", 1, 1)] * 2, text_items=True)
    ((batches),) = shared(events.set_column(2, "what", pa.array([SECRET, "x"])), [0] * 60)
    job = job_of(memory="1KB")
    (row,) = rows_of(tasks.task_of(job)(iter(batches)))
    assert row[0] == PROBLEM
    with pytest.raises(OutOfMemoryError, match="too little") as caught:
        gathered(job, [row])
    assert SECRET not in str(caught.value)


def test_other_errors_lose_their_words(monkeypatch):
    def fails(*_):
        raise KeyError(SECRET)

    monkeypatch.setattr(PartitionJob, "rows", fails)
    with pytest.raises(RuntimeError, match="a task ended with KeyError") as caught:
        list(tasks.task_of(job_of())(iter([])))
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_another_version_on_a_worker_is_told(monkeypatch):
    task = tasks.task_of(job_of())
    monkeypatch.setattr(tasks, "__version__", "0.0.1")
    (row,) = rows_of(task(iter(next(shared(TABLE, [0] * 60)))))
    with pytest.raises(al.ParameterError, match=r"on the driver and 0\.0\.1"):
        gathered(job_of(), [row])


def test_a_tag_of_zero_rows_is_nobody():
    job = job_of()
    row = (LISTING, b"", packed_senders({(1, 2): 3}))
    with pytest.raises(al.InputError, match="other rows"):
        gathered(job, [row])


def test_bins_go_in_rows_of_whole_people_and_of_few_integers():
    job = job_of(voting(), most_cells=40)
    (sent,) = rows_from(job, shared(TABLE, [0] * 60))
    bins = [unpacked_bins(0, row[1]) for row in sent if row[0] >= job.layout.chunks]
    assert len(bins) > 3  # of several rows for a group
    assert all(2 * row.starts[-2] + len(row.groups) <= 80 for row in bins)


def test_a_group_whose_people_come_to_two_tasks_is_refused():
    # norms of parts do not add up
    job = job_of(voting(), most_cells=40)
    (sent,) = rows_from(job, shared(TABLE, [0] * 60))
    (together,) = in_tasks(sent, [0])
    assert same(gathered(job, added(job, together)), on_one_machine(TABLE, voting()).sums(KEY))
    last = together[-1]
    assert last[0] == together[-2][0] >= job.layout.chunks
    with pytest.raises(al.InputError, match="sampled people"):
        gathered(job, added(job, together[:-1]) + added(job, [last]))


def test_every_cell_has_one_place():
    for groups, width, cells in [(1, 1, 1), (5, 3, 9), (7, 9, 4), (4, 8, 9), (3, 5, 1000)]:
        layout = Layout(groups, width, cells)
        seen = np.zeros((groups, width), dtype=int)
        for chunk in range(layout.chunks):
            place = layout.slices(chunk)
            assert 0 < seen[place].size <= max(cells, 1)
            seen[place] += 1
        assert (seen == 1).all()
