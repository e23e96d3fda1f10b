"""Questions about many sketches: compare, nearest, cluster, outliers, drift, alike."""
