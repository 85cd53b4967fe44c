"""The refs a run looks at, by their full names: nothing is guessed as ``rev-parse`` would."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from patchstack.errors import RefError, TreeError, UsageError
from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.process import GitCommandError

UPSTREAM = ("refs/heads/main", "refs/remotes/origin/main")


@dataclass(frozen=True)
class Refs:
    """The branch to write, its neighbours, and upstream's branches.

    Attributes:
        name: short name of the branch (``stack/grid_sampler``).
        hashes: full ref name to the id it holds: the branch, refs with its name as a folder or folders of its name,
            and those of :data:`UPSTREAM` that exist.
        symbolic: refs among them that only point to another ref, to that ref.
    """

    name: str
    hashes: Mapping[str, GitCommitHash]
    symbolic: Mapping[str, str]

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.name}"

    @property
    def tip(self) -> GitCommitHash | None:
        """Where the branch points, ``None`` where there is none."""
        return self.hashes.get(self.ref)

    @property
    def upstream(self) -> list[GitCommitHash]:
        """Tips of upstream's branches, as far as they are known here; the branch itself is not upstream's."""
        return [self.hashes[ref] for ref in UPSTREAM if ref in self.hashes and ref != self.ref]

    def require_writable(self) -> None:
        """Refuse a branch that git could not create or move by itself.

        Raises:
            RefError: the name is a folder of other branches (or the other way round), or a symbolic ref.
        """
        if self.ref in self.symbolic:
            raise RefError(
                "the branch is a symbolic ref; moving it would move another branch",
                where=self.name,
                found=f"it points to {self.symbolic[self.ref]}",
                next_command="--branch NAME",
            )
        for ref in self.hashes:
            if ref.startswith(f"{self.ref}/") or self.ref.startswith(f"{ref}/"):
                raise RefError(
                    "git cannot have this branch beside another one, because a name cannot be a branch and a folder",
                    where=self.name,
                    found=ref.removeprefix("refs/heads/"),
                    next_command=f"--branch NAME, or git branch -m {shlex.quote(ref.removeprefix('refs/heads/'))} NAME",
                )


def check_name(repository: Repository, name: str) -> str:
    """``name``, if it can be a branch.

    Raises:
        UsageError: it cannot.
    """
    if name.startswith("refs/"):
        raise UsageError("a branch name goes without refs/heads/", where="--branch", found=repr(name))
    try:
        repository.git("check-ref-format", f"refs/heads/{name}")
    except (GitCommandError, ValueError):  # a ValueError for a NUL, which no command line can carry
        raise UsageError("not a branch name", where="--branch", found=repr(name)) from None
    if name.startswith("-") or name == "HEAD":
        raise UsageError("not a branch name", where="--branch", found=repr(name))
    return name


def read_refs(repository: Repository, name: str) -> Refs:
    """Look up the branch ``name`` and what its fate depends on.

    Raises:
        TreeError: git cannot list the refs.
    """
    around = f"refs/heads/{name.split('/', 1)[0]}"  # git lists the ref of that name and everything below it
    try:
        listed = repository.text("for-each-ref", "--format=%(objectname) %(refname) %(symref)", around, *UPSTREAM)
    except GitCommandError as error:
        raise TreeError("git cannot list the branches", where=str(repository.root), found=error.reason) from None
    hashes: dict[str, GitCommitHash] = {}
    symbolic: dict[str, str] = {}
    for line in filter(None, listed.split("\n")):
        hash_, ref, target = line.split(" ")
        hashes[ref] = GitCommitHash(hash_)
        if target:
            symbolic[ref] = target
    branch = f"refs/heads/{name}"
    if branch not in hashes and (target := _points_to(repository, branch)):
        symbolic[branch] = target
    return Refs(name, {ref: hash_ for ref, hash_ in hashes.items() if _matters(ref, name)}, symbolic)


def _matters(ref: str, name: str) -> bool:
    branch = f"refs/heads/{name}"
    return ref in UPSTREAM or ref == branch or ref.startswith(f"{branch}/") or branch.startswith(f"{ref}/")


def _points_to(repository: Repository, ref: str) -> str:
    """The ref that a symbolic one points to though it does not exist, which git does not list; else nothing."""
    try:
        return repository.text("symbolic-ref", "--quiet", ref)
    except GitCommandError:
        return ""
