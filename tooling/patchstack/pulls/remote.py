"""What the checkout last heard of the pull requests: ``refs/remotes/<remote>/gh/<user>/<N>/{head,base,orig}``.

Nothing is fetched. ``orig`` is the commit as it was submitted, with its message; the tree of ``head`` is what GitHub
shows. ghstack itself compares only ``orig`` with the local commit, so an edit that somebody pushed to ``head`` (a
suggestion accepted on the web, say) would be overwritten without a word.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from patchstack.messages.model import GhstackTrailers
from patchstack.messages.trailers import extract
from patchstack.tree.git import GitCommitHash, GitTreeHash, Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError

_FIELDS = "%(refname)%00%(objectname)%00%(tree)%00%(contents:trailers:key=Pull-Request,valueonly,separator=%2C)"


@dataclass(frozen=True)
class _Ref:
    """One ref: its commit, the tree of that, and the pull requests that its trailers name."""

    commit: GitCommitHash
    tree: GitTreeHash
    links: frozenset[str]


@dataclass(frozen=True)
class RemotePull:
    """One pull request as the remote's refs have it.

    Attributes:
        place: ``gh/<user>/<N>``.
        orig: the commit as submitted.
        head: what GitHub shows, as a commit; ``None`` where the ref is not there.
        head_tree: its tree.
        base_tree: the tree that GitHub compares it with, ``None`` where the ref is not there.
    """

    place: str
    orig: Commit
    head: GitCommitHash | None = None
    head_tree: GitTreeHash | None = None
    base_tree: GitTreeHash | None = None

    @property
    def trailers(self) -> GhstackTrailers:
        return extract(self.orig.message)

    @property
    def url(self) -> str:
        linked = self.trailers.pull_request
        return linked.url if linked else ""

    @property
    def user(self) -> str:
        """Whose pull request it is, by the name of its branches."""
        return self.place.removeprefix("gh/").partition("/")[0]

    @property
    def edited_head(self) -> bool:
        """Whether GitHub shows another tree than the one that was submitted."""
        source = self.trailers.source_id
        return self.head_tree is not None and source is not None and self.head_tree != source


@dataclass(frozen=True)
class RemotePulls:
    """All pull requests of ghstack's that the checkout has refs of.

    Attributes:
        remote: name of the remote.
        by_url: address of the pull request to its refs.
        highest: the largest ``N`` of the user, 0 where there is none; ghstack goes on from there.
        fetched: when such refs were fetched last; ``None`` where that is not known.
    """

    remote: str
    by_url: Mapping[str, RemotePull]
    highest: int = 0
    fetched: datetime.datetime | None = None


def read_remote(repository: Repository, remote: str, *, username: str = "", urls: Iterable[str] = ()) -> RemotePulls:
    """Read the refs of one remote.

    A clone of PyTorch has refs of some 20,000 pull requests, and to find one by its address takes a second or more;
    those of one user are read in well under a tenth of that (``bench/remote_refs.py``).

    Args:
        username: whose pull requests to read in full; the others are looked at only for ``urls`` not among them.
    """
    prefix = f"refs/remotes/{remote}/gh/"
    found: dict[str, RemotePull] = {}
    highest = 0
    if username:
        refs = _list(repository, f"{prefix}{username}/")
        numbers = {name.removeprefix(f"{prefix}{username}/").partition("/")[0] for name in refs}
        highest = max((int(number) for number in numbers if number.isdecimal() and len(number) < 19), default=0)
        found.update(_pulls(repository, prefix, refs))
    missing = set(urls) - found.keys()
    if missing:
        origs = [name for name, ref in _list(repository, f"{prefix}*/*/orig").items() if ref.links & missing]
        for name in origs:
            found.update(_pulls(repository, prefix, _list(repository, name.removesuffix("orig"))))
    return RemotePulls(remote, found, highest, _fetched(repository))


def _pulls(repository: Repository, prefix: str, refs: Mapping[str, _Ref]) -> Iterator[tuple[str, RemotePull]]:
    """Address and state of every pull request among the refs."""
    for name, ref in refs.items():
        place, _, kind = name.removeprefix(prefix).rpartition("/")
        if kind != "orig":
            continue
        head, base = refs.get(f"{prefix}{place}/head"), refs.get(f"{prefix}{place}/base")
        pull = RemotePull(
            f"gh/{place}",
            repository.commit(ref.commit),
            head.commit if head else None,
            head.tree if head else None,
            base.tree if base else None,
        )
        if pull.url:
            yield pull.url, pull


def _list(repository: Repository, pattern: str) -> dict[str, _Ref]:
    try:
        listed = repository.text("for-each-ref", f"--format={_FIELDS}", pattern)
    except GitCommandError:  # git lists none where the object of a single one is gone
        return dict(_one_by_one(repository, pattern))
    rows = [line.split("\0") for line in listed.split("\n") if line.count("\0") == 3]
    return {
        name: _Ref(GitCommitHash(commit), GitTreeHash(tree), frozenset(links.split(",")))
        for name, commit, tree, links in rows
        if tree  # ghstack's refs are commits; one that is a blob or a tree is nobody's pull request
    }


def _one_by_one(repository: Repository, pattern: str) -> Iterator[tuple[str, _Ref]]:
    """The refs whose commits are there, in a damaged store; the others tell nothing."""
    listed = repository.text("for-each-ref", "--format=%(objectname) %(refname)", pattern)
    for hash_, name in (line.split(" ", 1) for line in listed.split("\n") if line):
        if repository.read_object(f"{hash_}^{{commit}}") is not None:
            commit = repository.commit(hash_)
            linked = extract(commit.message).pull_request
            yield name, _Ref(commit.hash, commit.tree, frozenset([linked.url] if linked else []))


def _fetched(repository: Repository) -> datetime.datetime | None:
    """When ``git fetch`` last brought refs of ghstack's; it notes what it fetched in a file of this worktree."""
    file = repository.git_dir / "FETCH_HEAD"
    if file.is_fifo():  # reading it may never end
        return None
    try:
        if "'gh/" not in file.read_text(errors="replace"):
            return None
        return datetime.datetime.fromtimestamp(file.stat().st_mtime, tz=datetime.timezone.utc)
    except OSError:
        return None
