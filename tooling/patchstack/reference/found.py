"""Releases that nobody pinned: any whose macOS wheel the user's pip can reach, by version or as ``latest``.

The first use asks pip which file that is and what digest the index gives for it, fetches the file and notes in the
cache what it holds. From then on the release is as fixed as a pinned one: the same name gives the same tree, without
network. Only ``latest`` is asked again, once a day.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from patchstack.cache import write_whole
from patchstack.errors import TreeError, UsageError
from patchstack.python_processes import module_command
from patchstack.reference.artefacts import WHEEL_FOLDER, words_of_pip
from patchstack.reference.model import Artefact, Progress, ReferenceSpec, WheelOrigin
from patchstack.reference.registry import FROM_WHEEL, SPECS

LATEST = "latest"
PLATFORM = "macosx_26_0_arm64"
"""The newest that is asked for; pip takes wheels for older ones too."""
PYTHON = "3.11"

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_WHEEL = re.compile(r"torch-(?P<version>\d+\.\d+\.\d+)-[\w.]+-[\w.]+-macosx_\w+_arm64\.whl")
_NATIVE_FUNCTIONS = "torchgen/packaged/ATen/native/native_functions.yaml"
_BACKWARD = re.compile(r"^- func: grid_sampler_2d_backward\(.*?(?=^- func:|\Z)", re.M | re.S)
_DAY_SECONDS = 24 * 3600


@dataclasses.dataclass(frozen=True)
class FoundWheel:
    """A wheel that an index or a folder has.

    Attributes:
        version: the release, ``2.15.0``.
        artefact: its file name and the digest that the index gave, or the file's own.
    """

    version: str
    artefact: Artefact


Ask = Callable[[str, Progress], FoundWheel]
"""Which wheel a requirement (``torch==2.15.*``) means."""

Obtain = Callable[[ReferenceSpec], Path]
"""Gets the wheel of a specification onto this machine."""


def pinned_spec(name: str) -> ReferenceSpec | None:
    """The pinned release of that name or full version; None when it is to be found.

    Raises:
        UsageError: this names no release at all.
    """
    if name == LATEST:
        return None
    for spec in SPECS.values():
        if name in (spec.name, spec.version):
            return spec
    if not _VERSION.fullmatch(name):
        raise UsageError(
            "no such reference tree",
            where=name,
            expected=f"one of {', '.join(SPECS)}, another release's version (2.15, 2.15.1), or {LATEST}",
        )
    return None


def known_spec(name: str, folder: Path) -> ReferenceSpec | None:
    """The release of that name, pinned or found by an earlier run and noted in ``folder``; None without either."""
    spec = pinned_spec(name)
    return spec or _noted(folder / f"release-{name}.json")


def find_release(
    name: str, folder: Path, obtain: Obtain, ask: Ask, *, progress: Progress, offline: bool
) -> ReferenceSpec:
    """The release of that name, noted in ``folder`` for later runs.

    Args:
        name: a version, ``2.15`` or ``2.15.1``, or ``latest``.
        folder: where notes of found releases are kept.
        obtain: gets the wheel.
        ask: asks the index.
        progress: told each step.
        offline: fail rather than ask.

    Raises:
        UsageError: this names no release at all.
        TreeError: no wheel of it is to be had.
    """
    known = known_spec(name, folder) if name != LATEST else _latest(folder, anyhow=offline)
    if known is not None:
        return known
    wheel = _in_users_folder(name)
    if wheel is None:
        if offline:
            raise TreeError(
                "no wheel of this release is known, and this run is offline",
                where=name,
                next_command=f"python -m patchstack.reference {name}",
            )
        wheel = ask("torch" if name == LATEST else f"torch=={_pattern(name)}", progress)
    if name == LATEST:
        # Under its own name, so that "latest" of another day does not change this tree.
        minor = wheel.version.rpartition(".")[0]
        spec = known_spec(minor, folder)
        if spec is None or spec.version != wheel.version:
            own_name = minor if spec is None else wheel.version
            spec = known_spec(own_name, folder) or _note(_spec_of(own_name, wheel), folder, obtain)
        write_whole(folder / f"{LATEST}.json", json.dumps({"name": spec.name}))
        return spec
    return _note(_spec_of(name, wheel), folder, obtain)


def ask_pip(requirement: str, progress: Progress) -> FoundWheel:
    """Ask the user's pip, with the user's indexes and constraints, without downloading the wheel.

    Raises:
        TreeError: pip finds none; with what it said.
    """
    progress(f"asking pip for the macOS wheel of {requirement}")
    with tempfile.TemporaryDirectory(prefix="patchstack-pip-") as scratch:
        report = Path(scratch, "report.json")
        arguments = [
            "install", "--dry-run", "--report", str(report), "--ignore-installed", "--target", scratch, "--no-deps",
            "--only-binary=:all:", "--python-version", PYTHON, "--platform", PLATFORM, requirement,
        ]  # fmt: skip
        done = subprocess.run(
            module_command("pip", *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode or not report.is_file():
            raise TreeError(
                "pip finds no macOS wheel of this release",
                where=requirement,
                found=words_of_pip(done),
                next_command=f"get a wheel torch-*-macosx_*_arm64.whl by hand, then {WHEEL_FOLDER}=FOLDER",
            )
        download = json.loads(report.read_text(encoding="utf-8"))["install"][0]["download_info"]
    return _reported(requirement, download)


def _reported(requirement: str, download: dict[str, Any]) -> FoundWheel:
    filename = PurePosixPath(unquote(urlsplit(download["url"]).path)).name
    digest = download.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    match = _WHEEL.fullmatch(filename)
    if match is None or not digest:
        raise TreeError(
            "what pip finds is no macOS wheel with a digest",
            where=requirement,
            expected="torch-VERSION-*-macosx_*_arm64.whl with a SHA-256",
            found=filename,
        )
    return FoundWheel(match["version"], Artefact(filename, digest))


def _pattern(name: str) -> str:
    return f"{name}.*" if name.count(".") == 1 else name


def _in_users_folder(name: str) -> FoundWheel | None:
    """The newest wheel of that release in the folder that the environment names."""
    folder = os.environ.get(WHEEL_FOLDER)
    if not folder:
        return None
    wanted = None if name == LATEST else re.compile(re.escape(name) + (r"\.\d+" if name.count(".") == 1 else ""))
    found = [
        (tuple(map(int, match["version"].split("."))), match["version"], place)
        for place in sorted(Path(folder).glob("torch-*.whl"))
        if (match := _WHEEL.fullmatch(place.name)) and (wanted is None or wanted.fullmatch(match["version"]))
    ]
    if not found:
        return None
    _, version, place = max(found)
    return FoundWheel(version, Artefact(place.name, hashlib.sha256(place.read_bytes()).hexdigest()))


def _spec_of(name: str, wheel: FoundWheel) -> ReferenceSpec:
    """What is known of a release before its wheel is here."""
    return ReferenceSpec(
        name=name,
        version=wheel.version,
        released=datetime.date(1980, 1, 1),
        artefact=wheel.artefact,
        origin=WheelOrigin(platform=PLATFORM, python=PYTHON),
    )


def _note(spec: ReferenceSpec, folder: Path, obtain: Obtain) -> ReferenceSpec:
    """Complete a specification with what its wheel says, and remember it."""
    wheel = obtain(spec)
    try:
        with zipfile.ZipFile(wheel) as archive:
            newest = max(member.date_time for member in archive.infolist())
            released = datetime.date(*newest[:3]).isoformat()
            yaml = archive.read(_NATIVE_FUNCTIONS).decode()
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise TreeError("not a readable wheel of PyTorch", where=str(wheel), found=str(error)) from None
    entry = _BACKWARD.search(yaml)
    after = entry is not None and re.search(r"^    [\w, ]*\bMPS\b[\w, ]*:", entry[0], re.M) is not None
    nearest = "2.13" if after else "2.11"
    facts = {
        "name": spec.name,
        "version": spec.version,
        "filename": spec.artefact.filename,
        "sha256": spec.artefact.sha256,
        "released": released,
        "stand_ins": nearest,
    }
    write_whole(folder / f"release-{spec.name}.json", json.dumps(facts, indent=1) + "\n")
    return _described(facts)


def _described(facts: dict[str, str]) -> ReferenceSpec:
    has = "has an" if facts["stand_ins"] == "2.13" else "has no"
    spec = _spec_of(facts["name"], FoundWheel(facts["version"], Artefact(facts["filename"], facts["sha256"])))
    return dataclasses.replace(
        spec,
        released=datetime.date.fromisoformat(facts["released"]),
        stand_ins_of=facts["stand_ins"],
        notes=(
            FROM_WHEEL,
            f"grid_sampler_2d_backward {has} MPS entry here, so the stand-ins are those of {facts['stand_ins']}.",
            "This project pins no digest of this release: the wheel is the one that pip found first.",
        ),
    )


def _noted(place: Path) -> ReferenceSpec | None:
    try:
        return _described(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _latest(folder: Path, *, anyhow: bool) -> ReferenceSpec | None:
    """The release that was the newest when pip was asked last: today, or ``anyhow``."""
    place = folder / f"{LATEST}.json"
    try:
        if not anyhow and time.time() - place.stat().st_mtime > _DAY_SECONDS:
            return None
        return known_spec(json.loads(place.read_text(encoding="utf-8"))["name"], folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None
