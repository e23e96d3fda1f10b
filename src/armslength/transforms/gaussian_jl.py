"""GaussianJL: independent rounded normals, the transform of Kenthapadi et al. (2013)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armslength.randomness.seeds import checked_seed, fresh_seed
from armslength.randomness.stream import Stream
from armslength.randomness.symmetric import SymmetricTable, normal_table
from armslength.transforms.base import check_dense_size, checked_input_dim, checked_sketch_dim
from armslength.transforms.independent import IndependentEntries


@dataclass(frozen=True)
class GaussianJL(IndependentEntries):
    """Independent normals of standard deviation 12, rounded to integers: the paper's comparator.

    Guarantee: as `IndependentEntries`, with κ−3 = −4.0e-7: Var‖Sz‖² is (2/k)‖z‖₂⁴ to six digits.
    Reference: paper, theorems of Kenthapadi et al.; erratum 2 (entries of variance 1/k, which c sets).

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch.
        seed: The public seed, a string that all parties share; None makes a fresh one.
    """

    name: ClassVar[str] = "GaussianJL"

    input_dim: int
    sketch_dim: int
    seed: str = field(default_factory=fresh_seed)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_dim", checked_input_dim(self.input_dim))
        object.__setattr__(self, "sketch_dim", checked_sketch_dim(self.sketch_dim))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        check_dense_size(self.input_dim, self.sketch_dim)

    @property
    def _table(self) -> SymmetricTable:
        return normal_table()

    def _make_columns(self, first: int, count: int) -> NDArray[np.int8]:
        words = Stream(self.seed, "GaussianJL entries").words(
            first * self.sketch_dim, count * self.sketch_dim
        )
        return self._table.values(words).reshape(count, self.sketch_dim)

    def parameters(self) -> Mapping[str, Any]:
        """What builds this transform again."""
        return {"input_dim": self.input_dim, "sketch_dim": self.sketch_dim, "seed": self.seed}
