"""`check_table` and the totals of persons under it: what a naive count of the same events says."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest import check_table as module
from armslength.ingest.check_table import check_table
from armslength.ingest.contributions import CheckedVotes, KeyedOrder
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ingest.spellings import Spellings
from armslength.planner.least_people import least_people
from armslength.protocol.neighbors import VOTE
from flat_protocol import flat_protocol
from unit.ingest.tables_of_events import (
    GROUPS,
    KEY,
    as_table,
    counting_protocol,
    in_every_form,
    random_events,
)


def job_of(source, protocol, *, groups=GROUPS, weighted=False, **known):
    columns = EventColumns("who", "what", "where", "amount" if weighted else None)
    return TableJob.of(source, protocol, columns, public_groups_of("where", groups, None), **known)


def usable(events):
    """Events that count, in listed groups."""
    return [event for event in events if event[0] and event[1] in GROUPS and event[2] is not None]


def totals_of(job):
    totals = {}
    for part in job.person_totals(KEY, LeftOut()):
        found = dict(zip(part.ids.to_pylist(), part.totals.tolist(), strict=True))
        assert len(found) == len(part.ids)
        assert not totals.keys() & found.keys()
        totals |= found
    return totals


@pytest.mark.parametrize("weighted", [False, True])
def test_amounts_and_shares_are_those_of_a_naive_count(weighted):
    events, naive = random_events(3, weighted=weighted), defaultdict(int)
    for person, _, _, amount in usable(events):
        naive[person] += abs(amount)
    naive = {person: total for person, total in naive.items() if total}
    for contribution in (1, 5, 400):
        job = job_of(as_table(events), counting_protocol(contribution), weighted=weighted)
        assert totals_of(job) == naive
        result = check_table(job)
        assert result.people == len(naive)
        assert result.people_over == sum(total > contribution for total in naive.values())
        kept = sum(min(total, contribution) for total in naive.values())
        assert result.share == pytest.approx(kept / sum(naive.values()), rel=1e-12)
        assert result.votes is None


def test_votes_are_those_of_a_naive_count():
    events, items, groups = random_events(3, weighted=False), defaultdict(set), defaultdict(set)
    for person, group, item, _ in usable(events):
        items[person, group].add(item)
        groups[person].add(group)
    job = job_of(as_table(events), counting_protocol("vote"))
    totals = totals_of(job)
    assert totals.keys() == groups.keys()
    assert all(totals[person] in {len(items[person, group]) for group in groups[person]} for person in groups)
    result = check_table(job)
    assert (result.people, result.people_over, result.share) == (len(groups), 0, None)
    assert result.votes.several_groups == sum(len(theirs) > 1 for theirs in groups.values()) > 0
    assert result.votes.without == 0


def test_what_people_typically_have():
    """Half have three items, and nine of ten at most four; one of them votes for nothing."""
    sizes = [1] * 9 + [3] * 6 + [4] * 12 + [9] * 2
    events = [(f"p{person}", "north", item, 1) for person, size in enumerate(sizes) for item in range(size)]
    result = check_table(job_of(as_table(events), counting_protocol("vote")))
    assert result.votes.per_person == (3, 4)
    table = pa.table({"who": ["bot"] * (VOTE + 1), "what": np.arange(VOTE + 1)})
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"), al.Votes(), epsilon=1, unit="u", items="int64"
    )
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    result = check_table(TableJob.of(table, protocol, columns, one))
    assert (result.people, result.votes.without) == (1, 1)
    assert result.needs_a_look


def test_every_form_of_a_table_gives_the_same(tmp_path):
    events = random_events(5, weighted=False)
    forms = in_every_form(as_table(events), tmp_path)
    results = {name: check_table(job_of(source, counting_protocol())) for name, source in forms.items()}
    first = next(iter(results.values()))
    assert all(result == first for result in results.values())
    with_person = [event for event in events if event[0]]
    assert first.groups == {group: sum(event[1] == group for event in with_person) for group in GROUPS}
    assert first.unlisted == {"unlisted": sum(event[1] == "unlisted" for event in with_person)}
    assert first.without_group == 3
    assert first.left_out.person == 6
    assert first.empty_groups == ["empty"]


def test_one_group_counts_the_items_of_one_group():
    events = [("p", group, item, 1) for group, items in (("north", 2), ("south", 5)) for item in range(items)]
    events += [("q", "east", 0, 1)] * 3
    job = job_of(as_table(events), counting_protocol("vote"))
    seen = set()
    for number in range(40):
        parts = list(job.person_totals(bytes([number]) * 32, LeftOut()))
        totals = {p: t for part in parts for p, t in zip(part.ids.to_pylist(), part.totals, strict=True)}
        assert totals["q"] == 1
        seen.add(totals["p"])
    assert seen == {2, 5}


def heavy_persons():
    rng = np.random.default_rng(0)
    many = pa.table({"who": rng.integers(0, 9_000, 30_000).astype(str), "what": rng.integers(0, 99, 30_000)})
    bot = pa.table({"who": ["bot"] * 150_000, "what": np.arange(150_000)})
    same = pa.table({"who": ["other bot"] * 200_000, "what": np.zeros(200_000, dtype=np.int64)})
    return pa.concat_tables([many, bot, same])


@pytest.mark.parametrize("contribution", ["vote", 7])
def test_a_small_memory_spills_and_gives_the_same(contribution, monkeypatch):
    events = heavy_persons()
    events = events.append_column("where", pa.array(np.resize(["north", "south", "east"], len(events))))
    protocol = flat_protocol(
        al.SparseJL(sketch_dim=16, seed="t"), epsilon=1, contribution=contribution, unit="u", items="int64"
    )
    compacted = []
    rule = KeyedOrder if contribution == 7 else CheckedVotes
    real = rule.compact
    monkeypatch.setattr(rule, "compact", lambda *a, **k: compacted.append(1) or real(*a, **k))
    monkeypatch.setattr(module, "secrets", FixedKey)
    (in_memory, first), *spilled = (
        (totals_of(job), check_table(job))
        for job in (job_of(events, protocol), job_of(events, protocol, memory="70MB"))
    )
    assert spilled == [(in_memory, first)]
    assert compacted
    if contribution == 7:
        assert in_memory["bot"] == 150_000
        assert in_memory["other bot"] == 200_000
    else:
        assert in_memory["bot"] == 50_000
        assert in_memory["other bot"] == 1
        assert first.votes.several_groups > 5000


class FixedKey:
    """The same key for everybody."""

    @staticmethod
    def token_bytes(count):
        return bytes(range(count))


def of_one_group(events, protocol=None, **known):
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    job = TableJob.of(
        as_table(events, text_items=protocol is not None),
        protocol or counting_protocol(),
        columns,
        one,
        **known,
    )
    return check_table(job)


@pytest.mark.parametrize(
    ("ids", "several", "differs"),
    [
        (["ann", "Ann", "bob"], 1, ["capital"]),
        (["ANN", "Ann", "ÄNN", "änn"], 2, ["capital"]),
        (
            ["5", "5.0", "5.00", "6", "7.5", "7.50"],
            0,
            [],
        ),  # a whole number with decimals of zero is that number
        (["7", "007", "70", "0", "000"], 2, ["zeros"]),
        (["7", "007.0"], 1, ["zeros"]),
        (["CE-7", "CE-007", "12-3", "12-003"], 2, ["zeros"]),
        (["CE000123", "CE-000123", "CE 000123"], 1, ["punctuation"]),
        (["CE\u2013123", "CE-123", "CE/123"], 1, ["punctuation"]),  # the first is a dash of another kind
        (["123-045-678", "123045678"], 1, ["punctuation"]),
        (["ce-7", "CE007"], 1, ["capital", "zeros", "punctuation"]),
        (["a-1", "a-10", "1-23", "12-3", "5.01", "0.5", "-6", "6", "a+b", "ab", " ann ", "ann"], 0, []),
    ],
)
def test_ids_that_would_count_one_person_twice(ids, several, differs):
    found = of_one_group([(person, "north", 1, 1) for person in ids]).ids
    assert found.several == several
    assert len(found.differences) == len(differs)
    assert all(part in name for part, name in zip(differs, found.differences, strict=True))
    assert set(found.differences.values()) <= {several}


def test_spellings_are_found_in_every_form_of_a_table(tmp_path):
    ids = ["CE7", "ce-7", "CE8", "ce-8", "p9"]
    events = [(person, "north", item, 1) for person in ids for item in range(4)]
    table = as_table(events, text_items=True)
    codes = ["I08.5", "i08.5", "J1", None]
    table = table.set_column(2, "what", pa.array(codes * len(ids)))
    for name, source in in_every_form(table, tmp_path).items():
        result = check_table(job_of(source, protocol_of_text()))
        assert result.ids.several == 2, name
        assert result.items.several == 1, name


def test_ids_of_records_are_compared_and_their_items_are_not():
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"),
        al.Votes(record={"sex": "category"}),
        epsilon=1,
        unit="one patient",
    )
    rows = pa.table({"who": ["CE7", "CE-7", "p8"], "sex": ["F", "f", "F"]})
    columns, one = EventColumns("who", None), public_groups_of(None, None, "all")
    result = check_table(TableJob.of(rows, protocol, columns, one))
    assert result.ids.several == 1
    assert result.items.several == 0
    assert not result.is_swapped


def test_ids_are_found_in_any_order_and_part():
    people = 40_000
    ids = [f"CE{number:06d}" for number in range(people)]
    table = pa.table(
        {
            "who": ids + [f"CE-{number:06d}" for number in range(0, people, 2)],
            "what": np.zeros(people * 3 // 2, dtype=np.int64),
            "where": ["north"] * (people * 3 // 2),
        }
    )
    result = check_table(job_of(table, counting_protocol(), groups=["north"]))
    assert result.people == people * 3 // 2
    assert result.ids.several == people // 2


def test_of_very_many_ids_a_sample_is_compared():
    """Each name is remembered with all of its spellings or with none."""
    spellings = Spellings(np.array([3, 5], dtype=np.uint64), 2000, are_ids=True)
    for start in range(0, 40_000, 1000):
        numbers = range(start, start + 1000)
        spellings.add(pa.array([f"CE-{number}" for number in numbers]))
        spellings.add(pa.array([f"CE{number}" for number in numbers if number % 4 == 0]))
    assert sum(len(part[0]) for part in spellings._parts) <= 2000
    assert spellings.check().several == pytest.approx(
        10_000, rel=0.35
    )  # 200 or more of them: five deviations


def protocol_of_text(**known):
    return flat_protocol(
        al.SparseJL(sketch_dim=16, seed="t"), epsilon=1, contribution="vote", unit="one person", **known
    )


@pytest.mark.parametrize(
    ("items", "several", "differs"),
    [
        (["I08.5", "i08.5", "J1"], 1, ["capital"]),
        (["red cup", "red  cup ", "redcup"], 1, ["punctuation"]),
        (["I08.5", "I085", "V27.0", "v270"], 2, ["capital", "punctuation"]),
        (["1.5", "15", "08", "8", "I008", "I08", "< 5", "> 5", "1.5 mg", "15 mg"], 0, []),
    ],
)
def test_items_in_several_spellings(items, several, differs):
    table = pa.table({"who": [f"p{number}" for number in range(len(items))] * 2, "what": items * 2})
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    found = check_table(TableJob.of(table, protocol_of_text(), columns, one)).items
    assert found.several == several
    assert len(found.differences) == len(differs)
    assert all(part in name for part, name in zip(differs, found.differences, strict=True))


@pytest.mark.parametrize("rule", ["item", "prefix"])
def test_items_that_are_listed_in_another_spelling(rule):
    items = ["I08.5", "i08.5", "I085", "i08.6", "unlisted"]
    margins = {
        rule: ["I08.5", "I08.6"] if rule == "item" else ["I08."],
        "group": ["A", "A"] if rule == "item" else ["A"],
    }
    protocol = protocol_of_text(margins=margins, margin_share="0.2", margin_contribution=1, total_share="0.1")
    table = pa.table({"who": ["p", "q", "r", "s", "t"], "what": items})
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    given = margins if rule == "item" else None
    found = check_table(TableJob.of(table, protocol, columns, one, item_groups=given)).margins
    assert found.in_none == pytest.approx(4 / 5)
    assert found.spelled_otherwise == pytest.approx(3 / 5)
    assert found.people_over == 0
    assert found.needs_a_look


def popular_items(people, items, rng):
    """(person, item): people have 1 to 15 items, and the item of rank r is proportional to 1/r."""
    numbers = rng.integers(1, 16, people)
    who = np.repeat(np.arange(people), numbers)
    share = 1 / np.arange(1, items + 1)
    return who, rng.choice(items, len(who), p=share / share.sum())


@pytest.mark.parametrize("contribution", ["vote", 3])
def test_swapped_columns_are_found(contribution):
    who, what = popular_items(5000, 800, np.random.default_rng(1))
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    protocol = flat_protocol(
        al.SparseJL(sketch_dim=16, seed="t"), epsilon=1, contribution=contribution, unit="u", items="int64"
    )
    for first, second, is_swapped in ((who, what, False), (what, who, True)):
        job = TableJob.of(pa.table({"who": first, "what": second}), protocol, columns, one)
        assert check_table(job).is_swapped == is_swapped


def test_a_bot_and_few_people_are_not_swapped_columns():
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=16, seed="t"), al.Counts(3), epsilon=1, unit="u", items="int64"
    )
    few = popular_items(60, 400, np.random.default_rng(2))
    for table in (heavy_persons(), pa.table(dict(zip(("who", "what"), few, strict=True)))):
        assert not check_table(TableJob.of(table, protocol, columns, one)).is_swapped


def test_people_are_counted_by_group():
    events = random_events(9, weighted=False)
    naive = {
        group: len({e[0] for e in events if e[1] == group and e[0] and e[2] is not None}) for group in GROUPS
    }
    result = check_table(job_of(as_table(events), counting_protocol()), 50)
    assert result.people_of_groups == naive
    assert result.small_groups == {g: n for g, n in naive.items() if n < 50 and g != "empty"}
    assert check_table(job_of(as_table(events), counting_protocol())).small_groups == {}


DATA = Path(__file__).parents[4] / "shared" / "data"  # beside the project, where it is there


def real_events(name):
    """(who, what) of a table of real events."""
    if not DATA.exists():
        pytest.skip("the real data is not beside the project")
    if name == "nhds":
        table = pq.read_table(DATA / "nhds2010_diagnoses.parquet")
        return table["patient"].cast(pa.string()), table["code"].cast(pa.string())
    rows, columns = {"eicu_demo_stays": ("patient", "feature"), "retail_customers": ("customer", "item")}[
        name
    ]
    stored = np.load(DATA / f"{name}.npz")
    who = np.repeat(stored[rows], np.diff(stored["indptr"]))
    return pa.array(who).cast(pa.string()), pa.array(stored[columns][stored["indices"]])


def check_of(who, what):
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    job = TableJob.of(pa.table({"who": who, "what": what}), protocol_of_text(total_share="0.1"), columns, one)
    return check_table(job, least_people(job.protocol))


@pytest.mark.parametrize(
    ("name", "is_found_swapped", "items"),
    [("nhds", True, 0), ("eicu_demo_stays", True, 33), ("retail_customers", False, 0)],
)
def test_real_tables_give_no_false_alarm(name, is_found_swapped, items):
    """The drugs of eICU are truly spelled in several ways; customers and goods of the shop look alike, so nothing is said."""
    who, what = real_events(name)
    result = check_of(who, what)
    assert result.ids.several == 0
    assert not result.is_swapped
    assert not result.small_groups
    assert result.items.several == items
    assert check_of(what, who).is_swapped == is_found_swapped


def test_real_ids_written_in_two_ways_are_counted():
    """A second source writes half of the diagnoses of 17,314 patients with a dash in the id."""
    who, what = real_events("nhds")
    numbers = who.cast(pa.int64()).to_numpy()
    is_other = np.isin(numbers, np.unique(numbers)[:17_314]) & (np.arange(len(numbers)) % 2 == 1)
    dash = np.where(is_other, "-", "")
    ids = pa.array([f"CE{mark}{number:06d}" for mark, number in zip(dash, numbers, strict=True)])
    several = len(set(numbers[is_other]) & set(numbers[~is_other]))
    result = check_of(ids, what)
    assert several > 15_000
    assert result.ids.several == several
    assert [*result.ids.differences.values()] == [several]
    assert result.needs_a_look


@pytest.mark.parametrize("listed", ["Soth", "south ", "SOUTH"])
def test_a_misspelled_group_is_found(listed):
    events = [("p", "south", 1, 1), ("q", "north", 1, 1), ("r", "somewhere else", 1, 1)]
    result = check_table(job_of(as_table(events), counting_protocol(), groups=["north", listed]))
    assert result.empty_groups == [listed]
    assert result.likely == {listed: "south"}
    assert set(result.unlisted) == {"south", "somewhere else"}
    assert result.needs_a_look


def test_a_table_without_a_finding_needs_no_look():
    events = [("p", "north", 1, 1), ("q", "south", 1, 1)]
    result = check_table(job_of(as_table(events), counting_protocol(), groups=["north", "south"]))
    assert not result.needs_a_look
    columns, one = EventColumns("who", "what"), public_groups_of(None, None, "all")
    result = check_table(TableJob.of(as_table(events), counting_protocol(), columns, one))
    assert not result.needs_a_look
    assert result.groups == {"all": 2}


def test_a_table_without_events_needs_a_look():
    result = check_table(job_of(as_table([(None, "north", 1, 1)]), counting_protocol(), groups=["north"]))
    assert (result.share, result.votes, result.margins) == (None, None, None)
    assert result.people == 0
    assert result.needs_a_look


def test_a_column_of_a_million_groups_is_bounded():
    count = 50_000
    events = pa.table({"who": ["p"] * count, "what": [1] * count, "where": np.arange(count).astype(str)})
    result = check_table(job_of(events, counting_protocol()))
    assert len(result.unlisted) == 10_000
    assert result.left_out.group == count
    assert result.without_group == 0


def test_a_column_of_a_record_is_flagged_from_nine_tenths_on():
    """Of rows that have a person and a listed group; a category called (other) is no other."""
    record = {"sex": ["F", "M"], "100%=age": [18], "text": "category"}
    protocol = al.Protocol(al.SparseJL(sketch_dim=16, seed="t"), al.Votes(record=record, record_pairs=[("sex", "text")]), epsilon=1, unit="one patient")  # fmt: skip
    lost = ["x"] * 6 + [None] * 3
    rows = {
        "who": [*range(1, 11), None, 12],
        "where": ["a"] * 11 + ["elsewhere"],
        "sex": [*lost, "F", "x", "x"],
        "100%=age": [None] * 8 + [17, 18, None, None],
        "text": ["(other)"] * 12,
    }
    columns, groups = EventColumns("who", None, "where"), public_groups_of("where", ["a"], None)
    result = check_table(TableJob.of(pa.table(rows), protocol, columns, groups))
    assert result.columns == {"sex": (10, 3, 6), "100%=age": (10, 8, 0), "text": (10, 0, 0)}
    assert [name for name, column in result.columns.items() if column.needs_a_look] == ["sex"]


@pytest.mark.parametrize("rule", ["item", "prefix"])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_margins_are_those_of_a_naive_count(rule, bound):
    events = [event for event in random_events(7, weighted=False) if event[1] in ("north", "unlisted", None)]
    groups = {"i1": "A", "i2": "B", "i3": "B", "i44": "nobody"}
    protocol = protocol_of_text(
        margins={rule: list(groups), "group": list(groups.values())},
        margin_share="0.2",
        margin_contribution=bound,
        total_share="0.1",
    )
    table = None if rule == "prefix" else groups
    job = job_of(as_table(events, text_items=True), protocol, item_groups=table)
    result = check_table(job, most_missing=0.01)

    def group_of(item):
        text = f"i{item}"
        fitting = [each for each in groups if (text.startswith(each) if rule == "prefix" else text == each)]
        return groups[fitting[0]] if fitting else "(other)"

    items, cells = defaultdict(set), defaultdict(set)
    for person, _, item, _ in usable(events):
        items[person].add(item)
        cells[person].add(group_of(item))
    shares = [np.mean([group_of(item) == "(other)" for item in theirs]) for theirs in items.values()]
    sizes = [len(theirs) for theirs in cells.values()]
    assert result.margins.in_none == pytest.approx(np.mean(shares), rel=1e-5)  # floors of parts of a vote
    assert result.margins.empty == ["nobody"]
    assert result.margins.people_over == sum(size > bound for size in sizes)
    assert result.margins.missing == pytest.approx(np.mean([max(0, 1 - bound / size) for size in sizes]))
    ordered = sorted(sizes)
    assert ordered[len(sizes) // 2 - 1] <= result.margins.per_person.median <= ordered[len(sizes) // 2]
    assert sum(size <= result.margins.per_person.most for size in sizes) >= 0.9 * len(sizes)
    assert result.margins.needs_a_look
    fitting = replace(result.margins, empty=[], in_none=0.5)
    assert fitting.needs_a_look == (result.margins.missing > 0.01)
