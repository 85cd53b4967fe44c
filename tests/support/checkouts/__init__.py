"""Checkouts for tests of the applier: a tree of a few files that is enough of PyTorch, and a series of three changes.

Small on purpose: what is tested here is what happens to a checkout, not what happens to the text of a file.
"""

from checkouts.lab import Checkout, Lab, Run
from checkouts.snapshot import Snapshot

__all__ = ["Checkout", "Lab", "Run", "Snapshot"]
