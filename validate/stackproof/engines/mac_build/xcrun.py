"""Tools of the selected Xcode, run through ``xcrun``. Tried with a stand-in only: no Mac was at hand."""

from __future__ import annotations

import shutil
import subprocess

from stackproof.engines.errors import Diagnostic

_TIMEOUT_S = 600.0


def available() -> bool:
    """Whether there is an ``xcrun`` at all."""
    return shutil.which("xcrun") is not None


def run_tool(*tool: str) -> subprocess.CompletedProcess[str]:
    """Run a tool with the SDK for macOS; one that cannot be run has failed, with the reason in its errors.

    Args:
        tool: its name and its arguments.
    """
    command = ("xcrun", "-sdk", "macosx", *tool)
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", f"error: cannot execute tool: {error}")


def main_line(text: str) -> str:
    """Of an output the first line with an error, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "no output")


def without_place(what: str, text: str, file: str) -> Diagnostic:
    """An error of a tool that names no line."""
    return Diagnostic("error", f"{what} failed: {main_line(text)}", file, 0)
