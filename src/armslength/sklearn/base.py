"""What all transformers of this room share: fit learns the input's size, transform multiplies. **Not private**."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from armslength.checks import shown
from armslength.errors import ParameterError
from armslength.sklearn.inputs import FLOATS, validated
from armslength.sklearn.products import FloatProduct, float_product
from armslength.transforms.base import Transform

DEFAULT_SEED = "armslength"
LARGEST_AUTO = 256


class BaseTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """NOT PRIVATE: c·A·x for each row x, with the A and c of a transform of armslength.

    Attributes:
        transform_: The transform, built for the features that `fit` saw; a protocol with it shares its space.
        n_features_in_: How many features there were.
        feature_names_in_: Their names, where X had names.
    """

    transform_: Transform
    n_features_in_: int
    _product: FloatProduct

    @abstractmethod
    def _build(self, n_features: int) -> Transform:
        """The transform for that many features; every parameter is checked here."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # y is what pipelines pass
        """The transformer itself, now with `transform_`: only the number and the names of the features are learned.

        Args:
            X: n x d, dense or scipy.sparse; its values are checked and not used.
            y: Not used.
        """
        validated(self, X)
        self.transform_ = self._build(self.n_features_in_)
        self._product = float_product(self.transform_)
        return self

    def transform(self, X: Any) -> Any:
        """c·A·x for each row, in data units: summed in float64, then rounded once to the float type of X. **Not private**.

        Args:
            X: n x d, dense or scipy.sparse; float32 stays float32, everything else becomes float64.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        product = self._product.of(X)
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


def settled_seed(seed: Any) -> Any:
    """The seed, if there is one: a fresh one in each fit would be another projection in each fit."""
    if seed is None:
        raise ParameterError(f"seed must be a string, got None; leave it out for {DEFAULT_SEED!r}")
    return seed


def settled_sketch_dim(sketch_dim: Any, n_features: int, multiple_of: Any = 1) -> Any:
    """The sketch dimension as given; for "auto" at most 256 and at most the features, down to a multiple, up from 0."""
    if not isinstance(sketch_dim, str):
        return sketch_dim
    if sketch_dim != "auto":
        raise ParameterError(f"sketch_dim must be an integer or 'auto', got {shown(sketch_dim)}")
    most = min(LARGEST_AUTO, n_features)
    if not isinstance(multiple_of, (int, np.integer)) or multiple_of < 1:
        return most  # the transform says what is wrong with it
    return max(1, most // int(multiple_of)) * int(multiple_of)
