"""A search for drift in words: lines for a person, JSON, workflow annotations, one Markdown file for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patchstack.drift.github import annotation
from patchstack.drift.line import UpstreamCommit
from patchstack.drift.model import ChangeDrift, Drift, DriftPart, Turn, When
from patchstack.errors import UsageError

MARK = "apply-stack drift:"
"""Before the fingerprint in a report, where the workflow looks for it."""


def lines(drift: Drift) -> Iterator[str]:
    """The report for a person, line by line."""
    line = drift.line
    yield f"{drift.series.name}: from {line.since}"
    yield f"{' ' * len(drift.series.name)}    to {line.onto}"
    yield (
        f"  {_count(line.commits, 'commit')}, {len(line.touching)} of them on the series' files; "
        f"{_count(drift.visited, 'tree')} planned on"
    )
    for note in drift.notes:
        yield f"  note: {note}"
    for change in drift.changes:
        states = f"{change.since.words} -> {change.onto.words}"
        turns = [_turn_line(turn) for turn in change.findings or change.turns]
        yield f"  {change.change.id}  {states}  [{change.verdict.value}]{'  ' + turns[0] if turns else ''}"
        for more in turns[1:]:
            yield f"      and {more}"
    yield _conclusion(drift)


def _turn_line(turn: Turn) -> str:
    what = "; ".join(part.words for part in turn.telling)
    since = f"since {turn.commit}" if turn.commit else turn.when.value
    return f"{since}: {what}" + ("" if turn.exact else " (or later: --visits did not reach every commit after it)")


def _conclusion(drift: Drift) -> str:
    if drift.is_refused:
        return "neither end is a tree that this series goes on, so there is no commit to name"
    if not drift.findings:
        return "nothing drifted"
    changes = sum(bool(change.findings) for change in drift.changes)
    standing = all(turn.when is When.BEFORE for _, turn in drift.findings)
    since = " and did so at --since already: an older --since may show since when" if standing else ""
    return f"{changes} of {len(drift.changes)} changes need{'s' if changes == 1 else ''} a person{since}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def as_json(drift: Drift) -> dict[str, Any]:
    """The report as JSON-serialisable data; nothing in it depends on when or where the search ran."""
    return {
        "series": drift.series.name,
        "since": _commit_json(drift.line.since),
        "onto": _commit_json(drift.line.onto),
        "commits": drift.line.commits,
        "touching": len(drift.line.touching),
        "visited": drift.visited,
        "exit_code": int(drift.exit_code),
        "changes": [_change_json(change) for change in drift.changes],
        "notes": list(drift.notes),
        "conclusion": _conclusion(drift),
    }


def _change_json(change: ChangeDrift) -> dict[str, Any]:
    return {
        "id": change.change.id,
        "title": change.change.title,
        "verdict": change.verdict.value,
        "since": {"upstream_state": change.since.state.value, "blocked": change.since.blocks},
        "onto": {"upstream_state": change.onto.state.value, "blocked": change.onto.blocks},
        "turns": [_turn_json(turn) for turn in change.turns],
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    return {
        "fingerprint": turn.fingerprint,
        "needs_person": turn.needs_person,
        "when": turn.when.value,
        "commit": _commit_json(turn.commit) if turn.commit else None,
        "exact": turn.exact,
        "parts": [_part_json(part) for part in turn.parts],
    }


def _part_json(part: DriftPart) -> dict[str, Any]:
    conflict = part.after.conflict
    return {
        "what": part.after.name,
        "path": part.after.path,
        "before": part.before,
        "after": part.after.value,
        "needs_person": part.needs_person,
        "detail": part.words,
        "anchor": conflict.looking_for if conflict else None,
        "matches": [line for line in conflict.matches if line] if conflict else [],
        "nearest": list(map(str, conflict.nearest)) if conflict else [],
    }


def _commit_json(commit: UpstreamCommit) -> dict[str, Any]:
    return {
        "hash": commit.hash,
        "date": commit.date,
        "title": commit.title,
        "pull_request": commit.pull_request,
    }


def workflow_annotations(drift: Drift) -> Iterator[str]:
    """One workflow command for each finding, and one that says how it went."""
    for change, turn in drift.findings:
        yield annotation("error", f"{drift.series.name}: {change.change.id}", _turn_line(turn))
    yield annotation("notice", f"drift of {drift.series.name}", _conclusion(drift))


def write_reports(drift: Drift, folder: Path) -> tuple[Path, ...]:
    """Write one Markdown file for each finding, named by its fingerprint; the first line is its title.

    Raises:
        UsageError: the folder holds something already, or cannot be written to.
    """
    require_empty(folder)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for change, turn in drift.findings:
            file = folder / f"{turn.fingerprint}.md"
            file.write_text("\n".join(_report(drift, change, turn)), encoding="utf-8", errors="backslashreplace")
            written.append(file)
    except OSError as error:
        raise UsageError("the reports cannot be written", where=str(folder), found=str(error)) from None
    return tuple(written)


def require_empty(folder: Path) -> None:
    """Asked for before the search, too: what lies there from another day would be filed again.

    Raises:
        UsageError: the folder holds something, or cannot be looked into.
    """
    try:
        held = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    except OSError as error:
        raise UsageError("the reports cannot be written", where=str(folder), found=str(error)) from None
    if held:
        expected, found = "a new or empty folder", ", ".join(held[:3])
        raise UsageError("the folder holds files", where=f"--reports {folder}", expected=expected, found=found)


def _report(drift: Drift, change: ChangeDrift, turn: Turn) -> Iterator[str]:
    """Nothing in it depends on ``--onto``, so that the report of tomorrow is the same.

    Upstream's words are set as code: GitHub would take an ``@decorator`` for a person to notify, ``#1`` for an issue.
    """
    what = "is blocked" if any(part.after.needs_person for part in turn.parts) else "has another upstream state"
    yield f"# {drift.series.name}: {change.change.id} {what} {_since_words(turn)}"
    yield ""
    if turn.commit:
        yield "Upstream commit:"
        yield ""
        yield f"    {turn.commit.hash} {turn.commit.date}"
        yield f"    {turn.commit.title}"
        yield ""
    yield "What it changed for the series:" if turn.commit else "What is wrong:"
    yield ""
    for part in turn.telling:
        yield f"    {part.words}"
        if part.after.conflict is not None:
            yield f"        looked for: {part.after.conflict.looking_for}"
    yield ""
    if turn.commit:
        command = f"apply-stack --dry-run --explain --series {drift.series.name} --onto {turn.commit.hash[:12]}"
        yield f"`{command}` shows it; `{command}~1` shows how it was."
        yield ""
    yield f"<!-- {MARK} {turn.fingerprint} -->"
    yield ""


def _since_words(turn: Turn) -> str:
    if turn.commit is None:
        return turn.when.value
    number = turn.commit.pull_request
    return f"since {turn.commit.hash[:12]}" + (f" (pytorch/pytorch#{number})" if number else "")
