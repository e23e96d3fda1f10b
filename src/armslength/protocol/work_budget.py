"""How much work reading a protocol is, from its parameters alone, so that hours of it are refused before any is done."""

from collections.abc import Iterable, Mapping
from typing import Any

from armslength.checks import integer
from armslength.errors import CorruptFileError
from armslength.transforms.transform import Transform

DEFAULT_WORK = 4 * 10**9  # about four seconds of one core, in the units of transforms/work_units.py
_LARGEST_LIMIT = 2**63 - 1
_LAPLACE, _GAUSSIAN = 200_000, 3_000_000  # a protocol and its calibration, without its matrix


class WorkBudget:
    """What one call may spend on protocols from elsewhere; they share an equal transform, which is scanned and charged once."""

    def __init__(self, max_work: int | None = DEFAULT_WORK) -> None:
        if max_work is not None:
            integer("max_work", max_work, at_least=0, at_most=_LARGEST_LIMIT)
        self._limit = max_work
        self._spent = 0
        self._transform: Transform | None = None
        self._done: set[str] = set()

    def shared(self, transform: Transform) -> Transform:
        """The transform, or the equal one that this call already has."""
        if self._transform is None:
            self._transform = transform
        return self._transform if transform == self._transform else transform

    def charge_protocols(
        self, transform: Transform, documents: Iterable[Mapping[str, Any]], where: str
    ) -> None:
        """Refuses protocols, unchecked, with this transform that together ask for more work than is left."""
        parts: dict[str, int] = {}
        work = 0
        for document in documents:
            parts |= transform.setup_operations(document["noise_site"])
            laws = 2 if "margins" in document else 1
            work += laws * (_LAPLACE if document["noise"] == "laplace" else _GAUSSIAN)
        done = self._done if transform is self._transform else set()
        self.charge(work + sum(cost for part, cost in parts.items() if part not in done), where)
        done.update(parts)

    def charge(self, work: int, where: str) -> None:
        """Refuses work, in the units of transforms/work_units.py, that is more than is left."""
        self._spent += work
        if self._limit is not None and self._spent > self._limit:
            raise CorruptFileError(
                f"cannot read {where}: its protocol asks for about {self._spent / 10**9:.3g} seconds of computing, and the limit is "
                f"{self._limit / 10**9:.3g}; if you trust whoever made it, pass max_work=None (--no-work-limit)"
            )
