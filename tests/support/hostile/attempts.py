"""What the code of a hostile tree tries. Its text is put into the tree, so it imports nothing of this project.

Everything is bounded: a few hundred processes that end at once, some megabytes, sockets of this machine only.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
from collections.abc import Callable
from typing import Any

_PROCESSES = 300
_PIECE = 1 << 20


def attempts(settings: dict[str, Any]) -> dict[str, bool]:
    """Try everything; what worked, by name."""
    tried: dict[str, Callable[[], bool]] = {
        "token": lambda: _token(settings["token"]),
        "home": lambda: _made(os.path.join(settings["home"], "was-here")),
        "home by the list of users": lambda: _writable(pwd.getpwuid(os.getuid()).pw_dir),
        "look around": lambda: any(os.path.isdir(one) and bool(os.listdir(one)) for one in _homes(settings)),
        "socket": lambda: _connected(settings["port"]),
        "fork": _many_processes,
        "disk": lambda: _filled(settings["disk"]),
        "cache": lambda: _poisoned(settings["cache"]),
        "result": lambda: _made(settings["result"]),
    }
    worked = {}
    for name, attempt in tried.items():
        try:
            worked[name] = attempt()
        except (OSError, KeyError):
            worked[name] = False
    return worked


def _homes(settings: dict[str, Any]) -> list[str]:
    return [settings["home"], pwd.getpwuid(os.getuid()).pw_dir]


def _token(token: str) -> bool:
    """Look for it in this process's environment, and in those of all others."""
    places = ["/proc/self/environ", *(f"/proc/{pid}/environ" for pid in range(1, 100)), f"/proc/{os.getppid()}/environ"]
    with contextlib.suppress(OSError):
        places += [f"/proc/{name}/environ" for name in os.listdir("/proc") if name.isdigit()]
    if token in os.environ.values():
        return True
    for place in places:
        with contextlib.suppress(OSError), open(place, "rb") as file:
            if token.encode() in file.read():
                return True
    return False


def _made(path: str) -> bool:
    with open(path, "w") as file:
        file.write("forged")
    return True


def _writable(folder: str) -> bool:
    os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))  # a file without a name leaves nothing behind
    return True


def _connected(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(2)
        one.connect(("127.0.0.1", port))
    return True


def _many_processes() -> bool:
    started = 0
    with contextlib.suppress(OSError):
        for _ in range(_PROCESSES):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            started += 1
    return started > 0


def _filled(most: int) -> bool:
    """More than ``most`` bytes in the folder for temporary files, in files of a size that each is allowed."""
    folder = os.environ.get("TMPDIR", "/tmp")
    made, size = [], 0
    try:
        while size <= most + 4 * _PIECE:
            path = os.path.join(folder, f"fill-{os.getpid()}-{len(made)}")
            made.append(path)
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
            try:
                os.posix_fallocate(descriptor, 0, 32 * _PIECE)
            finally:
                os.close(descriptor)
            size += 32 * _PIECE
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                os.unlink(path)
    return True


def _poisoned(cache: str) -> bool:
    """Change, lock, cut, replace or add a file."""
    file = os.path.join(cache, "entry")
    worked = 0
    for change in (
        lambda: _made(file),
        lambda: os.chmod(file, 0),
        lambda: os.truncate(file, 0),
        lambda: os.utime(file, (0, 0)),
        lambda: os.unlink(file),
        lambda: os.rename(file, file + ".old"),
        lambda: os.symlink("/etc/passwd", os.path.join(cache, "link")),
        lambda: _made(os.path.join(cache, "added")),
    ):
        with contextlib.suppress(OSError):
            change()
            worked += 1
    return worked > 0
