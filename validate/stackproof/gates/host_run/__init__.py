"""The gate "host-run"."""
