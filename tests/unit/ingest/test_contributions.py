"""Contribution bounds: the specification's choice, whatever the files look like, and nobody beyond the bound."""

import math
import random
from fractions import Fraction
from math import isqrt

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.ingest import contributions
from armslength.ingest.contributions import Events, KeyedOrder, Votes, ids_of, person_rule, text_hash
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from armslength.protocol.neighbors import VOTE
from flat_protocol import flat_protocol
from reference.contributions import bounded_counts, event_hash, group_hash, kept_of, sip, siphash
from reference.votes import Projection, votes
from statistical.limits import LIMIT, WRONG
from unit.ingest.tables_of_events import (
    GROUPS,
    ITEMS,
    KEY,
    as_table,
    counting_protocol,
    dense_counts,
    in_every_form,
    random_events,
)


def sums(source, protocol, *, weighted, key=KEY, threads=None):
    columns = EventColumns("who", "what", "where", "amount" if weighted else None)
    job = TableJob.of(source, protocol, columns, PublicGroups(tuple(GROUPS), "where"), threads=threads)
    return job.sums(key).values


def voted(source, key=KEY, threads=None, **known):
    """All integers of votes, with column numbers as items and without a projection."""
    protocol = counting_protocol("vote", total_share="0.5", **known)
    columns, groups = EventColumns("who", "what", "where"), PublicGroups(tuple(GROUPS), "where")
    return TableJob.of(source, protocol, columns, groups, threads=threads).sums(key)


def expected_votes(events, share=1):
    """The same by the specification."""

    def total_of(items):
        return [sum(item == number for item in items) for number in range(ITEMS)]

    events = [event[:3] for event in events if event[2] is None or event[2] < ITEMS]
    return votes(events, GROUPS, Projection(1, total_of), KEY, share=Fraction(share))


def test_a_vote_is_split_over_different_items_in_one_group():
    events = [("p", "north", 3, 1)] * 9 + [("p", "north", 4, 1), ("p", "north", 5, 1), ("q", "north", 3, 1)]
    found = voted(as_table(events))
    third = VOTE // 3
    assert found.values[0, 3:6].tolist() == [third + VOTE, third, third]
    assert not found.values[1:].any()
    people, squares, norm = 3 * third + VOTE, third**2 * 3 // VOTE + VOTE, isqrt(2 * 16 * (2**16 // 3) ** 4)
    assert found.totals.tolist() == [people, 0, 0, 0]
    assert found.spread[0, 0] == squares
    assert norm // 2**12 <= found.spread[0, 1] <= people


def test_everybody_votes_in_one_group_and_in_every_group_of_theirs_as_often():
    # everybody has three items in the north and one elsewhere, which must not decide
    count, items = 30_000, (3, 1, 1)
    places = [(group, item) for group in range(3) for item in range(items[group])]
    rows = [(f"p{number:05}", *place) for number in range(count) for place in places]
    person, group, item = zip(*rows, strict=True)
    groups = Votes(KEY, ["north", "south", "east"], Fraction(1)).bounded(packed(person, group, item)).groups
    # all items of the group that was chosen, and none of others
    persons = np.bincount(groups, minlength=3) / items
    assert persons.sum() == count
    # each is binomial with 1/3: the shares of the groups are means of zeros and ones
    error = math.sqrt(2 / 9 / count)
    assert np.abs(persons / count - 1 / 3).max() < LIMIT * error
    for factor in WRONG:
        assert np.abs(persons / count - factor / 3).min() > LIMIT * error, "too few persons to tell"


def test_the_sample_is_drawn_by_person_and_has_the_share_that_is_asked_for():
    count, share = 30_000, 0.25
    person = [f"p{number:05}" for number in range(count) for _ in range(2)]
    rule = Votes(KEY, ["north"], Fraction(share))
    chosen = rule.bounded(packed(person, [0] * len(person), [1, 2] * count)).is_sampled.mean()
    error = math.sqrt(share * (1 - share) / count)
    assert abs(chosen - share) < LIMIT * error
    for factor in WRONG:
        assert abs(chosen - factor * share) > LIMIT * error, "too few persons to tell"


@pytest.mark.parametrize("kind", ["amounts", "votes", "a sample"])
def test_every_form_and_order_gives_the_same_integers(tmp_path, kind):
    is_amounts, share = kind == "amounts", "0.5" if kind == "a sample" else 1
    events = random_events(2, weighted=is_amounts)

    def found(source, **options):
        if is_amounts:
            return sums(source, counting_protocol(), weighted=True, **options).tolist()
        return integers_of(voted(source, spread_sample=share, **options))

    expected = (
        dense_counts(bounded_counts(events, GROUPS, 5, KEY)).tolist()
        if is_amounts
        else [
            [*row.values, row.people, row.squares, row.norm]
            for row in expected_votes(events, Fraction(share))
        ]
    )
    for name, source in in_every_form(as_table(events), tmp_path).items():
        assert found(source) == expected, name
    for seed in range(3):
        random.Random(seed).shuffle(events)  # noqa: S311  # another order
        assert found(as_table(events), threads=seed + 1) == expected
    assert found(as_table(events), key=bytes(32)) != expected


def integers_of(sums):
    """The values, T, Q and F of each row."""
    return np.column_stack([sums.values, sums.totals, sums.spread]).tolist()


def test_several_files_are_one_table(tmp_path):
    events = random_events(2, weighted=False)
    for number in range(3):
        in_folder = tmp_path / str(number)
        in_folder.mkdir()
        in_every_form(as_table(events[number::3]), in_folder)
    # of different kinds, and one with a name that is a pattern
    odd = tmp_path / "*[a]'{b}.csv"
    (tmp_path / "1" / "e.csv").rename(odd)
    paths = [tmp_path / "0" / "e.parquet", odd, tmp_path / "2" / "e.jsonl"]
    expected = dense_counts(bounded_counts(events, GROUPS, 5, KEY))
    assert np.array_equal(sums(paths, counting_protocol(), weighted=False), expected)
    folder = tmp_path / "all"
    folder.mkdir()
    for number, path in enumerate(paths):
        path.rename(folder / f"{number}{path.suffix}")
    (folder / "README.txt").write_text("not events")
    assert np.array_equal(sums(folder, counting_protocol(), weighted=False), expected)


def test_a_bound_that_is_no_multiple_of_the_resolution_is_rounded_down():
    protocol = counting_protocol(5, resolution=2)
    assert person_rule(KEY, GROUPS, protocol).bound == 2 == protocol.grid_radius
    table = as_table([("p", "north", 1, 100)])
    assert sums(table, protocol, weighted=True)[0, 1] == 2


def test_a_bound_on_a_fine_grid_counts_grid_units():
    protocol = counting_protocol(2, resolution=0.25, on_grid=True)
    table = as_table([("p", "north", 1, 1)]).set_column(3, "amount", pa.array([100.25]))
    assert sums(table, protocol, weighted=True)[0, 1] == 8
    off_grid = counting_protocol(2, resolution=0.25, on_grid=False, changed_entries=3)
    table = table.set_column(3, "amount", pa.array([-0.3]))
    assert sums(table, off_grid, weighted=True)[0, 1] == -2  # floor(-1.2)


# The kernels by themselves.


def packed(persons, groups, items, amounts=(), times=(), hash_of=None):
    """Events as numbers, packed by hand; `hash_of` is put in place of the hash of long ids."""
    words, long_ids = [], bytearray()
    for person in persons:
        text = person.encode()
        if len(text) <= 15:
            words.append(
                (int.from_bytes(text[:8], "little"), int.from_bytes(text[8:], "little") | len(text) << 56)
            )
        else:
            words.append(((hash_of or sip)(KEY, text), 255 << 56 | len(long_ids)))
            long_ids += len(text).to_bytes(4, "little") + text
    rows = [
        [*word, 0, item % 2**64, group, *(number % 2**64 for number in more)]
        for word, item, group, *more in zip(
            words,
            items,
            groups,
            *([amounts or [1] * len(words)] if amounts or times else []),
            *([times] if times else []),
            strict=True,
        )
    ]
    width = 5 + bool(amounts or times) + bool(times)
    long_array = np.frombuffer(bytes(long_ids), dtype=np.uint8).copy()
    return Events(np.array(rows, dtype=np.uint64).reshape(-1, width), long_array)


def kept(events, bounded):
    """What is kept of each person, by (number of the group, item)."""
    result = {}
    for number, person in enumerate(ids_of(events, bounded.persons).to_pylist()):
        counts = result.setdefault(person, {})
        for row in range(bounded.starts[number], bounded.starts[number + 1]):
            place = int(bounded.groups[row]), int(bounded.items[row, 1])
            counts[place] = counts.get(place, 0) + int(bounded.amounts[row])
    assert len(result) == len(bounded.persons)
    return {
        person: {place: count for place, count in counts.items() if count}
        for person, counts in result.items()
    }


def all_items(persons):
    """Each person's items, if the item of a row is its number."""
    result = {}
    for item, person in enumerate(persons):
        result.setdefault(person, {})[0, item] = 1
    return result


@pytest.mark.parametrize("length", [*range(20), 24, 31, 63, 255, 256, 1000])
def test_the_hash_is_siphash(length):
    data = np.arange(length + 3).astype(np.uint8)
    words = np.frombuffer(bytes(range(16)), dtype="<u8").astype(np.uint64)
    value = int(text_hash(data, 3, length + 3, words))
    assert value == siphash(bytes(range(16)), data[3:].tobytes())


def test_the_reference_is_siphash_as_published():
    # Aumasson and Bernstein 2012, appendix A; and from the authors' vectors
    for length, value in {0: 0x726FDB47DD0E0E31, 15: 0xA129CA6149BE45E5, 63: 0x958A324CEB064572}.items():
        assert siphash(bytes(range(16)), bytes(range(length))) == value


def test_the_hashes_of_version_4_are_frozen():
    assert sip(KEY, b"p1") == 0xF60E7AE70BF2784D
    assert group_hash(KEY, "p1", "north") == 0x19E56A94127DB562
    assert event_hash(KEY, "p1", "north", "flu", 0) == 0xF1B3C21C9D0FC873
    assert event_hash(KEY, "p1", "north", -3, 2) == 0xD5B8C3C60F9C66D0


@pytest.mark.parametrize("same", [0, 1, 2**64 - 1])
def test_persons_whose_hashes_are_equal_are_still_two(same):
    persons = ["long id number " + text for text in ("one", "two", "three", "one and more")] * 3
    events = packed(persons, [0] * 12, range(12), hash_of=lambda *_: same)
    found = kept(events, KeyedOrder(KEY, ["g"], 2).bounded(events))
    assert set(found) == set(persons)
    assert all(sum(counts.values()) == 2 for counts in found.values())
    # and a short id whose first word is that hash
    short = same.to_bytes(8, "little").decode("latin-1")
    if short.isascii():
        both = packed([persons[0], short, persons[0], short], [0] * 4, range(4), hash_of=lambda *_: same)
        assert {sum(c.values()) for c in kept(both, KeyedOrder(KEY, ["g"], 1).bounded(both)).values()} == {1}
    two = kept(events, Votes(KEY, ["g"], Fraction(1)).bounded(events))
    assert two == {person: dict.fromkeys(counts, VOTE // 3) for person, counts in all_items(persons).items()}


@pytest.mark.parametrize("smallest", [-(2**63), -(2**63) + 1])
def test_the_smallest_integer_has_no_magnitude(smallest):
    for amounts in ([smallest, 1], [1, smallest], [smallest, smallest], [2**63 - 1, 2**63 - 1]):
        events = packed(["p", "p"], [0, 0], [1, 2], amounts)
        bounded = KeyedOrder(KEY, ["g"], 5).bounded(events)
        assert np.abs(bounded.amounts).sum() == 5
        assert all(abs(int(amount)) <= 5 for amount in bounded.amounts)


@pytest.mark.parametrize("bound", [1, 20, 3000, 10**12])
def test_events_that_occur_often_are_as_many_events(bound):
    draw = random.Random(bound)  # noqa: S311  # generated events
    rows = [
        (draw.randrange(3), draw.randrange(-4, 4), draw.choice([-2, 1, 3]), draw.choice([1, 2, 7, 600]))
        for _ in range(60)
    ]
    groups, items, amounts, times = map(list, zip(*rows, strict=True))
    events = packed(["somebody"] * 60, groups, items, amounts, times)
    order = KeyedOrder(KEY, ["x", "y", "z"], bound)
    spelled_out = [
        ("xyz"[g], i, a) for g, i, a, n in zip(groups, items, amounts, times, strict=True) for _ in range(n)
    ]
    expected = kept_of("somebody", spelled_out, ["x", "y", "z"], bound, KEY)
    ((_, found),) = kept(events, order.bounded(events)).items()
    assert found == {("xyz".index(g), i % 2**64): count for (g, i), count in expected.items() if count}
    # the same after some that cannot be kept were left out, and others came
    half = packed(["somebody"] * 30, groups[:30], items[:30], amounts[:30], times[:30])
    rest = packed(["somebody"] * 30, groups[30:], items[30:], amounts[30:], times[30:])
    compact = order.compact(half)
    assert len(compact.rows) <= len(half.rows)
    together = Events.joined([compact, rest])
    assert kept(together, order.bounded(together)) == {"somebody": found}


@pytest.mark.parametrize("bound", [20, 3000, 10**9])
def test_a_person_with_very_many_events_is_cut_as_the_specification_says(bound):
    count = 3 * contributions._OCCURRENCES_AT_ONCE  # so that what cannot be kept is left out in between
    events = packed(["heavy"] * count, [0] * count, range(count))
    bounded = KeyedOrder(KEY, ["g"], bound).bounded(events)
    in_order = sorted(range(count), key=lambda item: event_hash(KEY, "heavy", "g", item, 0))
    assert sorted(bounded.items[:, 1].tolist()) == sorted(in_order[:bound])
    if bound < count:
        assert bounded.items[:, 1].tolist() == in_order[:bound]


# Somebody with very many events.


def whole_path(persons, items, **options):
    """The counts of column numbers, of one group."""
    table = pa.table({"who": pa.array(persons), "what": pa.array(items, pa.int64())})
    protocol = counting_protocol(5)
    job = TableJob.of(table, protocol, EventColumns("who", "what"), PublicGroups(("all",), None), **options)
    return job.sums(KEY).values[0]


@pytest.mark.parametrize("person", ["a", "b", "somebody", "somebody with a long id"])
def test_one_person_who_fills_a_part_is_counted(person):
    # more rows than are taken out together, and nobody in the parts behind
    count = 200_000
    counts = whole_path([person] * count, np.arange(count) % ITEMS)
    expected = bounded_counts(
        [(person, "all", i, 1) for i in range(ITEMS) for _ in range(3)], ["all"], 5, KEY
    )
    assert counts.sum() == sum(expected.values()) == 5


@pytest.mark.parametrize("contribution", [5, "vote"])
def test_nobody_has_too_many_events_for_a_release(contribution):
    # one person must not decide whether there is a release
    rows = 300_000
    transform = al.SparseJL(sketch_dim=32, seed="x")
    known = {"contribution": contribution, "unit": "u", "items": "int64", "total_share": "0.5"}
    protocol = flat_protocol(transform, epsilon=1, **known)
    table = pa.table({"who": ["heavy"] * rows + ["p"], "what": pa.array([*range(rows), 1], pa.int64())})
    groups, columns = PublicGroups(("all",), None), EventColumns("who", "what")
    enough, little = (
        TableJob.of(table, protocol, columns, groups, memory=memory, threads=2).sums(KEY)
        for memory in ("1GB", "20MB")
    )
    for name in ("values", "totals", "spread"):
        assert np.array_equal(getattr(enough, name), getattr(little, name))
    assert enough.values.any()


# Votes of somebody with very many different items, with a small number in place of R + 1.


def different(persons):
    """Events of these persons, each with so many different items, in any order, and some of them again."""
    rows = [(person, item) for person, count in persons.items() for item in range(count)]
    rows += rows[::3]
    random.Random(1).shuffle(rows)  # noqa: S311  # generated events
    return rows


@pytest.mark.parametrize("most", [1, 7, 65, 300])
def test_somebody_with_more_items_than_a_vote_has_units_does_not_vote(most, monkeypatch):
    monkeypatch.setattr(contributions, "VOTE", most)
    rule = Votes(KEY, ["g"], Fraction(1))
    rows = different({"just enough": most, "one too many": most + 1, "far too many": 5 * most, "few": 1})
    events = [
        packed([who for who, _ in part], [0] * len(part), [item for _, item in part])
        for part in (rows[::2], rows[1::2])
    ]
    whole, merged = Events.joined(events), rule.shortened(events)
    assert len(merged.rows) <= 3 * (most + 1) + 1
    for given in (whole, merged, Events.joined([rule.compact(events[0]), events[1]])):
        bounded = rule.bounded(given)
        found = dict(zip(ids_of(given, bounded.persons).to_pylist(), np.diff(bounded.starts), strict=True))
        assert found == {"just enough": most, "one too many": 0, "far too many": 0, "few": 1}
        assert set(bounded.amounts.tolist()) == {1, most}


@pytest.mark.parametrize("items", [300, 1000, 5000])
def test_votes_of_many_items_are_the_same_in_every_order_of_merging(items):
    rows = different({"somebody": items, "somebody else with a long id": items + 1})
    person, item = zip(*rows, strict=True)
    events = packed(person, [n % 2 for n in item], item)
    rule = Votes(KEY, ["x", "y"], Fraction(1))
    expected = kept(events, rule.bounded(events))
    assert {sum(counts.values()) // len(counts) for counts in expected.values()} <= {
        VOTE // (items // 2),
        VOTE // (items // 2 + 1),
    }
    for seed in range(5):
        draw = np.random.default_rng(seed)
        of_part = draw.integers(0, 4, len(events.rows))
        parts = [events.chosen(np.flatnonzero(of_part == number)) for number in range(4)]
        merged = parts[0]
        for part in parts[1:]:
            merged = Events.joined(
                [rule.compact(merged), rule.compact(part) if draw.random() < 0.5 else part]
            )
        assert kept(merged, rule.bounded(merged)) == expected
        shortened = rule.shortened(parts)
        assert kept(shortened, rule.bounded(shortened)) == expected


def test_rows_that_are_wanted_several_times_have_as_many_ids():
    events = packed(["a name that is too long for two words", "short"], [0, 0], [1, 2])
    together = Events.joined([events.chosen(np.repeat([0, 1], [50, 3])), events])
    assert ids_of(together, np.arange(len(together.rows))).to_pylist() == [
        *["a name that is too long for two words"] * 50,
        *["short"] * 3,
        "a name that is too long for two words",
        "short",
    ]
    assert len(together.long_ids) == 51 * (4 + 37)
