"""The checkout whose series meets a newer main, and a cache of the test's own for the worktrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from capture_lab import opened, place
from resolve_lab import Resolving

__all__ = ["opened", "place"]


@pytest.fixture
def resolving(
    place: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Resolving:
    from capture_lab import Checkout

    assert isinstance(place, Checkout)
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return Resolving(place, tmp_path / "mine", tmp_path / "cache", capsys)
