"""One offline page about a set of sketches."""
