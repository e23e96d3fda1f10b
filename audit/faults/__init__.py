"""Faults on purpose: a release that is killed, interrupted or refused by its system at a chosen point, and what is left."""
