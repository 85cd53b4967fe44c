"""Adding to the entries of a manifest: a place, a text, a digest, a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from patchstack.capture.entries import flow, place_entry, scalar
from patchstack.edits import Edit
from patchstack.edits.cxx_anchor import PLACES, CxxPlace
from patchstack.series import UpstreamMarker

_RELATIONS = (*PLACES, "definition")


def add_place(entry: Any, place: CxxPlace) -> None:
    """One more place, behind those that the entry has."""
    made = CommentedMap({place.relation: flow(place_entry(place))})
    if "places" in entry:
        entry["places"].append(made)
        return
    relation = next(key for key in entry if key in _RELATIONS)
    at, first = list(entry).index(relation), CommentedMap({relation: entry[relation]})
    del entry[relation]
    entry.insert(at, "places", CommentedSeq([first, made]))


def add_digests(entry: Any, digests: Sequence[str]) -> None:
    """Further texts that the edit may replace."""
    if "replaces" not in entry:
        entry["replaces"] = flow([])
    entry["replaces"].extend(scalar(one) for one in digests if one not in entry["replaces"])


def add_text(entry: Any, fragment: str, marker: UpstreamMarker, reason: str) -> None:
    """Another text for trees with a marker, before those that the entry has."""
    text = CommentedMap({"fragment": scalar(fragment), "only_where": CommentedSeq([_condition(marker, reason)])})
    if "fragments" in entry:
        entry["fragments"].insert(0, text)
        return
    at, known = list(entry).index("fragment"), CommentedMap({"fragment": entry["fragment"]})
    del entry["fragment"]
    entry.insert(at, "fragments", CommentedSeq([text, known]))


def add_diff(entry: Any, name: str) -> None:
    """One more file of hunks, behind those that the entry has."""
    if "diffs" not in entry:
        at, known = list(entry).index("diff"), entry["diff"]
        del entry["diff"]
        entry.insert(at, "diffs", CommentedSeq([known]))
    entry["diffs"].append(scalar(name))


def add_condition(entry: Any, marker: UpstreamMarker, reason: str) -> None:
    """Keep an edit to trees with a marker."""
    if "only_where" not in entry:
        entry["only_where"] = CommentedSeq()
    entry["only_where"].append(_condition(marker, reason))


def _condition(marker: UpstreamMarker, reason: str) -> Any:
    return flow({marker.kind: marker.name, "path": marker.path, "reason": reason})


def digests_of(edit: Edit) -> tuple[str, ...]:
    """The texts that an edit may replace; nothing for edits that replace none."""
    found: tuple[str, ...] = getattr(edit, "replaces", ())
    return tuple(one for one in found if isinstance(one, str))
