"""A query in the clear: a sketch without noise, for whoever may see the data anyway. Marked so everywhere."""

from typing import Any

from armslength.protocol.projection import project_and_add_up
from armslength.protocol.protocol import Protocol
from armslength.protocol.provenance import Provenance
from armslength.protocol.sketches import Sketches, checked_labels


def sketch_in_clear(
    protocol: Protocol, X: Any, *, labels: Any = None, items: Any = None, threads: int | None = None
) -> Sketches:
    """Sketches of X without any noise, **not private**: to compare with private ones, never to publish.

    Args:
        protocol: What the parties agreed on; its noise is not used.
        X: n rows, as for a release.
        labels: One name for each row; None numbers them.
        items: For an open vocabulary: the items that the columns count.
        threads: At most this many threads; None takes all that the process may run.
    """
    product, totals = project_and_add_up(protocol, X, items, threads)
    rows = [Provenance((), in_clear=True)] * len(product)
    return Sketches(product, checked_labels(labels, len(product)), rows, [protocol], totals)
