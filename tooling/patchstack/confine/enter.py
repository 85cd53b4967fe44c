"""Confining this process: everything that the system has, one measure after the other.

A measure that cannot be had is left out; what holds in the end is found by trying (:mod:`patchstack.confine.probe`),
not by remembering what was asked for.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import signal
import struct
import sys
import tempfile

from patchstack.confine import landlock, namespaces, seccomp
from patchstack.confine.model import Cage
from patchstack.confine.system import prctl, syscall

_DROP_BOUND, _NO_NEW_PRIVILEGES, _LAST_CAPABILITY = 24, 38, 63
_CAPSET = {"x86_64": 126, "aarch64": 91}
_READ_OF_PROC = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self")


def prepare() -> None:
    """What is shared by this process and those it forks; before anything that starts threads is imported."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            namespaces.enter_namespaces()


def enter(cage: Cage) -> str:
    """Give up everything that code of a tree is not to have, for this process and for good.

    Returns:
        The folder that is this process's own: the current folder, home folder and folder for temporary files.
    """
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            hide = not landlock.version()
            namespaces.own_folder_in_memory(cage.folder, cage.limits.folder_bytes, hide_processes=hide)
    own = os.path.join(cage.folder, str(os.getpid()))
    os.makedirs(own, mode=0o700, exist_ok=True)
    os.chdir(own)
    os.environ.update(HOME=own, TMPDIR=own)
    tempfile.tempdir = None
    _limit(cage)
    if sys.platform.startswith("linux"):
        hidden = (*cage.homes, "/proc", "/run")
        with contextlib.suppress(OSError):
            prctl(_NO_NEW_PRIVILEGES, 1)
            landlock.restrict(writable=own, hidden=hidden, readable=(*cage.readable, *_READ_OF_PROC))
        _drop_capabilities()
        with contextlib.suppress(OSError):
            seccomp.install()
    return own


def _limit(cage: Cage) -> None:
    limits = cage.limits
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error of the call that writes, not the end of the process
    for kind, value in (
        (resource.RLIMIT_CPU, limits.seconds),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def _drop_capabilities() -> None:
    """Those of root, or of the user namespace's maker."""
    with contextlib.suppress(OSError):
        for number in range(_LAST_CAPABILITY + 1):
            prctl(_DROP_BOUND, number)
    number = _CAPSET.get(platform.machine(), 0)
    if number:
        with contextlib.suppress(OSError):
            syscall(number, struct.pack("Ii", 0x20080522, 0), bytes(24))
