"""What the tests of several gates share: the stack on a tree of after April 2026."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stack_lab import StackLab, applied


@pytest.fixture(scope="session")
def stack_of_after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """What mends the samplers of the 2.13 reference tree, in a repository of the test session's own."""
    with applied("2.13", tmp_path_factory.mktemp("after") / "tree", "grid_sampler_coordinates") as lab:
        yield lab
