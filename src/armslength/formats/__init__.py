"""Files: canonical JSON, atomic writes, Parquet with size limits. Knows nothing of sketches."""
