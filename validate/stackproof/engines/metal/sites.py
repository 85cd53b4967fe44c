"""Gives every instrumented call in LLVM IR a number that stands for its source place.

The detectors get told of accesses by calls that carry an address only. The debug location of each call says where it
is, inlining included; the number appended here lets a report name that place without reading debug information of
the finished library, on any platform. Places inside this package's headers count as the line that used them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_HOOKS = (
    r"__tsan_(?:unaligned_)?(?:read|write)\d+|__tsan_(?:memcpy|memset|memmove)|__ubsan_handle_\w+"
    r"|__metal_host_(?:barrier|simd_barrier|exchange|inactive_lane|atomic)"
)
_CALL = re.compile(rf"^(?P<head>.*\bcall .*?@(?:{_HOOKS})\()(?P<arguments>.*?)\)(?P<tail>[^()]*)$", re.MULTILINE)
# The access that a call announces, on the next line: its alignment is what the type of the pointer promises.
_ACCESS = re.compile(r"\n[^\n]*\b(?:load|store) [^\n]*, ptr [%@][\w.]+, align (\d+)")
ALIGNMENT_SHIFT = 24
_DEBUG = re.compile(r"!dbg !(\d+)")
_DECLARE = re.compile(rf"^(declare .*@(?:{_HOOKS})\()(.*?)(\).*)$", re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|!?\w+)')


@dataclass(frozen=True)
class NumberedSites:
    """IR with numbered calls.

    Attributes:
        text: the IR.
        sites: file and line of each number, number 1 first.
    """

    text: str
    sites: tuple[tuple[str, int], ...]


def number_sites(ir: str, headers: Path) -> NumberedSites:
    """Append a number to every call of a hook.

    Args:
        ir: textual LLVM IR with line tables.
        headers: places in files under this folder are attributed to their caller.
    """
    nodes = {number: (kind, dict(_FIELD.findall(fields))) for number, kind, fields in _NODE.findall(ir)}
    numbers: dict[tuple[str, int], int] = {}
    by_location: dict[str, int] = {}

    def number(location: str | None) -> int:
        if location is None:
            return 0
        if location not in by_location:
            place = _place(nodes, location, str(headers))
            by_location[location] = numbers.setdefault(place, len(numbers) + 1)
        return by_location[location]

    def call(match: re.Match[str]) -> str:
        comma = ", " if match["arguments"] else ""
        place = _DEBUG.search(match["tail"])
        told = number(place[1] if place else None) | _alignment(ir, match) << ALIGNMENT_SHIFT
        return f"{match['head']}{match['arguments']}{comma}i32 {told}){match['tail']}"

    def declare(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{', ' if match[2] else ''}i32{match[3]}"

    text = _DECLARE.sub(declare, _CALL.sub(call, ir))
    return NumberedSites(text, tuple(numbers))


def _alignment(ir: str, call: re.Match[str]) -> int:
    """The logarithm of the alignment of the load or store after an announcing call; 0 where there is none."""
    if "@__tsan_" not in call["head"]:
        return 0
    access = _ACCESS.match(ir, ir.find("\n", call.start("tail")))
    return int(access[1]).bit_length() - 1 if access else 0


def said_to_be_meant(rule: str, sites: Iterable[tuple[str, int]], root: Path | None) -> frozenset[tuple[str, int]]:
    """The places whose source says that what a rule objects to is meant.

    It says so by a comment of clang-tidy's form, ``NOLINT(rule)`` on the line or ``NOLINTNEXTLINE(rule)`` on the one
    above. Comments are no part of a build's key, so the files are read each time; one that is gone says nothing.

    Args:
        rule: short name of the rule.
        sites: file and line.
        root: folder that relative names are in.
    """
    lines: dict[str, list[str]] = {}
    found = set()
    for file, line in sites:
        if file not in lines:
            try:
                lines[file] = (root / file if root else Path(file)).read_text(errors="replace").splitlines()
            except OSError:
                lines[file] = []
        here, above = (lines[file][n : n + 1] for n in (line - 1, max(line - 2, 0)))
        if f"NOLINT({rule})" in "".join(here) or (line > 1 and f"NOLINTNEXTLINE({rule})" in "".join(above)):
            found.add((file, line))
    return frozenset(found)


def _place(nodes: dict[str, tuple[str, dict[str, str]]], location: str, headers: str) -> tuple[str, int]:
    """File and line of a location, outwards along the inlining until it leaves the headers."""
    place = ("", 0)
    at: str | None = location
    while at is not None and at in nodes:
        fields = nodes[at][1]
        place = (_file(nodes, fields.get("scope", "").lstrip("!")), int(fields.get("line", "0")))
        if not place[0].startswith(headers):
            return place
        inlined = fields.get("inlinedAt")
        at = inlined.lstrip("!") if inlined else None
    return place


def _file(nodes: dict[str, tuple[str, dict[str, str]]], scope: str) -> str:
    while scope in nodes:
        _kind, fields = nodes[scope]
        file = nodes.get(fields.get("file", "").lstrip("!"))
        if file and file[0] == "DIFile":
            return file[1].get("filename", '""').strip('"')
        scope = fields.get("scope", "").lstrip("!")
    return ""
