"""Privacy parameters and the noise that they ask for; no float decides a guarantee."""
