"""Event tables, whole: the integers of the specification for every kind of id and item, and however rows are cut, ordered, read and kept.

The expected integers are those of tests/reference/votes.py and contributions.py, implementations of their own.
"""

import json
import tempfile
import zlib
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest import event_table, partitions
from armslength.ingest.contributions import KeyedOrder, Votes
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.ingest.partitions import EventStore
from armslength.ingest.sums import SumShape
from armslength.spark.summing import AddingJob, DriverSums, Layout, in_batches
from armslength.spark.tasks import PartitionJob
from flat_protocol import flat_protocol
from reference.contributions import bounded_counts, canonical_person
from reference.votes import Projection, votes
from spark.tables import as_partition

KEY = bytes(range(32))
K = 16
KINDS = {"string": pa.string(), "int64": pa.int64()}

# Ids that are alike for as many bytes as a kernel may look at at once, that differ in spelling alone, or that are nobody's.
PREFIXES = ["", *("abcdefghijklmnopq"[:length] for length in (7, 8, 15, 16, 17)), "é" * 8, "\U0001f600" * 4]
SPELLINGS = [
    *(
        "5",
        "5.0",
        "5.",
        "5.00",
        " 5.0\t",
        "05",
        "05.0",
        "-5",
        "-5.0",
        "+5",
        "5.01",
        "5.0.0",
        ".0",
        "-.0",
        "5e0",
        "\u0665.0",
    ),
    *(
        "\u00e9",
        "e\u0301",
        "\u212b",
        "A\u030a",
        "\u00c5",
        "\u3000\u00e9\u2028",
        "e\u0301\u0323",
        "\u1eb9\u0301",
        "\ud55c",
        "\u1112\u1161\u11ab",
    ),
    *("", " ", "\x1c5", "5\x1c", "\x00", "5\x00", "a\x00b", "a\u200bb", "\ufeff5", "9" * 60, "9" * 58 + ".0"),
]
TAIL = st.text(alphabet="ab0.\x00 é\u0301", max_size=12)
PERSONS = (
    st.none()
    | st.sampled_from(SPELLINGS)
    | st.builds("".join, st.tuples(st.sampled_from(PREFIXES), TAIL))
    | st.builds(lambda text: text.encode()[:60].decode(errors="ignore"), st.text("ab é", max_size=60))
)
TEXTS = st.sampled_from(
    ["flu", "flu ", "", "Ångström", "A\u030angstro\u0308m", "a\x00b", "x" * 300]
) | st.text("xyz", max_size=2)
NUMBERS = st.sampled_from([0, -1, 1, 2**63 - 1, -(2**63)]) | st.integers(-3, 9)
AMOUNTS = st.sampled_from([1, 1, 2, -1, 0, 7, -40, 2**62, -(2**62)])


class Case(NamedTuple):
    """A table and what is counted of it."""

    events: list[tuple[Any, ...]]  # person, group, item, amount
    groups: list[str]
    items: str
    contribution: int | str
    weighted: bool
    sample: str  # of votes

    @property
    def protocol(self):
        return flat_protocol(
            al.SparseJL(sketch_dim=K, sparsity=2, seed="partitions"),
            epsilon=1,
            contribution=self.contribution,
            items=self.items,
            unit="one person",
            total_share="0.5",
            spread_sample=self.sample if self.contribution == "vote" else None,
        )

    @property
    def counted(self):
        """The events as the specification sees them."""
        return [event if self.weighted else (*event[:3], 1) for event in self.events]

    def table(self, events=None):
        columns = list(zip(*(self.events if events is None else events), strict=True)) or [[]] * 4
        kinds = (pa.string(), pa.string(), KINDS[self.items], pa.int64())
        named = zip(("who", "where", "what", "amount"), columns, kinds, strict=True)
        return pa.table({name: pa.array(column, kind) for name, column, kind in named})

    def job(self, source, **options):
        columns = EventColumns("who", "what", "where", "amount" if self.weighted else None)
        return TableJob.of(
            source, self.protocol, columns, PublicGroups(tuple(self.groups), "where"), **options
        )

    def integers(self, source, **options):
        return integers_of(self.job(source, **options).sums(KEY))

    def expected(self):
        """The sketch and the total of each group; of votes also Q and F."""
        if not self.protocol.votes:
            return self.sketch_of(bounded_counts(self.counted, self.groups, self.contribution, KEY))

        def total_of(items):
            return self.protocol.transform.columns(items).sum(axis=1) if items else [0] * K

        events = [event[:3] for event in self.events]
        rows = votes(events, self.groups, Projection(2, total_of), KEY, share=Fraction(self.sample))
        return np.array([[*row.values, row.people, row.squares, row.norm] for row in rows])

    def sketch_of(self, counts):
        """The sketch and the total of each group, from amounts of (group, item)."""
        items = sorted({item for _, item in counts})
        matrix = np.zeros((len(self.groups), len(items)), dtype=np.int64)
        for (group, item), count in counts.items():
            matrix[self.groups.index(group), items.index(item)] = count
        sketch = np.zeros((len(self.groups), K), dtype=np.int64)
        if items:
            sketch = self.protocol.transform.apply(matrix, items=items)
        return np.column_stack([sketch, matrix.sum(axis=1)])


def integers_of(sums):
    """The sketch, and what goes with it."""
    return np.column_stack([sums.values, sums.totals, *([] if sums.spread is None else [sums.spread])])


@st.composite
def cases(draw, most=60):
    items = draw(st.sampled_from(sorted(KINDS)))
    groups = [f"g{number}" for number in range(draw(st.sampled_from([1, 2, 3, 40])))]
    is_vote = draw(st.booleans())
    some = draw(st.lists(PERSONS, min_size=1, max_size=8))  # few, so that most have several events
    event = st.tuples(
        st.sampled_from(some),
        st.sampled_from([*groups, *groups, None, "unlisted"]),
        st.none() | (TEXTS if items == "string" else NUMBERS),
        AMOUNTS,
    )
    return Case(
        draw(st.lists(event, max_size=most)),
        groups,
        items,
        "vote" if is_vote else draw(st.sampled_from([1, 2, 5, 40, 10**9])),
        not is_vote and draw(st.booleans()),
        draw(st.sampled_from(["1", "0.4"])) if is_vote else "1",
    )


def write_parts(case, events, cuts, folder):
    """The rows in several files of different kinds."""
    paths = []
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        table, path = (
            case.table(events[start:stop]),
            folder / f"{number}.{'jsonl' if number % 2 else 'parquet'}",
        )
        if number % 2:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
        else:
            pq.write_table(table, path, row_group_size=7)
        paths.append(path)
    return paths


ALIKE = Case([(who, "g0", "flu", 1) for who in SPELLINGS], ["g0"], "string", "vote", False, "1")


@settings(max_examples=80)
@given(case=cases(), data=st.data())
@example(case=ALIKE, data=None)
def test_the_integers_are_those_of_the_specification(case, data):
    expected = case.expected()
    assert np.array_equal(case.integers(case.table()), expected)
    if data is None:
        return
    rows = data.draw(st.permutations(case.events))
    batches = case.table(rows).to_reader(max_chunksize=data.draw(st.sampled_from([1, 3, 17])))
    assert np.array_equal(case.integers(batches, threads=data.draw(st.sampled_from([1, 2, 5]))), expected)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    with tempfile.TemporaryDirectory() as folder:
        assert np.array_equal(case.integers(write_parts(case, rows, cuts, Path(folder))), expected)


def test_ids_that_look_alike_are_told_apart_as_the_specification_says():
    """Otherwise the examples would prove little: some are one person, some are nobody, and some are two."""
    people = {canonical_person(who) for who in SPELLINGS}
    assert {"5", "05", "-5", "+5", "5.01", "5.0.0", ".0", "\u0665.0", "5\x00", "\x1c5", "\ufeff5"} < people
    assert {"\u00e9", "\u00c5", "\u1eb9\u0301"} < people
    assert not {"5.0", "5.", "e\u0301", "A\u030a", "\u212b"} & people
    assert len(people - {""}) < len(SPELLINGS) - 12


@settings(max_examples=60)
@given(case=cases(), other=cases(), newcomer=st.text("pq", min_size=1, max_size=20))
def test_one_more_person_adds_at_most_the_bound_and_moves_nobody_else(case, other, newcomer):
    mine = [(f"{newcomer}!", group, item, amount) for _, group, item, amount in other.events]
    if other.items != case.items:
        mine = [(who, group, "x" if case.items == "string" else 3, amount) for who, group, _, amount in mine]
    both = case._replace(events=case.events + mine)
    added = case.integers(both.table()) - case.integers(case.table())
    # what the newcomer has alone, to the last integer: so nothing of others has changed; F is no sum over people
    sums = slice(None, K + 2)
    assert np.array_equal(added[:, sums], case._replace(events=mine).expected()[:, sums])
    # and the bound, from the integers alone: a sketch of ±1 entries, 2 of them a column
    bound = case.protocol.grid_radius
    assert np.abs(added[:, K]).sum() <= bound
    assert np.abs(added[:, :K]).sum() <= bound * case.protocol.transform.sparsity
    if case.protocol.votes:
        squares, norms = added[:, K + 1], added[:, K + 2]
        assert (squares >= 0).all()
        assert (squares <= added[:, K]).all()
        assert (np.abs(norms) <= squares + 1).all()
        assert not norms[added[:, K] == 0].any()


class Limits(NamedTuple):
    """What fits memory."""

    bytes: int  # of events that need not go to the temporary file
    rows: int  # that are bounded at a time
    rows_together: int  # of small parts


LIMITS = st.builds(
    Limits,
    st.sampled_from([0, 3000, 10**9]),
    st.sampled_from([60, 200, 10**6]),
    st.sampled_from([1, 100, 10**6]),
)


@contextmanager
def limited(limits):
    """Stores of events that find little memory; what they did."""
    stores = []

    class SmallStore(partitions.EventStore):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self._most_bytes, self._most_rows = limits.bytes, limits.rows
            stores.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_table, "EventStore", SmallStore)
        patch.setattr(partitions, "_ROWS_TOGETHER", limits.rows_together)
        yield stores


def repeated(case, times):
    """The case with each event several times, so that many rows are equal."""
    return case._replace(
        events=[each for each, count in zip(case.events, times, strict=False) for _ in range(count)]
    )


@settings(max_examples=60)
@given(
    case=cases(most=25),
    times=st.lists(st.sampled_from([1, 1, 2, 9, 40]), min_size=25, max_size=25),
    limits=LIMITS,
    threads=st.sampled_from([1, 2, 5]),
    size=st.sampled_from([7, 100, 10**6]),
)
def test_memory_changes_nothing(case, times, limits, threads, size):
    case = repeated(case, times)
    with limited(limits):
        found = case.integers(case.table().to_reader(max_chunksize=size), threads=threads)
    assert np.array_equal(found, case.expected())


@pytest.mark.parametrize("contribution", [3, "vote"])
def test_little_memory_takes_the_file_several_passes_and_parts_of_persons(contribution, monkeypatch):
    """Otherwise the test above would prove little."""
    events = [("heavy " * 4, "g0", f"i{number % 20}", 1) for number in range(600)]
    events += [(f"p{number}", "g1", "flu", 1) for number in range(600)]
    events += [("different " * 4, "g0", f"i{number}", 1) for number in range(600)]
    case = Case(events, ["g0", "g1"], "string", contribution, False, "1")
    passes, cells = [], []
    rule = Votes if case.protocol.votes else KeyedOrder
    jobs, shortened = EventStore.jobs, rule.shortened
    monkeypatch.setattr(Votes, "most_of_one", 0)

    def recorded(*given):
        planned = jobs(*given)
        passes.extend(job.passes for job in planned)
        return planned

    monkeypatch.setattr(EventStore, "jobs", recorded)
    monkeypatch.setattr(rule, "shortened", lambda *given: cells.append(1) or shortened(*given))
    with limited(Limits(0, 60, 100)) as stores:
        assert np.array_equal(
            case.integers(case.table().to_reader(max_chunksize=50), threads=2), case.expected()
        )
    (store,) = stores
    assert store._in_file
    assert not store._blocks
    assert passes
    assert max(passes) > 1
    assert cells


@settings(max_examples=25)
@given(case=cases(most=30), limits=LIMITS, tasks=st.integers(1, 4), size=st.sampled_from([1, 5, 1000]))
def test_tasks_of_spark_give_the_same(case, limits, tasks, size):
    names = EventColumns("person", "item", "group", "weight" if case.weighted else None)
    table = replace(case.job(None), columns=names)
    groups = len(case.groups)
    job = PartitionJob(table, KEY, Layout(groups, SumShape.of(case.protocol, groups).columns, 50))
    sent = []
    together = DriverSums(case.protocol, job.layout)
    for task in range(tasks):
        mine = [
            each for each in case.events if zlib.crc32(canonical_person(each[0]).encode()) % tasks == task
        ]
        batches = as_partition(case.table(mine), [task] * len(mine), size)
        with limited(limits):
            sent += job.rows(iter(batches))
    rows = in_batches(sorted(sent, key=lambda row: row[0]))
    for row in AddingJob.of(case.protocol, job.layout).rows(rows):
        together.add(row)
    assert np.array_equal(integers_of(together.sums()), case.expected())
