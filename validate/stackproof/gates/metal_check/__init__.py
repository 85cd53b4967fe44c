"""The gate "metal-check"."""
