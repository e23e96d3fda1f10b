"""Protocols from flat fields, as their document has them: for tests that vary one field."""

from typing import Any

import armslength as al
from armslength.protocol.contribution import contribution_of


def flat_protocol(transform: Any, **fields: Any) -> al.Protocol:
    """The protocol with these fields; `contribution`, `radius` and their like make the object that says what one person contributes."""
    return al.Protocol(transform, contribution_of(fields), **fields)
