"""Work that several threads do for one call."""

import signal
import threading
import time

import pytest

from armslength import threads


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_their_items(workers, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: workers)
    slow = threading.Event()

    def work(item):
        if item == 0 and workers > 1:
            assert slow.wait(10)  # until the next has been done
        slow.set()
        return item * item

    assert list(threads.ordered_map(work, range(40))) == [item * item for item in range(40)]
    assert list(threads.ordered_map(work, [])) == []


def test_no_more_is_made_ahead_than_there_are_threads(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    begun = []
    results = threads.ordered_map(lambda item: begun.append(item) or item, range(100))
    assert next(results) == 0
    assert len(begun) <= 3
    results.close()
    assert len(begun) <= 3


def test_an_error_is_raised_and_ends_the_rest(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    begun = []

    def work(item):
        begun.append(item)
        if item == 3:
            raise ValueError("three")
        return item

    results = threads.ordered_map(work, range(100))
    with pytest.raises(ValueError, match="three"):
        list(results)
    assert max(begun) <= 6


def test_a_slow_handler_of_a_signal_does_not_end_the_looks_at_the_process(monkeypatch):
    # a forked child must be refused, however long the fork took: nobody else ends its wait
    monkeypatch.setattr(threads, "_SECONDS_BETWEEN_LOOKS", 0.2)
    usual = signal.signal(signal.SIGALRM, lambda *_: time.sleep(0.4))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    ended = threading.Lock()
    ended.acquire()
    try:
        with pytest.raises(RuntimeError, match="forked in the middle"):
            threads._wait_for_one(ended, [], process=-1)
    finally:
        signal.signal(signal.SIGALRM, usual)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
def test_an_error_cancels_what_has_not_begun(raised, monkeypatch):
    begun = []

    def work(first, _):
        begun.append(first)
        if first == 0:
            raise raised
        failed.wait(5)  # nothing else ends before the error is known

    failed = threading.Event()
    monkeypatch.setattr(threads, "_wait_for_one", _then(threads._wait_for_one, failed.set))
    with pytest.raises(raised):
        threads.for_runs(64, 1, work, threads=2)
    assert len(begun) < 16


def _then(call, after):
    def both(*given):
        try:
            return call(*given)
        finally:
            after()

    return both
