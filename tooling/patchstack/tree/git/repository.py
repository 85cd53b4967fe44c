"""A git repository as the applier sees it: objects, refs and configuration, never the working directory."""

from __future__ import annotations

import os
import shlex
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from patchstack.errors import TreeError, UsageError
from patchstack.tree.git.model import Commit, GitCommitHash, GitObjectHash, GitTreeHash
from patchstack.tree.git.process import GitCommandError, LineServer, run_git

# How ``cat-file --batch`` dies, instead of saying "missing", over an object that a partial clone would have to fetch.
_NOT_FETCHED = "promisor remote"

_MOST_BLOB_BYTES = 16 << 20


class Repository:
    """One repository: a checkout, a linked worktree or a bare clone.

    Attributes:
        root: where git commands run: the top of the checkout, or the git directory of a bare repository.
        git_dir: the repository's own git directory (of a linked worktree: the one under ``worktrees/``).
        common_dir: the git directory that all worktrees share.
        is_bare: whether there is no working directory.
    """

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, *, is_bare: bool) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.is_bare = is_bare
        self._objects = LineServer(root, ["cat-file", "--batch"])
        self._blobs: OrderedDict[str, bytes] = OrderedDict()
        self._reading = threading.RLock()  # gates read in several threads, and an answer belongs to its question

    @classmethod
    def open(cls, path: Path) -> Repository:
        """Find the repository that holds ``path``.

        Raises:
            TreeError: there is none, or git refuses it.
        """
        if not os.path.isdir(path):  # unlike Path.is_dir(), this does not raise where a folder may not be looked into
            problem = "not a folder" if os.path.lexists(path) else "no such folder"
            raise TreeError(problem, where=str(path), next_command="--repo PATH")
        query = ["rev-parse", "--is-bare-repository", "--absolute-git-dir", "--git-common-dir"]
        try:
            bare, git_dir, common = run_git(path, query).decode(errors="surrogateescape").rstrip("\n").split("\n")
            top = "" if bare == "true" else os.fsdecode(run_git(path, ["rev-parse", "--show-toplevel"])).rstrip("\n")
        except FileNotFoundError:
            raise TreeError("git is not installed or not on PATH", next_command="install git 2.34 or newer") from None
        except (GitCommandError, OSError, ValueError) as error:
            refused = error if isinstance(error, GitCommandError) else None
            raise TreeError(
                "not a git repository that can be used",
                where=str(path),
                expected="a PyTorch checkout",
                found=refused.reason if refused else str(error),
                next_command=(refused.remedy if refused else "")
                or "--repo PATH, or --reference 2.11 (instead of --repo)",
            ) from None
        root = Path(top) if top else Path(git_dir)
        return cls(root, Path(git_dir), (path / common).resolve(), is_bare=bare == "true")

    def __enter__(self) -> Repository:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the helper processes; the repository can still be used afterwards."""
        self._objects.close()

    def git(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        extra_env: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a git command here and return its standard output.

        Raises:
            GitCommandError: git ended with a non-zero status.
        """
        return run_git(self.root, arguments, stdin=stdin, extra_env=extra_env)

    @property
    def typed(self) -> str:
        """The beginning of a git command for this repository, as a person types it."""
        return f"git -C {shlex.quote(str(self.root))}"

    def text(self, *arguments: str) -> str:
        """Like :meth:`git`, as text without the last line feed."""
        return os.fsdecode(self.git(*arguments)).rstrip("\n")

    def read_object(self, name: str, *, at_most: int | None = None) -> tuple[str, GitObjectHash, bytes] | None:
        """Kind, id and content of the object that ``name`` resolves to, or ``None`` where it is missing.

        ``name`` is anything ``git cat-file`` takes on one line (an id, ``main^{tree}``, ``v2.6:setup.py``).

        Args:
            at_most: size in bytes up to which the content is read.

        Raises:
            TreeError: git cannot read the object store, or the object is larger than ``at_most``.
        """
        if "\n" in name or "\0" in name:
            return None
        with self._reading:
            try:
                self._objects.send(os.fsencode(name) + b"\n")
                header = self._objects.read_line()
            except GitCommandError as error:
                if _NOT_FETCHED in error.stderr:
                    return None
                raise TreeError(
                    "git cannot read an object", where=name, found=error.reason, next_command=f"{self.typed} fsck"
                ) from None
            if header.endswith((b" missing", b" ambiguous")):
                return None
            hash_, kind, size = header.decode().rsplit(" ", 2)
            if at_most is not None and int(size) > at_most:
                self._objects.close()  # which is about to send it all
                raise TreeError("the object is too large", where=name, expected=f"at most {at_most} bytes", found=size)
            content = self._objects.read_exactly(int(size))
            self._objects.read_exactly(1)
            return kind, GitObjectHash(hash_), content

    def read_blob(self, hash_: GitObjectHash, *, at_most: int) -> bytes | None:
        """The content of a blob, ``None`` where it is missing; the last few are kept, since an id names a content.

        Raises:
            TreeError: as for :meth:`read_object`.
        """
        with self._reading:
            if hash_ in self._blobs:
                self._blobs.move_to_end(hash_)
                return self._blobs[hash_]
            found = self.read_object(hash_, at_most=at_most)
            if found is None:
                return None
            self._blobs[hash_] = found[2]
            kept = sum(map(len, self._blobs.values()))
            while kept > _MOST_BLOB_BYTES and len(self._blobs) > 1:
                kept -= len(self._blobs.popitem(last=False)[1])
            return found[2]

    def resolve_commit(self, name: str) -> GitCommitHash | None:
        """The commit that ``name`` points to (tags peeled), or ``None``."""
        if not name or name.startswith("-"):
            return None
        try:  # not through cat-file, which dies over main@{upstream} where there is none
            found = self.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except (GitCommandError, ValueError):
            return None
        return None if found.startswith("^") else GitCommitHash(found)  # ^main is all that main has not

    def resolve_ref(self, ref: str) -> GitCommitHash | None:
        """The id a full ref name (``refs/heads/main``) holds, or ``None``; never guesses like ``rev-parse``.

        Raises:
            TreeError: the ref points to an object that is not there.
        """
        try:
            return GitCommitHash(self.text("show-ref", "--verify", "--hash", "--", ref))
        except GitCommandError as error:
            if "bad ref" not in error.stderr:
                return None
            raise TreeError(
                "the repository does not hold what this ref points to",
                where=ref,
                found=error.reason,
                next_command=f"{self.typed} fsck",
            ) from None

    def commit(self, name: str) -> Commit:
        """Read a commit.

        Raises:
            UsageError: ``name`` is not a commit of this repository.
            TreeError: the commit is damaged.
        """
        found = self.read_object(f"{name}^{{commit}}")
        if found is None:
            raise UsageError("no such commit", where=name, next_command=f"{self.typed} log --oneline")
        _, hash_, content = found
        head, _, message = content.partition(b"\n\n")
        tree, parents, committed_at = "", [], 0
        for line in head.split(b"\n"):
            key, _, value = line.partition(b" ")
            if key == b"tree":
                tree = value.decode()
            elif key == b"parent":
                parents.append(GitCommitHash(value.decode()))
            elif key == b"committer":
                committed_at = self._committed_at(hash_, value)
        return Commit(
            GitCommitHash(hash_), GitTreeHash(tree), tuple(parents), committed_at, message.decode(errors="replace")
        )

    def _committed_at(self, hash_: str, committer: bytes) -> int:
        try:
            return int(committer.rsplit(b" ", 2)[1])
        except (ValueError, IndexError):
            raise TreeError(
                "the commit is damaged: its date cannot be read",
                where=hash_,
                found=repr(committer.decode(errors="replace")),
                next_command=f"{self.typed} fsck",
            ) from None

    def config(self, key: str, *, kind: str = "") -> str | None:
        """The effective value of a configuration key, or ``None`` when unset.

        Args:
            kind: ``bool`` or ``path`` for git's own normalisation, empty for the text as written.

        Raises:
            TreeError: the value cannot be read as ``kind``.
        """
        typed: Sequence[str] = [f"--type={kind}"] if kind else []
        try:
            return self.text("config", *typed, "--get", key)
        except GitCommandError as error:
            if error.status == 1:
                return None
            raise TreeError(
                f"git cannot read the setting {key}", where=str(self.root), found=error.stderr.strip()
            ) from None

    def partial_filter(self) -> str:
        """What the repository was cloned without (``blob:none``, ``tree:0``); empty for a whole clone."""
        try:
            listed = self.text("config", "--get-regexp", r"^remote\..*\.partialclonefilter$")
        except GitCommandError:
            return ""
        return listed.partition("\n")[0].partition(" ")[2]
