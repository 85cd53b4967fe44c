"""The checkout whose commits are captured, and the one whose series meets a newer main."""

from capture_lab import opened, place
from resolve_lab import resolving

__all__ = ["opened", "place", "resolving"]
