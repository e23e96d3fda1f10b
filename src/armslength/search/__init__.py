"""Answers over many sketches: who is near, who is an outlier, which clusters, what changed."""
