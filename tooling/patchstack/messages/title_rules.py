"""Titles: what GitHub, ``git am`` and ``git rebase`` would cut, fold or act on."""

from __future__ import annotations

import re

from patchstack.messages.rule import Rule, refuse, title_where, warn

_GITHUB_LIMIT = 256
_READABLE = 72
_AUTOSQUASH = re.compile(r"(?:fixup|squash|amend)! ")
_REPLY = re.compile(r"[Rr][Ee]:")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_ODD_SPACE = re.compile(r"[^\S ]| {2}")


def mailed_title(title: str) -> str:
    """What ``git am --keep-non-patch`` leaves of a title.

    It drops every leading ``Re:``, colon and blank, and brackets with the letters PATCH in them, and goes on looking
    behind brackets that it keeps: ``[MPS]: x`` loses its colon.
    """
    kept, rest = "", title
    while rest:
        brackets = _BRACKETS.match(rest)
        if _REPLY.match(rest):
            rest = rest[3:]
        elif rest[0] in " \t:":
            rest = rest[1:]
        elif brackets and "PATCH" in brackets[0]:
            rest = rest[brackets.end() :]
        elif brackets:
            end = brackets.end() + (1 if rest[brackets.end() : brackets.end() + 1].isspace() else 0)
            kept, rest = kept + rest[:end], rest[end:]
        else:
            break
    return kept + rest


TITLE_RULES: tuple[Rule, ...] = (
    refuse("title-empty", "a change needs a title: it names the pull request", title_where(lambda t: not t.strip())),
    refuse("title-lines", "a title is one line: put the rest into the body", title_where(lambda t: "\n" in t)),
    refuse("title-edges", "git drops blanks around a title: remove them", title_where(lambda t: t != t.strip())),
    refuse(
        "title-spaces",
        "git am makes one space of tabs and of several spaces in a title: write one space",
        title_where(lambda t: _ODD_SPACE.search(t.strip().replace("\n", "")) is not None),
    ),
    warn(
        "title-length",
        f"over {_READABLE} characters: git log and GitHub's lists cut it",
        title_where(lambda t: _READABLE < len(t) <= _GITHUB_LIMIT),
    ),
    refuse(
        "title-too-long",
        f"GitHub refuses a pull request with a title over {_GITHUB_LIMIT} characters",
        title_where(lambda t: len(t) > _GITHUB_LIMIT),
    ),
    warn("title-period", "a title is no sentence: leave out the full stop", title_where(lambda t: t.endswith("."))),
    warn(
        "title-prefix",
        "PyTorch's reviewers look for the component in brackets first, like [MPS]",
        title_where(lambda t: bool(t.strip()) and not _BRACKETS.match(t)),
    ),
    refuse(
        "title-autosquash",
        "git rebase --autosquash would fold this commit into another: choose a title without '!' at its start",
        title_where(lambda t: _AUTOSQUASH.match(t) is not None),
    ),
    refuse(
        "title-mail",
        "git am would cut this title even with --keep-non-patch (a leading Re:, a colon after the brackets, PATCH in "
        "brackets): reword it",
        title_where(lambda t: bool(t.strip()) and mailed_title(t.strip()) != t.strip()),
    ),
)
