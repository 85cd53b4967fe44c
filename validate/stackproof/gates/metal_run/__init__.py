"""The gate "metal-run": every op of a series, run on this host in every run mode."""
