"""Items of a fixed vocabulary as column numbers; what is not in the public list is left out, as unlisted groups are."""

from typing import Any

import pyarrow as pa

from armslength.errors import ParameterError
from armslength.protocol.protocol import Protocol
from armslength.protocol.vocabulary import checked_vocabulary
from armslength.randomness.text import canonical_text


def item_numbers(protocol: Protocol, vocabulary: Any) -> pa.Table | None:
    """(name, number) of every coordinate, for the engine to join with; None where items are hashed, or are numbers already.

    Args:
        protocol: What the parties agreed on.
        vocabulary: The list of names, if the protocol holds the hash of one.
    """
    if protocol.transform.input_dim is None:
        if vocabulary is not None:
            raise ParameterError("vocabulary must be left out for an open vocabulary, got one")
        return None
    if protocol.items != "string" and (vocabulary is not None or protocol.vocabulary is not None):
        raise ParameterError(
            "items must be 'string' in a protocol with a vocabulary for event tables, got 'int64'"
        )
    if vocabulary is not None:
        return _numbered(protocol, vocabulary)
    if protocol.vocabulary is not None:
        raise ParameterError("vocabulary must list the names of the protocol's coordinates, got nothing")
    if protocol.items != "int64":
        raise ParameterError(
            "items must be 'int64' (column numbers) for a fixed input_dim without a vocabulary, got 'string'; "
            "use an open vocabulary, or give the protocol a vocabulary"
        )
    return None


def _numbered(protocol: Protocol, names: Any) -> pa.Table:
    if (
        isinstance(names, str)
        or checked_vocabulary(names, protocol.transform.input_dim) != protocol.vocabulary
    ):
        raise ParameterError(
            "vocabulary must be the list that the protocol was made with, got something else"
        )
    canonical = [canonical_text(name).decode() for name in names]
    return pa.table(
        {"name": pa.array(canonical, pa.string()), "place": pa.array(range(len(canonical)), pa.int64())}
    )
