"""**Not private**: deterministic random projections as scikit-learn transformers.

Each returns c·A·x for every row x: what a protocol with the same transform adds its noise to, without that noise. They
are for whoever may see the data anyway: queries, baselines, pipelines.
"""

try:
    import sklearn  # noqa: F401  # asked for here, so that its absence is one clear line
except ModuleNotFoundError:
    raise ImportError(
        'armslength.sklearn must have scikit-learn, got none; run: pip install "armslength[sklearn]"'
    ) from None

from armslength.sklearn.transformers import (
    FastJLTransformer,
    GaussianJLTransformer,
    HadamardJLTransformer,
    SignJLTransformer,
    SparseJLTransformer,
)

__all__ = [
    "FastJLTransformer",
    "GaussianJLTransformer",
    "HadamardJLTransformer",
    "SignJLTransformer",
    "SparseJLTransformer",
]
