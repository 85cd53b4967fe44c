"""Changing the text of a series in place: fragments between their markers, whole files, diffs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.edits import Edit
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.edits.yaml_edit import YamlEdit
from patchstack.manifest.overlay import has_markers
from patchstack.tree.hunks import LineChange, split_lines
from patchstack.tree.text import find_lines, line_ending, lines_end, with_line_ending

HAVE_TEXT = (CxxEdit, PlacePythonFragment, ReplacePythonDefinition, YamlEdit)
"""The edits that land a fragment of the overlay."""


@dataclass(frozen=True)
class Region:
    """Where the text of an edit stands in what the series makes of a file; offsets."""

    edit: Edit
    start: int
    end: int


def text_of(edit: Edit) -> bytes:
    """The text of the overlay that an edit lands; empty for one that has none there."""
    if isinstance(edit, HAVE_TEXT):
        return edit.fragment.text
    return edit.content if isinstance(edit, CreateFile) else b""


def new_texts(
    edits: Iterable[Edit], made: bytes, wanted: bytes, changes: Sequence[LineChange]
) -> list[tuple[Edit, bytes]]:
    """What the texts of some edits must be for a file to be another; nothing where more than texts would change.

    Args:
        made: the file as the series makes it.
        wanted: the file of the commit.
        changes: the hunks between them.
    """
    regions = [region for edit in edits for region in _regions(edit, made)]
    old, new = split_lines(made), split_lines(wanted)
    ends = [0]
    for line in old:
        ends.append(ends[-1] + len(line))
    found: dict[int, list[LineChange]] = {}  # number of a region to the hunks in it
    for change in changes:
        low, high = ends[change.old_start], ends[change.old_end]
        inside = [n for n, region in enumerate(regions) if region.start <= low and high <= region.end]
        within = [n for n in inside if regions[n].start < low or high < regions[n].end]
        chosen = within if len(within) == 1 else inside
        if len(chosen) != 1:
            return []
        found.setdefault(chosen[0], []).append(change)
    return [
        (regions[n].edit, b"".join(new[slice(*_moved(regions[n], ends, own, changes))])) for n, own in found.items()
    ]


def _regions(edit: Edit, made: bytes) -> list[Region]:
    text = text_of(edit)
    if isinstance(edit, CreateFile):
        return [Region(edit, 0, len(made))]
    at = find_lines(made, text) if text.strip() else None
    if at is None or find_lines(made, text, at + 1) is not None:
        return []
    return [Region(edit, at, lines_end(made, at, text))]


def _moved(
    region: Region, ends: Sequence[int], own: Sequence[LineChange], changes: Sequence[LineChange]
) -> tuple[int, int]:
    """The lines of the wanted file that stand for a region.

    Args:
        own: the hunks in the region.
    """
    first, last = ends.index(region.start), ends.index(region.end)
    low = first + sum(_growth(change) for change in changes if change.old_end <= first and change not in own)
    return low, low + last - first + sum(map(_growth, own))


def _growth(change: LineChange) -> int:
    return (change.new_end - change.new_start) - (change.old_end - change.old_start)


class Texts:
    """The overlay of a draft.

    Attributes:
        folder: the draft of the series.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, edit: Edit, layer: str, text: bytes) -> None:
        """Give an edit another text."""
        file = self._file(edit.path, layer, _name(edit))
        if isinstance(edit, CreateFile):
            file.write_bytes(text)
            return
        plain = with_line_ending(text, b"\n")
        plain = plain if plain.endswith(b"\n") else plain + b"\n"
        data = file.read_bytes()
        span = _span(data, _name(edit))
        kept = data[span[0] : span[1]]
        lead, tail = kept[: len(kept) - len(kept.lstrip(b"\n"))], kept[len(kept.rstrip(b"\n")) + 1 :]
        is_exact = text_of(edit) == kept
        new = plain if is_exact else lead + plain.strip(b"\n") + b"\n" + tail
        file.write_bytes(data[: span[0]] + with_line_ending(new, line_ending(data)) + data[span[1] :])

    def drop(self, entry: Any, layer: str, others: Iterable[tuple[Any, str]]) -> None:
        """Take the text of a manifest entry out, unless another entry lands it too."""
        names = [str(entry["fragment"])] if "fragment" in entry else []
        names += [str(item["fragment"]) for item in entry.get("fragments", [])]
        if entry["kind"] == "apply-diff":
            for name in entry.get("diffs") or [entry["diff"]]:
                (self.folder / str(name)).unlink(missing_ok=True)
        elif entry["kind"] == "create-file":
            self._file(str(entry["path"]), layer, "").unlink(missing_ok=True)
        used = {(str(o["path"]), str(o.get("fragment", "")), at) for o, at in others}
        for name in names:
            if (str(entry["path"]), name, layer) not in used:
                self._without(self._file(str(entry["path"]), layer, name), name)

    def _without(self, file: Path, name: str) -> None:
        data = file.read_bytes()
        start, end = _span(data, name)
        start = data.rfind(b"\n", 0, start - 1) + 1
        end = data.find(b"\n", end) + 1 or len(data)
        rest = data[:start] + data[end:]
        file.write_bytes(rest)
        if not has_markers(rest):
            file.unlink()

    def _file(self, path: str, layer: str, name: str) -> Path:
        for place in dict.fromkeys((layer, "")):
            file = self.folder / "overlay" / place / path
            if file.is_file() and (not name or _pattern(name).search(file.read_bytes())):
                return file
        return self.folder / "overlay" / layer / path


def _name(edit: Edit) -> str:
    return edit.fragment.name if isinstance(edit, HAVE_TEXT) else ""


def _pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"^[ \t]*(?://|#)[ \t]*fragment:[ \t]*%s[ \t]*\r?\n" % re.escape(name.encode()), re.MULTILINE)


def _span(data: bytes, name: str) -> tuple[int, int]:
    """Where the lines of a fragment stand, its markers not included."""
    begin = _pattern(name).search(data)
    end = re.compile(rb"^[ \t]*(?://|#)[ \t]*end fragment", re.MULTILINE).search(data, begin.end() if begin else 0)
    assert begin is not None  # the series was read from these very files
    assert end is not None
    return begin.end(), end.start()
