"""The command `armslength`."""
