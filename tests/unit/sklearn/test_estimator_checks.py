"""scikit-learn's own checks: all of them, none expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from armslength import sklearn as transformers


@parametrize_with_checks([getattr(transformers, name)() for name in transformers.__all__])
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
