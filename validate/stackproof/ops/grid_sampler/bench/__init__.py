"""The rows of the benchmark, and how a backward pass is prepared for each."""
