"""Pull requests that have landed: PyTorch's merge bot writes the address of the pull request into the commit on main.

The bot squashes and rebases, so neither ids nor trees can be compared; what it writes into the message is all there is.
A commit that reverts it says ``This reverts commit <id>``, and then the pull request is open again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from patchstack.tree.git import GitCommitHash, Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError

_RESOLVED = re.compile(
    r"^(?:Pull Request resolved|Pull-Request-resolved|Pull-Request): (?P<url>https://\S+/pull/\d+)\s*$", re.MULTILINE
)
_ADDRESS = re.compile(r"https://[!-~]+/pull/[0-9]+")
_REVERTS = re.compile(r"^This reverts commit (?P<commit>[0-9a-f]{7,64})\b", re.MULTILINE)


@dataclass(frozen=True)
class Landing:
    """Where a pull request landed.

    Attributes:
        commit: the commit on the upstream branch.
        reverted_by: a later commit that took it back, ``None`` where there is none.
    """

    commit: GitCommitHash
    reverted_by: GitCommitHash | None = None

    def __str__(self) -> str:
        text = f"landed as {self.commit[:12]}"
        return f"{text}, reverted by {self.reverted_by[:12]}" if self.reverted_by else text


def find_landings(
    repository: Repository, urls: Collection[str], onto: GitCommitHash, since: Collection[str]
) -> Mapping[str, Landing]:
    """Which of the pull requests the history of ``onto`` has.

    Args:
        urls: addresses of pull requests.
        since: commits below which none of them can have landed; without any, the whole history is searched.
    """
    if not urls:
        return {}
    # An address that no commit can have (a line feed, say) would make git refuse the search for the others too.
    sound = sorted(url for url in urls if _ADDRESS.fullmatch(url))
    if not sound:
        return {}
    patterns = [*(f"--grep={url}" for url in sound), "--grep=This reverts commit"]
    limits = [f"^{hash_}" for hash_ in since if repository.resolve_commit(hash_)]
    try:
        listed = repository.text("rev-list", "--topo-order", "--reverse", "-F", *patterns, onto, *limits).split()
    except GitCommandError:  # a shallow history ends somewhere; what is below it is not known
        return {}
    landed: dict[str, Landing] = {}
    for hash_ in listed:
        commit = repository.commit(hash_)
        for match in _RESOLVED.finditer(commit.message):
            if match["url"] in urls:
                landed[match["url"]] = Landing(commit.hash)
        _take_back(landed, commit)
    return landed


def _take_back(landed: dict[str, Landing], commit: Commit) -> None:
    reverted = tuple(match["commit"] for match in _REVERTS.finditer(commit.message))
    for url, landing in landed.items():
        if reverted and landing.commit.startswith(reverted):
            landed[url] = Landing(landing.commit, commit.hash)
