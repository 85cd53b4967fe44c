"""The text that lands: whole files, and named fragments of files.

An overlay file stands at the path where its text lands. Where the tree already has that file, the overlay holds the
parts that are added, each between two marker lines::

    // fragment: NAME
    ...
    // end fragment

(``#`` instead of ``//`` in Python). The lines between land byte for byte; everything outside the markers is context
that lets the overlay file be read and compiled alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import ManifestError

_BEGIN = re.compile(rb"^[ \t]*(?://|#)[ \t]*fragment:[ \t]*([\w.-]+)[ \t]*\r?$")
_END = re.compile(rb"^[ \t]*(?://|#)[ \t]*end fragment[ \t]*\r?$")


@dataclass(frozen=True)
class Fragment:
    """A named part of an overlay file.

    Attributes:
        name: as in the marker.
        text: the lines between the markers, the last one with its line feed.
        source: overlay file and line, for messages.
    """

    name: str
    text: bytes
    source: str


class Overlay:
    """The overlay folder of a series.

    Attributes:
        root: the folder; paths below it are paths in the tree.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._fragments: dict[str, dict[str, Fragment]] = {}

    def file(self, path: str, asked_at: str) -> bytes:
        """The whole overlay file for a path of the tree.

        Args:
            asked_at: manifest file and line that ask for it, for messages.

        Raises:
            ManifestError: it cannot be read, or it or a folder above it is a symbolic link.
        """
        at = self.root
        for part in ("", *path.split("/")):
            at = at / part
            if os.path.islink(at):  # unlike Path.is_symlink(), this takes a name of any length
                problem = "the overlay has a symbolic link"
                raise ManifestError(problem, where=asked_at, expected="a regular file", found=str(at))
        if not os.path.isfile(at):
            raise ManifestError("the overlay file is missing", where=asked_at, expected=f"a file {at}")
        try:
            return at.read_bytes()
        except OSError as error:
            problem = f"the overlay file {at} cannot be read"
            raise ManifestError(problem, where=asked_at, found=error.strerror or str(error)) from None

    def fragment(self, path: str, name: str, asked_at: str) -> Fragment:
        """A named fragment of the overlay file for a path of the tree.

        Args:
            asked_at: manifest file and line that ask for it, for messages.

        Raises:
            ManifestError: no such file or fragment, or its markers do not pair.
        """
        if path not in self._fragments:
            self._fragments[path] = _parse_fragments(self.file(path, asked_at), str(self.root / path))
        found = self._fragments[path].get(name)
        if found is None:
            raise ManifestError(
                f"the overlay file {self.root / path} has no fragment '{name}'",
                where=asked_at,
                expected=f"a line '// fragment: {name}'",
                found=", ".join(sorted(self._fragments[path])) or "no fragments",
            )
        return found


def has_markers(data: bytes) -> bool:
    """Whether a file is an overlay of fragments rather than one that lands whole."""
    return any(_BEGIN.match(line) or _END.match(line) for line in data.splitlines())


def _parse_fragments(data: bytes, file: str) -> dict[str, Fragment]:
    fragments: dict[str, Fragment] = {}
    name, begun, lines = "", 0, list[bytes]()
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        begin = _BEGIN.match(line.rstrip(b"\r\n"))
        if begin and name:
            raise ManifestError(f"fragment '{name}' is not closed before the next one", where=f"{file}:{number}")
        if begin:
            name, begun, lines = begin.group(1).decode(), number, []
            if name in fragments:
                raise ManifestError(f"two fragments are called '{name}'", where=f"{file}:{number}")
        elif _END.match(line.rstrip(b"\r\n")):
            if not name:
                raise ManifestError("'end fragment' without a fragment", where=f"{file}:{number}")
            fragments[name] = Fragment(name, b"".join(lines), f"{file}:{begun}")
            if not fragments[name].text.strip():
                raise ManifestError(f"fragment '{name}' is empty", where=f"{file}:{begun}")
            name = ""
        elif name:
            lines.append(line)
    if name:
        raise ManifestError(f"fragment '{name}' is never closed", where=f"{file}:{begun}", expected="'// end fragment'")
    return fragments
