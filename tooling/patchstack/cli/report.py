"""What a run says: lines for a person, and the same facts as JSON."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from patchstack.applying.execute import Written
from patchstack.applying.onto import Onto
from patchstack.drift.behind import Behind
from patchstack.edits import Conflict, Rung
from patchstack.edits.model import lines_in_words
from patchstack.errors import ExitCode
from patchstack.planning import ChangePlan, ChangeState, EditPlan, StackPlan
from patchstack.planning.advice import Advice
from patchstack.planning.parts import PieceMatch
from patchstack.pulls import PullAction, PullOutcome
from patchstack.resolve.model import Learned, State
from patchstack.resolve.report import resolving_json, resolving_lines
from patchstack.series import in_words
from patchstack.tree.diffs import common_ends, counted
from patchstack.tree.git import Repository

_CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)")
_HELPLESS = "no choice of changes by --only and --replace applies here: the series has to be changed for this tree"
_READ_BY_SHELL = re.compile(r"[\"$`\\!]")  # characters that a shell reads inside double quotes, too


@dataclass(frozen=True)
class RunReport:
    """Everything one run found and did.

    Attributes:
        repository: where.
        onto: on what.
        branch: which branch, written or not.
        plan: the plan.
        written: what was written, ``None`` for a dry run and after conflicts.
        dry_run: whether nothing was to be written.
        pulls: what will become of each pull request.
        advice: ways out of conflicts, each of which was planned and applies.
        next_commands: what to type for each of them.
        history: what history says about each conflict, by the change's id and the conflict.
        patches: files that ``--format-patch`` wrote.
        opened: the worktree that waits for a person, where there is one.
        learned: what a resolve taught the series.
        left: files of that worktree that were not taken.
        notes: sentences about the tree (stand-ins, for a reference tree).
        seconds: wall time of the parts by name.
    """

    repository: Repository
    onto: Onto
    branch: str
    plan: StackPlan
    written: Written | None = None
    dry_run: bool = False
    pulls: tuple[PullOutcome, ...] = ()
    advice: tuple[Advice, ...] = ()
    next_commands: tuple[str, ...] = ()
    history: Mapping[tuple[str, Conflict], Behind] = field(default_factory=dict)
    patches: tuple[str, ...] = ()
    opened: State | None = None
    learned: Learned = field(default_factory=Learned)
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.CONFLICT if self.plan.blocked else ExitCode.OK

    @property
    def submit_command(self) -> str:
        """What to type next; ghstack gives its labels to every pull request that it opens."""
        if not self.written or not self.written.commits:
            return ""
        new = {fate.change for fate in self.pulls if fate.becomes is PullAction.NEW}
        labels = [label for commit in self.plan.commits if commit.change.id in new for label in commit.change.labels]
        listed = ",".join(dict.fromkeys(labels))
        quoted = shlex.quote(listed) if _READ_BY_SHELL.search(listed) else f'"{listed}"'
        return f"ghstack submit --label {quoted}" if labels else "ghstack submit"

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.onto.warnings, *(self.written.warnings if self.written else ()))


def as_json(report: RunReport, *, explain: bool = False) -> dict[str, Any]:
    """The report as JSON-serialisable data; ``explain`` adds each edit's diff."""
    written = report.written
    return {
        "repository": str(report.repository.root),
        "series": report.plan.series.name,
        "onto": report.onto.name,
        "onto_commit": report.plan.onto,
        "branch": report.branch,
        "tip": written.tip if written and written.commits else None,
        "moved": bool(written and written.moved),
        "backup": written.backup or None if written else None,
        "checked": written.checked or None if written else None,
        "dry_run": report.dry_run,
        "exit_code": int(report.exit_code),
        "changes": [_change_json(report, change, explain=explain) for change in report.plan.changes],
        "next": list(map(str, report.advice)),
        "next_commands": list(report.next_commands),
        "conflicts": [
            {
                "change": change.change.id,
                **_conflict_json(conflict),
                **_behind_json(report.history.get((change.change.id, conflict))),
            }
            for change, conflict in report.plan.conflicts()
        ],
        "pull_requests": [fate.as_json() for fate in report.pulls],
        "submit_command": report.submit_command or None,
        "moved_by": {f"{c.path}: {c.looking_for}": behind.touched for (_, c), behind in report.history.items()},
        "patches": list(report.patches),
        "resolve": resolving_json(report.opened, report.learned, report.left),
        "warnings": list(report.warnings),
        "notes": list(report.notes),
        "seconds": {name: round(value, 4) for name, value in report.seconds.items()},
    }


def _change_json(report: RunReport, change: ChangePlan, *, explain: bool) -> dict[str, Any]:
    commits = {c.change.change.id: c.hash for c in report.written.commits} if report.written else {}
    return {
        "id": change.change.id,
        "title": change.change.title,
        "upstream_state": change.state.value,
        "not_applicable": [{"lacks": str(c.marker), "path": c.path, "reason": c.reason} for c in change.unmet],
        "commit": commits.get(change.change.id),
        "ops": list(change.change.ops),
        "labels": list(change.change.labels),
        "markers": dict(change.markers),
        "likeness": round(change.likeness, 3) if change.parts else None,
        "parts": [_part_json(part) for part in change.parts],
        "replaces": change.replaces,
        "replaced": [_part_json(part) for part in change.replaced],
        "edits": [_edit_json(edit, explain=explain) for edit in change.edits],
    }


def _part_json(part: PieceMatch) -> dict[str, Any]:
    """One named thing of a change: where the tree has it, how alike it is, and the diff from the tree's to ours."""
    return {
        "path": part.piece.path,
        "kind": part.piece.kind,
        "name": part.piece.name,
        "verdict": part.verdict,
        "similarity": round(part.similarity, 3),
        "tree_name": part.theirs.name if part.theirs else None,
        "tree_line": (part.theirs.line or None) if part.theirs else None,
        "tree_change": (part.theirs.brought_by or None) if part.theirs else None,
        "diff": "\n".join(part.diff),
    }


def _edit_json(plan: EditPlan, *, explain: bool) -> dict[str, Any]:
    outcome = plan.outcome
    facts: dict[str, Any] = {
        "kind": plan.edit.kind,
        "path": plan.edit.path,
        "does": plan.does,
        "status": outcome.status.value,
        "rung": outcome.rung.value if outcome.rung else None,
        "base": outcome.base or None,
        "anchor": outcome.anchor,
        "matches": [line for line in outcome.matches if line],
        "matches_in_changes": list(outcome.brought_by),
        "note": outcome.said,
        "manifest": plan.edit.where,
    }
    if explain:
        facts["diff"] = "\n".join(edit_diff(plan))
    return facts


def _conflict_json(conflict: Conflict) -> dict[str, Any]:
    return {
        "path": conflict.path,
        "looking_for": conflict.looking_for,
        "problem": conflict.said,
        "expected_matches": conflict.expected_matches,
        "matches": [line for line in conflict.matches if line],
        "matches_in_changes": list(conflict.brought_by),
        "nearest": list(map(str, conflict.nearest)),
        "merge": conflict.merge or None,
    }


def _behind_json(behind: Behind | None) -> dict[str, Any]:
    return {
        "last_touched": (behind.touched or None) if behind else None,
        "anchor_broke": (behind.broke or None) if behind else None,
    }


def lines(report: RunReport, *, explain: bool = False) -> Iterator[str]:
    """The report for a person, line by line, without colours."""
    yield f"{report.plan.series.name}: onto {report.onto.name} ({report.plan.onto[:12]}) in {report.repository.root}"
    for note in report.notes:
        yield f"  note: {note}"
    for warning in report.warnings:
        yield f"  warning: {warning}"
    commits = {c.change.change.id: c.hash for c in report.written.commits} if report.written else {}
    for change in report.plan.changes:
        hash_ = commits.get(change.change.id, "")
        size = f"  {_size(change)}" if change in report.plan.commits else ""
        yield f"  {hash_[:12] or '-' * 12}  {change.change.title}  [{change.state.value}]{size}"
        yield from _state_lines(change, explain=explain)
    if any(fate.pull_request for fate in report.pulls):  # a stack that was never submitted has nothing to tell
        yield "pull requests, from the bottom of the stack up:"
        for fate in report.pulls:
            yield f"  {fate.position or '-'}  {fate}"
    yield from _conflict_lines(report)
    yield _conclusion(report)
    for advice, command in zip(report.advice, report.next_commands, strict=True):
        yield f"{advice}, {_commits(advice.commits)} (next: {command})"
    yield from resolving_lines(report.opened, report.learned, report.left)
    if report.written and report.written.checked:
        yield report.written.checked
    if "--label" in report.submit_command:
        yield f"to submit it with its labels: {report.submit_command} (first: apply-stack submit-check)"


def _state_lines(change: ChangePlan, *, explain: bool) -> Iterator[str]:
    """What the tree has of a change, and what an edit has to say; ``explain`` adds every edit."""
    if change.unmet:
        yield f"      left out, it is for trees in which {in_words(change.unmet)}"
    if change.state is ChangeState.PRESENT and not change.replaces:
        yield f"      upstream has it: {', '.join(change.markers)} ({_likeness(change)}; --explain compares every edit)"
    if change.state is ChangeState.LANDED and not change.replaces:
        yield f"      our change landed with edits ({change.likeness:.0%} alike); from the tree's text to ours:"
        yield from _part_lines(part for part in change.parts if part.verdict != "same")
    elif change.replaces:
        yield f"      replaces what the tree has ({change.likeness:.0%} alike):"
        yield from _part_lines(change.replaced)
    elif explain and change.parts:
        yield from _part_lines(change.parts)
    for edit in change.edits:
        yield from _edit_lines(edit) if explain else _notable_lines(edit)


def _likeness(change: ChangePlan) -> str:
    """How alike the tree's version and ours are, unless the tree lacks files with most of what there is to compare."""
    lacks = dict.fromkeys(p.edit.path.rpartition("/")[2] for p in change.edits if not change.tree.exists(p.edit.path))
    if lacks:
        return f"hardly comparable, this tree lacks {', '.join(lacks)}"
    return f"{change.likeness:.0%} alike" if change.parts else "not compared"


def _part_lines(parts: Iterable[PieceMatch]) -> Iterator[str]:
    for part in parts:
        at = lines_in_words([part.theirs.line], [part.theirs.brought_by]) if part.theirs else ""
        renamed = f" as {part.theirs.name}" if part.theirs and part.verdict == "renamed" else ""
        words = f"{part.verdict}{renamed}" + (f", {part.similarity:.0%} alike" if part.ours and part.theirs else "")
        yield f"        {part.piece.path}: {part.piece.kind} {part.piece.name} ({', '.join(filter(None, [at, words]))})"
        if part.theirs is not None:
            yield from (f"          {line}" for line in part.diff)


def _size(change: ChangePlan) -> str:
    """How many files and lines a commit changes."""
    edits = [plan for plan in change.edits if plan.outcome.after is not None]
    counts = [counted(plan.before or b"", plan.outcome.after or b"") for plan in edits]
    files = len({plan.edit.path for plan in edits})
    more, less = (sum(count[side] for count in counts) for side in (0, 1))
    return f"{files} file{'s' if files != 1 else ''}, +{more} -{less}"


def _notable_lines(plan: EditPlan) -> Iterator[str]:
    """What a person should look at although nobody asked: a merge, and comments that go with what is replaced."""
    outcome = plan.outcome
    if outcome.rung is Rung.THREE_WAY:
        yield f"      {plan.edit.path}: {plan.does}  ({outcome.rung.value} from blob {outcome.base[:12]})"
    elif outcome.note and plan.edit.kind == "replace-definition" and outcome.after is not None:
        yield f"      {plan.edit.path}: {outcome.note}"


def _edit_lines(plan: EditPlan) -> Iterator[str]:
    outcome = plan.outcome
    how = outcome.rung.value if outcome.rung else outcome.status.value
    if outcome.neutral and outcome.said:  # "already there" would say of a removal the contrary of what is meant
        how = outcome.said
    how += f" from blob {outcome.base[:12]}" if outcome.base else ""
    yield f"      {plan.edit.path}: {plan.does}  ({how})"
    found = f"found at {lines_in_words(outcome.matches, outcome.brought_by)}" if outcome.matches else "no line"
    yield f"        anchor: {outcome.anchor}; {found}; {outcome.status.value}"
    if outcome.said:
        yield f"        {outcome.said}"
    for line in edit_diff(plan):
        yield f"        {line}"


def _conflict_lines(report: RunReport) -> Iterator[str]:
    plan = report.plan
    for change in plan.blocked:
        yield f"conflict in {change.change.id} [{change.state.value}]:"
        for edit in change.edits:
            conflict = edit.outcome.conflict
            if conflict is not None:
                yield f"  {conflict}"
                behind = report.history.get((change.change.id, conflict), Behind())
                yield from (f"    {line}" for line in behind.lines)
            elif change.state is ChangeState.PARTIAL and not change.replaces:
                what = f"{edit.edit.path}: {edit.does}: {edit.outcome.status.value}"
                yield f"  {what} {edit.outcome.said}".rstrip()


def _conclusion(report: RunReport) -> str:
    plan, written = report.plan, report.written
    if plan.blocked:
        helpless = "" if report.advice else f"; {_HELPLESS}"
        resolve = "" if report.opened else "; --resolve opens a worktree to answer in"
        return f"nothing was written; --explain shows every anchor and what is nearest to it{resolve}{helpless}"
    if not plan.commits:
        which = "every change that is applicable" if any(c.unmet for c in plan.changes) else "every change"
        return f"nothing left to apply: the tree has {which}; nothing was written"
    count = _commits(len(plan.commits))
    if written is None:
        return f"dry run: {count} would go onto {report.branch}; nothing was written"
    if not written.moved:
        return f"{report.branch} is already at {written.tip[:12]} ({count})"
    kept = f"; the old tip is kept as {written.backup}" if written.backup else ""
    return f"{report.branch} is now at {written.tip[:12]} ({count}){kept}"


def _commits(count: int) -> str:
    return f"{count} commit{'s' if count > 1 else ''}"


def edit_diff(plan: EditPlan) -> list[str]:
    """The edit as a unified diff, computed around the one place that changed."""
    after = plan.outcome.after
    if after is None:
        return []
    old = (plan.before or b"").decode(errors="replace").splitlines()
    new = after.decode(errors="replace").splitlines()
    head, tail = common_ends(old, new)
    start = max(head - _CONTEXT, 0)
    behind = max(tail - _CONTEXT, 0)
    diff = difflib.unified_diff(
        old[start : len(old) - behind],
        new[start : len(new) - behind],
        f"a/{plan.edit.path}",
        f"b/{plan.edit.path}",
        lineterm="",
    )
    return [_hunk_line(plan, start + int(hunk[1])) if (hunk := _HUNK.match(line)) else line for line in diff]


def _hunk_line(plan: EditPlan, line: int) -> str:
    """Where a hunk begins; its line is that of the file in the onto commit."""
    found, change = plan.lines.origin(plan.edit.path, max(line, 1))
    return f"@@ {lines_in_words([found], [change])} @@"
