"""Attacks on releases, each a script that runs as it is: what works without noise, and does not with it."""
