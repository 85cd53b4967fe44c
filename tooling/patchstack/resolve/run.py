"""``apply-stack --resolve`` and ``apply-stack resolve``: open a worktree at a conflict, take what a person makes of it.

The state is written before the worktree is made and after it is complete, so that a killed run is known to be one: its
worktree is made again, or taken away. The branch and the series change at the end alone, each in one step.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from patchstack.applying.execute import Written, write_stack, write_unnamed
from patchstack.applying.lock import RunLock, run_lock
from patchstack.errors import RefError, TreeError
from patchstack.planning import ChangePlan, StackPlan, plan_stack
from patchstack.resolve.conflicts import Shown, marker_line, show
from patchstack.resolve.learn import learn
from patchstack.resolve.model import ABORT, CONTINUE, Aim, Learned, OpenFile, ResolveError, State
from patchstack.resolve.settled import Result, read_result, require_same_below, with_results
from patchstack.resolve.state import StateFile
from patchstack.resolve.worktree import Worktree, new_place
from patchstack.series import load_series
from patchstack.stack.branch import read_branch
from patchstack.stack.record import Record
from patchstack.stack.refs import read_refs
from patchstack.tree.git import GitCommitHash, Repository, Tree


@dataclass(frozen=True)
class Step:
    """Where a resolve stands after a command.

    Attributes:
        state: what waits for a person; ``None`` when the branch is written.
        plan: the plan, with the results so far.
        written: what was written in the end.
        learned: what the series learned.
        left: files of the worktree that git knew nothing of, and that were not taken.
    """

    state: State | None
    plan: StackPlan
    written: Written | None = None
    learned: Learned = dataclasses.field(default_factory=Learned)
    left: tuple[str, ...] = ()


def start(repository: Repository, aim: Aim, plan: StackPlan) -> Step:
    """Open a worktree at the first conflict of a plan.

    Raises:
        RefError: the branch holds commits of somebody else, or cannot be written.
        ResolveError: another resolve is under way.
        TreeError: the worktree cannot be made.
    """
    file = StateFile(repository)
    with run_lock(repository) as lock:
        before = file.read()
        if before is not None and before.is_open:
            problem = f"a resolve of change '{before.change}' is under way"
            raise ResolveError(problem, where=before.worktree, next_command=f"{CONTINUE}, or {ABORT}")
        refs = read_refs(repository, aim.branch)
        refs.require_writable()
        branch = read_branch(repository, refs, plan.onto, Record(repository).read())
        if not aim.force:
            branch.require_own()
        if before is not None:  # of a run that was killed
            Worktree(repository, before.folder).remove()
        state = State(aim, str(new_place(plan.series.name)))
        return Step(_opened(repository, lock, state, plan), plan)


def go_on(repository: Repository) -> Step:
    """Take what a person made of the conflict, and open the next one, or write the branch.

    Raises:
        ResolveError: there is nothing to take, or it is not settled.
        CaptureError: it holds what no series could say.
        RefError: the branch cannot be written; the results are kept, and ``--continue`` tries again.
    """
    file, left = StateFile(repository), tuple[str, ...]()
    with run_lock(repository) as lock:
        state = file.require()
        if not state.is_open:  # killed while the worktree was made
            plan = _planned(repository, state)
            again = _opened(repository, lock, state, plan)
            problem = "the worktree was left half made by a run that was killed; it is whole now, and nobody edited it"
            raise ResolveError(problem, where=again.worktree, next_command=f"edit it, then {CONTINUE}")
        if state.change:
            worktree = Worktree(repository, state.folder)
            worktree.require()
            state, left = _taken(repository, worktree, state)
        plan = _planned(repository, state)
        stopped = plan.blocked[:1]
        if stopped and stopped[0].change.id in state.results:
            said = "; ".join(map(str, stopped[0].conflicts)) or f"state '{stopped[0].state.value}'"
            problem = f"the result of change '{stopped[0].change.id}' cannot be taken as it is"
            raise ResolveError(problem, where=state.worktree, found=said, next_command=f"edit it, then {CONTINUE}")
        if stopped:
            return Step(_opened(repository, lock, state, plan), plan, left=left)
        state = file.write(dataclasses.replace(state, change="", files=()))
        trees = [commit.tree for commit in write_unnamed(repository, plan, lock.scratch)]
        require_same_below(repository, plan, _results(repository, state), [*trees])
    return dataclasses.replace(_finished(repository, state, plan), left=left)


def abort(repository: Repository) -> State | None:
    """Take the worktree and the state away; what they were, if there was anything that could be read.

    Raises:
        ResolveError: nothing is being resolved.
    """
    file = StateFile(repository)
    with run_lock(repository):
        try:
            state: State | None = file.require()
        except TreeError:  # damaged: where the worktree is cannot be told
            state = None
        _away(repository, file, state)
        return state


def _away(repository: Repository, file: StateFile, state: State | None) -> None:
    """The state goes last: whoever is killed before knows what is still to be taken away."""
    if state is not None:
        Worktree(repository, state.folder).remove()
    file.remove()


def _results(repository: Repository, state: State) -> dict[str, Result]:
    return {change: read_result(repository, commit) for change, commit in state.results.items()}


def _planned(repository: Repository, state: State) -> StackPlan:
    aim = state.aim
    series = with_results(load_series(aim.series), _results(repository, state))
    return plan_stack(repository, series, GitCommitHash(aim.onto), only=aim.only, replace=aim.replace)


def _opened(repository: Repository, lock: RunLock, state: State, plan: StackPlan) -> State:
    """Bring the worktree to the first change that stops the plan."""
    file, stopped = StateFile(repository), plan.blocked[0]
    at = plan.changes.index(stopped)
    lower = dataclasses.replace(plan, changes=plan.changes[:at])
    commits = write_unnamed(repository, lower, lock.scratch)
    require_same_below(repository, lower, _results(repository, state), [commit.tree for commit in commits])
    base = commits[-1].hash if commits else plan.onto
    closing = dataclasses.replace(state, is_open=False, change=stopped.change.id, base=base, files=())
    file.write(closing)
    worktree = Worktree(repository, state.folder)
    for one in state.files:
        if one.beside:
            (worktree.path / one.beside).unlink(missing_ok=True)
    worktree.open(base)
    files = _laid_out(worktree, *_shown(repository, state, plan, stopped, base))
    return file.write(dataclasses.replace(closing, is_open=True, files=files))


def _shown(
    repository: Repository, state: State, plan: StackPlan, stopped: ChangePlan, base: GitCommitHash
) -> tuple[dict[str, bytes], list[Shown]]:
    by_id = {change.id: change for change in load_series(state.aim.series).changes}
    below = [one.change.id for one in plan.changes[: plan.changes.index(stopped)] if not one.unmet]
    earlier = [edit for name in below for edit in by_id[name].edits]
    return show(stopped, Tree.at(repository, base), earlier, state.aim.onto_name)


def _laid_out(worktree: Worktree, files: dict[str, bytes], shown: Sequence[Shown]) -> tuple[OpenFile, ...]:
    texts = {**files, **{one.beside: one.text for one in shown if one.beside}}
    for path, text in texts.items():
        place = worktree.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
    return tuple(OpenFile(one.path, _digest(worktree, one.path), one.beside, one.problem) for one in shown)


def _digest(worktree: Worktree, path: str) -> str:
    try:
        return hashlib.sha256((worktree.path / path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _taken(repository: Repository, worktree: Worktree, state: State) -> tuple[State, tuple[str, ...]]:
    """The state with what is in the worktree as the result of the change.

    Raises:
        ResolveError: nothing was edited, or markers are left.
    """
    _require_edited(worktree, state)
    series = load_series(state.aim.series)
    change = next((one for one in series.changes if one.id == state.change), None)
    if change is None:
        raise ResolveError(f"the series has no change '{state.change}' any more", next_command=ABORT)
    tree = worktree.result(dict.fromkeys(edit.path for edit in change.edits))
    signed_off = ("-c", "user.name=patchstack", "-c", "user.email=patchstack@example.invalid")
    words = [*signed_off, "commit-tree", tree, "-p", state.base, "-m", change.title]
    result = read_result(repository, os.fsdecode(repository.git(*words)).strip())
    for file in result.files:
        if line := marker_line(file.before or b"", file.after):
            raise ResolveError(
                "a conflict marker is left",
                where=f"{worktree.path / file.path}:{line}",
                next_command=f"edit it, then {CONTINUE}",
            )
    beside = {one.beside for one in state.files}
    left = tuple(name for name in worktree.untracked() if name not in beside)
    results = {**state.results, state.change: str(result.commit)}
    return dataclasses.replace(state, results=results), left


def _require_edited(worktree: Worktree, state: State) -> None:
    same = [one for one in state.files if _digest(worktree, one.path) == one.written]
    if state.files and len(same) == len(state.files) and all(_is_beside(worktree, one) for one in same):
        raise ResolveError(
            "nothing was edited",
            where=str(worktree.path),
            expected=f"an answer to the conflict in {', '.join(dict.fromkeys(one.path for one in same))}",
            next_command=f"edit it, then {CONTINUE}, or {ABORT}",
        )
    forgotten = [one for one in same if one.beside and _is_beside(worktree, one)]
    if forgotten:
        raise ResolveError(
            f"{forgotten[0].path} was not edited, and the change would go without what is in {forgotten[0].beside}",
            where=str(worktree.path),
            next_command=f"edit it, or delete {forgotten[0].beside} to leave that out, then {CONTINUE}",
        )


def _is_beside(worktree: Worktree, one: OpenFile) -> bool:
    return not one.beside or (worktree.path / one.beside).exists()


def _finished(repository: Repository, state: State, plan: StackPlan) -> Step:
    """Teach the series, move the branch, and take the worktree away."""
    aim, results = state.aim, _results(repository, state)
    learned = learn(repository, aim, plan, results)
    series = with_results(load_series(aim.series), {name: results[name] for name in learned.missing})
    plan = plan_stack(repository, series, plan.onto, only=aim.only, replace=aim.replace)
    written = write_stack(repository, plan, aim.branch, force=aim.force, check=aim.check)
    with run_lock(repository):
        file = StateFile(repository)
        if file.read() != state:
            raise RefError("another run has finished this resolve", where=aim.branch)
        _away(repository, file, state)
    return Step(None, plan, written, learned)
