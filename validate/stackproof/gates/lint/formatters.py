"""clang-format and ruff, run with the tree's own settings on the files of a commit."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchstack.tree.git import Tree
from stackproof.gates.common.changes import AddedLines
from stackproof.gates.lint.messages import LintMessage, Severity
from stackproof.packages import install_command

STYLE_NAME = ".clang-format"
RUFF_CONFIGS = ("ruff.toml", ".ruff.toml", "pyproject.toml")
TIMEOUT_SECONDS = 90


@dataclass
class ToolNotRunError(Exception):
    """A tool could not judge a file.

    Attributes:
        reason: why, with what to do about it.
    """

    reason: str

    def __str__(self) -> str:
        return self.reason


class ClangFormat:
    """The clang-format at hand with the style files of one tree.

    Args:
        tree: where the style files come from.
        scratch: an empty folder, for the style files.
    """

    code = "CLANGFORMAT"

    def __init__(self, tree: Tree, scratch: Path) -> None:
        self._tree = tree
        self._scratch = scratch

    def check(self, path: str, content: bytes, added: AddedLines) -> Iterator[LintMessage]:
        """One message per run of lines that the range wrote and clang-format would change.

        Raises:
            ToolNotRunError: there is no clang-format, the tree has no style for the file, or the style is not accepted.
        """
        style = self._style(path)
        command = [tool("clang-format"), f"--style=file:{style}", f"--assume-filename={path}"]
        formatted = _run(command, content, self._scratch).decode(errors="replace")
        original = content.decode(errors="replace")
        texts: tuple[str | None, str | None] = (original, formatted)  # with the first message only: one patch per file
        for first, last, wanted in _different_lines(original, formatted):
            if added.touches(first, last):
                shown = " / ".join(line.strip() for line in wanted[:3]) or "nothing"
                said = f"not formatted as the tree's {STYLE_NAME} has it; expected: {shown}"
                yield LintMessage(path, first, None, self.code, Severity.WARNING, "format", *texts, said)
                texts = (None, None)

    def _style(self, path: str) -> Path:
        """The nearest style file above ``path``, written to the scratch folder."""
        for folder in PurePosixPath(path).parents:
            name = str(folder / STYLE_NAME)
            content = self._tree.read(name)
            if content is not None:
                target = self._scratch / name.replace("/", "_").replace(STYLE_NAME, "style.yaml")
                target.write_bytes(content)
                return target
        raise ToolNotRunError(f"the tree has no {STYLE_NAME}")


class Ruff:
    """The ruff at hand with the tree's settings."""

    code = "RUFF"

    def __init__(self, tree: Tree, scratch: Path) -> None:
        self._scratch = scratch
        self._config = ""
        for name in RUFF_CONFIGS:
            content = tree.read(name)
            if content is not None and (name != "pyproject.toml" or b"[tool.ruff" in content):
                (scratch / name).write_bytes(content)
                self._config = name
                break

    def check(self, path: str, content: bytes, added: AddedLines) -> Iterator[LintMessage]:
        """One message per finding on a line that the range wrote.

        Raises:
            ToolNotRunError: there is no ruff, the tree has no settings for it, or they are not accepted.
        """
        if not self._config:
            raise ToolNotRunError("the tree has no settings for ruff")
        command = [tool("ruff"), "check", "--no-cache", "--output-format=json", "--exit-zero", "--quiet"]
        command += [f"--config={self._config}", f"--stdin-filename={path}", "-"]
        for found in json.loads(_run(command, content, self._scratch) or b"[]"):
            first, last = found["location"]["row"], found["end_location"]["row"]
            if added.touches(first, last):
                name = found["code"] or "syntax"
                char = found["location"]["column"]
                yield LintMessage(path, first, char, self.code, Severity.ERROR, name, description=found["message"])


def tool(name: str) -> str:
    """A tool beside this Python, or on the PATH.

    Raises:
        ToolNotRunError: it is in neither place.
    """
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise ToolNotRunError(f"{name} is not installed (next: {install_command(name)})")
    return found


def tool_version(name: str) -> str:
    """``18.1.3`` of whatever the tool prints; empty when it cannot be had."""
    try:
        text = _run([tool(name), "--version"], b"", Path.cwd()).decode(errors="replace")
    except ToolNotRunError:
        return ""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return match[0] if match else ""


def _run(command: list[str], content: bytes, folder: Path) -> bytes:
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, cwd=folder, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ToolNotRunError(f"{Path(command[0]).name} did not answer within {TIMEOUT_SECONDS} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise ToolNotRunError(f"{Path(command[0]).name} refuses: {said[0] if said else done.returncode}")
    return done.stdout


def _different_lines(original: str, formatted: str) -> Iterator[tuple[int, int, list[str]]]:
    """First and last original line of each difference, and what stands there instead."""
    before, after = original.splitlines(), formatted.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            yield first + 1, max(last, first + 1), after[start:end]
