"""The series applied to a clone of the 2.11 reference tree, for tests of its host functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from host_compiler import compiler
from stack_lab import StackLab, applied

__all__ = ["compiler"]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The series on the 2.11 reference tree, in a repository of the test session's own."""
    with applied("2.11", tmp_path_factory.mktemp("host") / "tree") as lab:
        yield lab


@pytest.fixture(scope="session")
def stack_below(stack: StackLab) -> StackLab:
    """The same without its last change, which divides the work of the backward otherwise."""
    below = stack.repository.commit(f"{stack.head}^").hash
    return StackLab(stack.path, stack.repository, stack.base, below)
