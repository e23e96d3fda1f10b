"""Independent second implementation of docs/reference/randomness.md."""
