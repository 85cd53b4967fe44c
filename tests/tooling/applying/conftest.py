"""Small checkouts and a series for them."""

from checkouts.fixtures import checkout, lab, plain_tip, seed, warm

__all__ = ["checkout", "lab", "plain_tip", "seed", "warm"]
