"""The families of kernels that do the same op: what their kernels are called, what they take, how they are launched.

PyTorch's trees differ in this. A tree from before April 2026 gets the series' kernels; a newer one has upstream's.
Which family a tree has is read from the names of its kernels, op by op, so that nothing else needs to know about trees.
"""
