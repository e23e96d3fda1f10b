"""SignJL: the sign matrices of Achlioptas (2003), dense ±1 or two thirds zero."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armslength.checks import one_of
from armslength.randomness.seeds import checked_seed, fresh_seed
from armslength.randomness.stream import Stream
from armslength.randomness.symmetric import SymmetricTable, achlioptas_table
from armslength.transforms.base import check_dense_size, checked_input_dim, checked_sketch_dim
from armslength.transforms.independent import IndependentEntries
from armslength.transforms.work import DRAWN_SIGN

CONSTRUCTIONS = ("dense", "sparse")
_PLUS_MINUS_ONE = SymmetricTable((2**63,))


@dataclass(frozen=True)
class SignJL(IndependentEntries):
    """Independent signs: "dense" is ±1, "sparse" is +1, 0, −1 with probabilities 1/6, 2/3, 1/6.

    Guarantee: as `IndependentEntries`: Var‖Sz‖² is (2/k)(‖z‖₂⁴ − ‖z‖₄⁴) for "dense" (κ = 1) and
    (2/k)‖z‖₂⁴ for "sparse" (κ = 3, up to 2^−61). Dense: Δ₁ = Δ₂² = k, nothing to scan.

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch.
        seed: The public seed, a string that all parties share; None makes a fresh one.
        construction: "dense" or "sparse".
    """

    name: ClassVar[str] = "SignJL"

    input_dim: int
    sketch_dim: int
    seed: str = field(default_factory=fresh_seed)
    construction: str = "dense"

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_dim", checked_input_dim(self.input_dim))
        object.__setattr__(self, "sketch_dim", checked_sketch_dim(self.sketch_dim))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        check_dense_size(self.input_dim, self.sketch_dim)
        object.__setattr__(self, "construction", one_of("construction", self.construction, CONSTRUCTIONS))

    @property
    def _table(self) -> SymmetricTable:
        return _PLUS_MINUS_ONE if self.construction == "dense" else achlioptas_table()

    @property
    def l1_sensitivity(self) -> int:
        """Δ₁: k if dense, else by a scan of all columns."""
        return self.sketch_dim if self.construction == "dense" else super().l1_sensitivity

    @property
    def l2_sensitivity_squared(self) -> int:
        """Δ₂²: k if dense, else by a scan of all columns."""
        return self.sketch_dim if self.construction == "dense" else super().l2_sensitivity_squared

    @property
    def _entry_work(self) -> int:
        return DRAWN_SIGN if self.construction == "dense" else super()._entry_work

    @property
    def scan_work(self) -> int:
        """None if dense, else that of every entry."""
        return 0 if self.construction == "dense" else super().scan_work

    def _make_columns(self, first: int, count: int) -> NDArray[np.int8]:
        start, size = first * self.sketch_dim, count * self.sketch_dim
        if self.construction == "dense":
            entries = 1 - 2 * Stream(self.seed, "SignJL signs").bits(start, size).astype(np.int8)
        else:
            entries = self._table.values(Stream(self.seed, "SignJL entries").words(start, size))
        return entries.reshape(count, self.sketch_dim)

    def parameters(self) -> Mapping[str, Any]:
        """What builds this transform again."""
        return {
            "input_dim": self.input_dim,
            "sketch_dim": self.sketch_dim,
            "seed": self.seed,
            "construction": self.construction,
        }
