"""Mutants of kernels and host functions: which there are, on which stacks, what the gates say of them; the table."""
