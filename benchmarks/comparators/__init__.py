"""The other methods as they run: for comparison only.

Each draws ordinary floating-point randomness from a NumPy generator that is handed in, so none of them is fit for a release:
armslength itself draws noise in one place and exactly. Their formulas are in `comparators.formulas`.
"""
