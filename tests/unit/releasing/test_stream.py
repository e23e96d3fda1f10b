"""Streams: noise first, released once, and no second copy under any circumstances."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import armslength as al

PROTOCOL = al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)


@pytest.fixture
def stream():
    return al.stream(PROTOCOL, label="north", ledger=al.NO_LEDGER)


def test_noise_is_there_before_the_first_update(stream):
    assert np.any(stream._sums.values != 0)


def test_a_stream_is_released_once(stream):
    sketch = stream.release()
    assert sketch.labels == ("north",)
    assert len(sketch.noises.terms(0)) == 1
    with pytest.raises(al.ParameterError, match="released already"):
        stream.release()
    with pytest.raises(al.ParameterError, match="released already"):
        stream.update(1)
    assert "released" in repr(stream)


def test_a_stream_cannot_be_copied(stream):
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(stream)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_stream_stays_in_its_process(stream):
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: stream.update(1), stream.release):
            try:
                use()
            except al.ParameterError as error:
                refused += "process that made it" in str(error)
        os._exit(0 if refused == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    stream.update(1)
    stream.release()


def test_the_ledger_is_charged_when_the_stream_is_made(tmp_path):
    path = tmp_path / "ledger.sqlite"
    al.stream(PROTOCOL, label="north", ledger=al.Ledger(path, create=True), population="p")
    assert [entry.labels for entry in al.Ledger(path).entries()] == [("north",)]
    with pytest.raises(al.BudgetError):
        al.stream(PROTOCOL, label="north", ledger=path, population="p")


def test_updates_from_several_threads_all_count(monkeypatch):
    monkeypatch.setattr("armslength.releasing.release.add_noise", lambda *_, **__: None)
    stream = al.stream(PROTOCOL, label="north", ledger=al.NO_LEDGER)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: stream.update([0, 3], [1, 2]), range(200)))
    expected = PROTOCOL.transform.apply([[200, 0, 0, 400, 0, 0]])
    assert np.array_equal(stream.release().values, expected)


@pytest.mark.parametrize(
    ("items", "amounts"),
    [(-1, 1), ("a", 1), ([0, 1], [1]), (0, 0.5), ([0], [np.nan])],
)
def test_bad_updates_change_nothing(stream, items, amounts):
    before = stream._sums.values.copy()
    with pytest.raises(al.InputError):
        stream.update(items, amounts)
    assert np.array_equal(stream._sums.values, before)


def test_protocols_that_do_not_fit_a_stream_are_refused():
    clamped = al.Protocol(
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), al.Arrays(value_range=(0, 5)), epsilon=1
    )
    with pytest.raises(al.ParameterError, match="value_range"):
        al.stream(clamped, label="a", ledger=al.NO_LEDGER)
    inside = al.Protocol(
        al.FastJL(input_dim=6, sketch_dim=4, seed="x"), epsilon=1, delta=1e-6, noise_site="input"
    )
    with pytest.raises(al.ParameterError, match="noise_site"):
        al.stream(inside, label="a", ledger=al.NO_LEDGER)
    with pytest.raises(al.ParameterError, match="ledger must be a file"):
        al.stream(PROTOCOL, label="a", ledger=None)
    with pytest.raises(al.ParameterError, match="labels must be"):
        al.stream(PROTOCOL, label="", ledger=al.NO_LEDGER)
