"""A PyTorch source tree at one commit, read through git objects; edits are laid over it in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchstack.errors import MissingObjectError, TreeError
from patchstack.tree.git.model import MODE_FILE, GitBlobHash, GitObjectHash, GitTreeHash, TreeEntry
from patchstack.tree.git.repository import Repository

MAX_FILE_BYTES = 64 << 20
"""The largest file of a tree that is read; PyTorch's largest source file has a hundredth of it."""


class Tree:
    """An immutable view of a tree: the objects of one git tree, with some files replaced in memory.

    Paths are relative to the top of the tree, with ``/`` between the parts.

    Attributes:
        repository: where the objects come from.
        base: the git tree underneath.
        replaced: path to new content, for every file that differs from ``base``.
    """

    def __init__(self, repository: Repository, base: GitTreeHash, replaced: Mapping[str, bytes] | None = None) -> None:
        self.repository = repository
        self.base = base
        self.replaced: Mapping[str, bytes] = dict(replaced or {})
        self._directories: dict[GitObjectHash, dict[str, TreeEntry]] = {}

    @classmethod
    def at(cls, repository: Repository, commit: str, *, like: Tree | None = None) -> Tree:
        """The tree of a commit.

        Args:
            like: a tree of the same repository, most of whose folders are the same.

        Raises:
            UsageError: no such commit.
        """
        tree = cls(repository, repository.commit(commit).tree)
        if like is not None:
            tree._directories = like._directories  # ids name content: the cache holds for every tree
        return tree

    def with_files(self, files: Mapping[str, bytes]) -> Tree:
        """The same tree with ``files`` laid over it."""
        overlaid = Tree(self.repository, self.base, {**self.replaced, **files})
        overlaid._directories = self._directories  # ids name content: the cache holds for every view
        return overlaid

    def directory(self, hash_: GitObjectHash) -> Mapping[str, TreeEntry]:
        """The entries of one git tree object, by name.

        Raises:
            MissingObjectError: the object is not there (a partial or shallow clone without it).
            TreeError: the object is damaged.
        """
        if hash_ not in self._directories:
            found = self.repository.read_object(hash_)
            if found is None or found[0] != "tree":
                raise self._missing(hash_)
            try:
                self._directories[hash_] = dict(_parse_tree(found[2], len(hash_) // 2))
            except ValueError as error:
                raise TreeError(
                    "the tree object is damaged",
                    where=hash_,
                    found=str(error),
                    next_command=f"{self.repository.typed} fsck",
                ) from None
        return self._directories[hash_]

    def entry(self, path: str) -> TreeEntry | None:
        """What ``base`` holds at ``path``, or ``None``; files that exist only in memory have no entry."""
        at = TreeEntry("40000", GitObjectHash(self.base))
        for part in path.split("/"):
            if not at.is_directory:
                return None
            found = self.directory(at.hash).get(part)
            if found is None:
                return None
            at = found
        return at

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder at ``path``."""
        return path in self.replaced or self.entry(path) is not None

    def mode(self, path: str) -> str:
        """The mode of the file at ``path``; ``100644`` for a new file."""
        entry = self.entry(path)
        return entry.mode if entry else MODE_FILE

    def read(self, path: str) -> bytes | None:
        """The content of the regular file at ``path``, or ``None`` where there is none.

        Raises:
            MissingObjectError: its blob is not in the object store.
            TreeError: the path is a folder, a symbolic link or a submodule, or the file is larger than
                :data:`MAX_FILE_BYTES`.
        """
        if path in self.replaced:
            return self.replaced[path]
        entry = self.entry(path)
        if entry is None:
            return None
        if not entry.is_file:
            kind = {"40000": "a folder", "120000": "a symbolic link", "160000": "a submodule"}.get(
                entry.mode, entry.mode
            )
            raise TreeError("not a regular file", where=path, expected="a file", found=kind)
        try:
            content = self.repository.read_blob(entry.hash, at_most=MAX_FILE_BYTES)
        except TreeError as error:
            error.where = path
            raise
        if content is None:
            raise self._missing(entry.hash, path)
        return content

    def blob_hash(self, path: str) -> GitBlobHash | None:
        """The id of the blob that ``base`` holds at ``path``; ``None`` where it was replaced or is not there."""
        entry = None if path in self.replaced else self.entry(path)
        return GitBlobHash(entry.hash) if entry else None

    def walk(self, folder: str) -> Iterator[str]:
        """Every file below ``folder`` in path order, replaced and new ones included; nothing if it does not exist."""
        prefix = f"{folder}/" if folder else ""
        found = {path for path in self.replaced if path.startswith(prefix)}
        top = self.entry(folder) if folder else TreeEntry("40000", GitObjectHash(self.base))
        if top is not None and top.is_directory:
            found.update(self._below(prefix, top.hash))
        yield from sorted(found)

    def _below(self, prefix: str, hash_: GitObjectHash) -> Iterator[str]:
        folders = [(prefix, hash_)]  # no recursion: git has no limit to how deep folders may nest, Python has
        while folders:
            prefix, hash_ = folders.pop()
            for name, entry in self.directory(hash_).items():
                if entry.is_directory:
                    folders.append((f"{prefix}{name}/", entry.hash))
                elif entry.is_file:
                    yield f"{prefix}{name}"

    def _missing(self, hash_: GitObjectHash, path: str = "") -> MissingObjectError:
        typed, where = self.repository.typed, path or str(self.repository.root)
        left_out = self.repository.partial_filter()
        if left_out:  # fetched again with the same filter, it would be missing again
            return MissingObjectError(
                f"the repository does not hold this object: it was cloned with --filter={left_out}",
                where=where,
                expected=f"object {hash_}",
                next_command=f"{typed} fetch --refetch --no-filter",
            )
        return MissingObjectError(
            "the repository does not hold this object (a partial clone, or a damaged store)",
            where=where,
            expected=f"object {hash_}",
            next_command=f"{typed} fetch --refetch --no-filter, or {typed} fsck",
        )


def _parse_tree(content: bytes, hash_bytes: int) -> Iterator[tuple[str, TreeEntry]]:
    at = 0
    while at < len(content):
        space = content.index(b" ", at)
        end = content.index(b"\0", space)
        mode = content[at:space].decode()
        name = content[space + 1 : end].decode(errors="surrogateescape")
        if name in ("", ".", "..") or "/" in name:  # laid out on disk, it would leave its folder
            raise ValueError(f"an entry is called {name!r}")
        at = end + 1 + hash_bytes
        yield name, TreeEntry(mode, GitObjectHash(content[end + 1 : at].hex()))
