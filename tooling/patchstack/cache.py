"""Where heavy things live: one folder outside every repository, safe to delete at any time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The project's cache folder, created on first use.

    ``PATCHSTACK_CACHE`` names it; otherwise it is ``patchstack`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    named = os.environ.get("PATCHSTACK_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "patchstack"
    base.mkdir(parents=True, exist_ok=True)
    return base.resolve()
