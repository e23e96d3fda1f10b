"""Public integer matrices with the length-preserving property, one file each; `base.py` says what all share."""
