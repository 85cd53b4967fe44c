"""Which lines of which files a commit range wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchstack.tree.git import GitCommitHash, Repository

_MOST_RENAMES = 200  # a stack moves few files; between releases the search for moves would take minutes
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class AddedLines:
    """Lines of one head file that the range wrote.

    Attributes:
        ranges: first and last line of each run, 1-based, inclusive; empty when lines were only taken out.
    """

    ranges: tuple[tuple[int, int], ...]

    def touches(self, first: int, last: int) -> bool:
        """Whether any line of that range was written."""
        return any(start <= last and first <= end for start, end in self.ranges)


def added_lines(
    repository: Repository, base: GitCommitHash, head: GitCommitHash, *pathspecs: str
) -> dict[str, AddedLines]:
    """The lines that the range wrote, by path of the head tree; moved files count only where they were changed.

    Args:
        pathspecs: as git takes them; everything when there is none. Binary files are left out.
    """
    diff = repository.git(
        "diff", "-U0", "-M", f"-l{_MOST_RENAMES}", "--no-color", "--no-ext-diff", "--no-textconv",
        "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", base, head, "--", *pathspecs,
    )  # fmt: skip
    found: dict[str, AddedLines] = {}
    path, ranges = "", list[tuple[int, int]]()
    for line in diff.split(b"\n"):
        if line.startswith(b"diff --git "):
            path, ranges = "", []
        elif line.startswith(b"+++ ") and not path:
            path = _path(line[4:])
            if path:
                found[path] = AddedLines(())
        elif path and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2] or b"1")
            if count:
                ranges.append((first, first + count - 1))
            found[path] = AddedLines(tuple(ranges))
    return found


def _path(written: bytes) -> str:
    """The head path of a ``+++`` line; empty for a file that is gone. Git quotes names with unusual characters."""
    name = written.rstrip(b"\t")
    if name.startswith(b'"') and name.endswith(b'"'):
        name = name[1:-1].decode("unicode_escape").encode("latin-1")
    return name[2:].decode(errors="surrogateescape") if name.startswith(b"b/") else ""
