"""Closure: every name that a planned stack uses is defined where it is used.

``tokens`` splits a file, ``declared`` tells local names, ``scan`` and ``file`` list what a file defines and uses,
``headers`` and ``unit`` resolve a name as the compiler does, ``kernels`` compares the names that host code asks for
with those that shaders register, ``check`` compares the tree after a change with the one before it.
"""

from patchstack.closure.check import newly_missing
from patchstack.closure.headers import Contents, has_word
from patchstack.closure.unit import Missing

__all__ = ["Contents", "Missing", "has_word", "newly_missing"]
