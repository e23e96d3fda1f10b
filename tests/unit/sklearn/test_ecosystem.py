"""In the company of scikit-learn's own: pipelines, searches, data frames, pickles."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from armslength import sklearn as transformers

ALL = [getattr(transformers, name) for name in transformers.__all__]
SEEDED = [kind for kind in ALL if "seed" in kind().get_params()]


def two_groups(rows=60, features=40):
    generator = np.random.default_rng(4)
    y = np.arange(rows) % 2
    return generator.standard_normal((rows, features)) + y[:, None], y


@pytest.mark.parametrize("kind", ALL)
def test_clones_and_pickles_give_the_same(kind):
    X, _ = two_groups()
    fitted = kind().fit(X)
    found = fitted.transform(X)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), found)  # noqa: S301  # our own
    assert np.array_equal(clone(fitted).fit_transform(X), found)


@pytest.mark.parametrize("kind", SEEDED)
def test_another_seed_is_another_projection(kind):
    X, _ = two_groups()
    assert not np.allclose(kind(seed="a").fit_transform(X), kind(seed="b").fit_transform(X))


def test_a_pickle_carries_no_matrix():
    X = sparse.random_array((3, 10**5), density=1e-3, format="csr", rng=np.random.default_rng(0))
    fitted = transformers.SparseJLTransformer(64).fit(X)
    fitted.transform(X)
    fitted.transform(X.toarray())
    assert len(pickle.dumps(fitted)) < 2000


def test_names_follow_the_class():
    frame = pd.DataFrame({"left": [1.0, 2.0], "right": [3.0, 4.0]}, index=["north", "south"])
    projected = transformers.SparseJLTransformer(3).set_output(transform="pandas").fit_transform(frame)
    assert projected.columns.tolist() == [f"sparsejltransformer{i}" for i in range(3)]
    assert projected.index.tolist() == ["north", "south"]
    polars = transformers.SparseJLTransformer(3).set_output(transform="polars").fit_transform(frame)
    assert polars.equals(pl.DataFrame({name: projected[name].tolist() for name in projected.columns}))


def test_names_must_be_those_of_the_fit():
    fitted = transformers.SignJLTransformer(2).fit(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(pd.DataFrame({"b": [1.0], "a": [2.0]}))


def test_a_search_over_sizes_and_kinds():
    X, y = two_groups()
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("project", transformers.SparseJLTransformer()),
            ("end", RidgeClassifier()),
        ]
    )
    grid = [
        {
            "project": [transformers.SparseJLTransformer(), transformers.HadamardJLTransformer()],
            "project__sketch_dim": [1, 24],
        },
        {"project": ["passthrough"]},
    ]
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 5
    assert search.best_score_ > 0.9
    assert scores[[0, 2]].max() < scores[[1, 3]].min()  # one coordinate is not enough


def test_columns_of_a_frame_are_projected_side_by_side():
    X, _ = two_groups(8, 6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    both = ColumnTransformer(
        [
            ("counts", transformers.SparseJLTransformer(2), list("abc")),
            ("rest", transformers.GaussianJLTransformer(4), list("def")),
        ]
    ).set_output(transform="pandas")
    found = both.fit_transform(frame)
    assert found.shape == (8, 6)
    assert found.columns[0] == "counts__sparsejltransformer0"
    alone = transformers.GaussianJLTransformer(4).fit_transform(frame[list("def")])
    assert np.array_equal(found.iloc[:, 2:].to_numpy(), alone)


def test_two_steps_are_two_products():
    X, _ = two_groups()
    found = make_pipeline(
        transformers.HadamardJLTransformer(32), transformers.SparseJLTransformer(8)
    ).fit_transform(X)
    first = transformers.HadamardJLTransformer(32).fit_transform(X)
    assert np.array_equal(found, transformers.SparseJLTransformer(8).fit_transform(first))
