"""Building a reference tree once and finding it again in milliseconds.

A tree is built in a folder of its own and renamed into place when it is complete, so that a killed build leaves nothing
that a later run takes for a tree. Its folder's name carries a key over everything that went into it (layout, artefact,
stand-ins): when one of those changes another folder is built beside it, and a stack somebody made in the old one stays
until the old one has not been used for two weeks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchstack.cache import cache_dir, is_refusal, writing
from patchstack.errors import TreeError, UsageError
from patchstack.reference import artefacts, found, standins
from patchstack.reference.gitbuild import BRANCH, NewCommit, create_repository
from patchstack.reference.model import Progress, ReferenceSpec, ReferenceTree, SourceFile, WheelOrigin
from patchstack.reference.progress import quiet
from patchstack.reference.sources import (
    InstalledTorch,
    files_of_installed,
    files_of_tarball,
    files_of_wheel,
    find_installed,
)
from patchstack.reference.stamp import read_stamp, write_stamp
from patchstack.tree.git.model import GitCommitHash
from patchstack.tree.git.process import run_git

COMMAND, WHEEL_OPTION = "python -m patchstack.reference", "--wheel"

LAYOUT_VERSION = 1
"""Raised when the same artefact is laid out differently, so that cached trees are rebuilt."""

_FORGET_AFTER_SECONDS = 14 * 24 * 3600


@dataclass(frozen=True)
class Surroundings:
    """What a build takes from outside; tests put their own in.

    Attributes:
        cache: the project's cache folder.
        stand_ins: folder with one folder of stand-ins per tree.
        fetch: downloads an artefact.
        ask: finds a release that is not pinned.
    """

    cache: Path
    stand_ins: Path = standins.STAND_INS
    fetch: artefacts.Fetch = artefacts.fetch_artefact
    ask: found.Ask = found.ask_pip

    @property
    def trees(self) -> Path:
        """The folder of the trees, their locks, and the notes of found releases."""
        return self.cache / "reference"


def build_reference(
    name: str, *, cache: Path | None = None, progress: Progress = quiet, offline: bool = False
) -> ReferenceTree:
    """The reference tree of that name, from the cache when it is there, else built now.

    Args:
        name: ``2.11``, ``2.13``, ... as in :data:`patchstack.reference.SPECS`; another version, or ``latest``.
        cache: the project's cache folder; :func:`patchstack.cache.cache_dir` when left out.
        progress: told each step of a build; a tree that is there already is found in silence.
        offline: fail rather than use the network.

    Raises:
        UsageError: this names no release.
        TreeError: it cannot be built here, or the cached one was changed.
    """
    surroundings = Surroundings((cache or cache_dir()).resolve())
    spec = release_spec(name, surroundings, progress=progress, offline=offline)
    return build_spec(spec, surroundings, progress=progress, offline=offline)


def release_spec(
    name: str, surroundings: Surroundings, *, progress: Progress = quiet, offline: bool = False
) -> ReferenceSpec:
    """The specification of a release: the pinned one, or of the wheel that the user's pip finds.

    Raises:
        UsageError: this names no release.
        TreeError: no wheel of it is to be had.
    """
    spec = found.known_spec(name, surroundings.trees)
    if spec is not None:
        return spec

    def obtain(spec: ReferenceSpec) -> Path:
        return _obtain_wheel(spec, surroundings, progress, offline=offline)

    with writing(surroundings.cache), _only_one(surroundings.trees / "releases.lock", name, progress):
        return found.find_release(
            name, surroundings.trees, obtain, surroundings.ask, progress=progress, offline=offline
        )


def is_known(name: str) -> bool:
    """Whether that release is pinned, or was found by an earlier run."""
    try:
        return found.known_spec(name, Surroundings(cache_dir()).trees) is not None
    except UsageError:
        return False


def build_spec(
    spec: ReferenceSpec, surroundings: Surroundings, *, progress: Progress = quiet, offline: bool = False
) -> ReferenceTree:
    """As :func:`build_reference`, for a specification that need not be in the registry."""
    stand_ins = standins.stand_ins_of(spec.stand_ins_of or spec.name, surroundings.stand_ins)
    folder = surroundings.trees
    pinned = _slot(folder, spec, spec.artefact.sha256, stand_ins)
    tree = _cached(pinned)
    if tree is not None:
        return tree
    installed = _installed_instead(spec)
    origin = f"{installed.version} {installed.record_digest()}" if installed else spec.artefact.sha256
    job = _Job(spec, surroundings, stand_ins, installed, pinned, _slot(folder, spec, origin, stand_ins))
    with writing(surroundings.cache), _only_one(folder / f"{spec.name}.lock", spec.name, progress):
        tree = _cached(pinned) or _cached(job.own)
        if tree is None:
            _clear_leftovers(folder, spec)
            tree = _build(job, progress, offline=offline)
            _forget_unused(folder, spec, tree.path)
    return tree


def reference_wheel(name: str, *, cache: Path | None = None, progress: Progress = quiet, offline: bool = False) -> Path:
    """The verified macOS wheel of that release, for readers of what the tree leaves out (the libraries).

    Raises:
        UsageError: there is no such tree.
        TreeError: the tree does not come from a wheel, or the wheel is not to be had.
    """
    surroundings = Surroundings((cache or cache_dir()).resolve())
    spec = release_spec(name, surroundings, progress=progress, offline=offline)
    if not isinstance(spec.origin, WheelOrigin):
        raise TreeError("this reference tree does not come from a wheel", where=name, found=spec.artefact.filename)
    with writing(surroundings.cache), _only_one(surroundings.trees / f"{spec.name}.lock", spec.name, progress):
        return _obtain_wheel(spec, surroundings, progress, offline=offline)


def _obtain_wheel(spec: ReferenceSpec, surroundings: Surroundings, progress: Progress, *, offline: bool) -> Path:
    return artefacts.obtain(
        spec,
        surroundings.cache / "downloads",
        progress=progress,
        offline=offline,
        fetch=surroundings.fetch,
        next_command=f"{COMMAND} {WHEEL_OPTION} {spec.name}",
    )


def _installed_instead(spec: ReferenceSpec) -> InstalledTorch | None:
    """The installed torch when it serves for this release and the user does not point to a wheel."""
    if not isinstance(spec.origin, WheelOrigin) or not spec.origin.accepts_installed:
        return None
    own = artefacts.users_copy(spec)
    return None if own is not None and own.is_file() else find_installed(spec.name)


@dataclass(frozen=True)
class _Slot:
    """Where a tree made from certain things belongs.

    Attributes:
        place: the tree's folder.
        key: digest over those things; the last part of the folder's name.
    """

    place: Path
    key: str


def _slot(folder: Path, spec: ReferenceSpec, origin: str, stand_ins: Sequence[SourceFile]) -> _Slot:
    everything = f"{LAYOUT_VERSION}\n{spec!r}\n{origin}\n{standins.digest(stand_ins)}\n"
    key = hashlib.sha256(everything.encode()).hexdigest()[:12]
    return _Slot(folder / f"pytorch-{spec.name}-{key}", key)


def _cached(slot: _Slot) -> ReferenceTree | None:
    """The finished tree of that slot, or None when there is none.

    Raises:
        TreeError: its ``main`` was moved.
    """
    place = slot.place
    tree = read_stamp(place, slot.key)
    if tree is None:
        return None
    loose = place / ".git" / "refs" / "heads" / BRANCH
    try:
        tip = loose.read_text(encoding="ascii").strip()
    except OSError:  # packed, or gone
        tip = run_git(place, ["for-each-ref", "--format=%(objectname)", f"refs/heads/{BRANCH}"]).decode().strip()
    if tip != tree.commit:
        raise TreeError(
            f"branch {BRANCH} of this reference tree was moved",
            where=str(place),
            expected=tree.commit,
            found=tip or "no such branch",
            next_command=f"git -C {shlex.quote(str(place))} update-ref refs/heads/{BRANCH} {tree.commit}",
        )
    return tree


@dataclass(frozen=True)
class _Job:
    """One build.

    Attributes:
        installed: the installed torch it is made from; None when it is made from the artefact.
        pinned: the slot of a tree that has the pinned files, whatever they were taken from.
        own: the slot of a tree made from ``installed`` when that has other files; else the same as ``pinned``.
    """

    spec: ReferenceSpec
    surroundings: Surroundings
    stand_ins: tuple[SourceFile, ...]
    installed: InstalledTorch | None
    pinned: _Slot
    own: _Slot


def _build(job: _Job, progress: Progress, *, offline: bool) -> ReferenceTree:
    spec = job.spec
    files, described, version = _files(job, progress, offline=offline)
    commits = [NewCommit(_release_message(spec, described), files, spec.released_at)]
    if job.stand_ins:
        message = standins.commit_message(spec, job.stand_ins)
        commits.append(NewCommit(message, job.stand_ins, spec.released_at + 1))
    progress(f"writing the tree of PyTorch {spec.version} from {described}")
    # Never the same name twice: git commands of a killed build may still be writing to theirs.
    unfinished = job.own.place.with_name(f"{_unfinished_prefix(spec)}{secrets.token_hex(4)}")
    try:
        ids = create_repository(unfinished, commits)
        as_pinned = job.installed is None or _source_tree(unfinished, ids[0]) == spec.source_tree
        slot = job.pinned if as_pinned else job.own
        tree = ReferenceTree(
            name=spec.name,
            version=version,
            path=slot.place,
            commit=ids[-1],
            release_commit=ids[0],
            stand_ins=tuple(file.path for file in job.stand_ins),
            notes=_notes(job, described, as_pinned=as_pinned),
        )
        write_stamp(unfinished, slot.key, tree)
        if slot.place.exists():  # without a stamp, so it is no tree of ours
            shutil.rmtree(slot.place)
        os.rename(unfinished, slot.place)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    progress(f"reference tree {spec.name} is ready at {tree.path}")
    return tree


def _source_tree(repository: Path, release_commit: GitCommitHash) -> str:
    return run_git(repository, ["rev-parse", f"{release_commit}^{{tree}}"]).decode().strip()


def _files(job: _Job, progress: Progress, *, offline: bool) -> tuple[Iterator[SourceFile], str, str]:
    """The release's files, what they come from in words, and the version of that."""
    if job.installed is not None:
        return files_of_installed(job.installed), f"the installed torch {job.installed.version}", job.installed.version
    artefact = artefacts.obtain(
        job.spec,
        job.surroundings.cache / "downloads",
        progress=progress,
        offline=offline,
        fetch=job.surroundings.fetch,
        next_command=f"{COMMAND} {job.spec.name}",
    )
    reader = files_of_wheel if isinstance(job.spec.origin, WheelOrigin) else files_of_tarball
    return reader(artefact), artefact.name, job.spec.version


def _release_message(spec: ReferenceSpec, described: str) -> str:
    # The installed torch and the wheel of one release have the same source files, so the message names neither:
    # two machines are to get the same commit.
    origin = f"the packages of PyTorch {spec.version}" if isinstance(spec.origin, WheelOrigin) else described
    return (
        f"PyTorch {spec.version}\n\n"
        f"The release's own files, laid out at their source paths from {origin}. They are under\n"
        "PyTorch's licence (see LICENSE). Made for trying patch series on; not a clone of PyTorch's repository.\n"
    )


def _notes(job: _Job, described: str, *, as_pinned: bool) -> tuple[str, ...]:
    notes = (f"Laid out from {described}.", *job.spec.notes)
    if not as_pinned:
        notes += ("Its files are not those of the pinned wheel, so commit ids differ from other machines'.",)
    if job.stand_ins:
        listed = ", ".join(file.path for file in job.stand_ins)
        notes += (f"Stand-ins of this project's own making, not PyTorch's text: {listed}.",)
    return notes


@contextlib.contextmanager
def _only_one(lock: Path, name: str, progress: Progress) -> Iterator[None]:
    """Hold the build lock of one tree; the system drops it when the process ends, however it ends.

    A cache that may not be written is read without it: nobody but its owner builds there.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = lock.open("a")
    except OSError as error:
        if not is_refusal(error):
            raise
        yield
        return
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another build of reference tree {name}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _unfinished_prefix(spec: ReferenceSpec) -> str:
    return f"building-{spec.name}-"


def _clear_leftovers(folder: Path, spec: ReferenceSpec) -> None:
    for leftover in folder.glob(f"{_unfinished_prefix(spec)}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _forget_unused(folder: Path, spec: ReferenceSpec, place: Path) -> None:
    oldest_kept = time.time() - _FORGET_AFTER_SECONDS
    for other in folder.glob(f"pytorch-{spec.name}-*"):
        if other != place and other.stat().st_mtime < oldest_kept:
            shutil.rmtree(other, ignore_errors=True)
