"""What rows have in common that share one space, wherever they lie."""

from typing import Any

from armslength.errors import ParameterError
from armslength.protocol.protocol import Protocol


class InOneSpace:
    """Rows whose protocols share one space.

    Attributes:
        protocols: The protocols of all rows, each once.
    """

    protocols: tuple[Protocol, ...]

    @property
    def protocol(self) -> Protocol:
        """The one protocol of all rows."""
        if len(self.protocols) != 1:
            raise ParameterError(
                f"protocol must be one for all rows, got {len(self.protocols)}; see .protocols"
            )
        return self.protocols[0]

    @property
    def transform(self) -> Any:
        """The public transform that all rows share."""
        return self.protocols[0].transform

    @property
    def space(self) -> str:
        """The fingerprint of what all rows agree on."""
        return self.protocols[0].space
