"""The fixture of tests that compile host files."""

from __future__ import annotations

import pytest

from skips import lacks
from stackproof.engines.errors import ToolchainError
from stackproof.engines.standin.clang import find_clang


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skips where no host file can be compiled."""
    try:
        find_clang()
    except ToolchainError as error:
        pytest.skip(lacks(error.problem, error.next_command))
