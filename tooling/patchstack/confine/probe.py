"""Whether each measure holds, found by trying it in a process that is confined.

An attempt that succeeds does no harm: it makes files without names, connects to nobody, and starts one process that
ends at once.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from patchstack.confine.environment import is_allowed
from patchstack.confine.model import MEASURES, Cage

_OWN_VARIABLES = ("HOME", "TMPDIR")
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def probe(cage: Cage, own: str) -> dict[str, bool]:
    """Try everything that is not to work, in a process that has entered ``cage``.

    Args:
        cage: the cage.
        own: the folder that is this process's own.

    Returns:
        Whether it held, for each of :data:`MEASURES`.
    """
    limits = cage.limits
    attempts: Mapping[str, Callable[[], bool]] = {
        "environment": lambda: all(is_allowed(name) or name in _OWN_VARIABLES for name in os.environ),
        "home": lambda: all(_hidden(one) for one in cage.homes),
        "files": lambda: not any(_written(one) for one in (*cage.homes, *cage.readable, "/tmp", "/var/tmp")),
        "network": lambda: not _has_network(),
        "processes": lambda: not _forked(),
        "others": lambda: sys.platform.startswith("linux") and not _seen(f"/proc/{os.getppid()}/environ"),
        "disk": lambda: _size(own) <= 2 * limits.folder_bytes,
        "file size": lambda: not _grown(own, limits.file_bytes + 1),
        "memory": lambda: not _mapped(limits.memory + mmap.PAGESIZE),
        "time": lambda: resource.getrlimit(resource.RLIMIT_CPU)[1] != resource.RLIM_INFINITY,
    }
    return {name: bool(attempts[name]()) for name in MEASURES}


def _hidden(folder: str) -> bool:
    try:
        os.listdir(folder)
    except OSError:
        return True
    return False


def _written(folder: str) -> bool:
    if not os.path.isdir(folder):
        return False
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except AttributeError:  # a system without files that have no name
        return os.access(folder, os.W_OK)
    except OSError as error:
        return error.errno not in _REFUSED and os.access(folder, os.W_OK)
    return True


def _has_network() -> bool:
    """Whether sockets can be made and have an address to start from; asked without opening one to anywhere."""
    try:
        socket.socket(socket.AF_UNIX).close()
    except OSError:  # the filter refuses all kinds alike
        return False
    try:
        return "/32 host" in Path("/proc/self/net/fib_trie").read_text()
    except OSError:  # nothing tells: it is not said to hold
        return True


def _forked() -> bool:
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def _seen(file: str) -> bool:
    try:
        Path(file).read_bytes()
    except OSError:
        return False
    return True


def _size(folder: str) -> int:
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize


def _grown(folder: str, size: int) -> bool:
    file = os.path.join(folder, "size")
    try:
        with open(file, "wb") as out:
            out.truncate(size)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(file)
    return True


def _mapped(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True
