"""What was captured, in words and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from patchstack.capture.model import Captured
from patchstack.capture.run import Capture


def lines(found: Capture) -> Iterator[str]:
    """The report for a terminal."""
    for change in found.changes:
        yield f"{change.identity}: {change.source.commit[:12]} {change.source.title}"
        if change.needs:
            yield f"  needs {', '.join(change.needs)}"
        for choice in change.choices:
            why = f"  (exact context: {choice.why})" if choice.why else ""
            yield f"  {choice.edit.path}: {choice.edit.kind}, {choice.edit.describe()}{why}"
        yield from (f"  note: {note}" for note in change.notes)
    counts = Counter(choice.is_structural for change in found.changes for choice in change.choices)
    same = f"on {found.base[:12]} they give the bytes of the commits"
    yield f"{counts[True]} structural edits, {counts[False]} diffs; {same}"
    yield f"{found.folder} has them" if found.is_written else "dry run: nothing was written"
    if found.is_written:
        yield f"next: apply-stack --series {found.folder} --onto REF"


def as_json(found: Capture) -> dict[str, Any]:
    """The report as data."""
    return {
        "series": str(found.folder),
        "base": found.base,
        "written": found.is_written,
        "changes": [_change(change) for change in found.changes],
    }


def _change(change: Captured) -> dict[str, Any]:
    return {
        "id": change.identity,
        "commit": change.source.commit,
        "title": change.source.title,
        "needs": list(change.needs),
        "notes": list(change.notes),
        "edits": [
            {
                "path": choice.edit.path,
                "kind": choice.edit.kind,
                "does": choice.edit.describe(),
                "hunks": choice.hunks,
                "structural": choice.is_structural,
                "why": choice.why,
            }
            for choice in change.choices
        ],
    }
