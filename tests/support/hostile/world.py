"""The world around a hostile tree: what it is after, and whether it got it."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ATTEMPTS = Path(__file__).with_name("attempts.py").read_text()
TOKEN = "ghp_not_a_real_token"
NAMES = ("token", "home", "home by the list of users", "look around", "socket", "fork", "disk", "cache", "result")


@dataclass
class World:
    """A home folder, a cache with an entry, a server of this machine, and a result file to be.

    Attributes:
        folder: holds all of it.
        disk: bytes that a process's own folder may have.
        connections: how many reached the server.
    """

    folder: Path
    disk: int
    connections: int = 0
    _before: str = ""
    _server: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / ".netrc").write_text("password")
        self.cache.mkdir(exist_ok=True)
        (self.cache / "entry").write_text("right")
        threading.Thread(target=self._count, daemon=True).start()
        self._before = self.state()

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def result(self) -> Path:
        return self.folder / "report.json"

    @property
    def settings(self) -> dict[str, Any]:
        """For the attempts."""
        return {
            "token": TOKEN,
            "home": str(self.home),
            "port": self._server.getsockname()[1],
            "disk": self.disk,
            "cache": str(self.cache),
            "result": str(self.result),
        }

    @property
    def code(self) -> str:
        """Python that defines ``attempts`` and ``SETTINGS``."""
        return f"{ATTEMPTS}\nSETTINGS = {self.settings!r}\n"

    @property
    def untouched(self) -> bool:
        """Whether nothing of it has changed, and nobody connected."""
        return self.state() == self._before and not self.connections and not self.result.exists()

    def state(self) -> str:
        """A digest of the home folder and the cache's entry."""
        parts = []
        for root in (self.home, self.cache / "entry", self.cache / "added", self.cache / "link"):
            for path in [root, *sorted(root.rglob("*"))] if os.path.lexists(root) else []:
                status = path.lstat()
                text = path.read_text() if path.is_file() else ""
                parts.append(f"{path} {status.st_mode} {status.st_mtime_ns} {text}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def close(self) -> None:
        self._server.close()

    def _count(self) -> None:
        while True:
            try:
                self._server.accept()[0].close()
            except OSError:
                return
            self.connections += 1
