"""Parameters: what `fit` learns, what it refuses, and what happens without scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest

import armslength as al
from armslength import sklearn as transformers

ALL = [getattr(transformers, name) for name in transformers.__all__]


@pytest.mark.parametrize("kind", ALL)
def test_the_first_line_says_what_it_is_not(kind):
    assert kind.__doc__.splitlines()[0].startswith("NOT PRIVATE: ")


@pytest.mark.parametrize(
    ("features", "sparsity", "learned"),
    [
        (1, 1, 1),
        (10, 1, 10),
        (256, 1, 256),
        (1000, 1, 256),
        (1000, 3, 255),
        (10, 4, 8),
        (2, 4, 4),
        (1000, 300, 300),
    ],
)
def test_the_automatic_sketch_dim_fits_features_and_sparsity(features, sparsity, learned):
    X = np.ones((2, features))
    fitted = transformers.SparseJLTransformer(sparsity=sparsity).fit(X)
    assert fitted.transform_.sketch_dim == fitted.transform(X).shape[1] == learned


@pytest.mark.parametrize("features", [1, 3, 300])
@pytest.mark.parametrize("kind", ["HadamardJL", "FastJL", "GaussianJL", "SignJL"])
def test_the_automatic_sketch_dim_of_the_others(kind, features):
    fitted = getattr(transformers, f"{kind}Transformer")().fit(np.ones((2, features)))
    assert fitted.transform_.sketch_dim == min(256, features)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (transformers.SparseJLTransformer(seed=None), "seed must be a string, got None; leave it out for"),
        (transformers.FastJLTransformer("many"), "sketch_dim must be an integer or 'auto', got 'many'"),
        (transformers.HadamardJLTransformer(17), "sketch_dim must be at most 16 "),
        (transformers.SparseJLTransformer(10, sparsity=3), "sparsity (3) must divide"),
        (transformers.FastJLTransformer(density=2), "density must be a number above 0 and at most 1"),
    ],
)
def test_fit_refuses_in_one_line(estimator, message):
    with pytest.raises(al.ParameterError) as refused:
        estimator.fit(np.ones((2, 9)))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not hasattr(estimator, "transform_")


def test_a_failed_fit_leaves_the_last_one():
    estimator = transformers.SparseJLTransformer(4).fit(np.ones((2, 9)))
    before = estimator.transform(np.ones((1, 9)))
    with pytest.raises(al.ParameterError):
        estimator.set_params(seed=None).fit(np.ones((2, 9)))
    assert np.array_equal(estimator.transform(np.ones((1, 9))), before)


def test_scikit_learn_is_loaded_by_its_own_room_alone():
    code = "import sys, armslength; armslength.SparseJL(input_dim=9, sketch_dim=3); print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_scikit_learn_there_is_one_clear_line():
    code = "import sys; sys.modules['sklearn'] = None\nimport armslength.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith('needs scikit-learn: pip install "armslength[sklearn]"')
    assert done.stderr.count("Traceback") == 1
