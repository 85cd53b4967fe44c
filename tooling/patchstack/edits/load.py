"""From one ``edits`` entry of a manifest to an edit object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypedDict

from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_anchor import DEFINITION_KINDS, CxxPlace, load_definition, load_place
from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_remove import PRIVATE_SUFFIXES, RemoveUnusedDefinition
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.model import Edit
from patchstack.edits.python_anchor import load_entry, load_steps
from patchstack.edits.python_entry import AddPythonEntry, RemovePythonEntry
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_member import RemoveClassMember
from patchstack.edits.regenerate import RegenerateShim
from patchstack.edits.spacing import load_spacing
from patchstack.manifest.overlay import Overlay, has_markers
from patchstack.manifest.section import Section
from patchstack.source.cxx import parse_cxx


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


def load_edit(section: Section, overlay: Overlay, bases: Mapping[str, tuple[str, ...]] | None = None) -> Edit:
    """Make the edit that a manifest entry describes.

    Args:
        bases: path to the blob ids that the whole series was written against, beside those of the entry.

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
    path, where = section.path("path"), f"{section.file}:{section.line}"
    shared: _Shared = {"path": path, "base": (*blob_ids(section, "base"), *(bases or {}).get(path, ())), "where": where}
    edit = KINDS[kind](section, overlay, shared)
    section.finish()
    return edit


def _create(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    content = overlay.file(shared["path"], section.at("path"))
    if has_markers(content):
        raise section.error(
            "a created file lands whole, and this overlay file has fragment markers", line=section.line_of("path")
        )
    return CreateFile(**shared, content=content)


def _place(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    fragment = overlay.fragment(shared["path"], section.text("fragment"), section.at("fragment"))
    spacing = load_spacing(section)
    fragment, path = spacing.of(fragment), shared["path"]
    if path.endswith(CXX_SUFFIXES):
        place = load_place(section)
        if place.relation == "into" and not parse_cxx(fragment.text).has_only_includes:
            raise section.error(
                f"fragment '{fragment.name}' goes into an include block and is not include lines",
                line=section.line_of("fragment"),
            )
        replaces = tuple(load_definition(item) for item in section.sections("replaces", "what goes", required=False))
        return PlaceCxxFragment(**shared, fragment=fragment, place=place, spacing=spacing, replaces=replaces)
    if path.endswith(".py"):
        steps = load_steps(section, "end_of", ends_with="class")
        return PlacePythonFragment(**shared, fragment=fragment, spacing=spacing, steps=steps)
    raise section.error(
        f"fragments cannot be placed in '{path}'",
        line=section.line_of("path"),
        expected=f"a file ending in {', '.join((*CXX_SUFFIXES, '.py'))}",
    )


def _replace(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    fragment = overlay.fragment(shared["path"], section.text("fragment"), section.at("fragment"))
    fragment = load_spacing(section, has_lines=False).of(fragment)
    place = load_place(section, keys=("definition",))
    optional = section.flag("optional")
    return ReplaceDefinition(**shared, fragment=fragment, place=place, replaces=_digests(section), optional=optional)


def _digests(section: Section, key: str = "replaces") -> tuple[str, ...]:
    """The texts that may go, by digest: of their tokens, or (as manifests of before have it) of the whole text."""
    digests = section.texts(key)
    if not all(re.fullmatch("(?:tokens|sha256):[0-9a-f]{16}", digest) for digest in digests):
        raise section.error(
            "a text that may go is named by its digest",
            line=section.line_of(key),
            expected=f"'{key}' with 'tokens:' and 16 hexadecimal digits for each",
        )
    return digests


def _remove_unused(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    if not shared["path"].endswith(PRIVATE_SUFFIXES):
        raise section.error(
            f"'{shared['path']}' may be used by other files, so what is unused in it cannot be told",
            line=section.line_of("path"),
            expected=f"a file ending in {', '.join(PRIVATE_SUFFIXES)}",
        )
    section.one_of(("definition", "definitions"))
    if section.has("definition"):
        places: tuple[CxxPlace, ...] = (load_place(section, keys=("definition",)),)
    else:
        kinds = (*DEFINITION_KINDS, "include")
        places = tuple(load_definition(item, kinds) for item in section.sections("definitions", "a definition"))
    comments = _digests(section, "comments")
    return RemoveUnusedDefinition(**shared, places=places, replaces=_digests(section), comments=comments)


def _dispatch(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    return AddDispatchKey(
        **shared,
        op=section.text("op"),
        key=section.text("key"),
        function=section.text("function"),
    )


def _remove_entry(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    return RemovePythonEntry(
        **shared,
        steps=load_steps(section, "in"),
        entry=load_entry(section, "entry"),
        value=load_entry(section, "value") if section.has("value") else "",
        with_comment=section.flag("with_comment"),
    )


def _add_entry(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    return AddPythonEntry(
        **shared,
        steps=load_steps(section, "in"),
        entry=load_entry(section, "entry"),
        value=load_entry(section, "value") if section.has("value") else "",
        after=load_entry(section, "after") if section.has("after") else "",
        comment=_one_line(section, "comment"),
    )


def _one_line(section: Section, key: str) -> str:
    text = section.text(key, default="")
    if "\n" in text:
        raise section.error(f"'{key}' must be one line", line=section.line_of(key))
    return text


def _remove_member(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    return RemoveClassMember(
        **shared,
        steps=load_steps(section, "in", ends_with="class"),
        member=section.text("member"),
    )


def _regenerate(section: Section, overlay: Overlay, shared: _Shared) -> Edit:
    adds = section.texts("adds")
    if not adds:
        raise section.error(
            "a regenerated header gains at least one declaration",
            line=section.line_of("adds"),
            expected="'adds' with the names of the new functions",
        )
    return RegenerateShim(**shared, backend=section.text("backend"), adds=adds)


KINDS: Mapping[str, Callable[[Section, Overlay, _Shared], Edit]] = {
    "create-file": _create,
    "place-fragment": _place,
    "replace-definition": _replace,
    "remove-unused-definition": _remove_unused,
    "add-dispatch-key": _dispatch,
    "remove-python-entry": _remove_entry,
    "add-python-entry": _add_entry,
    "remove-class-member": _remove_member,
    "regenerate-c-shim": _regenerate,
}
