"""Writing captured commits into the draft of a series: manifest entries, messages, overlay, diffs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from patchstack.capture.choose import renamed
from patchstack.capture.derive import ops_of
from patchstack.capture.entries import entry_of, flow, scalar
from patchstack.capture.folder import MANIFEST, read_yaml, write_yaml
from patchstack.capture.model import Choice, Source
from patchstack.capture.texts import HAVE_TEXT, Texts
from patchstack.edits import Edit
from patchstack.edits.apply_diff import ApplyDiff
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_statements import ReplaceStatements, scope_words
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.edits.yaml_edit import YamlEdit
from patchstack.manifest.overlay import has_markers
from patchstack.series import Requirement, UpstreamMarker
from patchstack.tree.hunks import write_hunks

_FRAGMENT = re.compile(rb"^[ \t]*(?://|#)[ \t]*fragment:[ \t]*([\w.-]+)", re.MULTILINE)
_HEAD = "Captured from commits; docs/reference/manifest.md of patchstack has the format.\n"


class Composer:
    """Adds changes to the draft of a series.

    Attributes:
        folder: the draft.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._is_new = not (folder / MANIFEST).is_file()
        self._data = _empty() if self._is_new else read_yaml(folder / MANIFEST)

    @property
    def identities(self) -> list[str]:
        """The ids of the changes that are there."""
        return [str(change.get("id")) for change in self._data.get("changes", [])]

    @property
    def titles(self) -> list[str]:
        """Their titles."""
        return [str(change.get("title")) for change in self._data.get("changes", [])]

    def add_bases(self, blobs: Mapping[str, str]) -> None:
        """Name the blobs that the edits of some files were written against."""
        if blobs and "bases" not in self._data:
            self._data.insert(1, "bases", CommentedSeq())
        for path, blob in blobs.items():
            listed = next((base for base in self._data["bases"] if base["path"] == path), None)
            if listed is None:
                self._data["bases"].append(CommentedMap({"path": scalar(path), "blobs": flow([blob])}))
            elif blob not in listed["blobs"]:
                listed["blobs"].append(blob)

    def add(
        self,
        source: Source,
        identity: str,
        choices: Sequence[Choice],
        markers: Iterable[UpstreamMarker],
        requirements: Iterable[Requirement],
    ) -> tuple[Choice, ...]:
        """Add one change; the choices with the names that their fragments have now."""
        layer = f"change-{identity}" if any(self._is_taken(choice.edit) for choice in choices) else ""
        named = tuple(self._written(choice, layer) for choice in choices)
        message = f"{identity}.md"
        (self.folder / message).write_text(f"{source.body or source.title}\n", encoding="utf-8")
        change = CommentedMap({"id": scalar(identity), "title": DoubleQuotedScalarString(source.title)})
        change["message"] = message
        if layer:
            change["overlay"] = layer
        if ops := ops_of([choice.edit for choice in named]):
            change["ops"] = flow(ops)
        if source.co_authors:
            change["co_authors"] = flow([f"{one.name} <{one.email}>" for one in source.co_authors])
        if listed := [_required(one) for one in requirements]:
            change["requires"] = listed
        change["upstream"] = [_marker(one) for one in markers] or flow([])
        change["edits"] = [entry_of(c.edit, self._diff(identity, n, c.edit)) for n, c in enumerate(named, 1)]
        self._remark(change)
        self._data["changes"].append(change)
        if number := len(self._data["changes"]) - 1:
            self._data["changes"].yaml_set_comment_before_after_key(number, before="\n")
        return named

    def add_needs(self, needs: Mapping[str, Sequence[str]]) -> None:
        """Say of changes which earlier ones they build on."""
        for change in self._data["changes"]:
            if found := needs.get(str(change["id"])):
                change.insert(list(change).index("upstream"), "needs", flow(list(found)))

    def layer_of(self, identity: str) -> str:
        """The layer of a change."""
        return str(self._change(identity).get("overlay", ""))

    def says_other(self, identity: str, source: Source) -> bool:
        """Whether a commit has other words than the change."""
        change = self._change(identity)
        body = (self.folder / str(change["message"])).read_text(encoding="utf-8").strip()
        return str(change["title"]) != source.title or body != (source.body or source.title).strip()

    def update_message(self, identity: str, source: Source) -> bool:
        """Take over title and prose of a commit; whether there was anything to take."""
        if not self.says_other(identity, source):
            return False
        change = self._change(identity)
        change["title"] = DoubleQuotedScalarString(source.title)
        (self.folder / str(change["message"])).write_text(f"{source.body or source.title}\n", encoding="utf-8")
        return True

    def drop_path(self, identity: str, path: str, texts: Texts) -> None:
        """Take the edits of a file, and their texts, out of a change."""
        change = self._change(identity)
        gone = [entry for entry in change["edits"] if str(entry["path"]) == path]
        change["edits"][:] = [entry for entry in change["edits"] if str(entry["path"]) != path]
        for entry in gone:
            texts.drop(entry, self.layer_of(identity), self._entries())
        if not any(str(entry["path"]) == path for entry, _ in self._entries()) and "bases" in self._data:
            self._data["bases"][:] = [base for base in self._data["bases"] if str(base["path"]) != path]

    def add_edits(self, identity: str, choices: Sequence[Choice]) -> list[Any]:
        """Add edits to a change: regenerated headers at its end, others before these; the new entries."""
        change = self._change(identity)
        layer = self.layer_of(identity)
        if not layer and any(self._is_taken(choice.edit) for choice in choices):
            layer = f"change-{identity}"
            change.insert(list(change).index("message") + 1, "overlay", layer)
        named = [self._written(choice, layer) for choice in choices]
        number = self._next_diff(identity)
        entries = [entry_of(c.edit, self._diff(identity, n, c.edit)) for n, c in enumerate(named, number)]
        kinds = [str(entry["kind"]) for entry in change["edits"]]
        at = kinds.index("regenerate-c-shim") if "regenerate-c-shim" in kinds else len(kinds)
        for offset, entry in enumerate(entries):
            is_last = entry["kind"] == "regenerate-c-shim"
            change["edits"].insert(len(change["edits"]) if is_last else at + offset, entry)
        return entries

    def entries_of(self, identity: str) -> list[Any]:
        """For each edit of a change the entry that makes it; one with several texts makes as many edits."""
        entries = self._change(identity)["edits"]
        return [entry for entry in entries for _ in entry.get("fragments", [None])]

    def written(self, identity: str, choice: Choice) -> Edit:
        """Put the text of an edit of a change into the overlay; the edit with the name that the text has there."""
        return self._written(choice, self.layer_of(identity)).edit

    def written_diff(self, identity: str, edit: ApplyDiff) -> str:
        """Put the hunks of an edit of a change into a file of their own; its name."""
        return self._diff(identity, self._next_diff(identity), edit)

    def _next_diff(self, identity: str) -> int:
        return 1 + len(list((self.folder / "diffs" / identity).glob("*")))

    def remove(self, identity: str, texts: Texts) -> None:
        """Take a change out, with its message and its texts."""
        change = self._change(identity)
        for path in dict.fromkeys(str(entry["path"]) for entry in change["edits"]):
            self.drop_path(identity, path, texts)
        (self.folder / str(change["message"])).unlink(missing_ok=True)
        self._data["changes"].remove(change)
        for other in self._data["changes"]:
            if identity in other.get("needs", []):
                other["needs"].remove(identity)

    def reorder(self, order: Sequence[str]) -> None:
        """Put the changes that are named into this order, each in a place of one of them."""
        changes = list(self._data["changes"])
        places = [n for n, change in enumerate(changes) if str(change["id"]) in order]
        if [str(changes[n]["id"]) for n in places] != list(order):
            for place, identity in zip(places, order, strict=True):
                self._data["changes"][place] = self._change_in(changes, identity)

    def _change(self, identity: str) -> Any:
        return self._change_in(self._data["changes"], identity)

    @staticmethod
    def _change_in(changes: Iterable[Any], identity: str) -> Any:
        return next(change for change in changes if str(change["id"]) == identity)

    def _entries(self) -> Iterator[tuple[Any, str]]:
        """The entries of all edits, each with its layer."""
        for change in self._data["changes"]:
            yield from ((entry, str(change.get("overlay", ""))) for entry in change["edits"])

    def save(self) -> None:
        """Write the manifest."""
        write_yaml(self.folder / MANIFEST, self._data)

    def _remark(self, change: Any) -> None:
        if not change["upstream"]:
            remark = "Look here: nothing by name tells whether upstream has this change; only equal text counts."
            change.yaml_set_comment_before_after_key("upstream", before=remark, indent=4)

    def _place(self, path: str, layer: str) -> Path:
        return self.folder / "overlay" / layer / path

    def _is_taken(self, edit: Edit) -> bool:
        """Whether the overlay has another kind of text for the file of an edit."""
        file = self._place(edit.path, "")
        if not file.exists():
            return False
        return isinstance(edit, CreateFile) or (_has_fragment(edit) and not has_markers(file.read_bytes()))

    def _written(self, choice: Choice, layer: str) -> Choice:
        """Put the text of an edit into the overlay, under a name that nothing else has."""
        edit = choice.edit
        where = self._place(edit.path, layer if self._is_taken(edit) else "")
        if isinstance(edit, CreateFile):
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(edit.content)
        if not isinstance(edit, HAVE_TEXT):
            return choice
        before = where.read_bytes() if where.exists() else b""
        taken = {name.decode() for name in _FRAGMENT.findall(before)}
        name, number = edit.fragment.name, 1
        while name in taken:
            number += 1
            name = f"{edit.fragment.name}_{number}"
        choice = renamed(choice, name)
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(before + (b"\n" if before else b"") + _with_context(choice.edit))
        return choice

    def _diff(self, identity: str, number: int, edit: Edit) -> str:
        if not isinstance(edit, ApplyDiff):
            return ""
        name = f"diffs/{identity}/{number:02}-{edit.path.rpartition('/')[2]}.diff"
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(write_hunks(edit.path, edit.hunks))
        return name


def _empty() -> Any:
    data = CommentedMap({"format": 1, "changes": CommentedSeq()})
    data.yaml_set_start_comment(_HEAD)
    return data


def _has_fragment(edit: Edit) -> bool:
    return isinstance(edit, HAVE_TEXT)


def _required(requirement: Requirement) -> Any:
    return CommentedMap({"path": scalar(requirement.path), "reason": requirement.reason})


def _marker(marker: UpstreamMarker) -> Any:
    made = CommentedMap({marker.kind: scalar(marker.name)})
    if marker.key:
        made["key"] = marker.key
    else:
        made["path"] = scalar(marker.path)
    return made


def _with_context(edit: Edit) -> bytes:
    """A fragment between its markers, in what it is written for."""
    assert isinstance(edit, HAVE_TEXT)
    sign = b"//" if isinstance(edit, CxxEdit) else b"#"
    name = edit.fragment.name.encode()
    text = b"%s fragment: %s\n%s%s end fragment\n" % (sign, name, edit.fragment.text, sign)
    opening, closing = _around(edit)
    return b"".join([*(line + b"\n" for line in opening), text, *(line + b"\n" for line in closing)])


def _around(
    edit: CxxEdit | PlacePythonFragment | ReplacePythonDefinition | YamlEdit,
) -> tuple[list[bytes], list[bytes]]:
    if isinstance(edit, YamlEdit):
        return [b"# In " + " / ".join(edit.names).encode()] * bool(edit.names), []
    if isinstance(edit, (PlacePythonFragment, ReplacePythonDefinition)):
        names = [step.name.encode() for step in edit.steps if step.kind == "class"]
        return (
            ([b"class %s:" % names[0]], []) if len(names) == 1 else ([b"# In " + b" / ".join(names)] * bool(names), [])
        )
    place = edit.place
    if place.relation == "scope":
        return [f"// In {scope_words(place)}:".encode()], []
    if place.in_function or isinstance(edit, ReplaceStatements):
        return [f"// In the body of {place.name}, {place}:".encode()], []
    is_inside = place.kind == "namespace" and place.relation in ("start_of", "end_of")
    scope = place.name if is_inside else place.scope or ""
    if not scope or "(" in scope or not isinstance(edit, PlaceCxxFragment) or place.kind in ("macro", "registration"):
        return ([f"// In {scope}:".encode()] if scope else []), []
    return [f"namespace {scope} {{".encode()], [f"}} // namespace {scope}".encode()]


def unique_titles(sources: Sequence[Source], taken: Sequence[str]) -> Iterator[str]:
    """Titles that would stand twice in the series."""
    counted = Counter([*taken, *(source.title for source in sources)])
    yield from (title for title, count in counted.items() if count > 1)
