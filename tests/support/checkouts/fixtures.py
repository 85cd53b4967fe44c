"""Fixtures, imported by the ``conftest.py`` of each folder that runs the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkouts.lab import SOURCE, Checkout, Lab, write_seed
from checkouts.warm import WarmCommand


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that checkouts are copies of."""
    return write_seed(tmp_path_factory.mktemp("seed") / "tree")


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmCommand]:
    """The process that runs of the command are forked from."""
    command = WarmCommand(SOURCE)
    yield command
    command.close()


@pytest.fixture(scope="session")
def plain_tip(seed: Path, warm: WarmCommand, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The tip of the stack in a clean checkout: the same everywhere, since commit ids depend on nothing else."""
    checkout = Lab(tmp_path_factory.mktemp("plain") / "lab", seed, warm).checkout()
    checkout.run().require()
    return checkout.tip()


@pytest.fixture
def lab(tmp_path: Path, seed: Path, warm: WarmCommand) -> Lab:
    return Lab(tmp_path / "lab", seed, warm)


@pytest.fixture
def checkout(lab: Lab) -> Checkout:
    return lab.checkout()
