"""The long audit: attacks, exactness, faults and hostile files at full size. `make audit` runs it and writes docs/audit.md."""
