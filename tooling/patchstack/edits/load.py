"""From one ``edits`` entry of a manifest to an edit object."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from patchstack.edits.apply_diff import ApplyDiff
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_anchor import (
    DEFINITION_KINDS,
    FUNCTION_KINDS,
    CxxPlace,
    load_definition,
    load_place,
    load_places,
)
from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_in_function import PlaceInFunction
from patchstack.edits.cxx_remove import PRIVATE_SUFFIXES, RemoveUnusedDefinition
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.cxx_statements import ReplaceStatements
from patchstack.edits.diff_files import load_hunks
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.model import Edit
from patchstack.edits.python_anchor import load_entry, load_steps
from patchstack.edits.python_entry import AddPythonEntry, RemovePythonEntry
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_member import RemoveClassMember
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.edits.python_statements import ReplacePythonStatements
from patchstack.edits.regenerate import RegenerateShim
from patchstack.edits.spacing import Spacing, load_spacing
from patchstack.edits.yaml_edit import YAML_SUFFIXES, PlaceYamlEntries, ReplaceYamlEntries
from patchstack.manifest.complaints import Complaints
from patchstack.manifest.overlay import Fragment, Overlay, has_markers
from patchstack.manifest.section import Section
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.cxx_statements import brackets_pair
from patchstack.tree.native_functions import DISPATCH_KEYS

if TYPE_CHECKING:
    from patchstack.edits.conditions import Applicability

    Conditions = Callable[[Section], tuple[Applicability, ...]]


class _Shared(TypedDict):
    """What every edit has."""

    path: str
    base: tuple[str, ...]
    where: str


def blob_ids(section: Section, key: str) -> tuple[str, ...]:
    """A list of blob ids, empty where the key is missing.

    Raises:
        ManifestError: one is not written out in full.
    """
    found = section.texts(key)
    if not all(re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", blob) for blob in found):
        line = section.line_of(key)
        raise section.error(f"'{key}' is a list of blob ids", line=line, expected="40 hexadecimal digits each")
    return found


def load_edits(
    section: Section, overlay: Overlay, bases: Mapping[str, tuple[str, ...]], conditions: Conditions
) -> tuple[Edit, ...]:
    """Make the edit that a manifest entry describes, or one for each of the texts that it lists under ``fragments``.

    Args:
        bases: path to the blob ids that the whole series was written against, beside those of the entry.
        conditions: reads ``only_where`` of a mapping.

    Raises:
        ManifestError: an unknown kind or key, a wrong value, or a fragment or file the overlay does not have.
    """
    parts = Complaints()
    common = parts.part(conditions, section)
    if not section.has("fragments"):
        edit = parts.part(load_edit, section, overlay, bases)
        parts.check()
        return (dataclasses.replace(edit, only_where=common),)
    listed = section.each("fragments", "a text", lambda item: _alternative(section, item, overlay, bases, conditions))
    parts.check()
    edits: list[Edit] = []
    before: list[tuple[Applicability, ...]] = []
    for edit in listed:
        if before and not before[-1]:
            raise section.error(
                "a text without 'only_where' is for every tree, and the ones behind it would never land",
                line=section.line_of("fragments"),
            )
        edits.append(dataclasses.replace(edit, only_where=(*common, *edit.only_where), unless=tuple(before)))
        before.append(edit.only_where)
    return tuple(edits)


def _alternative(
    section: Section, item: Section, overlay: Overlay, bases: Mapping[str, tuple[str, ...]], conditions: Conditions
) -> Edit:
    parts = Complaints()
    own = parts.part(conditions, item)
    edit = parts.part(load_edit, section, overlay, bases, text=item)
    parts.check()
    return dataclasses.replace(edit, only_where=own)


def load_edit(
    section: Section,
    overlay: Overlay,
    bases: Mapping[str, tuple[str, ...]] | None = None,
    *,
    text: Section | None = None,
) -> Edit:
    """Make the edit that a manifest entry describes.

    Args:
        bases: path to the blob ids that the whole series was written against, beside those of the entry.
        text: where its ``fragment`` stands; without it, in the entry itself.

    Raises:
        ManifestError: an unknown kind or key, a wrong value, or a fragment or file the overlay does not have.
    """
    kind = section.text("kind")
    if kind not in KINDS:
        raise section.error(
            f"unknown kind of edit '{kind}'",
            line=section.line_of("kind"),
            expected=f"one of {', '.join(sorted(KINDS))}",
        )
    if text and kind not in HAVE_FRAGMENTS:
        line = section.line_of("fragments")
        raise section.error(f"'fragments' does not go with {kind}", line=line, expected=" or ".join(HAVE_FRAGMENTS))
    parts = Complaints()
    path = parts.part(section.path, "path")
    own = parts.part(blob_ids, section, "base") or ()
    where = f"{section.file}:{(text or section).line}"
    shared: _Shared = {"path": path or "", "base": (*own, *(bases or {}).get(path, ())), "where": where}
    fragments = _Fragments(overlay, text or section)
    edit = parts.part(KINDS[kind], section, fragments, shared)
    parts.check()
    return edit


@dataclass(frozen=True)
class _Fragments:
    """The overlay, and the mapping that names the fragment of an edit."""

    overlay: Overlay
    section: Section

    def fragment(self, path: str) -> Fragment:
        name = self.section.text("fragment")
        return self.overlay.fragment(path, name, self.section.at("fragment")) if path else Fragment(name, b"", "")


def _create(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    content = texts.overlay.file(shared["path"], section.at("path")) if shared["path"] else b""
    if has_markers(content):
        raise section.error(
            "a created file lands whole, and this overlay file has fragment markers", line=section.line_of("path")
        )
    return CreateFile(**shared, content=content)


def _require_suffix(section: Section, path: str, suffixes: tuple[str, ...], problem: str) -> None:
    if path and not path.endswith(suffixes):
        expected = f"a file ending in {', '.join(suffixes)}"
        raise section.error(problem, line=section.line_of("path"), expected=expected)


def _place(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    path = shared["path"]
    parts = Complaints()
    parts.part(
        _require_suffix,
        section,
        path,
        (*CXX_SUFFIXES, ".py", *YAML_SUFFIXES),
        f"fragments cannot be placed in '{path}'",
    )
    fragment = parts.part(texts.fragment, path)
    spacing = parts.part(load_spacing, section)
    if path.endswith(".py"):
        return _place_python(section, shared, spacing.of(fragment), spacing, parts)
    if path.endswith(YAML_SUFFIXES):
        names, after = parts.part(section.texts, "in"), parts.part(section.text, "after")
        parts.check()
        return PlaceYamlEntries(**shared, fragment=spacing.of(fragment), names=names, after=after, spacing=spacing)
    places = parts.part(load_places, section)
    replaces = parts.part(section.each, "replaces", "what goes", load_definition, required=False)
    parts.check()
    fragment = spacing.of(fragment)
    if any(place.relation == "into" for place in places) and not parse_cxx(fragment.text).has_only_includes:
        raise section.error(
            f"fragment '{fragment.name}' goes into an include block and is not include lines",
            line=texts.section.line_of("fragment"),
        )
    kind = PlaceInFunction if places[0].in_function else PlaceCxxFragment
    if kind is PlaceInFunction and not brackets_pair(fragment.text):
        problem = f"fragment '{fragment.name}' goes into a function, and its brackets do not pair"
        raise section.error(problem, line=texts.section.line_of("fragment"))
    first, *others = places
    return kind(**shared, fragment=fragment, place=first, others=tuple(others), spacing=spacing, replaces=replaces)


def _place_python(section: Section, shared: _Shared, fragment: Fragment, spacing: Spacing, parts: Complaints) -> Edit:
    """At the end of a class, or ``after`` a member of a class or, without ``in``, of the module."""
    after = parts.part(section.text, "after") if section.has("after") else ""
    key = "in" if after else "end_of"
    is_module = bool(after) and not section.has("in")
    steps = () if is_module else parts.part(load_steps, section, key, ends_with="class")
    parts.check()
    return PlacePythonFragment(**shared, fragment=fragment, spacing=spacing, steps=steps, after=after)


def _replace_python(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    fragment = parts.part(texts.fragment, shared["path"])
    steps = parts.part(load_steps, section, "definition", ends_with="function")
    digests = parts.part(_digests, section)
    parts.check()
    return ReplacePythonDefinition(**shared, fragment=fragment, steps=steps, replaces=digests)


def _replace(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    if shared["path"].endswith(".py"):
        return _replace_python(section, texts, shared)
    parts = Complaints()
    fragment = parts.part(texts.fragment, shared["path"])
    spacing = parts.part(load_spacing, section, has_lines=False)
    places = parts.part(load_places, section, keys=("definition",))
    optional = parts.part(section.flag, "optional")
    digests = parts.part(_digests, section)
    parts.check()
    first, *others = places
    return ReplaceDefinition(
        **shared,
        fragment=spacing.of(fragment),
        place=first,
        others=tuple(others),
        replaces=digests,
        optional=optional,
    )


def _statements(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    fragment = parts.part(texts.fragment, shared["path"])
    is_python, is_yaml = shared["path"].endswith(".py"), shared["path"].endswith(YAML_SUFFIXES)
    count = parts.part(_count, section, least=1 if is_python or is_yaml else 0)
    digests = parts.part(_digests, section)
    if is_yaml:
        names = parts.part(section.texts, "in")
        parts.check()
        return ReplaceYamlEntries(**shared, fragment=fragment, names=names, replaces=digests, statements=count)
    if is_python:
        steps = parts.part(load_steps, section, "definition") if section.has("definition") else ()
        parts.check()
        return ReplacePythonStatements(**shared, fragment=fragment, steps=steps, replaces=digests, statements=count)
    place = parts.part(load_place, section, keys=("definition", "scope"))
    parts.check()
    if place.relation == "scope":
        if not count:
            problem = "a scope has no signature"
            raise section.error(problem, line=section.line_of("statements"), expected="a whole number from 1")
    elif place.kind not in FUNCTION_KINDS:
        problem = f"only a function has statements, and no {place.kind}"
        raise section.error(problem, line=section.line_of("definition"), expected=" or ".join(FUNCTION_KINDS))
    return ReplaceStatements(**shared, fragment=fragment, place=place, replaces=digests, statements=count)


def _count(section: Section, *, least: int) -> int:
    text = section.text("statements")
    if not text.isdigit() or int(text) < least:
        expected = f"a whole number from {least}" + ("" if least else "; 0 is the signature")
        raise section.error(
            "'statements' is no number", line=section.line_of("statements"), expected=expected, found=text
        )
    return int(text)


def _digests(section: Section, key: str = "replaces") -> tuple[str, ...]:
    """The texts that may go, by digest: of their tokens, or (as older manifests have it) of the whole text."""
    digests = section.texts(key)
    if not all(re.fullmatch("(?:tokens|sha256):[0-9a-f]{16}", digest) for digest in digests):
        raise section.error(
            "a text that may go is named by its digest",
            line=section.line_of(key),
            expected=f"'{key}' with 'tokens:' and 16 hexadecimal digits for each",
        )
    return digests


def _remove_unused(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    path = shared["path"]
    parts = Complaints()
    problem = f"'{path}' may be used by other files, so what is unused in it cannot be told"
    parts.part(_require_suffix, section, path, PRIVATE_SUFFIXES, problem)
    places = parts.part(_unused_places, section)
    comments = parts.part(_digests, section, "comments")
    digests = parts.part(_digests, section)
    parts.check()
    return RemoveUnusedDefinition(**shared, places=places, replaces=digests, comments=comments)


def _unused_places(section: Section) -> tuple[CxxPlace, ...]:
    if section.one_of(("definition", "definitions")) == "definition":
        return (load_place(section, keys=("definition",)),)
    kinds = (*DEFINITION_KINDS, "include")
    return section.each("definitions", "a definition", lambda item: load_definition(item, kinds))


def _dispatch(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    op = parts.part(section.text, "op")
    key = parts.part(dispatch_key, section)
    function = parts.part(section.text, "function")
    parts.check()
    return AddDispatchKey(**shared, op=op, key=key, function=function)


def dispatch_key(section: Section) -> str:
    """The dispatch key of an entry.

    Raises:
        ManifestError: no release of torchgen knows it.
    """
    key = section.text("key")
    if key not in DISPATCH_KEYS:
        line = section.line_of("key")
        raise section.error(f"unknown dispatch key '{key}'", line=line, expected=f"one of {', '.join(DISPATCH_KEYS)}")
    return key


def _remove_entry(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    steps = parts.part(load_steps, section, "in")
    entry = parts.part(load_entry, section, "entry")
    value = parts.part(load_entry, section, "value", default="")
    with_comment = parts.part(section.flag, "with_comment")
    parts.check()
    return RemovePythonEntry(**shared, steps=steps, entry=entry, value=value, with_comment=with_comment)


def _add_entry(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    steps = parts.part(load_steps, section, "in")
    entry = parts.part(load_entry, section, "entry")
    value, after = (parts.part(load_entry, section, key, default="") for key in ("value", "after"))
    comment = parts.part(_one_line, section, "comment")
    parts.check()
    return AddPythonEntry(**shared, steps=steps, entry=entry, value=value, after=after, comment=comment)


def _one_line(section: Section, key: str) -> str:
    text = section.text(key, default="")
    if "\n" in text:
        raise section.error(f"'{key}' must be one line", line=section.line_of(key))
    return text


def _remove_member(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    steps = parts.part(load_steps, section, "in", ends_with="class")
    member = parts.part(section.text, "member")
    parts.check()
    return RemoveClassMember(**shared, steps=steps, member=member)


def _regenerate(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    parts = Complaints()
    adds = parts.part(_added, section)
    backend = parts.part(section.text, "backend")
    parts.check()
    return RegenerateShim(**shared, backend=backend, adds=adds)


def _added(section: Section) -> tuple[str, ...]:
    adds = section.texts("adds")
    if not adds:
        raise section.error(
            "a regenerated header gains at least one declaration",
            line=section.line_of("adds"),
            expected="'adds' with the names of the new functions",
        )
    return adds


def _diff(section: Section, texts: _Fragments, shared: _Shared) -> Edit:
    first, *others = load_hunks(section)
    return ApplyDiff(**shared, hunks=first, others=tuple(others))


HAVE_FRAGMENTS = ("place-fragment", "replace-definition", "replace-statements")
KINDS: Mapping[str, Callable[[Section, _Fragments, _Shared], Edit]] = {
    "create-file": _create,
    "place-fragment": _place,
    "replace-definition": _replace,
    "replace-statements": _statements,
    "remove-unused-definition": _remove_unused,
    "add-dispatch-key": _dispatch,
    "remove-python-entry": _remove_entry,
    "add-python-entry": _add_entry,
    "remove-class-member": _remove_member,
    "regenerate-c-shim": _regenerate,
    "apply-diff": _diff,
}
