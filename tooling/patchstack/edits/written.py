"""Texts that the series itself wrote: a later change may replace or remove them without a digest in the manifest.

A manifest names by digest what upstream's texts may be. What an earlier change of the same series puts into a file is
in the overlay, so it need not be told, and cannot be told wrongly when the overlay moves on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_anchor import CxxPlace
from patchstack.edits.cxx_edit import CXX_SUFFIXES, CxxEdit
from patchstack.edits.cxx_remove import RemoveUnusedDefinition
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.model import Edit
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.cxx_digest import code_digest, comments_of


def with_written(edits: Iterable[Edit], earlier: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits, those that replace or remove a definition with the digests of what earlier changes wrote there.

    Args:
        earlier: the edits of the changes below.
    """
    below = tuple(earlier)
    return tuple(_with_written(edit, below) for edit in edits)


def _with_written(edit: Edit, earlier: Iterable[Edit]) -> Edit:
    if not isinstance(edit, (ReplaceDefinition, RemoveUnusedDefinition)):
        return edit
    texts = [_text(other) for other in earlier if other.path == edit.path]
    places = (edit.place,) if isinstance(edit, ReplaceDefinition) else edit.places
    known = [found for place in places for text in texts for found in _definitions(text, place)]
    written = tuple(dict.fromkeys(map(code_digest, known)))
    if isinstance(edit, RemoveUnusedDefinition):
        return dataclasses.replace(edit, written=written)
    comments = tuple(dict.fromkeys(words for text in known for _, words in comments_of(text)))
    return dataclasses.replace(edit, written=written, own_comments=comments)


def _text(edit: Edit) -> bytes:
    """The C++ that an edit puts into its file; empty for edits that put none."""
    if isinstance(edit, CxxEdit):
        return edit.fragment.text
    return edit.content if isinstance(edit, CreateFile) and edit.path.endswith(CXX_SUFFIXES) else b""


def _definitions(text: bytes, place: CxxPlace) -> Iterator[bytes]:
    """The definitions of a name in a text; the scope is that of the place where the text lands."""
    name = _last_part(place.name)
    if name.encode() in text:
        file = parse_cxx(text)
        for found in file.definitions:
            if (found.kind, _last_part(found.name)) == (place.kind, name):
                yield file.data[file.comment_start(found) : found.end]


def _last_part(name: str) -> str:
    return name.rpartition("::")[2]
