"""PUBLIC randomness: the frozen specification from a seed to a matrix (docs/reference/randomness.md)."""
