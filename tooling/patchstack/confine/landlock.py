"""Landlock: a process gives up files, network and signals for good, without privileges or namespaces (Linux 5.13)."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Iterator

from patchstack.confine.system import syscall

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_BENEATH = 1
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, read a folder
_ON_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def version() -> int:
    """What this kernel's Landlock can do; 0 where there is none."""
    try:
        return syscall(_CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict(*, writable: str, hidden: Iterable[str], readable: Iterable[str]) -> None:
    """Give up every access but these, for this process.

    Args:
        writable: the one folder where files are made.
        hidden: folders that are not to be read.
        readable: folders and files that are read all the same.

    Raises:
        OSError: there is no Landlock.
    """
    known = version()
    handled = (1 << (13 + (known >= 2) + (known >= 3) + (known >= 5))) - 1
    network = 3 if known >= 4 else 0  # no binding, no connecting
    scoped = 3 if known >= 6 else 0  # no signal to, and no abstract socket of, processes outside
    attributes = struct.pack("QQQ", handled, network, scoped)[: 8 if known < 4 else 16 if known < 6 else 24]
    ruleset = syscall(_CREATE, attributes, len(attributes), 0)
    try:
        for path in [*_beside("/", [os.path.realpath(one) for one in hidden]), *readable]:
            _allow(ruleset, path, _READ & handled)
        for path in _DEVICES:
            _allow(ruleset, path, (_READ | 1 << 1) & handled)
        _allow(ruleset, writable, handled)
        syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _beside(folder: str, hidden: list[str]) -> Iterator[str]:
    """The largest folders below ``folder`` that have nothing hidden in them."""
    if folder in hidden:
        return
    inside = [one for one in hidden if one.startswith(folder.rstrip("/") + "/")]
    if not inside:
        yield folder
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path):  # what a link leads to is judged where it is
            yield from _beside(path, inside)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # what is not there needs no rule
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _ON_FILES
        syscall(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)
