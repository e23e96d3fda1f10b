"""How many items people have, in private: a histogram with exact noise, charged to the ledger, from which C can be chosen."""

import secrets
from typing import Any

import numpy as np

from armslength.checks import number
from armslength.estimates.contribution_quantiles import (
    EDGES,
    LARGEST_ITEMS,
    ContributionQuantiles,
    bucket_counts,
)
from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ingest.partitions import DEFAULT_MEMORY
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import open_account
from armslength.protocol.protocol import Protocol
from armslength.release.release import release
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL

_BUCKETS = ("1", "2", *(f"{edge // 2 + 1} to {edge}" for edge in EDGES[2:]), f"over {LARGEST_ITEMS}")


def contribution_quantiles(  # noqa: D417, PLR0913  # each is a decision of its own
    source: Any,
    *,
    person: str,
    item: str,
    epsilon: Any,
    unit: str,
    ledger: Any,
    group: str | None = None,
    public_groups: Any = None,
    label: str | None = None,
    relation: str = "add_remove",
    count: str = "people",
    one_group: bool = False,
    items: str = "string",
    population: str = "",
    period: str = "",
    repeat: bool = False,
    level: float = 0.95,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
    show_progress: bool = False,
) -> ContributionQuantiles:
    """Quantiles of the number of items per person, to choose a protocol's contribution C; charged to the ledger first.

    It counts people by their number of different (group, item) pairs, or of events for `count="events"`, before any bound: 1, 2, 3 to 4,
    5 to 8, …, over 1024. All parties must then agree on one C.

    Guarantee: ε-DP for adding or removing, or for replacing, one person with all of their events. A person is in one bucket, so the
    histogram moves by at most 1, or 2 for `relation="replace"`. Noise is exact. Errors are raised before anything is charged or drawn.
    Whether a quantile can be trusted is decided from the noisy number of people, after the charge: the true number is private.
    Reference: docs/privacy.md, items per person.

    Arguments that are not listed here are those of `Protocol.release_table`.

    Args:
        epsilon: ε of this histogram; it adds up with that of the release.
        unit: Who is protected, such as "one patient": the words of the protocol and the budget.
        relation: "add_remove" or "replace".
        count: "people" or "events", as the protocol will have it.
        one_group: Whether the protocol will count each person in one group only.
        items: "string" or "int64": the type of the items.
        level: The confidence level of all intervals together.
    """
    number("level", level, above=0.5, at_most=0.9999)
    histogram = histogram_protocol(epsilon, relation, unit)
    reading = Protocol(
        SparseJL(sketch_dim=8, seed="only to read"),
        epsilon=1,
        contribution=1,
        count=count,
        one_group=one_group,
        items=items,
        unit=unit,
    )
    job = TableJob.of(
        source,
        reading,
        EventColumns(person, item, group),
        public_groups_of(group, public_groups, label),
        memory=memory,
        threads=threads,
    )
    account = open_account(ledger, population, period=period, repeat=repeat)
    name = f"items per person: {', '.join(job.groups.labels)}"[:200]
    account.preview(histogram, [name])
    counts = np.zeros(len(_BUCKETS), dtype=np.int64)
    for part in job.person_totals(secrets.token_bytes(KEY_BYTES), LeftOut(), show_progress=show_progress):
        counts += bucket_counts(part.totals)
    released = release(histogram, Sums(counts[None, :], None, "events"), [name], account)
    return ContributionQuantiles(released.values[0], histogram.law, level)


def histogram_protocol(epsilon: Any, relation: str, unit: str) -> Protocol:
    """The histogram as a release of its own: a person counts once, in the row's one bucket of theirs."""
    return Protocol(
        Identity(input_dim=len(_BUCKETS)),
        vocabulary=list(_BUCKETS),
        epsilon=epsilon,
        relation=relation,
        contribution=1,
        unit=unit,
    )
