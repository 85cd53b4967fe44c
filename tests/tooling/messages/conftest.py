"""A small git repository, alone in the world: fixed author and dates, no configuration of the user's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A. Author",
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_COMMITTER_NAME": "C. Committer",
    "GIT_COMMITTER_EMAIL": "committer@example.com",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


@dataclass(frozen=True)
class Sandbox:
    """A repository to make commits in, through objects only.

    Attributes:
        path: the repository.
    """

    path: Path

    def git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        done = subprocess.run(["git", *arguments], cwd=self.path, input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout

    def line(self, *arguments: str, stdin: bytes | None = None) -> str:
        return self.git(*arguments, stdin=stdin).decode().strip()

    def blob(self, content: bytes) -> str:
        return self.line("hash-object", "-w", "--stdin", stdin=content)

    def tree(self, files: Mapping[str, tuple[str, bytes]]) -> str:
        """A flat tree from name to mode and content."""
        rows = [
            f"{mode} blob {self.blob(content)}\t".encode() + name.encode() for name, (mode, content) in files.items()
        ]
        return self.line("mktree", "-z", stdin=b"".join(row + b"\0" for row in rows))

    def commit(self, tree: str, message: str, *parents: str) -> str:
        flags = [argument for parent in parents for argument in ("-p", parent)]
        return self.line("commit-tree", tree, *flags, stdin=message.encode())

    def text_commit(self, content: str, message: str, *parents: str) -> str:
        return self.commit(self.tree({"file.txt": ("100644", content.encode())}), message, *parents)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's git configuration reaches a test."""
    for name, value in _ALONE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return new_sandbox(tmp_path / "repository")


def new_sandbox(path: Path) -> Sandbox:
    path.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    return Sandbox(path)


@pytest.fixture
def mailed(sandbox: Sandbox, tmp_path: Path) -> Callable[[str], str]:
    """What ``git format-patch`` and ``git am --keep-non-patch`` make of a commit message, by git alone."""

    def send(message: str) -> str:
        base = sandbox.text_commit("one\n", "Base\n")
        tip = sandbox.text_commit("two\n", message, base)
        mail = sandbox.git("format-patch", "--stdout", f"{base}..{tip}")
        sandbox.git("checkout", "-q", "-f", "-B", "mailed", base)
        sandbox.git("am", "-q", "--keep-non-patch", stdin=mail)
        return sandbox.git("log", "-1", "--format=%B", "mailed").decode()[:-1]

    return send
