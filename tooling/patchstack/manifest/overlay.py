"""The text that lands: whole files, and named fragments of files.

An overlay file stands at the path where its text lands. Where the tree already has that file, the overlay holds the
parts that are added, each between two marker lines::

    // fragment: NAME
    ...
    // end fragment

(``#`` instead of ``//`` in Python). The lines between land byte for byte; everything outside the markers is context
that lets the overlay file be read and compiled alone.

Two changes of a series may have different text for one name, where the later one replaces what the earlier one brought.
The later one then has a layer, a folder in the overlay with paths of its own, which is looked into first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from patchstack.errors import ManifestError
from patchstack.manifest.closest import closest
from patchstack.manifest.section import require_line_feeds

_BEGIN = re.compile(rb"^[ \t]*(?://|#)[ \t]*fragment:[ \t]*([\w.-]+)[ \t]*\r?$")
_END = re.compile(rb"^[ \t]*(?://|#)[ \t]*end fragment[ \t]*\r?$")
_LAYER = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")


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


@dataclass
class _Asked:
    """What the edits of a series asked for, through whatever layer.

    Attributes:
        texts: file below the overlay and name of the fragment, which is empty where the file lands whole.
        layers: names of the layers.
    """

    texts: set[tuple[Path, str]] = field(default_factory=set)
    layers: set[str] = field(default_factory=set)


class Overlay:
    """The overlay folder of a series, or one of its layers over the rest of it.

    Attributes:
        root: the folder; paths below it are paths in the tree.
        layer: name of the folder in it that is looked into first; empty for none.
    """

    def __init__(self, root: Path, layer: str = "", asked: _Asked | None = None) -> None:
        self.root = root
        self.layer = layer
        self._fragments: dict[Path, dict[str, Fragment]] = {}
        self._asked = asked or _Asked()
        if layer:
            self._asked.layers.add(layer)

    def layered(self, name: str, asked_at: str) -> Overlay:
        """The same overlay, seen through a layer.

        Args:
            name: name of the layer's folder.
            asked_at: manifest file and line that ask for it, for messages.

        Raises:
            ManifestError: the name is not that of a folder directly in the overlay.
        """
        folder = self.root / name
        if not _LAYER.match(name) or os.path.islink(folder) or not os.path.isdir(folder):
            raise ManifestError(
                f"the overlay has no layer '{name}'", where=asked_at, expected=f"a folder {self.root}/NAME", found=name
            )
        return Overlay(self.root, name, self._asked)

    def file(self, path: str, asked_at: str) -> bytes:
        """The whole overlay file for a path of the tree, the layer's where it has one.

        Args:
            asked_at: manifest file and line that ask for it, for messages.

        Raises:
            ManifestError: it cannot be read, has CR LF, or it or a folder above it is a symbolic link.
        """
        place = self._places(path)[0]
        content = self._content(place, asked_at)
        self._asked.texts.add((place, ""))
        return content

    def fragment(self, path: str, name: str, asked_at: str) -> Fragment:
        """A named fragment of the overlay file for a path of the tree, the layer's where it has one of that name.

        Args:
            asked_at: manifest file and line that ask for it, for messages.

        Raises:
            ManifestError: no such file or fragment, or its markers do not pair.
        """
        places = self._places(path)
        known: set[str] = set()
        for place in places:
            if place not in self._fragments:
                self._fragments[place] = _parse_fragments(self._content(place, asked_at), str(self.root / place))
            if name in self._fragments[place]:
                self._asked.texts.add((place, name))
                return self._fragments[place][name]
            known |= self._fragments[place].keys()
        raise ManifestError(
            f"the overlay file {' or '.join(str(self.root / place) for place in places)} has no fragment '{name}'",
            where=asked_at,
            expected=f"a line '// fragment: {name}'",
            found=", ".join(sorted(known)) or "no fragments",
        )

    def has(self, path: str) -> bool:
        """Whether there is a file for a path of the tree."""
        return any(os.path.lexists(self.root / place) for place in self._places(path))

    def unused(self, in_doubt: Collection[str]) -> Iterator[ManifestError]:
        """A complaint about every file and fragment that nobody asked for; a README and hidden files are context.

        Args:
            in_doubt: paths of the tree of which more may be used than is known.
        """
        paths = sorted({self._tree_path(place) for place, _ in self._asked.texts})
        for file in sorted(self.root.rglob("*")):
            place = file.relative_to(self.root)
            asked = {name for used, name in self._asked.texts if used == place}
            is_context = place.name.startswith("README") or any(part.startswith(".") for part in place.parts)
            is_context |= "__pycache__" in place.parts  # pip compiles what is Python in an installed overlay
            if is_context or "" in asked or self._tree_path(place) in in_doubt or not file.is_file():
                continue
            if not asked:
                nearest = ", ".join(closest(self._tree_path(place), paths))
                expected = f"an edit of {nearest or self._tree_path(place)}"
                yield ManifestError("the overlay has a file that no edit names", where=str(file), expected=expected)
                continue
            for fragment in _parse_fragments(self._content(place, str(file)), str(file)).values():
                if fragment.name not in asked:
                    problem = f"no edit places fragment '{fragment.name}'"
                    yield ManifestError(problem, where=fragment.source, found=f"edits for {', '.join(sorted(asked))}")

    def _tree_path(self, place: Path) -> str:
        """The path in the tree of a file of the overlay; a folder that was asked for as a layer is none of the tree."""
        return Path(*place.parts[place.parts[0] in self._asked.layers :]).as_posix()

    def _places(self, path: str) -> list[Path]:
        """Where in the overlay to look for a path of the tree, first the layer; without the files that are not there.

        One place is always left, for the complaint about it.
        """
        places = [Path(layer, path) for layer in dict.fromkeys((self.layer, ""))]
        there = [place for place in places if os.path.lexists(self.root / place)]
        return there or places[-1:]

    def _content(self, place: Path, asked_at: str) -> bytes:
        if os.path.islink(self.root) or not self.root.is_dir():
            raise ManifestError(
                "the series has no overlay", where=str(self.root), expected="a folder, no symbolic link"
            )
        at = self.root
        for part in place.parts:
            at = at / part
            if os.path.islink(at):  # unlike Path.is_symlink(), this takes a name of any length
                problem = "the overlay has a symbolic link"
                raise ManifestError(problem, where=asked_at, expected="a regular file", found=str(at))
        if not os.path.isfile(at):
            raise ManifestError("the overlay file is missing", where=asked_at, expected=f"a file {at}")
        try:
            data = at.read_bytes()
        except OSError as error:
            problem = f"the overlay file {at} cannot be read"
            raise ManifestError(problem, where=asked_at, found=error.strerror or str(error)) from None
        require_line_feeds(data, "the overlay file", at)
        return data


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
