"""Nothing that a release shows beside its values depends on the table, and the comparison sees it when something does."""

import json
import logging
import secrets
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from attacks.side_doors import GROUPS, PROTOCOLS, doors_of, main, neighbor_pairs, open_doors
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.ingest.sums import GroupSums, Sums
from armslength.ledger import ledger
from armslength.ledger.ledger import Account
from armslength.releasing import release
from armslength.sketches import sketch_format
from armslength.sketches.card import release_card

PAIRS = neighbor_pairs()
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "", None]),
        st.sampled_from(["x", "y", "", None]),
        st.sampled_from([*GROUPS, "elsewhere", None]),
        st.sampled_from([0, 1, -1, 7, 2**62, -(2**62)]),
    ),
    max_size=8,
)


@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("name", PAIRS)
def test_every_door_is_shut(name, kind):
    assert open_doors(PAIRS[name], kind) == []


@given(EVENTS, EVENTS)
@settings(max_examples=8)
def test_every_door_is_shut_for_any_two_tables(first, second):
    assert open_doors((first, second)) == []


def _leak(monkeypatch, tell):
    add = GroupSums.add

    def telling(self, events):
        tell(len(events.amounts))
        add(self, events)

    monkeypatch.setattr(GroupSums, "add", telling)


@pytest.mark.parametrize(
    ("tell", "door"),
    [
        (print, "standard output of release"),
        (lambda count: sys.stderr.write(str(count)), "standard error of release"),
        (lambda count: warnings.warn(f"{count} events", stacklevel=1), "warnings and log"),
        (lambda count: logging.getLogger("armslength").warning("%d events", count), "warnings and log"),
        (lambda count: Path(f"{count}.txt").touch(), "names and modes of files"),
        (lambda count: sys.exit(count % 100), "exit codes"),
    ],
    ids=["output", "error", "warning", "log", "file", "exit code"],
)
def test_a_leak_is_seen(monkeypatch, tell, door):
    _leak(monkeypatch, tell)
    assert door in open_doors(PAIRS["nothing, and much"])


def test_a_card_that_counts_is_seen(monkeypatch):
    counts = []
    _leak(monkeypatch, counts.append)
    card = "armslength.sketches.sketch_format.release_card"
    monkeypatch.setattr(card, lambda *_, **known: {**release_card(*_, **known), "events": sum(counts)})
    opened = open_doors(PAIRS["two unrelated tables"])
    assert "metadata and card" in opened


def test_releases_that_all_fail_are_no_shut_doors(monkeypatch):
    monkeypatch.setattr(Account, "charge", lambda *_, **__: _fail(al.ParameterError("nothing works")))
    assert open_doors(PAIRS["one person more"]) == [
        "exit codes",
        "file written again from its contents",
    ]


def _fail(error):
    raise error


def test_releases_that_say_that_they_worked_and_wrote_nothing_are_no_shut_doors(monkeypatch):
    monkeypatch.setattr(Account, "charge", lambda *_, **__: sys.exit(0))
    assert open_doors(PAIRS["one person more"]) == ["file written again from its contents"]


@pytest.mark.parametrize("counted", [True, False], ids=["a count", "the same for both"])
def test_a_key_among_the_digests_of_released_files_alone_is_seen(monkeypatch, counted):
    counts, text, charge = [0], sketch_format.digests_text, Account.charge
    _leak(monkeypatch, counts.append)
    is_release = []

    def charged(*known, **named):
        is_release.append(True)
        return charge(*known, **named)

    def telling(*known):
        if not is_release:
            return text(*known)  # of the file that is made again
        is_release.clear()
        return json.dumps({**json.loads(text(*known)), "events": sum(counts) if counted else 7}).encode()

    monkeypatch.setattr(Account, "charge", charged)
    monkeypatch.setattr(sketch_format, "digests_text", telling)
    opened = open_doors(PAIRS["nothing, and much"])
    assert "file written again from its contents" in opened
    assert ("contents of the digests" in opened) == counted


def test_a_ledger_that_counts_is_seen(monkeypatch):
    counts, write = [0], ledger.write_entry
    _leak(monkeypatch, counts.append)
    monkeypatch.setattr(
        ledger,
        "write_entry",
        lambda connection, entry: write(connection, replace(entry, version=f"{sum(counts):08}")),
    )
    assert open_doors(PAIRS["nothing, and much"]) == ["every row of the ledger"]


def test_noise_ids_are_random_bytes_and_nothing_else(monkeypatch, tmp_path):
    # the comparison leaves them out: so they must be what `secrets` gave, to the last bit, and the number of the row
    given = [secrets.token_bytes(12) for _ in range(2)]
    drawn = iter(given)
    monkeypatch.setattr(ledger, "secrets", SimpleNamespace(token_bytes=lambda _: next(drawn)))
    for number, events in enumerate(PAIRS["nothing, and much"]):
        folder = tmp_path / str(number) / "party"
        folder.mkdir(parents=True)
        doors_of(events, folder)
        released = al.load(folder / "sketches.parquet").noises
        assert released.ids.tobytes() == b"".join(given[number] + bytes([0, 0, 0, row]) for row in range(3))


def test_with_equal_noise_ids_and_values_the_files_are_equal_to_the_last_byte(monkeypatch, tmp_path):
    # what the mechanism gives is made equal for both tables: whatever else reached the file would show
    values, few = np.arange(3 * 64).reshape(3, 64), np.arange(12).reshape(3, 4)

    def equal(*_):
        return Sums(values.copy(), few[:, 0].copy(), "events", margins=few.copy(), spread=few[:, :2].copy())

    monkeypatch.setattr(release, "noised", equal)
    monkeypatch.setattr(ledger, "secrets", SimpleNamespace(token_bytes=bytes))
    written = []
    for number, events in enumerate(PAIRS["nothing, and much"]):
        folder = tmp_path / str(number) / "party"
        folder.mkdir(parents=True)
        doors_of(events, folder)
        written.append((folder / "sketches.parquet").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("protocol", "known"),
    [
        (PROTOCOLS["amounts"], {"items": ["a", "b"]}),
        (
            al.Protocol(
                al.GaussianJL(input_dim=2, sketch_dim=5, seed="x"), epsilon=1, delta=1e-6, noise="gaussian"
            ),
            {},
        ),
    ],
)
def test_a_file_is_made_again_from_what_it_holds(tmp_path, protocol, known):
    released = al.release(protocol, np.ones((1, 2), int), ledger=al.NO_LEDGER, **known)
    released.save(tmp_path / "one")
    al.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_account_for_a_newcomer(capsys, monkeypatch):
    monkeypatch.setattr("attacks.side_doors.neighbor_pairs", lambda: {"one pair": ([], [])})
    main()
    said = capsys.readouterr().out
    assert "looks the same" in said
    assert "whatever the table" in said
    monkeypatch.setattr("attacks.side_doors.open_doors", lambda *_: ["rows and labels"])
    main()
    assert "DIFFERS: rows and labels" in capsys.readouterr().out
