"""The gate "host-check"."""
