"""**Not private**: deterministic random projections as scikit-learn transformers."""
