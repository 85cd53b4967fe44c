"""``apply-stack refresh``: match commits to changes, rewrite what differs in a draft, prove it, publish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchstack.capture.choose import choose, is_shim
from patchstack.capture.commits import changed_lines, read_commit, read_range
from patchstack.capture.compose import Composer
from patchstack.capture.derive import identity_of, markers_of, requirements_of
from patchstack.capture.extend import add_condition
from patchstack.capture.folder import difference, draft, publish, require_own
from patchstack.capture.model import CaptureError, FileChange, Source
from patchstack.capture.run import choices_for
from patchstack.capture.texts import Texts, new_texts
from patchstack.edits import Edit, Status
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.errors import UsageError
from patchstack.planning.three_way import with_merge
from patchstack.planning.upstream import unmet_conditions, why_left_out
from patchstack.refresh.match import Match, find_base, match
from patchstack.series import Change, Series, load_series
from patchstack.stack.record import Made, Record
from patchstack.tree.git import GitCommitHash, Repository, Tree


@dataclass(frozen=True)
class Refreshed:
    """What a run found.

    Attributes:
        folder: the series.
        branch: the branch, or other name of a commit, that it was brought up to.
        matches: its commits, bottom first.
        rewritten: id of a change to the paths whose edits were rewritten, and ``message``.
        dropped: ids of changes that the branch has no commit of.
        diff: the difference of the series, as ``git diff`` writes it.
        is_written: whether the folder has it now.
    """

    folder: Path
    branch: str
    matches: tuple[Match, ...]
    rewritten: Mapping[str, Sequence[str]]
    dropped: tuple[str, ...]
    diff: str
    is_written: bool


@dataclass
class _Work:
    """A run on its way.

    Attributes:
        repository: where the commits are.
        base: the commit below the branch's.
        series: the series as it is.
        made: the record of the series.
        rewritten: as in :class:`Refreshed`.
        recapture: changes and paths that are captured anew, since new texts alone do not give the commit.
    """

    repository: Repository
    base: GitCommitHash
    series: Series
    made: Sequence[Made]
    rewritten: dict[str, list[str]] = field(default_factory=dict)
    recapture: set[tuple[str, str]] = field(default_factory=set)


def refresh(
    repository: Repository,
    folder: Path,
    *,
    branch: str = "",
    base: str = "",
    told: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Refreshed:
    """Rewrite a series so that it gives the commits of a branch.

    Args:
        branch: where the commits are; without it, ``stack/`` and the name of the series.
        base: the commit below them; without it, what the record says.
        told: commits to changes, where the user said so.
        dry_run: write nothing that stays.

    Raises:
        UsageError: there is no such branch or series.
        CaptureError: commits cannot be told apart or captured, or the series was edited since the branch was made.
    """
    require_own(folder)
    series = load_series(str(folder))
    branch = branch or f"stack/{series.name}"
    tip = repository.resolve_commit(branch)
    if tip is None:
        raise UsageError("no such branch", where=branch, next_command="--from BRANCH")
    record = Record(repository).read()
    made = [entry for entry in record if entry.series == series.name]
    below = repository.resolve_commit(base) if base else find_base(repository, tip, made)
    if below is None:
        raise UsageError("no such commit", where=f"--base {base}")
    _, sources = read_range(repository, f"{below}..{tip}")
    matches = match(repository, series, sources, record, told or {})
    work = _Work(repository, below, series, made)
    while True:
        work.rewritten.clear()
        with draft(folder) as copy:
            dropped = _rewrite(work, copy, matches)
            again = _differing(work, copy, matches)
            if again and not again <= work.recapture:
                work.recapture |= again
                continue
            if again:
                change, path = min(again)
                raise CaptureError(f"the series would not give the bytes of {path}", where=change)
            diff = difference(folder, copy)
            if not dry_run:
                publish(copy, folder)
                _record(work, matches, tip)
        return Refreshed(folder, branch, tuple(matches), dict(work.rewritten), dropped, diff, not dry_run)


def made_files(tree: Tree, onto: Tree, change: Change) -> dict[str, bytes] | None:
    """What a change makes of a tree, file by file; ``None`` where an edit does not apply."""
    files, done = dict[str, bytes](), list[Edit]()
    for edit in change.edits:
        if why_left_out(edit, onto):
            continue
        outcome = edit.plan(tree)
        if outcome.conflict is not None:
            outcome = with_merge(edit, tree, outcome, [other for other in done if other.path == edit.path])
        if outcome.after is None and outcome.status is not Status.SATISFIED:
            if outcome.status is Status.NOT_APPLICABLE:
                continue
            return None
        if outcome.after is not None:
            files[edit.path] = outcome.after
            tree = tree.with_files({edit.path: outcome.after})
        done.append(edit)
    return files


def _rewrite(work: _Work, copy: Path, matches: Sequence[Match]) -> tuple[str, ...]:
    """Bring a draft up to the commits; the ids of changes that go."""
    composer, texts = Composer(copy), Texts(copy)
    onto = Tree.at(work.repository, work.base)
    known = {change.id: change for change in work.series.changes}
    order = list[str]()
    for one in matches:
        tree = _tree_below(work, one)
        if one.change:
            _update(work, composer, texts, known[one.change], one.source, tree, onto)
            order.append(one.change)
        else:
            order.append(_added(work, composer, one.source, tree, onto))
    gone = _gone(work, onto, {one.change for one in matches})
    for change in gone:
        composer.remove(change, texts)
    composer.reorder(order)
    composer.save()
    return gone


def _tree_below(work: _Work, one: Match) -> Tree:
    """The tree that a commit was made on; below it may be one of another series."""
    return Tree.at(work.repository, work.repository.commit(one.source.commit).parents[0])


def _gone(work: _Work, onto: Tree, matched: set[str]) -> tuple[str, ...]:
    """The changes that were commits of the branch when it was made, and are none now."""
    last = {entry.change for entry in work.made if entry.onto == work.base}
    return tuple(
        change.id
        for change in work.series.changes
        if change.id not in matched and change.id in last and not unmet_conditions(change, onto)
    )


def _added(work: _Work, composer: Composer, source: Source, tree: Tree, onto: Tree) -> str:
    choices = tuple(choices_for(work.repository, tree, source))
    edits = [choice.edit for choice in choices]
    identity = identity_of(source.title, edits, composer.identities)
    after = tree.with_files({change.path: change.after for change in source.files})
    composer.add_bases({edit.path: blob for edit in edits if (blob := onto.blob_hash(edit.path))})
    composer.add(source, identity, choices, markers_of(edits, tree, after), requirements_of(edits, onto))
    work.rewritten[identity] = [change.path for change in source.files]
    return identity


def _update(
    work: _Work, composer: Composer, texts: Texts, change: Change, source: Source, tree: Tree, onto: Tree
) -> None:
    files = made_files(tree, onto, change) or {}
    wanted = {file.path: file for file in source.files}
    differing = sorted(p for p in files.keys() | wanted.keys() if files.get(p) != _after(wanted.get(p)))
    if differing or composer.says_other(change.id, source):
        _require_unedited(work, change)
    for path in differing:
        layer = composer.layer_of(change.id)
        fresh = _fresh_texts(work, change, path, files.get(path), wanted.get(path), onto)
        if fresh:
            for edit, text in fresh:
                texts.put(edit, layer, text)
        elif any(_is_for_some(edit) for edit in change.edits if edit.path == path):
            _add_for_tree(work, composer, change, path, files.get(path), wanted.get(path), tree, onto)
        else:
            composer.drop_path(change.id, path, texts)
            if path in wanted:
                _recapture(work, composer, change.id, wanted[path], source, tree, onto)
        work.rewritten.setdefault(change.id, []).append(path)
    if composer.update_message(change.id, source):
        work.rewritten.setdefault(change.id, []).append("message")


def _after(file: FileChange | None) -> bytes | None:
    return file.after if file else None


def _fresh_texts(
    work: _Work, change: Change, path: str, made: bytes | None, wanted: FileChange | None, onto: Tree
) -> list[tuple[Edit, bytes]]:
    if made is None or wanted is None or (change.id, path) in work.recapture:
        return []
    edits = [edit for edit in change.edits if edit.path == path and not why_left_out(edit, onto)]
    return new_texts(edits, made, wanted.after, changed_lines(work.repository, made, wanted.after))


def _recapture(
    work: _Work, composer: Composer, change: str, file: FileChange, source: Source, tree: Tree, onto: Tree
) -> None:
    if is_shim(file.path):
        tree = tree.with_files({other.path: other.after for other in source.files if not is_shim(other.path)})
    alone = Source(source.commit, source.title, source.body, source.co_authors, (file,))
    choices = tuple(choices_for(work.repository, tree, alone))
    composer.add_bases({choice.edit.path: blob for choice in choices if (blob := onto.blob_hash(choice.edit.path))})
    composer.add_edits(change, choices)


def _is_for_some(edit: Edit) -> bool:
    """Whether an edit is for some trees, or has text for several."""
    return bool(edit.only_where) or (isinstance(edit, ApplyDiff) and bool(edit.others))


def _add_for_tree(
    work: _Work,
    composer: Composer,
    change: Change,
    path: str,
    made: bytes | None,
    wanted: FileChange | None,
    tree: Tree,
    onto: Tree,
) -> None:
    """Capture what an amendment does beyond the texts, for trees of this kind alone: the series has text for others.

    Raises:
        CaptureError: nothing tells trees of this kind from the others.
    """
    edits = [edit for edit in change.edits if edit.path == path and not why_left_out(edit, onto)]
    conditions = next((edit.only_where for edit in edits if edit.only_where), ())
    if made is None or wanted is None or not conditions or any(edit.unless for edit in edits):
        raise CaptureError(
            f"the amendment of {path} lies outside the texts of its edits, which has other texts for other trees, and"
            " no condition is for trees like this one alone",
            where=str(work.series.manifest),
            next_command="give the edits of this tree 'only_where' in the manifest, then this again",
        )
    lines = changed_lines(work.repository, made, wanted.after)
    choices = tuple(choose(tree.with_files({path: made}), FileChange(path, made, wanted.after), lines))
    for entry in composer.add_edits(change.id, choices):
        for condition in conditions:
            add_condition(entry, condition.marker, condition.reason)


def _require_unedited(work: _Work, change: Change) -> None:
    """Refuse to rewrite a change that is not the one which the branch was made from.

    Raises:
        CaptureError: the series makes other bytes than those that were recorded.
    """
    for entry in reversed(work.made):
        if entry.change == change.id:
            commit = work.repository.resolve_commit(entry.commit)
            parents = work.repository.commit(entry.commit).parents if commit else ()
            if commit is None or not parents:
                return  # it was cleaned away, so nothing tells
            recorded = read_commit(work.repository, commit, parents[0])
            tree, onto = Tree.at(work.repository, parents[0]), Tree.at(work.repository, entry.onto)
            if made_files(tree, onto, change) != {file.path: file.after for file in recorded.files}:
                raise CaptureError(
                    f"change '{change.id}' was edited in the series since the branch was made, and on the branch too",
                    where=str(work.series.manifest),
                    next_command="apply-stack --branch OTHER for the series' own commits, then merge the two",
                )
            return


def _differing(work: _Work, copy: Path, matches: Sequence[Match]) -> set[tuple[str, str]]:
    """The changes and paths of which the draft does not give the bytes of the commit."""
    series = load_series(str(copy))
    by_title = {change.title: change for change in series.changes}
    onto, found = Tree.at(work.repository, work.base), set[tuple[str, str]]()
    for one in matches:
        change = by_title[one.source.title]
        files = made_files(_tree_below(work, one), onto, change) or {}
        wanted = {file.path: file.after for file in one.source.files}
        found |= {(change.id, path) for path in files.keys() | wanted.keys() if files.get(path) != wanted.get(path)}
    return found


def _record(work: _Work, matches: Sequence[Match], tip: GitCommitHash) -> None:
    """Note the commits of the branch as what the series makes, so that they are no strangers any more."""
    ids = {change.title: change.id for change in load_series(str(work.series.manifest.parent)).changes}
    entries = list[Made]()
    for one in matches:
        commit = work.repository.commit(one.source.commit)
        change = ids[one.source.title]
        entries.append(Made(commit.hash, commit.tree, work.series.name, change, commit.message, work.base))
    Record(work.repository).append(entries)


def lines(found: Refreshed) -> Iterator[str]:
    """The report for a terminal."""
    for one in found.matches:
        yield f"{one.source.commit[:12]} {one.source.title}: {one.change or 'new'} ({one.why})"
        if paths := found.rewritten.get(one.change):
            yield f"  rewritten: {', '.join(paths)}"
    yield from (f"dropped: {change}" for change in found.dropped)
    yield from found.diff.splitlines()
    if not found.diff:
        yield f"{found.folder} gives the commits of {found.branch} as it is"
    else:
        yield f"{found.folder} gives them now" if found.is_written else "dry run: nothing was written"


def as_json(found: Refreshed) -> dict[str, Any]:
    """The report as data."""
    return {
        "series": str(found.folder),
        "branch": found.branch,
        "written": found.is_written,
        "commits": [
            {"commit": one.source.commit, "title": one.source.title, "change": one.change, "why": one.why}
            for one in found.matches
        ],
        "rewritten": {change: list(paths) for change, paths in found.rewritten.items()},
        "dropped": list(found.dropped),
        "diff": found.diff,
    }
