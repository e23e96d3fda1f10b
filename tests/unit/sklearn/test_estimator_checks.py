"""scikit-learn's own checks: all of them, none expected to fail, none left out."""

import os
import subprocess
import sys

from sklearn.utils.estimator_checks import parametrize_with_checks

from armslength import sklearn as transformers


@parametrize_with_checks(
    [
        *(getattr(transformers, name)() for name in transformers.__all__),
        transformers.SparseJLTransformer(sparsity=3, construction="graph"),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


# scikit-learn skips its array API check unless SciPy was told before its import.
_ARRAY_API = """
import warnings; warnings.simplefilter("error")
from sklearn.utils.estimator_checks import estimator_checks_generator
from armslength import sklearn as transformers
for name in transformers.__all__:
    for estimator, check in estimator_checks_generator(getattr(transformers, name)()):
        if "array_api" in getattr(check, "func", check).__name__:
            check(estimator)
            print(name)
"""


def test_the_array_api_check_that_needs_an_environment_variable():
    environment = dict(os.environ, SCIPY_ARRAY_API="1")
    done = subprocess.run(
        [sys.executable, "-c", _ARRAY_API], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(transformers.__all__)
