"""The submit as it would be, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patchstack.pulls.submission import Action, Concern, Submission, SubmittedCommit


def as_json(submission: Submission) -> dict[str, Any]:
    """Everything as JSON-serialisable data; ``last_fetched`` is ``null`` where it is not known."""
    return {
        "repository": str(submission.repository.root),
        "branch": submission.branch,
        "remote": submission.settings.remote,
        "target": submission.target or None,
        "boundary": submission.boundary,
        "last_fetched": submission.fetched.isoformat() if submission.fetched else None,
        "ready": not submission.exit_code,
        "exit_code": int(submission.exit_code),
        "commits": [_commit_json(item) for item in submission.commits],
        "concerns": [_concern_json(concern) for concern in submission.concerns],
    }


def _commit_json(item: SubmittedCommit) -> dict[str, Any]:
    pull = item.pull_request
    return {
        "position": item.position,
        "commit": item.commit.hash,
        "title": item.commit.title,
        "action": item.action.value,
        "pull_request": pull.url if pull else None,
        "number": pull.number if pull else None,
        "place": item.place or None,
        "intended": item.intended,
        "fields_differ": item.fields_differ,
    }


def _concern_json(concern: Concern) -> dict[str, Any]:
    return {
        "rule": concern.rule,
        "stops": concern.stops,
        "where": concern.where,
        "problem": concern.problem,
        "next_command": concern.next_command,
    }


def lines(submission: Submission) -> Iterator[str]:
    """The same for a person, line by line, without colours."""
    where = submission.target or f"remote {submission.settings.remote}"
    yield f"ghstack would submit {submission.branch} to {where}, oldest first:"
    for item in submission.commits:
        yield f"  {item.position}  {item.commit.hash[:12]}  {_outcome(item):<16} {item.commit.title}"
    fetched = submission.fetched
    yield f"last fetched: {fetched.isoformat(timespec='minutes') if fetched else 'unknown'}; ghstack fetches first"
    for concern in submission.concerns:
        yield f"{'would go wrong:' if concern.stops else '  note:'} {concern}"
    stopping = sum(concern.stops for concern in submission.concerns)
    if stopping:
        yield f"not ready: {stopping} thing{'s' if stopping > 1 else ''} to put right first"
    else:
        yield "ready"


def _outcome(item: SubmittedCommit) -> str:
    if item.action is Action.EMPTY:
        return "left out, empty"
    if item.action is Action.LANDED:
        return "left out, landed"
    if item.pull_request is None:
        return f"new {item.place}".strip()
    verb = "unchanged" if item.action is Action.SKIPPED else "updates"
    return f"{verb} #{item.pull_request.number}"
