"""The whole workflow on generated data: `armslength demo`."""
