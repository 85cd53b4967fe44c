"""The gate ``bench``: what a backward pass costs, counted on the host or measured on a GPU, row by row of one table.

Without a GPU the kernels' loads, stores, atomics and bytes are counted, which are exact and say where traffic grew, but
are no times. With one, the same rows are timed beside PyTorch's own kernel of that device.
"""
