"""One transformer for each transform of armslength. **Not private**: no noise, the projection alone."""

from typing import Any

from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin

from armslength.errors import ParameterError
from armslength.sklearn.base import DEFAULT_SEED, BaseTransformer, settled_seed, settled_sketch_dim
from armslength.transforms.base import Transform
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.gaussian_jl import GaussianJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.matrix_jl import MatrixJL
from armslength.transforms.sign_jl import SignJL
from armslength.transforms.sparse_jl import SparseJL


class SparseJLTransformer(ClassNamePrefixFeaturesOutMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row, A the sparse sign matrix of `armslength.SparseJL` with s entries a column.

    The fastest of them, and the one for sparse X: the work is s for each entry of X that is not zero.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less, rounded
            down to a multiple of the sparsity (and at least the sparsity). At 256 a squared distance has a standard
            error of at most 9 percent.
        sparsity: s; it divides sketch_dim unless the construction is "graph".
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
        construction: "block", "graph" or "balanced".
        independence: t of the t-wise independent hash functions.

    Attributes:
        transform_: The `armslength.SparseJL`, with the learned input_dim and sketch_dim.
    """

    def __init__(
        self,
        sketch_dim: Any = "auto",
        sparsity: int = 1,
        seed: str = DEFAULT_SEED,
        construction: str = "block",
        independence: int = 16,
    ) -> None:
        self.sketch_dim = sketch_dim
        self.sparsity = sparsity
        self.seed = seed
        self.construction = construction
        self.independence = independence

    def _build(self, n_features: int) -> Transform:
        k = settled_sketch_dim(self.sketch_dim, n_features, self.sparsity)
        seed = settled_seed(self.seed)
        return SparseJL(n_features, k, self.sparsity, seed, self.construction, self.independence)


class HadamardJLTransformer(ClassNamePrefixFeaturesOutMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row, A the sampled randomized Hadamard matrix of `armslength.HadamardJL`.

    For dense X. The work is d·log d for each row, whatever k is; sparse X is filled up, some rows at a time.

    Args:
        sketch_dim: k, how many columns come out, at most the number of features padded to a power of two; "auto":
            256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.

    Attributes:
        transform_: The `armslength.HadamardJL`, with the learned input_dim and sketch_dim.
    """

    def __init__(self, sketch_dim: Any = "auto", seed: str = DEFAULT_SEED) -> None:
        self.sketch_dim = sketch_dim
        self.seed = seed

    def _build(self, n_features: int) -> Transform:
        return HadamardJL(
            n_features, settled_sketch_dim(self.sketch_dim, n_features), settled_seed(self.seed)
        )


class FastJLTransformer(ClassNamePrefixFeaturesOutMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row, A = P·H·D the matrix of `armslength.FastJL` (Ailon and Chazelle).

    The work is d·log d for each row, and k·d random words once; sparse X is filled up, some rows at a time.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
        density: q, the share of P that is not zero; None takes that of `armslength.FastJL`.

    Attributes:
        transform_: The `armslength.FastJL`, with the learned input_dim, sketch_dim and density.
    """

    def __init__(
        self, sketch_dim: Any = "auto", seed: str = DEFAULT_SEED, density: float | None = None
    ) -> None:
        self.sketch_dim = sketch_dim
        self.seed = seed
        self.density = density

    def _build(self, n_features: int) -> Transform:
        k, density = settled_sketch_dim(self.sketch_dim, n_features), self.density
        return FastJL(n_features, k, settled_seed(self.seed), density)  # type: ignore[arg-type]  # it takes None for its default


class GaussianJLTransformer(ClassNamePrefixFeaturesOutMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row, A the rounded normals of `armslength.GaussianJL`.

    A dense matrix: the work is k·d for each row.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.

    Attributes:
        transform_: The `armslength.GaussianJL`, with the learned input_dim and sketch_dim.
    """

    def __init__(self, sketch_dim: Any = "auto", seed: str = DEFAULT_SEED) -> None:
        self.sketch_dim = sketch_dim
        self.seed = seed

    def _build(self, n_features: int) -> Transform:
        return GaussianJL(
            n_features, settled_sketch_dim(self.sketch_dim, n_features), settled_seed(self.seed)
        )


class SignJLTransformer(ClassNamePrefixFeaturesOutMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row, A the independent signs of `armslength.SignJL` (Achlioptas).

    A dense matrix: the work is k·d for each row, also where two thirds of its entries are zero.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
        construction: "dense" (±1) or "sparse" (two thirds zeros).

    Attributes:
        transform_: The `armslength.SignJL`, with the learned input_dim and sketch_dim.
    """

    def __init__(
        self, sketch_dim: Any = "auto", seed: str = DEFAULT_SEED, construction: str = "dense"
    ) -> None:
        self.sketch_dim = sketch_dim
        self.seed = seed
        self.construction = construction

    def _build(self, n_features: int) -> Transform:
        k, seed = settled_sketch_dim(self.sketch_dim, n_features), settled_seed(self.seed)
        return SignJL(n_features, k, seed, self.construction)


class MatrixJLTransformer(ClassNamePrefixFeaturesOutMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row, A an integer matrix of yours, as for `armslength.MatrixJL`.

    Args:
        matrix: k x d, of an integer type, dense or scipy.sparse, with a column for each feature; None: the identity.
        scale: c > 0.
        variance_coefficients: As for `armslength.MatrixJL`; they change no output, but make `transform_` the transform
            of a protocol that has them.

    Attributes:
        transform_: The `armslength.MatrixJL`.
    """

    def __init__(
        self, matrix: Any = None, scale: float = 1.0, variance_coefficients: tuple[float, float] | None = None
    ) -> None:
        self.matrix = matrix
        self.scale = scale
        self.variance_coefficients = variance_coefficients

    def _build(self, n_features: int) -> Transform:
        matrix = self.matrix
        if matrix is None:
            matrix = sparse.eye_array(n_features, dtype=int, format="csc")
        transform = MatrixJL(matrix, self.scale, variance_coefficients=self.variance_coefficients)
        if transform.input_dim != n_features:
            raise ParameterError(
                f"matrix must have a column for each of the {n_features} features of X, got {transform.input_dim} columns"
            )
        return transform


class IdentityTransformer(OneToOneFeatureMixin, BaseTransformer):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: every row as it is, by `armslength.Identity`: the baseline to search over beside the projections.

    Features keep their names, and sparse X stays sparse.

    Attributes:
        transform_: The `armslength.Identity`, with the learned input_dim.
    """

    def _build(self, n_features: int) -> Transform:
        return Identity(n_features)
