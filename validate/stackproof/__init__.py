"""Prove a commit stack: Metal on the host, the host function, the FC window, the C-shim ABI rule.

The package is the proof half of the project. It reads a tree or a commit range; it may use :mod:`patchstack` for
reading trees, never the other way round.
"""
