"""Ctrl-C, SIGTERM and SIGHUP while a release runs: no half file, nothing private left, and one line that says what was spent."""

import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from audit.faults.forks import at_line
from audit.faults.party import RELEASE, TARGET
from click.testing import CliRunner

import armslength as al
from armslength.cli import release
from armslength.cli.main import main
from armslength.ingest.contributions import KeyedOrder
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob

CANARY = "zq-secret-zq"
NOTHING = "armslength: interrupted; nothing was charged, and nothing was written\n"
SPENT = "armslength: interrupted; ε was charged, and nothing was written: releasing again, with --repeat, spends once more\n"
SAVED = f"armslength: interrupted when all was done; the release was saved as {TARGET}\n"
SAYS = {(False, False): NOTHING, (True, False): SPENT, (True, True): SAVED}


@pytest.fixture(autouse=True)
def _signals_as_at_a_terminal():
    """Tests that were started in the background inherit an ignored Ctrl-C, which would stay ignored."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("party", "sent", "part"),
    [
        ("first", signal.SIGTERM, 0.5),
        ("first", signal.SIGTERM, 0.87),
        ("again", signal.SIGHUP, 0.6),
        ("again", signal.SIGINT, 0.97),
    ],
    indirect=["party"],
)
def test_a_signal_at_a_line(party, temporary, sent, part, line_counts):
    before = set(temporary.iterdir())
    ended = party.run(at_line(int(part * line_counts[party.folder]), sent))
    found = party.found()
    assert ended.code == 128 + sent
    assert ended.err == SAYS[found.charged, found.released]
    assert (found.wrong, found.leftovers) == ((), ())
    assert set(temporary.iterdir()) == before  # the engine's folder may hold private rows
    assert party.retried(found) == ()


def _interrupt(*_, **__):
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("armslength.ledger.ledger.Account.charge", NOTHING),
        ("armslength.releasing.release.noised", SPENT),
        ("armslength.cli.release._summary", SAVED),
    ],
)
def test_what_is_said_is_what_was_done(party, monkeypatch, place, says):
    monkeypatch.chdir(party.folder)
    monkeypatch.setattr(place, _interrupt)
    ended = CliRunner().invoke(main, party.arguments)
    assert (ended.exit_code, ended.stderr) == (130, says)
    found = party.found()
    assert SAYS[found.charged, found.released] == says


@pytest.mark.parametrize("place", ["armslength.releasing.release.noised", "armslength.cli.release._summary"])
def test_a_second_interruption_takes_nothing_away(party, monkeypatch, place):
    monkeypatch.chdir(party.folder)
    monkeypatch.setattr(place, _interrupt)
    told = release._interrupted

    def interrupted_again(*known, **named):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        return told(*known, **named)

    monkeypatch.setattr(release, "_interrupted", interrupted_again)
    ended = CliRunner().invoke(main, party.arguments)
    assert ended.exit_code == 130
    found = party.found()
    assert ended.stderr == SAYS[found.charged, found.released]
    assert found.charged


@pytest.mark.parametrize(
    "place", ["armslength.releasing.release.noised", "armslength.sketches.sketch_format.canonical_json"]
)
def test_an_error_of_nobody_after_the_charge_says_that_it_was_charged(party, monkeypatch, place):
    def fails(*_, **__):
        raise MemoryError(CANARY)

    monkeypatch.chdir(party.folder)
    monkeypatch.setattr(place, fails)
    ended = CliRunner().invoke(main, party.arguments)
    assert ended.exit_code in (1, 2)
    assert "ε was charged, and nothing was written" in ended.stderr
    assert CANARY not in ended.output
    assert party.found().charged


def test_a_reader_that_has_gone_is_no_error_of_ours(party, monkeypatch):
    def gone(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.chdir(party.folder)
    monkeypatch.setattr("armslength.cli.release._summary", gone)
    ended = CliRunner().invoke(main, party.arguments)
    assert ended.exit_code == 128 + signal.SIGPIPE
    assert party.found().released


def test_a_write_that_is_interrupted_is_done_again(party, monkeypatch):
    import os  # noqa: PLC0415  # the one that is wrapped

    replace, calls = os.replace, []

    def once(source, target):
        calls.append(Path(target).name)
        if calls[-1] == TARGET and calls.count(TARGET) == 1:  # the cache of kernels renames files, too
            signal.raise_signal(signal.SIGTERM)
        replace(source, target)

    monkeypatch.chdir(party.folder)
    monkeypatch.setattr("armslength.files.os.replace", once)
    ended = CliRunner().invoke(main, party.arguments)
    assert (ended.exit_code, ended.stderr) == (143, SAVED)
    assert (party.found().released, party.found().leftovers) == (True, ())


def test_without_a_ledger_nothing_was_charged(party, monkeypatch):
    monkeypatch.chdir(party.folder)
    monkeypatch.setattr("armslength.releasing.release.noised", _interrupt)
    ended = CliRunner().invoke(main, [*RELEASE, "--no-ledger"])
    assert (ended.exit_code, ended.stderr) == (130, NOTHING)


def test_handlers_are_as_they_were_when_the_command_ends(party, monkeypatch):
    def own(*_):
        pass

    monkeypatch.chdir(party.folder)
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    seen = []
    monkeypatch.setattr(
        "armslength.cli.release.release_events",
        lambda *_, **__: seen.append(signal.getsignal(signal.SIGHUP)),
    )
    usual = signal.signal(signal.SIGHUP, own)
    try:
        CliRunner().invoke(main, party.arguments)
    finally:
        signal.signal(signal.SIGHUP, usual)
    assert seen == [own]  # who has a handler, or ignores a signal, keeps it
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    assert not Path(TARGET).exists()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_while_a_kernel_runs_is_an_interruption(monkeypatch, threads):
    # the signal comes while compiled code runs: Numba must not make another error of it
    count = 130_000
    table = pa.table({"who": [f"p{row % 99}" for row in range(count)], "what": np.arange(count)})
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=32, seed="x"), al.Counts(5), epsilon=1, unit="u", items="int64"
    )
    columns, groups = EventColumns("who", "what"), PublicGroups(("all",), None)
    job = TableJob.of(table, protocol, columns, groups, threads=threads)
    job.sums(bytes(32))  # compiled
    real, signals = KeyedOrder.bounded, []

    def interrupted(*given):
        if signals:  # once for each round, whichever thread comes first: a later one would find pytest
            signal.setitimer(signal.ITIMER_REAL, signals.pop())
        return real(*given)

    def counted():
        job.sums(bytes(32))
        time.sleep(0.1)  # if it was done before the signal came

    monkeypatch.setattr(KeyedOrder, "bounded", interrupted)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(5):
            signals[:] = [0.005]
            with pytest.raises(KeyboardInterrupt):
                counted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
