"""Sketches, their noises, files, folders of files, the card and verification."""
