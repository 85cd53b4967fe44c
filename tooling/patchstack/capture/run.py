"""``apply-stack capture``: read the commits, choose edits, write a draft, prove the round trip, publish."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchstack.capture.choose import choose, is_shim, schema_notes, shim_choice
from patchstack.capture.commits import changed_lines, read_range
from patchstack.capture.compose import Composer, unique_titles
from patchstack.capture.derive import identity_of, markers_of, needs_of, requirements_of
from patchstack.capture.folder import draft, publish, require_own
from patchstack.capture.model import Captured, CaptureError, Choice, FileChange, Source
from patchstack.errors import UsageError
from patchstack.planning import plan_stack
from patchstack.series import Series, load_series
from patchstack.series.load import IDENTITY
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.hunks import LineChange
from patchstack.tree.native_functions import FUNCTIONS_PATH


@dataclass(frozen=True)
class Capture:
    """What a run captured.

    Attributes:
        folder: the series.
        base: the commit below the captured ones.
        changes: the captured commits.
        is_written: whether the folder has them now.
    """

    folder: Path
    base: GitCommitHash
    changes: tuple[Captured, ...]
    is_written: bool


def capture(repository: Repository, commits: str, folder: Path, *, name: str = "", dry_run: bool = False) -> Capture:
    """Capture commits as the changes of a series, new or extended.

    Args:
        commits: ``BASE..HEAD``.
        name: id of the change; of several commits, the first one's, and the others get a number.
        dry_run: write nothing that stays.

    Raises:
        UsageError: the range or the folder cannot be used.
        CaptureError: a commit cannot be captured, or the series would not give its bytes; nothing is written.
    """
    require_own(folder)
    if name and not IDENTITY.match(name):
        raise UsageError(f"--name: '{name}' cannot be an id", expected="a-z, 0-9, '_', '.', '-'")
    base, sources = read_range(repository, commits)
    with draft(folder) as copy:
        composer = Composer(copy)
        for title in unique_titles(sources, composer.titles):
            problem = f"two changes would have the title '{title}'"
            raise UsageError(problem, where=str(folder), next_command="apply-stack refresh, if it was captured before")
        changes = tuple(_captured(repository, composer, base, sources, name))
        composer.save()
        needs = needs_of(repository, load_series(str(copy)), base, [change.identity for change in changes])
        composer.add_needs(needs)
        composer.save()
        require_round_trip(repository, load_series(str(copy)), base, changes)
        if not dry_run:
            publish(copy, folder)
    changes = tuple(_with_needs(change, needs[change.identity]) for change in changes)
    return Capture(folder, base, changes, not dry_run)


def _captured(
    repository: Repository, composer: Composer, base: GitCommitHash, sources: Sequence[Source], name: str
) -> Iterator[Captured]:
    onto, below = Tree.at(repository, base), base
    for source in sources:
        tree = Tree.at(repository, below)
        choices = tuple(choices_for(repository, tree, source))
        edits = [choice.edit for choice in choices]
        identity = identity_of(source.title, edits, composer.identities, name)
        after = tree.with_files({change.path: change.after for change in source.files})
        markers, requirements = markers_of(edits, tree, after), requirements_of(edits, onto)
        blobs = {path: blob for edit in edits if (blob := onto.blob_hash(path := edit.path))}
        composer.add_bases(blobs)
        choices = composer.add(source, identity, choices, markers, requirements)
        notes = [note for change in source.files if change.path == FUNCTIONS_PATH for note in schema_notes(change)]
        yield Captured(source, identity, choices, notes=tuple(notes))
        below = source.commit


def choices_for(repository: Repository, tree: Tree, source: Source) -> Iterator[Choice]:
    """Edits for all files of a commit; headers that torchgen makes come last, since it reads the others."""
    shims = [change for change in source.files if is_shim(change.path)]
    for change in source.files:
        if change not in shims:
            yield from choose(tree, change, _lines(repository, change))
    tree = tree.with_files({change.path: change.after for change in source.files if change not in shims})
    for change in shims:
        made = shim_choice(tree, change)
        yield from [made] if made else choose(tree, change, _lines(repository, change))


def _lines(repository: Repository, change: FileChange) -> list[LineChange]:
    return changed_lines(repository, change.before, change.after) if change.before is not None else []


def require_round_trip(
    repository: Repository, series: Series, base: GitCommitHash, changes: Sequence[Captured]
) -> None:
    """Refuse a series that does not give the bytes of the commits on the commit below them.

    Raises:
        CaptureError: names the first file that would be another.
    """
    ids = [change.identity for change in changes]
    plans = {plan.change.id: plan for plan in plan_stack(repository, series, base, only=ids, closure=False).changes}
    for change in changes:
        plan, where = plans[change.identity], f"{change.source.commit[:12]} {change.source.title}"
        wanted = {file.path: file.after for file in change.source.files}
        if plan.conflicts:
            raise CaptureError("the captured change would not apply", where=where, found=str(plan.conflicts[0]))
        for path in sorted(wanted.keys() | plan.files.keys()):
            if plan.files.get(path) != wanted.get(path):
                problem = f"the captured series would not give the bytes of {path}"
                raise CaptureError(problem, where=where, found=f"state {plan.state.value}")


def _with_needs(change: Captured, needs: Sequence[str]) -> Captured:
    return dataclasses.replace(change, needs=tuple(needs))
