"""Attacks on releases, as runnable scripts: they work without noise and fail with it."""
