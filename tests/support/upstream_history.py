"""A long upstream history in one stream: many commits, of which some touch given files.

Written by ``git fast-import``, which makes two thousand commits in a fraction of a second.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FIRST_DAY = 1_767_225_600
"""Midnight UTC of 2026-01-01; commits are an hour apart."""


@dataclass(frozen=True)
class Step:
    """One commit.

    Attributes:
        title: first line of its message.
        files: path to new content, ``None`` for a file that goes away.
    """

    title: str
    files: Mapping[str, bytes | None] = field(default_factory=dict)


def write_history(repository: Path, steps: Sequence[Step], *, ref: str = "refs/heads/main", start: str = "") -> str:
    """Append commits to a ref of a repository that exists; the new tip.

    Args:
        start: the commit to begin at; empty for a history of its own.
    """
    parts: list[bytes] = []
    for number, step in enumerate(steps):
        title = step.title.encode()
        parts.append(f"commit {ref}\ncommitter Up <up@example.com> {FIRST_DAY + 3600 * number} +0000\n".encode())
        parts.append(b"data %d\n%s\n" % (len(title), title))
        if start and number == 0:
            parts.append(f"from {start}\n".encode())
        for path, content in (step.files or {"unrelated.txt": b"%d\n" % number}).items():
            if content is None:
                parts.append(f"D {path}\n".encode())
            else:
                parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=repository, input=b"".join(parts), check=True)
    tip = subprocess.run(["git", "rev-parse", ref], cwd=repository, check=True, capture_output=True, text=True)
    return tip.stdout.strip()


def synthetic_upstream(
    files: Mapping[str, bytes], *, commits: int, touching: int, plants: Mapping[int, Mapping[str, tuple[bytes, bytes]]]
) -> list[Step]:
    """Commits of which ``touching``, evenly spread, change one of ``files`` each in a way that no anchor minds.

    A comment is appended, so every such commit makes another tree.

    Args:
        files: path to content at the beginning.
        plants: what the n-th touching commit (from 0) also replaces: path to old and new text.
    """
    now = dict(files)
    every = commits // touching
    steps = []
    for number in range(commits):
        nth = number // every
        if number % every or nth >= touching:
            steps.append(Step(f"Commit {number} (#{100_000 + number})"))
            continue
        path = sorted(now)[nth % len(now)]
        mark = b"#" if path.endswith((".py", ".yaml")) else b"//"
        changed = {path: now[path] + b"%s touched %d\n" % (mark, number)}
        for planted, (old, new) in plants.get(nth, {}).items():
            text = changed.get(planted, now[planted])
            assert old in text, f"{planted} does not hold {old!r}"
            changed[planted] = text.replace(old, new)
        now.update(changed)
        steps.append(Step(f"Touch {nth} (#{100_000 + number})", changed))
    return steps
