"""The words of the reference trees: what a release is made from, and what a built tree is.

Frozen on purpose: a specification is compared, hashed into the key of its cached tree and never changed in passing.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from patchstack.tree.git.model import GitCommitHash, GitTreeHash


class Progress(Protocol):
    """What a build tells while it works: one short sentence per step, in the order they happen."""

    def __call__(self, step: str, /) -> None: ...


@dataclass(frozen=True)
class Artefact:
    """One file that a release is laid out from.

    Attributes:
        filename: the name its publisher gave it.
        sha256: pinned digest, lower-case hexadecimal.
    """

    filename: str
    sha256: str

    def __post_init__(self) -> None:
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise ValueError(f"{self.filename}: not a SHA-256 digest: {self.sha256!r}")


@dataclass(frozen=True)
class WheelOrigin:
    """A macOS wheel, fetched by pip for a platform that need not be this one.

    Attributes:
        platform: the wheel's platform tag.
        python: the interpreter version asked for, ``3.11``.
        accepts_installed: whether a torch of the same minor version that is installed here serves instead.
    """

    platform: str
    python: str
    accepts_installed: bool = False


@dataclass(frozen=True)
class DebianOrigin:
    """The upstream tarball of a Debian source package, fetched by apt-get.

    Attributes:
        suite: the Debian release that carries it.
        package: name of the source package.
        package_version: its full Debian version.
    """

    suite: str
    package: str
    package_version: str


@dataclass(frozen=True)
class ReferenceSpec:
    """One release that can be built into a tree.

    Attributes:
        name: what the user types (``2.11``).
        version: the release's full version (``2.11.0``).
        released: release date; author and committer date of the commits.
        artefact: the pinned file it comes from.
        origin: where that file comes from.
        source_tree: id of the git tree of the release's own files; known for releases that an installed torch can
            stand in for, where it takes the place of the artefact's digest.
        notes: what a person should know about the tree, one sentence each.
        stand_ins_of: the tree whose stand-ins it gets; empty for its own. Their digest is in a tree's key by itself.
    """

    name: str
    version: str
    released: datetime.date
    artefact: Artefact
    origin: WheelOrigin | DebianOrigin
    source_tree: GitTreeHash | None = None
    notes: tuple[str, ...] = ()
    stand_ins_of: str = field(default="", repr=False)

    @property
    def released_at(self) -> int:
        """Noon UTC of the release date, seconds since the epoch."""
        noon = datetime.time(12, tzinfo=datetime.timezone.utc)
        return int(datetime.datetime.combine(self.released, noon).timestamp())


@dataclass(frozen=True)
class SourceFile:
    """One file of a tree, on its way into git.

    Attributes:
        path: path from the root of the tree, ``/`` as separator.
        data: exact bytes; of a symbolic link, its target.
        mode: git's file mode, as in :mod:`patchstack.tree.git.model`.
    """

    path: str
    data: bytes
    mode: str


@dataclass(frozen=True)
class ReferenceTree:
    """A built tree: an ordinary git repository with branch ``main`` checked out.

    Attributes:
        name: the specification's name (``2.11``).
        version: version of what was laid out; of an installed torch with its local part (``2.13.0+cpu``).
        path: top folder of the repository.
        commit: tip of ``main``.
        release_commit: the commit that holds the release's own files and nothing else.
        stand_ins: paths that the second commit adds; empty when there is no second commit.
        notes: what a person should know about the tree, one sentence each.
    """

    name: str
    version: str
    path: Path
    commit: GitCommitHash
    release_commit: GitCommitHash
    stand_ins: tuple[str, ...]
    notes: tuple[str, ...]
