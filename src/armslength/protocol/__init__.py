"""The agreement of the parties, and what it is for: release, sketches, streams."""
