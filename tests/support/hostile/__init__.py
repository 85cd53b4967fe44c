"""A tree whose code is after the machine that it is judged on."""

from hostile.world import NAMES, TOKEN, World

__all__ = ["NAMES", "TOKEN", "World"]
