"""Data in: arrays, lists of events and event tables become exact integers."""
