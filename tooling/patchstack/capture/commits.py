"""Reading the commits of a range; what no edit can say is refused by name, before anything else is done."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from patchstack.capture.model import CaptureError, FileChange, Source
from patchstack.errors import UsageError
from patchstack.manifest.section import path_problem
from patchstack.messages.trailers import parse_message
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.git.model import MODE_FILE
from patchstack.tree.hunks import LineChange, line_changes

_TRAILER = re.compile(r"[A-Z][\w-]*-by: .+ <.+>\Z|Change-Id: I[0-9a-f]{40}\Z")
_DERIVED = re.compile(r"\n\n(?:What changed:\n\n- |Test plan:\n\n```\n)")
_MODES = {"120000": "a symbolic link", "160000": "a submodule", "100755": "an executable file"}
_NOTHING = "0" * 6


def read_range(repository: Repository, commits: str) -> tuple[GitCommitHash, tuple[Source, ...]]:
    """The commit below a range ``BASE..HEAD``, and the commits of the range, bottom first.

    Raises:
        UsageError: it is no such range, or holds no commit.
        CaptureError: a commit holds what cannot be captured.
    """
    low, dots, high = commits.partition("..")
    base, head = repository.resolve_commit(low), repository.resolve_commit(high or "HEAD")
    if not dots or base is None or head is None:
        missing = low if base is None else high
        raise UsageError("not a range of commits", where=commits, expected="BASE..HEAD", found=f"no commit '{missing}'")
    listed = repository.text("rev-list", "--reverse", "--topo-order", "--parents", f"{base}..{head}").split("\n")
    lines = [line.split() for line in listed if line]
    if not lines:
        raise UsageError("the range holds no commit", where=commits, expected="BASE..HEAD with BASE below HEAD")
    below, sources = base, list[Source]()
    for commit, *parents in lines:
        if parents != [below]:
            problem = "merges cannot be captured" if len(parents) > 1 else "the commits are not one line from BASE"
            raise CaptureError(problem, where=commit[:12], next_command=f"git rebase {low}")
        sources.append(read_commit(repository, GitCommitHash(commit), below))
        below = GitCommitHash(commit)
    return base, tuple(sources)


def read_commit(repository: Repository, commit: GitCommitHash, parent: GitCommitHash) -> Source:
    """One commit beside its parent.

    Raises:
        CaptureError: it holds what cannot be captured, or nothing.
    """
    message = parse_message(repository.commit(commit).message)
    if not message.title or "\ufffd" in f"{message.title}{message.body}":
        problem = "the message is not UTF-8" if message.title else "the commit has no message"
        raise CaptureError(problem, where=commit[:12], next_command="git rebase -i, and reword it")
    files = tuple(_files(repository, commit, parent))
    if not files:
        raise CaptureError("the commit changes no file", where=f"{commit[:12]} {message.title}")
    return Source(commit, message.title, prose_of(message.body), message.co_authors, files)


def prose_of(body: str) -> str:
    """What a person wrote of a message: without sign-offs, and without what ``apply-stack`` derives below it."""
    heads = _DERIVED.split(f"\n\n{body}", maxsplit=1)
    kept = heads[0] if len(heads) > 1 else body
    return "\n".join(line for line in kept.split("\n") if not _TRAILER.match(line)).strip("\n")


def _files(repository: Repository, commit: str, parent: str) -> Iterator[FileChange]:
    raw = repository.git("diff-tree", "-r", "-z", "--no-renames", parent, commit).split(b"\0")
    old, new = (Tree.at(repository, name) for name in (parent, commit))
    for head, name in zip(raw[0::2], raw[1::2], strict=False):
        path = os.fsdecode(name)
        old_mode, new_mode = head.decode().removeprefix(":").split()[:2]
        _require_plain(commit, path, old_mode, new_mode)
        before = old.read(path) if old_mode != _NOTHING else None
        after = new.read(path) or b""
        if any(b"\0" in text for text in (before or b"", after)):
            raise CaptureError("a binary file cannot be captured", where=f"{commit[:12]} {path}", expected="text")
        yield FileChange(path, before, after)


def _require_plain(commit: str, path: str, old_mode: str, new_mode: str) -> None:
    where = f"{commit[:12]} {path}"
    if path != os.fsencode(path).decode(errors="replace"):
        problem = "the name of a file is not UTF-8, so that no manifest can have it"
        raise CaptureError(problem, where=commit[:12], found=ascii(path), next_command="git mv it to another name")
    if problems := path_problem(path):
        raise CaptureError(
            problems[0], where=commit[:12], expected=problems[1], next_command="git mv it to another name"
        )
    if int(new_mode) == 0:
        problem = "no edit takes a whole file away, as this commit does (or renames it)"
        raise CaptureError(
            problem, where=where, next_command="leave the file in place, or delete it in the pull request"
        )
    if (int(old_mode) and old_mode != new_mode) or new_mode in ("120000", "160000"):
        found = _MODES.get(new_mode, f"mode {new_mode}")
        raise CaptureError("a change of mode or kind cannot be captured", where=where, found=found)
    if not int(old_mode) and new_mode != MODE_FILE:
        found = _MODES.get(new_mode, new_mode)
        raise CaptureError("only plain files can be created", where=where, expected="mode 100644", found=found)


def changed_lines(repository: Repository, before: bytes, after: bytes) -> list[LineChange]:
    """Git's own opinion of what changed between two texts."""
    ids = [repository.git("hash-object", "-w", "--stdin", stdin=text).decode().strip() for text in (before, after)]
    options = ("-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--text", "--diff-algorithm=histogram")
    return line_changes(repository.git("diff", *options, *ids))
