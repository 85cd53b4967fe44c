"""Who makes the commits, when, and whether they are signed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from patchstack.errors import TreeError, UsageError
from patchstack.tree.git import Repository
from patchstack.tree.git.process import GitCommandError

_EPOCH = re.compile(r"[0-9]{1,12}\Z")
_END_OF_TIME = 10**12
_IDENT = re.compile(r"(?P<name>.*) <(?P<email>[^>]*)> \d+ [+-]\d{4}\Z")


@dataclass(frozen=True)
class Author:
    """A name and an address, as git takes them from the configuration and the environment."""

    name: str
    email: str


PLACEHOLDER = Author("patchstack", "patchstack@example.invalid")
"""Stands in for a missing identity in a reference tree, which belongs to the tool and is never submitted."""


@dataclass(frozen=True)
class Signature:
    """How commits are made.

    Attributes:
        author: from ``user.name`` and ``user.email`` (or git's environment variables).
        committer: likewise.
        first_date: date of the lowest commit, seconds since the epoch; each commit above is one second later.
        sign: whether ``commit.gpgsign`` asks for signatures.
        placeholder: whether git has no identity and a stand-in was taken, as is done in reference trees only.
    """

    author: Author
    committer: Author
    first_date: int
    sign: bool
    placeholder: bool = False

    def environment(self, index: int) -> dict[str, str]:
        """Git's environment for the commit at ``index`` (0 is the lowest)."""
        date = f"@{self.first_date + index} +0000"  # without the @, git takes a small number for a day or a year
        return {
            "GIT_AUTHOR_NAME": self.author.name,
            "GIT_AUTHOR_EMAIL": self.author.email,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_NAME": self.committer.name,
            "GIT_COMMITTER_EMAIL": self.committer.email,
            "GIT_COMMITTER_DATE": date,
        }


def read_signature(repository: Repository, onto_date: int, *, may_stand_in: bool = False) -> Signature:
    """The identity from the configuration, and dates that depend on nothing but the onto commit.

    ``SOURCE_DATE_EPOCH`` takes the place of the onto commit's date where it is set.

    Args:
        may_stand_in: take :data:`PLACEHOLDER` where git has no identity.

    Raises:
        TreeError: git has no name or no address to put into a commit, and none may stand in; or git takes no date
            after ``onto_date``.
        UsageError: ``SOURCE_DATE_EPOCH`` is not a number.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None and not _EPOCH.match(epoch):
        raise UsageError("not a number of seconds", where="SOURCE_DATE_EPOCH", found=repr(epoch))
    first = int(epoch) if epoch is not None else onto_date + 1
    if not 0 <= first < _END_OF_TIME:
        raise TreeError(
            "git makes no commit with a date after that of the onto commit",
            where=str(repository.root),
            expected=f"seconds since 1970, below {_END_OF_TIME}",
            found=str(onto_date),
            next_command="SOURCE_DATE_EPOCH=SECONDS sets the date of the first commit",
        )
    sign = repository.config("commit.gpgsign", kind="bool") == "true"
    try:
        return Signature(_identity(repository, "AUTHOR"), _identity(repository, "COMMITTER"), first, sign)
    except TreeError:
        if not may_stand_in:
            raise
        return Signature(PLACEHOLDER, PLACEHOLDER, first, sign, placeholder=True)


def _identity(repository: Repository, role: str) -> Author:
    try:
        text = repository.text("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT")
    except GitCommandError as error:
        raise TreeError(
            f"git has no {role.lower()} identity for commits",
            where=str(repository.root),
            expected="user.name and user.email",
            found=error.reason,
            next_command='git config --global user.name "Your Name" && git config --global user.email you@example.com',
        ) from None
    match = _IDENT.match(text)
    if match is None:
        raise TreeError(f"git's {role.lower()} identity cannot be read", where=str(repository.root), found=text)
    return Author(match["name"], match["email"])
