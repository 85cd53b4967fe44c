"""Getting a release's file onto this machine, once, and knowing that it is the right one.

A file counts only after its SHA-256 was compared with the pinned one. The result is remembered next to the file's size
and modification time, so that later runs need no second look at 80 MB. An unfinished download lies in a folder of its
own and is thrown away by the next run; a finished one is never fetched again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from patchstack.cache import is_refusal
from patchstack.errors import TreeError
from patchstack.python_processes import module_command
from patchstack.reference import debian
from patchstack.reference.model import Artefact, DebianOrigin, Progress, ReferenceSpec, WheelOrigin

WHEEL_FOLDER = "PATCHSTACK_WHEEL_DIR"
DEBIAN_FOLDER = "PATCHSTACK_DEBIAN_DIR"

Fetch = Callable[[ReferenceSpec, Path, Progress], None]
"""Puts the artefact of a specification into an empty folder, under its file name."""


def obtain(
    spec: ReferenceSpec, downloads: Path, *, progress: Progress, offline: bool, fetch: Fetch, next_command: str
) -> Path:
    """The verified artefact: the user's own copy, the cached one, or a fresh download.

    Args:
        spec: whose artefact.
        downloads: folder where it is kept.
        progress: told each step.
        offline: fail rather than download.
        fetch: downloads it.
        next_command: what brings it, for the error of an offline run.

    Raises:
        TreeError: it is not to be had, or its digest is not the pinned one.
    """
    own = users_copy(spec)
    if own is not None:
        if not own.is_file():
            raise TreeError("no such file in the folder given by the environment", where=str(own))
        _verify(own, spec.artefact, downloads, progress)
        return own
    place = downloads / spec.artefact.filename
    if place.is_file():
        try:
            _verify(place, spec.artefact, downloads, progress)
        except TreeError:
            if offline:
                raise
            progress(f"{place.name} in the cache is damaged; getting it again")
            place.unlink()
        else:
            return place
    if offline:
        raise TreeError(
            "not in the cache, and this run is offline",
            where=spec.artefact.filename,
            next_command=next_command,
        )
    _download(spec, place, downloads, progress, fetch)
    return place


def users_copy(spec: ReferenceSpec) -> Path | None:
    """Where the environment says the artefact is, whether or not it is there; None when it says nothing."""
    folder = os.environ.get(WHEEL_FOLDER if isinstance(spec.origin, WheelOrigin) else DEBIAN_FOLDER)
    return Path(folder) / spec.artefact.filename if folder else None


def fetch_artefact(spec: ReferenceSpec, folder: Path, progress: Progress) -> None:
    """Download with the tool that belongs to the origin: pip or apt-get.

    Raises:
        TreeError: that tool is missing or failed.
    """
    if isinstance(spec.origin, DebianOrigin):
        debian.fetch_source(spec.origin, folder, progress)
    else:
        _fetch_wheel(spec, spec.origin, folder, progress)


def _download(spec: ReferenceSpec, place: Path, downloads: Path, progress: Progress, fetch: Fetch) -> None:
    for leftover in downloads.glob(f"{place.name}.part-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    # Never the same name twice: the downloader of a killed run may still be writing to its own.
    unfinished = downloads / f"{place.name}.part-{secrets.token_hex(4)}"
    unfinished.mkdir(parents=True)
    try:
        fetch(spec, unfinished, progress)
        fetched = unfinished / place.name
        if not fetched.is_file():
            there = ", ".join(sorted(p.name for p in unfinished.iterdir())) or "nothing"
            raise TreeError("the download did not bring the file", where=spec.name, expected=place.name, found=there)
        _check_digest(fetched, spec.artefact, progress)
        os.replace(fetched, place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _remember(place, spec.artefact, downloads)


def _fetch_wheel(spec: ReferenceSpec, origin: WheelOrigin, folder: Path, progress: Progress) -> None:
    progress(f"downloading {spec.artefact.filename}")
    arguments = [
        "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", origin.python,
        "--platform", origin.platform, f"torch=={spec.version}",
    ]  # fmt: skip
    done = subprocess.run(
        module_command("pip", *arguments, "--dest", str(folder)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise TreeError(
            "pip could not download the wheel",
            where=spec.artefact.filename,
            found=words_of_pip(done),
            next_command=f"python -m pip {' '.join(arguments)}, then {WHEEL_FOLDER}=FOLDER",
        )


def words_of_pip(done: subprocess.CompletedProcess[str]) -> str:
    """Why pip failed: its errors, with the requirements that it names as contradicting each other."""
    asked = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("The user requested")]
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
    return "; ".join(asked + errors) or f"exit status {done.returncode}"


def _stamp(place: Path, downloads: Path) -> Path:
    return downloads / f"{place.name}.{hashlib.sha256(os.fsencode(place)).hexdigest()[:8]}.verified"


def _facts(place: Path, artefact: Artefact) -> str:
    status = place.stat()
    return json.dumps({"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": artefact.sha256})


def _remember(place: Path, artefact: Artefact, downloads: Path) -> None:
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        _stamp(place, downloads).write_text(_facts(place, artefact), encoding="utf-8")
    except OSError as error:
        if not is_refusal(error):  # in a cache that may not be written, the next run compares again
            raise


def _verify(place: Path, artefact: Artefact, downloads: Path, progress: Progress) -> None:
    stamp = _stamp(place, downloads)
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != _facts(place, artefact):
        _check_digest(place, artefact, progress)
        _remember(place, artefact, downloads)


def _check_digest(place: Path, artefact: Artefact, progress: Progress) -> None:
    progress(f"checking the SHA-256 of {place.name}")
    total = hashlib.sha256()
    with place.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            total.update(block)
    if total.hexdigest() != artefact.sha256:
        raise TreeError(
            "the file is not the one that is pinned",
            where=str(place),
            expected=f"SHA-256 {artefact.sha256}",
            found=total.hexdigest(),
            next_command="delete the file and try again",
        )
