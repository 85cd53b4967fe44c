"""Where heavy things live: one folder outside every repository, safe to delete at any time."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from patchstack.errors import TreeError


def cache_dir() -> Path:
    """The project's cache folder, created on first use.

    ``PATCHSTACK_CACHE`` names it; otherwise it is ``patchstack`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        TreeError: it cannot be created.
    """
    where = os.environ.get("PATCHSTACK_CACHE") or "~/.cache/patchstack"
    try:
        base = _named_folder()
        where = str(base)
        base.mkdir(parents=True, exist_ok=True)
        return base.resolve()
    except (OSError, RuntimeError) as error:  # a RuntimeError where there is no home folder
        raise TreeError(
            "the cache folder cannot be used", where=where, found=str(error), next_command="PATCHSTACK_CACHE=FOLDER"
        ) from None


def _named_folder() -> Path:
    """The cache folder as the environment names it, which may not be there.

    Raises:
        RuntimeError: there is no home folder.
    """
    named = os.environ.get("PATCHSTACK_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "patchstack"


def read_entry(place: Path) -> Any:
    """The JSON value remembered at ``place``, relative to the cache; ``None`` where it is not there or is damaged."""
    try:
        return json.loads((_named_folder() / place).read_bytes())
    except (OSError, ValueError, RecursionError, RuntimeError):
        return None


def write_entry(place: Path, value: Any) -> None:
    """Remember a JSON value at ``place``. Best effort: without it the next run does the work again."""
    unfinished = ""
    try:
        file = cache_dir() / place
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as out:
            unfinished = out.name
            json.dump(value, out)
        os.replace(unfinished, file)
    except (OSError, TreeError):
        with contextlib.suppress(OSError):
            if unfinished:
                os.unlink(unfinished)
