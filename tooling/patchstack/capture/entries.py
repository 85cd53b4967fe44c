"""An edit as the entry of a manifest: the other direction of :mod:`patchstack.edits.load`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from patchstack.edits import Edit
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_anchor import CxxPlace
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_remove import RemoveUnusedDefinition
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.cxx_statements import ReplaceStatements
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.python_entry import AddPythonEntry, RemovePythonEntry
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_member import RemoveClassMember
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.edits.python_statements import ReplacePythonStatements
from patchstack.edits.regenerate import RegenerateShim
from patchstack.edits.spacing import USUAL, Spacing
from patchstack.edits.yaml_edit import PlaceYamlEntries, ReplaceYamlEntries, YamlEdit
from patchstack.tree.python import Step

_PLAIN = re.compile(r"[A-Za-z_](?:[\w./-]*\w)?\Z")


def entry_of(edit: Edit, diff: str = "") -> CommentedMap:
    """The mapping that makes this edit when it is read.

    Args:
        diff: file of the hunks of an ``apply-diff``, below the series' folder.
    """
    entry = CommentedMap({"kind": edit.kind, "path": scalar(edit.path)})
    for key, value in _own(edit, diff):
        entry[key] = value
    return entry


def scalar(text: str) -> str:
    """A text as YAML would have it: quoted wherever it could be read as something else."""
    made: str = text
    if "\n" in text:
        made = LiteralScalarString(text)
    elif not _PLAIN.match(text) or text.lower() in ("true", "false", "null", "yes", "no", "on", "off", "none"):
        made = (SingleQuotedScalarString if '"' in text or "\\" in text else DoubleQuotedScalarString)(text)
    return made


def flow(value: Any) -> Any:
    """Mappings and lists on one line."""
    if isinstance(value, Mapping):
        made = CommentedMap({key: flow(inner) for key, inner in value.items()})
        made.fa.set_flow_style()
        return made
    if isinstance(value, (list, tuple)):
        listed = CommentedSeq(map(flow, value))
        listed.fa.set_flow_style()
        return listed
    return scalar(value) if isinstance(value, str) else value


def _own(edit: Edit, diff: str) -> Iterator[tuple[str, Any]]:
    if isinstance(edit, ApplyDiff):
        yield "diff", scalar(diff)
    elif isinstance(edit, PlaceCxxFragment):
        yield "fragment", scalar(edit.fragment.name)
        places = [(place.relation, flow(place_entry(place))) for place in (edit.place, *edit.others)]
        yield from [("places", [CommentedMap([place]) for place in places])] if edit.others else places
        yield from _spacing(edit.spacing)
    elif isinstance(edit, ReplaceDefinition):
        yield "fragment", scalar(edit.fragment.name)
        yield edit.place.relation, flow(place_entry(edit.place))
        if isinstance(edit, ReplaceStatements):
            yield "statements", edit.statements
        yield "replaces", flow(edit.replaces)
    elif isinstance(edit, ReplacePythonDefinition):
        yield "fragment", scalar(edit.fragment.name)
        if edit.steps:
            yield "definition", _steps(edit.steps)
        if isinstance(edit, ReplacePythonStatements):
            yield "statements", edit.statements
        yield "replaces", flow(edit.replaces)
    elif isinstance(edit, YamlEdit):
        yield "fragment", scalar(edit.fragment.name)
        yield from [("in", flow(edit.names))] if edit.names else []
        if isinstance(edit, PlaceYamlEntries):
            yield "after", scalar(edit.after)
            yield from _spacing(edit.spacing)
        elif isinstance(edit, ReplaceYamlEntries):
            yield "statements", edit.statements
            yield "replaces", flow(edit.replaces)
    elif isinstance(edit, RemoveUnusedDefinition):
        yield "definitions", [flow(place_entry(place)) for place in edit.places]
        yield "replaces", flow(edit.replaces)
    elif isinstance(edit, AddDispatchKey):
        yield from (("op", scalar(edit.op)), ("key", edit.key), ("function", scalar(edit.function)))
    elif isinstance(edit, PlacePythonFragment):
        yield "fragment", scalar(edit.fragment.name)
        if not edit.after:
            yield "end_of", _steps(edit.steps)
        else:
            yield from [("in", _steps(edit.steps))] if edit.steps else []
            yield "after", scalar(edit.after)
        yield from _spacing(edit.spacing)
    elif isinstance(edit, (AddPythonEntry, RemovePythonEntry)):
        yield from _python_entry(edit)
    elif isinstance(edit, RemoveClassMember):
        yield from (("in", _steps(edit.steps)), ("member", scalar(edit.member)))
    elif isinstance(edit, RegenerateShim):
        yield from (("backend", edit.backend), ("adds", flow(edit.adds)))
    elif not isinstance(edit, CreateFile):
        raise NotImplementedError(edit.kind)


def _python_entry(edit: AddPythonEntry | RemovePythonEntry) -> Iterator[tuple[str, Any]]:
    yield "in", _steps(edit.steps)
    after = edit.after if isinstance(edit, AddPythonEntry) else ""
    comment = edit.comment if isinstance(edit, AddPythonEntry) else ""
    for key, text in (("after", after), ("entry", edit.entry), ("value", edit.value), ("comment", comment)):
        if text:
            yield key, scalar(text)
    if isinstance(edit, RemovePythonEntry) and edit.with_comment:
        yield "with_comment", True


def _steps(steps: Sequence[Step]) -> Any:
    return flow([{step.kind: step.name} | ({"argument": step.argument} if step.argument else {}) for step in steps])


def _spacing(spacing: Spacing) -> Iterator[tuple[str, Any]]:
    if spacing.exact:
        yield "spacing", "exact"
    elif spacing != USUAL:
        lines = {"before": spacing.before, "after": spacing.after}
        yield "blank_lines", flow({key: count for key, count in lines.items() if count is not None})


def place_entry(place: CxxPlace) -> dict[str, Any]:
    """A place as what stands behind its relation."""
    thing: dict[str, Any] = {place.kind: place.name}
    if place.scope is not None:
        thing["in"] = place.scope or "global"
    found = {"statement": {place.verb: place.target}, "in_function": thing} if place.verb else thing
    if place.matches != 1:
        found |= {"matches": place.matches, "pick": place.pick}
    return found | ({"inside_if": True} if place.inside_if else {})
