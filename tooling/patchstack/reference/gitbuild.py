"""Writing a tree into a new git repository, byte for byte, with the same commit ids on every machine.

``git fast-import`` takes the files as one stream and makes one pack; it knows neither attributes nor line-ending
conversion, and it needs no configured identity. Author, committer and date are fixed, so the ids depend on content
only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import TreeError
from patchstack.reference.model import SourceFile
from patchstack.tree.git.model import GitCommitHash
from patchstack.tree.git.process import GitCommandError, git_environment, run_git

BRANCH = "main"
IDENTITY = "patchstack reference <reference@patchstack.invalid>"

# The user's configuration must not reach the build: a template with hooks, sha256 objects, signing, line endings.
_NEUTRAL = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_TEMPLATE_DIR": "",
}

_CONFIGURATION = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tsafecrlf = false
\tlogallrefupdates = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
[commit]
\tgpgsign = false
"""

# Overrides any .gitattributes of the tree: what is checked out is what is in git, and that is what was released.
_ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding\n"


@dataclass(frozen=True)
class NewCommit:
    """One commit to write on top of the previous one.

    Attributes:
        message: full message, ends with a line feed.
        files: files it adds; a path must not be in an earlier commit.
        when: author and committer date, seconds since the epoch, written as UTC.
    """

    message: str
    files: Iterable[SourceFile]
    when: int


def create_repository(path: Path, commits: Sequence[NewCommit]) -> tuple[GitCommitHash, ...]:
    """Make a repository in a folder that does not exist yet, with ``main`` checked out; the ids, oldest first.

    Raises:
        TreeError: git is missing or failed, or two commits give the same path.
    """
    path.mkdir(parents=True)
    try:
        run_git(path, ["init", "--quiet", f"--initial-branch={BRANCH}", "."], extra_env=_NEUTRAL)
        git_dir = path / ".git"
        with (git_dir / "config").open("a", encoding="utf-8") as config:
            config.write(_CONFIGURATION)
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
        _fast_import(path, commits)
        run_git(path, ["reset", "--quiet", "--hard", BRANCH], extra_env=_NEUTRAL)
        listed = run_git(path, ["rev-list", "--reverse", BRANCH], extra_env=_NEUTRAL).decode().split()
    except FileNotFoundError:
        raise TreeError("git is not installed or not on PATH", next_command="install git 2.34 or newer") from None
    except GitCommandError as error:
        raise TreeError("the reference tree could not be written", where=str(path), found=str(error)) from None
    return tuple(GitCommitHash(line) for line in listed)


def _fast_import(path: Path, commits: Sequence[NewCommit]) -> None:
    # Level 1: the tree is a cache, and zlib's default would take most of the build's time.
    command = ["git", "-c", "core.compression=1", "fast-import", "--quiet", "--done", "--date-format=raw"]
    with subprocess.Popen(
        command, cwd=path, env=git_environment(_NEUTRAL), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for part in _stream(commits):
                process.stdin.write(part)
            process.stdin.close()
        except BrokenPipeError:
            pass  # git's own words come below
        except BaseException:
            process.kill()
            with contextlib.suppress(BrokenPipeError):  # what is still buffered would hide why the build ended
                process.stdin.close()
            raise
        said = process.stderr.read().decode(errors="replace")
    if process.returncode:
        raise GitCommandError(("fast-import",), process.returncode, said)


def _stream(commits: Sequence[NewCommit]) -> Iterator[bytes]:
    taken: set[str] = set()
    for commit in commits:
        message = commit.message.encode()
        who = f"{IDENTITY} {commit.when} +0000"
        yield f"commit refs/heads/{BRANCH}\nauthor {who}\ncommitter {who}\ndata {len(message)}\n".encode()
        yield message
        for file in commit.files:
            if file.path in taken:
                raise TreeError("a stand-in would replace one of the release's own files", where=file.path)
            taken.add(file.path)
            yield f"M {file.mode} inline {_quoted(file.path)}\ndata {len(file.data)}\n".encode()
            yield file.data
            yield b"\n"
        yield b"\n"
    yield b"done\n"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
