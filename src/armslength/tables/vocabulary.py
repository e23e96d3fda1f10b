"""Items of a fixed vocabulary as column numbers; what is not in the public list is left out, as unlisted groups are."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from armslength.errors import ParameterError
from armslength.protocol.protocol import Protocol
from armslength.protocol.vocabulary import checked_vocabulary
from armslength.randomness.text import canonical_text


class Vocabulary:
    """The public list of names that a protocol's fixed coordinates have.

    Args:
        protocol: What holds the hash of the list.
        names: The list.
    """

    def __init__(self, protocol: Protocol, names: Any) -> None:
        if checked_vocabulary(names, protocol.transform.input_dim) != protocol.vocabulary:
            raise ParameterError("vocabulary must be the list that the protocol was made with, got another")
        self._numbers = {canonical_text(name): number for number, name in enumerate(names)}

    def numbered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with column numbers in the place of items."""
        for batch in batches:
            coded = batch.column("item").dictionary_encode()
            known = np.array(list(map(self._number, coded.dictionary.to_pylist())), dtype=np.int64)
            numbers = known[coded.indices.to_numpy()] if len(known) else np.zeros(0, dtype=np.int64)
            person, group, _, amount = batch.columns
            whole = pa.record_batch([person, group, pa.array(numbers), amount], names=batch.schema.names)
            yield whole.filter(pa.array(numbers >= 0))

    def _number(self, item: str) -> int:
        try:
            return self._numbers.get(canonical_text(item), -1)
        except ValueError:
            return -1  # no name of a vocabulary has such characters


def item_names(protocol: Protocol, vocabulary: Any) -> Vocabulary | None:
    """The vocabulary that turns items into numbers; None where items are hashed, or are numbers already."""
    if protocol.transform.input_dim is None:
        if vocabulary is not None:
            raise ParameterError("vocabulary must be left out for an open vocabulary, got one")
        return None
    if vocabulary is not None:
        return Vocabulary(protocol, vocabulary)
    if protocol.vocabulary is not None:
        raise ParameterError("vocabulary must list the names of the protocol's coordinates, got nothing")
    if protocol.items != "int64":
        raise ParameterError(
            "items must be 'int64' (column numbers) for a fixed input_dim without a vocabulary, got 'string'; "
            "use an open vocabulary, or give the protocol a vocabulary"
        )
    return None
