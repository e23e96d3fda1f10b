"""One private sketch for each public group of an event table: `Protocol.release_table`."""

import secrets
from typing import Any

from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.engine import DEFAULT_MEMORY
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ledger.ledger import Ledger, NoLedger, opened_ledger
from armslength.protocol.protocol import Protocol
from armslength.release.release import preview_charge, release
from armslength.sketches.sketches import Sketches


def release_table(  # noqa: PLR0913  # each is a decision of its own
    protocol: Protocol,
    source: Any,
    *,
    person: str,
    item: str,
    ledger: Any,
    group: str | None = None,
    public_groups: Any = None,
    label: str | None = None,
    weight: str | None = None,
    population: str = "",
    vocabulary: Any = None,
    repeat: bool = False,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
    show_progress: bool = False,
) -> Sketches:
    """One private sketch for each public group of an event table: see `Protocol.release_table`."""
    book = opened_ledger(ledger, population)
    columns = EventColumns(person, item, group, weight)
    groups = public_groups_of(group, public_groups, label)
    job = TableJob.of(source, protocol, columns, groups, vocabulary, memory=memory, threads=threads)
    return release_job(job, ledger=book, population=population, repeat=repeat, show_progress=show_progress)


def release_job(
    job: TableJob, *, ledger: Ledger | NoLedger, population: str, repeat: bool, show_progress: bool = False
) -> Sketches:
    """The sketches; the ledger is asked before any event is read, and charged when all of them were."""
    preview_charge(job.protocol, ledger, population, job.groups.labels, repeat=repeat)
    sums = job.sums(secrets.token_bytes(KEY_BYTES), show_progress=show_progress)
    return release(
        job.protocol,
        sums,
        job.groups.labels,
        ledger=ledger,
        population=population,
        repeat=repeat,
        threads=job.threads,
    )


def preview_job(job: TableJob, *, ledger: Ledger | NoLedger, population: str, repeat: bool) -> None:
    """Refuses what `release_job` would refuse, as far as the schema of the source and the ledger tell; spends nothing."""
    preview_charge(job.protocol, ledger, population, job.groups.labels, repeat=repeat)
    with job.opened():
        pass
