"""System calls that Python has no name for, through ctypes; each raises OSError."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Any system call by number."""
    converted = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *converted))


def prctl(option: int, *arguments: int) -> int:
    """``prctl(2)``."""
    four = [*arguments, 0, 0, 0, 0][:4]
    return _checked(_libc.prctl(option, *(ctypes.c_ulong(one) for one in four)))


def prctl_pointer(option: int, second: int, pointer: object) -> int:
    """``prctl(2)`` with a structure as third argument."""
    return _checked(_libc.prctl(option, ctypes.c_ulong(second), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def unshare(flags: int) -> None:
    """``unshare(2)``."""
    _checked(_libc.unshare(flags))


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """``mount(2)``."""
    words = [os.fsencode(one) if one is not None else None for one in (source, target, kind, data)]
    _checked(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)
