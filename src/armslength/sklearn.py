"""**Not private**: deterministic random projections as scikit-learn transformers.

Each returns c·A·x for every row x: what a protocol with the same transform adds its noise to, without that noise. They
are for whoever may see the data anyway: queries, baselines, pipelines.
"""

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from armslength.checks import short_repr
from armslength.errors import InputError, MissingPackageError, ParameterError
from armslength.transforms.dense_jl import GaussianJL, SignJL
from armslength.transforms.hadamard_jl import FastJL, HadamardJL
from armslength.transforms.integer_rows import sparse_entries, stored_rows
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import Transform

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:
    raise MissingPackageError(
        'armslength.sklearn needs scikit-learn: pip install "armslength[sklearn]"'
    ) from None

__all__ = [
    "FastJLTransformer",
    "GaussianJLTransformer",
    "HadamardJLTransformer",
    "SignJLTransformer",
    "SparseJLTransformer",
]
DEFAULT_SEED = "armslength"
LARGEST_AUTO = 256
FLOATS = (np.float64, np.float32)
# scikit-learn's own messages that show shapes, types and names of features, and no value
_HARMLESS = (
    "Expected 2D input, got input with shape",
    "Feature names are only supported",
    "Found array with ",
    "Input X contains ",
    "The feature names should match",
    "X has ",
    "float() argument must be a string or a real number, not ",
    "np.matrix is not supported",
)
# instead of its messages that print the data; users and scikit-learn's checks look for the words in common
_MESSAGES = {
    "Complex data not supported": "X must hold real numbers: Complex data not supported",
    "Expected 2D array": "X must have 2 dimensions (rows, features); Reshape your data by X.reshape(1, -1)",
}


class JLTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row x, with the A and c of a transform of armslength.

    Attributes:
        transform_: The transform, built for the features that `fit` saw; a protocol with it shares its space.
        n_features_in_: How many features there were.
        feature_names_in_: Their names, where X had names.
    """

    transform_: Transform
    n_features_in_: int
    _kind: ClassVar[Any]  # the class of the transform

    def __init__(self, sketch_dim: Any = "auto", *, seed: str = DEFAULT_SEED) -> None:
        self.sketch_dim = sketch_dim
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # y is what pipelines pass
        """The transformer itself, now with `transform_`: only the number and the names of the features are learned.

        Args:
            X: n x d, dense or scipy.sparse; its values are checked and not used.
            y: Not used.
        """
        validated(self, X)
        self.transform_ = self._build(self.n_features_in_)
        return self

    def transform(self, X: Any) -> Any:
        """c·A·x for each row, in data units: summed in float64, then rounded once to the float type of X. **Not private**.

        Args:
            X: n x d, dense or scipy.sparse; float32 stays float32, everything else becomes float64.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        product = self.transform_.multiply_floats(X)
        product *= self.transform_.scale
        return product.astype(X.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = [kind.__name__ for kind in FLOATS]
        return tags

    @property
    def _n_features_out(self) -> int:
        """For `get_feature_names_out`: how many columns come out."""
        return self.transform_.sketch_dim

    def _build(self, n_features: int) -> Transform:
        """The transform for that many features; every parameter is checked here."""
        parameters, sketch_dim = self.get_params(deep=False), self.sketch_dim
        if parameters["seed"] is None:
            # A fresh seed in each fit would be another projection in each fit.
            raise ParameterError(
                f"seed must be a string, got None; leave it out for {DEFAULT_SEED!r}", "seed"
            )
        if isinstance(sketch_dim, str):
            if sketch_dim != "auto":
                raise ParameterError(f"sketch_dim must be an integer or 'auto', got {short_repr(sketch_dim)}")
            largest, multiple = min(LARGEST_AUTO, n_features), parameters.get("sparsity", 1)
            # The transform refuses a sparsity that is no positive integer.
            is_usable = isinstance(multiple, (int, np.integer)) and multiple >= 1
            parameters["sketch_dim"] = int(max(1, largest // multiple) * multiple) if is_usable else largest
        transform: Transform = self._kind(input_dim=n_features, **parameters)
        return transform


class SparseJLTransformer(JLTransformer):
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
    """

    _kind = SparseJL

    def __init__(
        self,
        sketch_dim: Any = "auto",
        *,
        sparsity: int = 1,
        seed: str = DEFAULT_SEED,
        construction: str = "block",
        independence: int = 16,
    ) -> None:
        super().__init__(sketch_dim, seed=seed)
        self.sparsity = sparsity
        self.construction = construction
        self.independence = independence


class HadamardJLTransformer(JLTransformer):
    """NOT PRIVATE: c·A·x for each row, A the sampled randomized Hadamard matrix of `armslength.HadamardJL`.

    For dense X. The work is d·log d for each row, whatever k is; sparse X is filled up, some rows at a time.

    Args:
        sketch_dim: k, how many columns come out, at most the number of features padded to a power of two; "auto":
            256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
    """

    _kind = HadamardJL


class FastJLTransformer(JLTransformer):
    """NOT PRIVATE: c·A·x for each row, A = P·H·D the matrix of `armslength.FastJL` (Ailon and Chazelle).

    The work is d·log d for each row, and k·d random words once; sparse X is filled up, some rows at a time.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
        density: q, the share of P that is not zero; None takes that of `armslength.FastJL`.
    """

    _kind = FastJL

    def __init__(
        self, sketch_dim: Any = "auto", *, seed: str = DEFAULT_SEED, density: float | None = None
    ) -> None:
        super().__init__(sketch_dim, seed=seed)
        self.density = density


class GaussianJLTransformer(JLTransformer):
    """NOT PRIVATE: c·A·x for each row, A the rounded normals of `armslength.GaussianJL`.

    A dense matrix: the work is k·d for each row.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
    """

    _kind = GaussianJL


class SignJLTransformer(JLTransformer):
    """NOT PRIVATE: c·A·x for each row, A the independent signs of `armslength.SignJL` (Achlioptas).

    A dense matrix: the work is k·d for each row, also where two thirds of its entries are zero.

    Args:
        sketch_dim: k, how many columns come out; "auto": 256, or the number of features if that is less.
        seed: The public seed. The default is a fixed, public word, so that two fits agree.
        construction: "dense" (±1) or "sparse" (two thirds zeros).
    """

    _kind = SignJL

    def __init__(
        self, sketch_dim: Any = "auto", *, seed: str = DEFAULT_SEED, construction: str = "dense"
    ) -> None:
        super().__init__(sketch_dim, seed=seed)
        self.construction = construction


def validated(transformer: Any, X: Any, *, reset: bool = True) -> Any:
    """X as float64 or float32, dense or sparse by rows, if scikit-learn accepts it; `reset` learns its features."""
    if sparse.issparse(X) and stored_rows(X, any_order=False) is None:
        sparse_entries(X)  # refuses indices that do not fit: SciPy trusts them, and ends the process
    try:
        return validate_data(transformer, X, accept_sparse="csr", dtype=FLOATS, reset=reset)
    except Exception as problem:
        text = str(problem)
        if isinstance(problem, (ValueError, TypeError)) and text.startswith(_HARMLESS):
            raise
        for beginning, message in _MESSAGES.items():
            if text.startswith(beginning):
                raise InputError(message) from None
        raise InputError("X must be a matrix of numbers; convert it first") from None
