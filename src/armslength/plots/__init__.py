"""Figures from plain numbers; Matplotlib is loaded by whoever draws."""
