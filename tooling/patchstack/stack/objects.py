"""Writing blobs, trees and commits to the object store; no ref is moved here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from patchstack.errors import TreeError
from patchstack.stack.identity import Signature
from patchstack.tree.git import GitBlobHash, GitCommitHash, GitObjectHash, GitTreeHash, Repository, Tree, TreeEntry
from patchstack.tree.git.model import MODE_DIRECTORY
from patchstack.tree.git.process import GitCommandError, LineServer


class ObjectWriter:
    """One writer for a whole stack: two helper processes, however many objects.

    Args:
        scratch: a folder for one temporary file.
        store: another folder to put objects in than the repository's store; for their ids alone.
    """

    def __init__(self, repository: Repository, scratch: Path, store: Path | None = None) -> None:
        self._repository = repository
        self._file = scratch / "blob"
        elsewhere = {"GIT_OBJECT_DIRECTORY": str(store)} if store else None
        self._hash = LineServer(repository.root, ["hash-object", "-w", "--no-filters", "--stdin-paths"], elsewhere)
        self._mktree = LineServer(repository.root, ["mktree", "-z", "--missing", "--batch"], elsewhere)

    def __enter__(self) -> ObjectWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._hash.close()
        self._mktree.close()
        self._file.unlink(missing_ok=True)

    def blob(self, content: bytes) -> GitBlobHash:
        """Store a blob, byte for byte: no filter, no line-ending conversion."""
        try:
            self._file.write_bytes(content)
            self._hash.send(os.fsencode(self._file) + b"\n")
            return GitBlobHash(self._hash.read_line().decode())
        except (GitCommandError, OSError) as error:
            raise _store_error(self._repository, error) from None

    def tree(self, base: Tree, files: Mapping[str, bytes]) -> GitTreeHash:
        """Store ``base`` with ``files`` put in (what ``base`` has only in memory is not looked at)."""
        blobs = {path: TreeEntry(base.mode(path), GitObjectHash(self.blob(files[path]))) for path in sorted(files)}
        return GitTreeHash(self._folder(base, GitObjectHash(base.base), blobs))

    def _folder(self, base: Tree, hash_: GitObjectHash | None, changed: Mapping[str, TreeEntry]) -> GitObjectHash:
        entries = dict(base.directory(hash_)) if hash_ else {}
        below: dict[str, dict[str, TreeEntry]] = {}
        for path, entry in changed.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = entry
            else:
                entries[name] = entry
        for name, inner in below.items():
            old = entries.get(name)
            entries[name] = TreeEntry(MODE_DIRECTORY, self._folder(base, old.hash if old else None, inner))
        return self._write_tree(entries)

    def _write_tree(self, entries: Mapping[str, TreeEntry]) -> GitObjectHash:
        kinds = {"40000": "tree", "160000": "commit"}
        records = (
            f"{entry.mode:0>6} {kinds.get(entry.mode, 'blob')} {entry.hash}\t".encode()
            + name.encode(errors="surrogateescape")
            + b"\0"
            for name, entry in entries.items()
        )
        try:
            self._mktree.send(b"".join(records) + b"\0")
            return GitObjectHash(self._mktree.read_line().decode())
        except GitCommandError as error:
            raise _store_error(self._repository, error) from None

    def commit(
        self, tree: GitTreeHash, parents: Sequence[GitCommitHash], message: str, signature: Signature, index: int
    ) -> GitCommitHash:
        """Store one commit, signed where the configuration asks for it.

        Raises:
            TreeError: the store cannot be written, or signing is asked for and fails.
        """
        arguments = ["-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree]
        for parent in parents:
            arguments += ["-p", parent]
        if signature.sign:
            arguments.append("-S")
        try:
            made = self._repository.git(
                *arguments, "-F", "-", stdin=message.encode(), extra_env=signature.environment(index)
            )
        except GitCommandError as error:
            if not signature.sign:
                raise _store_error(self._repository, error) from None
            raise TreeError(
                "commit.gpgsign is true and the commit cannot be signed; nothing was written to any branch",
                where=str(self._repository.root),
                expected="a signature",
                found=error.reason,
                next_command="set user.signingkey, or git config commit.gpgsign false",
            ) from None
        return GitCommitHash(made.decode().strip())


def _store_error(repository: Repository, error: GitCommandError | OSError) -> TreeError:
    return TreeError(
        "the object store cannot be written",
        where=str(repository.common_dir),
        found=error.reason if isinstance(error, GitCommandError) else str(error),
        next_command="check free disk space and permissions",
    )
