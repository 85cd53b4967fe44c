"""Linux namespaces: an empty network, files that are read-only, and a folder in memory that is this process's alone.

Any user may have them where the system allows user namespaces at all.
"""

from __future__ import annotations

import contextlib
import os
import struct

from patchstack.confine.system import mount, syscall, unshare

_NEWNS, _NEWUSER, _NEWIPC, _NEWNET = 0x20000, 0x10000000, 0x08000000, 0x40000000
_PRIVATE, _RECURSIVE, _NOSUID, _NODEV = 1 << 18, 1 << 14, 2, 4
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY, _ATTR_NOSUID = 442, -100, 0x8000, 1, 2


def enter_namespaces() -> None:
    """Leave the network, and make all files read-only, for this process and those it forks.

    Raises:
        OSError: the system does not have it, or does not allow it; or this process has threads.
    """
    user, group = os.getuid(), os.getgid()
    unshare(_NEWUSER | _NEWNS | _NEWIPC | _NEWNET)
    with contextlib.suppress(OSError):  # very old kernels do not have it
        _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    mount("none", "/", None, _PRIVATE | _RECURSIVE)
    attributes = struct.pack("QQQQ", _ATTR_RDONLY | _ATTR_NOSUID, 0, 0, 0)
    syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, len(attributes))


def own_folder_in_memory(folder: str, size: int, *, hide_processes: bool) -> None:
    """Replace ``folder`` with one in memory of limited size, for this process alone.

    Args:
        folder: exists.
        size: in bytes.
        hide_processes: also replace ``/proc`` with an empty folder.

    Raises:
        OSError: this process is not in namespaces of its own.
    """
    unshare(_NEWNS)
    mount("none", "/", None, _PRIVATE | _RECURSIVE)  # what is mounted from here on is seen here only
    mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, f"size={size},mode=700,nr_inodes=20000")
    if hide_processes:
        mount("tmpfs", "/proc", "tmpfs", _NOSUID | _NODEV, "size=4096,mode=555")


def _write(file: str, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
