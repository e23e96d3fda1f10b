"""Releases from Spark: partial sums where the events lie, noise once, on the driver."""
