"""The ledger: what has been released about whom, in one SQLite file."""
