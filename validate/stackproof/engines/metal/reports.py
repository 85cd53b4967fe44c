"""Turns what the detectors recorded into sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stackproof.engines.metal.model import Build, Report, ReportKind, Signature, ThreadId
from stackproof.engines.metal.native import RawReport

_DIVERGENT = ReportKind.SIMDGROUP_DIVERGENCE
_NONE = (1 << 64) - 1
_ARENA = 0xFFFFFFFE
_NO_REGION = 0xFFFFFFFF
_KINDS = (
    ReportKind.BARRIER_DIVERGENCE,
    ReportKind.OUT_OF_BOUNDS,
    ReportKind.READ_ONLY_WRITE,
    ReportKind.RACE,
    ReportKind.UNINITIALISED,
    ReportKind.UNDEFINED,
    ReportKind.INACTIVE_LANE,
    ReportKind.LIMIT,
    ReportKind.SIMDGROUP_DIVERGENCE,
)


def describe(raw: Sequence[RawReport], signature: Signature, build: Build, names: Sequence[str]) -> list[Report]:
    """One :class:`Report` per raw one, without the divergence that the source says is meant.

    Args:
        raw: as the executor returned them.
        signature: of the kernel that ran.
        build: its sites give places in the source.
        names: of the regions.
    """
    reports = [_describe(one, signature, build, names) for one in raw]
    return [one for one in reports if one.kind is not _DIVERGENT or (one.file, one.line) not in build.divergent]


def _describe(raw: RawReport, signature: Signature, build: Build, names: Sequence[str]) -> Report:
    kind = _KINDS[raw.kind - 1]
    file, line = _place(build, raw.site)
    other_file, other_line = _place(build, raw.other_site)
    if not build.sites:
        # A plain build tells places apart, but not where they are: the kernel's own line is the best there is.
        file, line = signature.file, signature.line
    thread = _thread(raw.group, raw.thread)
    other = _thread(raw.other_group, raw.other_thread) if kind is not ReportKind.INACTIVE_LANE else None
    message = _MESSAGES[kind](raw, _region(raw, names), thread, other)
    return Report(kind, signature.kernel, message, file, line, other_file, other_line, thread, other, raw.count)


def _place(build: Build, site: int) -> tuple[str, int]:
    return build.sites[site - 1] if 0 < site <= len(build.sites) else ("", 0)


def _thread(group: int, index: int) -> ThreadId | None:
    return None if index == _NONE else ThreadId(-1 if group == _NONE else group, index)


def _region(raw: RawReport, names: Sequence[str]) -> str:
    if raw.region == _ARENA:
        return "threadgroup memory"
    return names[raw.region] if raw.region < len(names) else "memory"


def _verb(raw: RawReport, bit: int) -> str:
    atomic = "atomic " if raw.atomic >> bit & 1 else ""
    return atomic + ("write" if raw.writes >> bit & 1 else "read")


def _outside(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    where = f"at byte {raw.offset} of {region}" if raw.region != _NO_REGION else "far from every buffer"
    return f"{_verb(raw, 0)} of {raw.size} bytes {where}, outside its elements, by {thread}"


def _read_only(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return (
        f"write of {raw.size} bytes at byte {raw.offset} of {region}, which the kernel declares read-only, by {thread}"
    )


def _race(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return (
        f"{_verb(raw, 0)} of {region} at byte {raw.offset} by {thread} and {_verb(raw, 1)} by {other}"
        " with no barrier between them"
    )


def _uninitialised(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return f"read of {region} at byte {raw.offset} before anything was written there, by {thread}"


def _undefined(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return f"{raw.text.decode(errors='replace')}, by {thread}"


def _divergence(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    elsewhere = "waits at another barrier" if raw.other_site else "has finished"
    return f"{thread} waits at a threadgroup barrier while {other} {elsewhere}"


def _inactive(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return f"{thread} takes the value of lane {raw.other_thread}, which takes no part in the operation"


def _apart(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return f"{thread} calls a simdgroup function that {other}, of the same simdgroup, does not; a GPU may hang there"


def _limit(raw: RawReport, region: str, thread: ThreadId | None, other: ThreadId | None) -> str:
    return "more than 32,768 bytes of threadgroup memory, declared and passed together (or more than 64 variables)"


_Sentence = Callable[[RawReport, str, "ThreadId | None", "ThreadId | None"], str]
_MESSAGES: dict[ReportKind, _Sentence] = {
    ReportKind.BARRIER_DIVERGENCE: _divergence,
    ReportKind.OUT_OF_BOUNDS: _outside,
    ReportKind.READ_ONLY_WRITE: _read_only,
    ReportKind.RACE: _race,
    ReportKind.UNINITIALISED: _uninitialised,
    ReportKind.UNDEFINED: _undefined,
    ReportKind.INACTIVE_LANE: _inactive,
    ReportKind.LIMIT: _limit,
    ReportKind.SIMDGROUP_DIVERGENCE: _apart,
}
