"""The gate "apple-kernels"."""
