"""How many lines of a branch would be gone if the tool's own commits took the place of somebody's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from patchstack.stack.identify import Identifier
from patchstack.stack.record import Made
from patchstack.tree.git import Repository
from patchstack.tree.git.model import Commit
from patchstack.tree.git.process import GitCommandError

_MOST = 50
_DIFF = ("diff-tree", "-p", "-r", "-U0", "--root", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")


def lines_lost(repository: Repository, foreign: Sequence[Commit], made: Sequence[Made]) -> int | None:
    """Lines that commits add or take away, beside those that the recorded commits of the same changes do too.

    Args:
        foreign: the commits that the tool did not make.

    Returns:
        ``None`` where there are too many commits to say, or git cannot read one.
    """
    if len(foreign) > _MOST:
        return None
    identifier, last, lost = Identifier(made), {entry.change: entry.commit for entry in made}, 0
    try:
        for commit in foreign:
            known = identifier.identify(commit)
            recorded = repository.resolve_commit(last.get(known.change, "")) if known else None
            ours = _changed(repository, recorded) if recorded else Counter[tuple[bytes, bytes]]()
            theirs = _changed(repository, commit.hash)
            lost += max((theirs - ours).total(), (ours - theirs).total())  # a line that they do without is one, too
    except GitCommandError:
        return None
    return lost


def _changed(repository: Repository, commit: str) -> Counter[tuple[bytes, bytes]]:
    """The lines that a commit adds or takes away, each with its file."""
    found, path, inside = Counter[tuple[bytes, bytes]](), b"", False
    for line in repository.git(*_DIFF, commit).split(b"\n"):
        if line.startswith(b"diff --git "):
            path, inside = line, False
        elif line.startswith(b"@@"):
            inside = True
        elif inside and line[:1] in (b"+", b"-"):
            found[path, line] += 1
    return found
