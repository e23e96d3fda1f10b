"""What Spark does to tasks: executors killed, stages computed again, attempts that race. The answer is right, and charged once."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import armslength as al
from armslength.ledger.ledger import open_account
from armslength.releasing.release import release_events
from armslength.spark import spark_tables as module
from spark.gates import attempts, let_go, lose, lose_files, make_pipes, noted, shortened, told, turned
from spark.tables import COLUMNS, events, frame_of, in_spark, on_one_machine, voting
from unit.ingest.tables_of_events import KEY

PARTITIONS = 4
TABLE = events()
# noise that is 0 almost surely, but for e^(-20) a number: the released numbers are the exact integers
EXACT = voting(epsilon=10**8)


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    monkeypatch.setattr("armslength.releasing.release.secrets.token_bytes", lambda count: KEY[:1] * count)
    monkeypatch.setattr(module, "_CHUNK_BYTES", (64, 64))  # several chunks, of several reducers


def released(frame, ledger):
    return release_events(in_spark(frame, EXACT, PARTITIONS), open_account(ledger, "visits"))


def expected():
    sums = on_one_machine(TABLE, EXACT).sums(KEY[:1] * 32)
    return numbers(sums)


def numbers(released):
    """All integers, with T, Q and F."""
    return [released.values.tolist(), released.totals.tolist(), released.spread.tolist()]


def test_an_executor_that_is_killed_in_the_middle(session, tmp_path):
    make_pipes(tmp_path)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    source = frame_of(session, TABLE).mapInArrow(
        noted(lambda batches: batches, tmp_path, holds=True), COLUMNS
    )
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(released, source, ledger)
        lose(tmp_path, told(tmp_path))
        assert numbers(answer.result(timeout=120)) == expected()
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("again", ["other order", "other rows"])
def test_a_stage_that_is_computed_again(session, tmp_path, monkeypatch, again):
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    real_task, real_rows = module.task_of, module.local_rows
    what = turned if again == "other order" else shortened
    monkeypatch.setattr(module, "task_of", lambda job: noted(real_task(job), tmp_path, again=what))

    def rows_with_a_loss(frame):
        rows = real_rows(frame)
        yield next(rows)
        # All partial sums are there, and some were read: what is lost now must be computed again for the rest.
        if again == "other order":
            lose(tmp_path, attempts(tmp_path)[0][1])
        else:
            lose_files(tmp_path)
        yield from rows

    monkeypatch.setattr(module, "local_rows", rows_with_a_loss)
    if again == "other order":
        assert numbers(released(frame_of(session, TABLE), ledger)) == expected()
        assert len(ledger.entries()) == 1
    else:
        with pytest.raises(al.InputError, match="other rows"):
            released(frame_of(session, TABLE), ledger)
        assert ledger.entries() == []
    assert len(attempts(tmp_path)) > len({partition for partition, _ in attempts(tmp_path)})


@pytest.fixture
def second_host(session, tmp_path):
    """A worker under another address: Spark never runs two attempts of a task on one host."""
    backend = session.sparkContext._jsc.sc().schedulerBackend()
    masters = backend.getClass().getDeclaredField("masters")
    masters.setAccessible(True)
    url = masters.get(backend)[0]
    script = Path(os.environ["SPARK_HOME"], "bin", "spark-class")
    where = ["--host", "127.0.0.2", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
    worker = subprocess.Popen(
        [script, "org.apache.spark.deploy.worker.Worker", *where, "--webui-port", "0", url],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.2"},
    )
    yield
    worker.terminate()
    worker.wait()


@pytest.mark.usefixtures("second_host")
def test_two_attempts_at_once(session, tmp_path, monkeypatch):
    make_pipes(tmp_path)
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    real_task = module.task_of
    monkeypatch.setattr(module, "task_of", lambda job: noted(real_task(job), tmp_path, holds=True))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(released, frame_of(session, TABLE), ledger)
        told(tmp_path)
        try:
            # the first attempt waits for ever: the answer comes from the second
            assert numbers(answer.result(timeout=90)) == expected()
        finally:
            let_go(tmp_path)
    assert len(ledger.entries()) == 1
    assert len(attempts(tmp_path)) > len({partition for partition, _ in attempts(tmp_path)})
