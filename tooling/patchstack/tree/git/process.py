"""Running git: one place that fixes the environment, logs each command, and raises on failure.

Why not GitPython: importing it takes about as long as ``git am`` of the whole series, and what it was tried for (ranges
and diffs in drift and capture) took more lines and lost repositories. It expands ``$NAME`` in the path of a repository,
reads no SHA-256 names, cannot be kept from ``GIT_DIR`` and its like, and gives an empty diff, without an error, for a
commit in which one name is not UTF-8.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

log = logging.getLogger("patchstack.tree.git")

# Variables that would make git look at another repository, index or object store than the one that was asked for.
_REDIRECTING = (
    "GIT_DIR",
    "GIT_CONFIG",  # the one file that `git config` would read instead of all
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
)

# Dates that would get into commits and reflogs; the dates of commits are ours and given with each command.
_DATES = ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")

# The git that first reads a repository with an extension of this name; every git that serves here knows the others.
_EXTENSIONS = {"compatobjectformat": "2.45", "refstorage": "2.45", "relativeworktrees": "2.48"}
_UNKNOWN_EXTENSION = re.compile(r"^[^\n]*extensions? found:\n((?:[ \t]+\S+\n?)+)", re.MULTILINE)
_SAFE_DIRECTORY = re.compile(r"^\s*(git config .*safe\.directory .+?)\s*$", re.MULTILINE)

_FIXED = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",  # never refresh the user's index in passing
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone must not fetch behind the user's back (git >= 2.44)
    "GIT_ALLOW_PROTOCOL": "none",  # the same for older git
    "GIT_NO_REPLACE_OBJECTS": "1",  # a commit id must mean the same tree here and where the stack is pushed to
    "GIT_PAGER": "cat",
    "GIT_FLUSH": "1",  # with 0, a line server keeps its answers to itself for ever
}


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment every git command of this project runs in: the user's, less what redirects git or sets dates."""
    env = {k: v for k, v in os.environ.items() if k not in (*_REDIRECTING, *_DATES)}
    env.update(_FIXED)
    env.update(extra or {})
    return env


@dataclass
class GitCommandError(Exception):
    """A git command ended with a non-zero status.

    Attributes:
        command: the arguments, ``git`` left out.
        status: exit status.
        stderr: what git said.
    """

    command: tuple[str, ...]
    status: int
    stderr: str

    @property
    def reason(self) -> str:
        """The line of git's complaint that says why."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
        if extensions := self._unknown_extensions:
            return f"unknown repository extension {', '.join(f'extensions.{name}' for name in extensions)}"
        return (telling or lines or [f"git {self.command[0]} ended with status {self.status}"])[0]

    @property
    def remedy(self) -> str:
        """What to type about a refusal that git or a newer git has an answer to; empty where there is none."""
        if advised := _SAFE_DIRECTORY.search(self.stderr):
            return advised[1]
        if not (extensions := self._unknown_extensions):
            return ""
        versions = [_EXTENSIONS.get(name.lower()) for name in extensions]
        known = [version for version in versions if version is not None]
        return f"install git {max(known)} or newer" if len(known) == len(versions) else "use the git that made it"

    @property
    def _unknown_extensions(self) -> list[str]:
        found = _UNKNOWN_EXTENSION.search(self.stderr)
        return found[1].split() if found else []

    def __str__(self) -> str:
        return f"git {' '.join(self.command)} ended with status {self.status}: {self.stderr.strip()}"


def run_git(
    cwd: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes | None = None,
    extra_env: Mapping[str, str] | None = None,
) -> bytes:
    """Run one git command in ``cwd`` and return its standard output.

    Raises:
        GitCommandError: git ended with a non-zero status, or an argument is one that it cannot be given.
    """
    log.debug("git %s", " ".join(arguments))
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            env=git_environment(extra_env),
            capture_output=True,
            check=False,
        )
    except ValueError as error:  # a NUL, or half of a surrogate pair, which no command line can carry
        raise GitCommandError(tuple(arguments), 128, f"fatal: not an argument for git: {error}") from None
    if done.returncode:
        raise GitCommandError(tuple(arguments), done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


class LineServer:
    """A git plumbing command that answers request by request (``cat-file --batch``, ``mktree --batch``, ...)."""

    def __init__(self, cwd: Path, arguments: Sequence[str], extra_env: Mapping[str, str] | None = None) -> None:
        self._arguments = tuple(arguments)
        self._cwd = cwd
        self._extra_env = extra_env
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            log.debug("git %s", " ".join(self._arguments))
            # Not a pipe: one that nobody reads would stop git when it is full.
            with contextlib.suppress(OSError):  # on a full disk, the complaints are the least of the worries
                self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close())
            self._process = subprocess.Popen(
                ["git", *self._arguments],
                cwd=self._cwd,
                env=git_environment(self._extra_env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints or subprocess.DEVNULL,
            )
        return self._process

    def send(self, request: bytes) -> None:
        """Write one request and flush it."""
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def read_line(self) -> bytes:
        """One line of the answer, without its line feed.

        Raises:
            GitCommandError: the command went away.
        """
        process = self._started()
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise self._failure()
        return line[:-1]

    def read_exactly(self, count: int) -> bytes:
        """``count`` bytes of the answer.

        Raises:
            GitCommandError: the command went away before that many bytes.
        """
        process = self._started()
        assert process.stdout is not None
        data = process.stdout.read(count)
        if len(data) != count:
            raise self._failure()
        return data

    def _failure(self) -> GitCommandError:
        assert self._process is not None
        status = self._end(self._process)
        said = b""
        if self._complaints is not None:
            self._complaints.seek(0)
            said = self._complaints.read()
        self.close()
        return GitCommandError(self._arguments, status, said.decode(errors="replace"))

    def close(self) -> None:
        """End the command; it is started again on the next request."""
        if self._process is not None:
            self._end(self._process)
            self._process = None
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> int:
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return process.wait()
