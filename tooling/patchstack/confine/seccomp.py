"""A filter on system calls: no socket, no other process, no look into one, no change of a file's owner or mode.

It holds in containers that allow no namespaces, and for root. Threads of the process itself are allowed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator

from patchstack.confine.system import prctl, prctl_pointer

_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_THREAD = 0x10000  # CLONE_THREAD
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little end first

# Numbers by machine; calls of 5.1 and newer have one number on all.
_X86_64 = {
    "audit": 0xC000003E,
    "clone": 56, "clone3": 435, "kill": 62, "tgkill": 234,
    "denied": (
        41, 57, 58, 59, 322,  # socket, fork, vfork, execve, execveat
        101, 310, 311, 312,  # ptrace, process_vm_readv, process_vm_writev, kcmp
        129, 200, 297, 424, 434, 438,  # signals in other ways, pidfd_open, pidfd_getfd
        425, 426, 427,  # io_uring, which opens sockets too
        165, 166, 155, 161, 272, 308, 428, 429, 430, 431, 432, 442,  # mounts and namespaces
        248, 249, 250, 298, 321, 323, 175, 313, 246, 169,  # keys, perf, bpf, userfaultfd, modules, kexec, reboot
        90, 91, 268, 452, 92, 93, 94, 260, 76,  # chmod, chown, truncate by name
        188, 189, 190, 197, 198, 199, 132, 235, 261, 280,  # attributes and times
    ),
}  # fmt: skip
_AARCH64 = {
    "audit": 0xC00000B7,
    "clone": 220, "clone3": 435, "kill": 129, "tgkill": 131,
    "denied": (
        198, 221, 281,
        117, 270, 271, 272,
        130, 138, 240, 424, 434, 438,
        425, 426, 427,
        40, 39, 41, 51, 97, 268, 428, 429, 430, 431, 432, 442,
        217, 218, 219, 241, 280, 282, 105, 273, 104, 142,
        52, 53, 452, 54, 55, 45,
        5, 6, 7, 14, 15, 16, 88,
    ),
}  # fmt: skip
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def install() -> None:
    """Put the filter on this process, for good.

    Raises:
        OSError: the system has none, or the machine is not one that this module knows.
    """
    known = _MACHINES.get(platform.machine())
    if known is None:
        raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
    code = b"".join(_program(known))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    prctl(_SET_NO_NEW_PRIVS, 1)
    prctl_pointer(_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(program, len(program)))


def _program(known: dict[str, object]) -> Iterator[bytes]:
    yield _load(_ARCHITECTURE)
    yield _jump(_EQUAL, _number(known["audit"]), 1, 0)
    yield _fail(errno.EPERM)
    yield _load(_NUMBER)
    yield _jump(_AT_LEAST, 0x40000000, 0, 1)  # the other set of calls of x86-64
    yield _fail(errno.EPERM)
    denied = known["denied"]
    assert isinstance(denied, tuple)
    for number in denied:
        yield _jump(_EQUAL, number, 0, 1)
        yield _fail(errno.EPERM)
    yield _jump(_EQUAL, _number(known["clone3"]), 0, 1)  # its flags are in memory: the C library falls back on clone
    yield _fail(errno.ENOSYS)
    yield _jump(_EQUAL, _number(known["clone"]), 0, 4)
    yield _load(_FIRST_ARGUMENT)
    yield _jump(_ANY_BIT, _THREAD, 1, 0)
    yield _fail(errno.EAGAIN)
    yield _return(_ALLOW)
    for name in ("kill", "tgkill"):
        yield _jump(_EQUAL, _number(known[name]), 0, 4)
        yield _load(_FIRST_ARGUMENT)
        yield _jump(_EQUAL, os.getpid(), 1, 0)
        yield _fail(errno.EPERM)
        yield _return(_ALLOW)
    yield _return(_ALLOW)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _load(offset: int) -> bytes:
    return struct.pack("HBBI", _LOAD, 0, 0, offset)


def _jump(kind: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("HBBI", kind, if_true, if_false, value)


def _fail(number: int) -> bytes:
    return _return(_ERRNO | number)


def _return(value: int) -> bytes:
    return struct.pack("HBBI", _RETURN, 0, 0, value)
