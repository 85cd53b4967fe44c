"""What code of a tree may use, and what was found to hold of it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEBIBYTE = 1 << 20
# What each measure is called in a report, in the order of the report.
MEASURES = {
    "environment": "no variables but those it needs",
    "home": "the home folder is neither read nor written",
    "files": "nothing is written outside a folder of its own",
    "network": "no network",
    "processes": "no other process is started",
    "others": "no other process is looked into",
    "disk": "its folder is limited",
    "file size": "files are limited",
    "memory": "memory is limited",
    "time": "time is limited",
}


@dataclass(frozen=True)
class Limits:
    """What a confined process may use.

    Attributes:
        seconds: of processor time.
        memory: bytes of address space.
        resident: bytes of memory in use; whoever starts the process looks after this one.
        file_bytes: of one file.
        folder_bytes: of all files in its own folder.
    """

    seconds: int = 3600
    memory: int = 64 << 30
    resident: int = 8 << 30
    file_bytes: int = 128 * MEBIBYTE
    folder_bytes: int = 256 * MEBIBYTE

    @staticmethod
    def for_kernels() -> Limits:
        """For processes that load torch, and map tensors of which they touch a small part."""
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Limits(memory=256 << 30, resident=max(machine // 2, 4 << 30))


@dataclass(frozen=True)
class Cage:
    """Where code of a tree runs.

    Attributes:
        folder: exists; everything that it writes goes below.
        readable: folders that it reads, wherever they are; what is outside the home folder is readable anyway.
        limits: see :class:`Limits`.
        homes: folders that it does not see, but for what is in ``readable``.
    """

    folder: str
    readable: tuple[str, ...]
    limits: Limits = Limits()
    homes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> Cage:
        return Cage(value["folder"], tuple(value["readable"]), Limits(**value["limits"]), tuple(value["homes"]))


def home_folders() -> tuple[str, ...]:
    """The home folder of this user, by the environment and by the list of users; never the root of all folders."""
    found = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a container's user has no entry
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    real = [os.path.realpath(one) for one in found if one and os.path.isdir(one)]
    return tuple(dict.fromkeys(one for one in real if one != Path(one).anchor))
