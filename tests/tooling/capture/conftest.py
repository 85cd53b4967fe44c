"""The checkout whose commits are captured."""

from capture_lab import opened, place

__all__ = ["opened", "place"]
