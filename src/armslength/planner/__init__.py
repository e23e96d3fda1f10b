"""Before anybody spends privacy: which settings, how accurate, and whether it can work at all. It touches no data."""
