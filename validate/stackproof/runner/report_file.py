"""The details of what should not have happened, in a file instead of on the terminal."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from patchstack import __version__


def write_report_file(folder: Path, name: str, text: str) -> str:
    """Write a report and return its path; where even that fails, words that say so.

    Args:
        folder: made where it does not exist.
        name: what the report is about, part of the file's name.
        text: the details.
    """
    file = folder / f"validate-stack-{name}-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    heading = f"validate-stack {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{heading}{text}\n", encoding="utf-8", errors="backslashreplace")
    except OSError:
        return "none, the cache folder cannot be written"
    return str(file)
