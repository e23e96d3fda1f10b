"""Which groups exist is public input, never read off the data: a group of one person would appear with that person."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from armslength.checks import shown
from armslength.errors import ParameterError
from armslength.protocol.protocol import Protocol, checked_vocabulary
from armslength.randomness.seeds import canonical_text
from armslength.sketches.sketches import checked_labels

_MOST_GROUPS = 10_000_000


@dataclass(frozen=True)
class PublicGroups:
    """The rows of a release: their labels, in their order, from public input alone.

    Attributes:
        labels: One for each row.
        column: The column of the table that names an event's group; None if all events are of the one group.
    """

    labels: tuple[str, ...]
    column: str | None

    def table(self) -> pa.Table:
        """(label, number) of every group, for the engine to join with."""
        numbers = pa.array(range(len(self.labels)), pa.int32())
        return pa.table({"label": pa.array(self.labels, pa.string()), "number": numbers})


def public_groups_of(group: str | None, listed: Any, label: str | None) -> PublicGroups:
    """The groups of a release, if they were said in one of the two ways.

    Args:
        group: The column with the group of each event, with `listed`; or None, with `label`.
        listed: All groups that get a row.
        label: The one row's name.
    """
    if group is None:
        if listed is not None:
            raise ParameterError(
                "public_groups must go with a group column, got none; name that column, or give a label instead"
            )
        if label is None:
            raise ParameterError(
                "groups must be public: say the group column with its public groups, or one label if all events are of one group"
            )
        return PublicGroups(tuple(checked_labels([label], 1) or ()), None)
    if label is not None:
        raise ParameterError("label must be left out when there is a group column: its groups name the rows")
    if listed is None:
        raise ParameterError(
            "public_groups must list every group that gets a row: read off the data, the list would tell who is in it"
        )
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
        raise ParameterError(f"public_groups must be a list of names, got {shown(listed)}")
    if not 1 <= len(listed) <= _MOST_GROUPS:
        raise ParameterError(f"public_groups must list 1 to {_MOST_GROUPS} groups, got {len(listed)}")
    return PublicGroups(tuple(checked_labels(list(listed), len(listed)) or ()), group)


# Items of a fixed vocabulary as column numbers; what is not in the public list is left out, as unlisted groups are.


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
