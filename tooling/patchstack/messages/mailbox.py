"""Write a stack as a mailbox series that ``git am --keep-non-patch`` turns back into the same trees and messages.

``git format-patch`` writes it, not code of our own, but it obeys some forty settings and every attributes file. So it
runs in an empty bare repository that borrows the objects of the real one and nothing else: no configuration, no
attributes, no index of the user's. One thing it cannot do by itself: ``git am`` takes the carriage returns out of text
patches, so a file with CRLF line ends is written as a binary patch. Before the series reaches its folder it is read
back with the plumbing under ``git am`` and compared commit by commit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from patchstack.errors import ManifestError, TreeError, UsageError
from patchstack.messages.paragraphs import strip_space
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError, run_git
from patchstack.tree.git.repository import Repository

_MARK = "X-Generator: patchstack"

_FORMAT = (
    "--quiet",
    "--no-signature",
    f"--add-header={_MARK}",
    "--no-ext-diff",  # GIT_EXTERNAL_DIFF is no setting
    "--no-renames",
    "--binary",
    "--full-index",
)

_NO_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_DIFF_OPTS": "",
}


@dataclass(frozen=True)
class _Scratch:
    """An empty bare repository that sees the objects of another one.

    Attributes:
        folder: temporary folder that holds it.
    """

    folder: Path

    @classmethod
    def borrowing(cls, repository: Repository, folder: Path, *, hash_length: int) -> _Scratch:
        """Make one in ``folder``; ``hash_length`` is 40 for SHA-1 and 64 for SHA-256."""
        scratch = cls(folder)
        kind = "sha1" if hash_length == 40 else "sha256"
        run_git(
            folder, ["init", "-q", "--bare", "--template=", f"--object-format={kind}", "git"], extra_env=_NO_SETTINGS
        )
        info = scratch.git_dir / "objects" / "info"
        info.mkdir(exist_ok=True)
        (info / "alternates").write_bytes(os.fsencode(repository.common_dir / "objects") + b"\n")
        boundary = repository.common_dir / "shallow"
        if boundary.exists():
            (scratch.git_dir / "shallow").write_bytes(boundary.read_bytes())
        return scratch

    @property
    def git_dir(self) -> Path:
        return self.folder / "git"

    def git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        here = {"GIT_DIR": str(self.git_dir), "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        return run_git(self.folder, arguments, stdin=stdin, extra_env={**_NO_SETTINGS, **here})

    def show_as_binary(self, paths: Iterable[str]) -> None:
        """Write patches of these files as binary ones."""
        rules = b"".join(os.fsencode(f"{_as_pattern(path)} -diff\n") for path in sorted(paths))
        (self.git_dir / "info").mkdir(exist_ok=True)
        (self.git_dir / "info" / "attributes").write_bytes(rules)


def format_patches(repository: Repository, onto: str, tip: str, folder: Path) -> list[Path]:
    """Write the commits between ``onto`` and ``tip`` as ``0001-title.patch``, ``0002-...`` into ``folder``.

    The folder appears complete or not at all. It may hold a series that this function wrote earlier, which is
    replaced, and nothing else. Applied on ``onto`` with ``git am --keep-non-patch``, each file gives the tree and the
    message of its commit.

    Returns:
        The files in order.

    Raises:
        UsageError: no such commits, or the folder holds other files.
        TreeError: the range has a merge or an empty commit, objects are missing, or a patch does not give the tree of
            its commit.
        ManifestError: ``git am`` would change a message.
    """
    folder = require_own_folder(folder)
    commits = _linear_commits(repository, onto, tip)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            work = Path(temporary)
            scratch = _Scratch.borrowing(repository, work, hash_length=len(commits[0].hash))
            scratch.show_as_binary(set(_paths_git_am_would_damage(repository, commits)))
            names = _write(scratch, commits, work / "series")
            _read_back(scratch, commits, [work / "series" / name for name in names])
            _replace_folder(work / "series", folder, work / "earlier")
    except GitCommandError as error:
        raise TreeError(
            "git cannot write the patches", where=f"{onto}..{tip}", found=error.stderr.strip(), next_command="git fsck"
        ) from error
    except OSError as error:
        raise UsageError("the patches cannot be written", where=str(folder), found=str(error)) from error
    return [folder / name for name in names]


def require_own_folder(folder: Path) -> Path:
    """The folder by its full name, if a series may be written there; asked for before a branch is moved, too.

    Raises:
        UsageError: it holds files that no earlier run wrote, or cannot be looked into.
    """
    try:
        whole = Path(os.path.realpath(folder))
        _refuse_other_files(whole)
    except OSError as error:  # a name too long, a loop of links, a current folder that is gone
        raise UsageError("the patches cannot be written", where=str(folder), found=str(error)) from None
    return whole


def _refuse_other_files(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError("not a folder", where=str(folder), next_command="--format-patch DIR")
    others = sorted(path.name for path in folder.iterdir() if not _is_ours(path))
    if others:
        raise UsageError(
            "the folder holds files that no earlier run wrote",
            where=str(folder),
            expected="a new or empty folder",
            found=", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else ""),
            next_command="--format-patch DIR",
        )


def _is_ours(path: Path) -> bool:
    if path.suffix != ".patch" or path.is_symlink() or not path.is_file():
        return False
    head, _, _ = path.read_bytes().partition(b"\n\n")
    return _MARK.encode() in head.split(b"\n")


def _linear_commits(repository: Repository, onto: str, tip: str) -> list[Commit]:
    """The commit ``onto`` and, after it, the ones that become patches, oldest first."""
    base, head = repository.commit(onto), repository.commit(tip)
    try:
        listed = repository.text("rev-list", "--reverse", "--topo-order", f"{base.hash}..{head.hash}").split()
    except GitCommandError as error:
        raise TreeError(
            "the history between the two commits cannot be read",
            where=f"{onto}..{tip}",
            found=error.stderr.strip(),
            next_command="git fetch --unshallow, or a clone that has the objects",
        ) from None
    commits = [base, *(repository.commit(hash_) for hash_ in listed)]
    if len(commits) == 1:
        raise UsageError("there is no commit to write", where=f"{onto}..{tip}")
    for parent, commit in pairwise(commits):
        _refuse_unmailable(parent, commit)
    return commits


def _refuse_unmailable(parent: Commit, commit: Commit) -> None:
    if commit.parents != (parent.hash,):
        raise TreeError(
            "only a straight line of commits can be written as patches",
            where=_named(commit),
            expected=f"one parent, {parent.hash[:12]}",
            found=", ".join(hash_[:12] for hash_ in commit.parents) or "none",
            next_command="git rebase the branch without merges",
        )
    if commit.tree == parent.tree:
        raise TreeError(
            "the commit changes nothing, and git am refuses an empty patch",
            where=_named(commit),
            next_command="drop the commit",
        )


def _named(commit: Commit) -> str:
    return f"{commit.hash[:12]} {commit.title}"


def _write(scratch: _Scratch, commits: Sequence[Commit], folder: Path) -> list[str]:
    """Run format-patch; the names of the files it wrote, in order."""
    base, tip = commits[0].hash, commits[-1].hash
    scratch.git("format-patch", *_FORMAT, f"--base={base}", "-o", str(folder), f"{base}..{tip}")
    return sorted(path.name for path in folder.iterdir())


def _paths_git_am_would_damage(repository: Repository, commits: Sequence[Commit]) -> Iterator[str]:
    """Paths that a commit changes and that have, on either side, a carriage return at the end of a line."""
    for parent, commit in pairwise(commits):
        raw = os.fsdecode(
            repository.git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", parent.hash, commit.hash)
        )
        fields = raw.split("\0")[:-1]
        for header, path in zip(fields[::2], fields[1::2], strict=True):
            _, _, old, new, _ = header.split(" ")
            if any(_ends_lines_with_cr(repository, blob) for blob in (old, new)):
                yield path


def _ends_lines_with_cr(repository: Repository, blob: str) -> bool:
    found = repository.read_object(blob) if blob.strip("0") else None
    if found is None or found[0] != "blob":
        return False
    return b"\r\n" in found[2] or found[2].endswith(b"\r")


def _as_pattern(path: str) -> str:
    """The path as a pattern of an attributes file that means it and nothing else."""
    literal = "".join(f"\\{letter}" if letter in "\\*?[" else letter for letter in f"/{path}")
    inner = literal.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{inner}"'


def _read_back(scratch: _Scratch, commits: Sequence[Commit], patches: Sequence[Path]) -> None:
    """Do what ``git am`` does, step by step, and compare every message and every tree."""
    if len(patches) != len(commits) - 1:
        raise TreeError("git format-patch left out commits", expected=str(len(commits) - 1), found=str(len(patches)))
    scratch.git("read-tree", commits[0].tree)
    for commit, patch in zip(commits[1:], patches, strict=True):
        with _read_mail(scratch, patch) as (message, diff):
            if message != strip_space(commit.message):
                raise ManifestError(
                    "git am would change the message",
                    where=_named(commit),
                    expected=repr(_first_difference(strip_space(commit.message), message)),
                    found=repr(_first_difference(message, strip_space(commit.message))),
                    next_command="reword the line; apply-stack names it when it renders the message",
                )
            tree = _applied(scratch, commit, diff)
        if tree != commit.tree:
            raise TreeError("the patch gives another tree", where=_named(commit), expected=commit.tree, found=tree)


@contextmanager
def _read_mail(scratch: _Scratch, patch: Path) -> Iterator[tuple[str, Path]]:
    """The message in a patch file as ``git am --keep-non-patch`` reads it, and a file with the diff."""
    with tempfile.TemporaryDirectory(dir=scratch.folder) as temporary:
        mails, body, diff = (Path(temporary) / name for name in ("mails", "body", "diff"))
        mails.mkdir()
        scratch.git("mailsplit", f"-o{mails}", "--", str(patch))
        first = (mails / "0001").read_bytes()  # a second one: its text is missing from the message
        info = scratch.git("mailinfo", "-b", "--encoding=UTF-8", str(body), str(diff), stdin=first)
        title = next((line[9:] for line in info.split(b"\n") if line.startswith(b"Subject: ")), b"")
        text = (title + b"\n\n" + body.read_bytes()).decode(errors="replace")
        yield strip_space(text), diff


def _applied(scratch: _Scratch, commit: Commit, diff: Path) -> str:
    try:
        scratch.git("apply", "--cached", "--", str(diff))
        return scratch.git("write-tree").decode().strip()
    except GitCommandError as error:
        raise TreeError("the patch does not apply", where=_named(commit), found=error.stderr.strip()) from None


def _first_difference(text: str, other: str) -> str:
    """The first line of ``text`` that ``other`` does not have in its place."""
    theirs = other.split("\n")
    for number, line in enumerate(text.split("\n")):
        if number >= len(theirs) or theirs[number] != line:
            return line
    return ""


def _replace_folder(new: Path, folder: Path, aside: Path) -> None:
    """Replace ``folder`` with ``new``; what was there is moved to ``aside``."""
    if folder.exists():
        folder.rename(aside)
    try:
        new.rename(folder)
    except OSError:
        if aside.exists():
            aside.rename(folder)
        raise
