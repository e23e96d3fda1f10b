"""A sketch of a stream: noise first, then O(s) integer updates, released once.

The state is private from its first moment: whoever looks at it once, or at the release, but not at both, sees an
ε-DP or (ε, δ)-DP value (the pan-privacy of the paper's fourth claim). Two looks under one noise differ by exact data,
so a stream cannot be copied, pickled, or carried into another process, and it is released once.
"""

import os
import threading
from typing import Any

import numpy as np

from armslength.checks import checked_labels
from armslength.errors import ParameterError
from armslength.ingest.events import event_sums
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import Account, open_account
from armslength.protocol.protocol import Protocol
from armslength.releasing.release import check_not_for_tables, finished, noised
from armslength.sketches.sketches import Sketches


def stream(
    protocol: Protocol,
    *,
    label: str,
    ledger: Any,
    population: str = "",
    period: str = "",
    repeat: bool = False,
) -> "SketchStream":
    """A sketch that takes events one by one; charged to the ledger now.

    Guarantee: that of `SketchStream`.

    The label is the public name of its one row; the other arguments are those of `al.release`.

    Example:
        >>> import armslength as al
        >>> protocol = al.Protocol(al.SparseJL(sketch_dim=64, seed="trial-2026"), epsilon=1)
        >>> events = al.stream(protocol, label="north", ledger=al.NO_LEDGER)
        >>> events.update(["I10", "S72"])
        >>> events.release().labels
        ('north',)
    """
    account = open_account(ledger, population, period=period, repeat=repeat)
    return SketchStream(protocol, label, account)


class SketchStream:
    """One sketch that takes events; made by `al.stream`.

    Guarantee: the released row is that of `al.release` on the sum of all updates, exactly the same integers
    under the noise: ε-DP or (ε, δ)-DP for neighbors whose sums of updates differ by at most the radius in ℓ1 norm. You promise
    that no person's updates move the sum further: nothing can check it. Updates are whole grid units, so `changed_entries` does not matter.
    The label is public, no setting may be chosen by looking at the data, and random bits are taken for ideal. The ledger is charged when the stream is made.
    Reference: docs/privacy.md, theorem 1.
    """

    def __init__(self, protocol: Protocol, label: str, account: Account) -> None:
        (self._label,) = checked_labels([label], 1) or [label]
        if protocol.value_range is not None:
            raise ParameterError(
                "value_range cannot be used in a stream: sums cannot be clamped before they are known",
                "value_range",
            )
        if protocol.noise_site != "output":
            raise ParameterError(
                f"noise_site must be 'output' for a stream, got {protocol.noise_site!r}", "noise_site"
            )
        check_not_for_tables(protocol)
        self._process = os.getpid()  # before the charge, which is for this process alone
        account.charge(protocol, [self._label])
        self._protocol, self._release = protocol, account.release
        nothing = np.zeros((1, protocol.transform.sketch_dim), dtype=np.int64)
        total = np.zeros(1, dtype=np.int64) if protocol.total_share else None
        self._sums: Sums | None = noised(protocol, Sums(nothing, total, "stream"))
        self._lock = threading.Lock()

    def update(self, items: Any, amounts: Any = 1) -> None:
        """Adds amounts to coordinates.

        Args:
            items: A column number, or for an open vocabulary an item; or a list, an array or an Arrow column of them. One
                may occur often: different items are hashed once each.
            amounts: An integer in grid units, of either sign; or as many of them as there are items.
        """
        single = isinstance(items, (str, int, np.integer)) and not isinstance(items, bool)
        added = event_sums(self._protocol, [items] if single else items, amounts)
        self._check_process()
        with self._lock:
            sums = self._open_sums()
            np.add(sums.values, added.values, out=sums.values)
            if sums.totals is not None and added.totals is not None:
                np.add(sums.totals, added.totals, out=sums.totals)

    def release(self) -> Sketches:
        """The sketch; the stream ends with it."""
        self._check_process()
        with self._lock:
            sums = self._open_sums()
            self._sums = None
        return finished(self._protocol, sums, [self._label], release=self._release)

    def _check_process(self) -> None:
        """Before any lock: a forked child must be refused, and not wait for a lock of its parent."""
        if os.getpid() != self._process:
            raise ParameterError(
                "a stream must stay in the process that made it: two of them would share noise"
            )

    def _open_sums(self) -> Sums:
        if self._sums is None:
            raise ParameterError("this stream was released already; make a new one")
        return self._sums

    def __reduce__(self) -> str:
        raise TypeError(
            "a stream cannot be copied or pickled: two releases under one noise differ by exact data"
        )

    def __repr__(self) -> str:
        return f"<SketchStream {self._label!r}, {'open' if self._sums is not None else 'released'}>"
