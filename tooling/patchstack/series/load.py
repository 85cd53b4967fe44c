"""From a manifest file to a checked series."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.load import blob_ids, load_edit
from patchstack.edits.written import with_written
from patchstack.errors import ManifestError, UsageError
from patchstack.manifest.overlay import Overlay
from patchstack.manifest.section import Section, read_manifest, read_text
from patchstack.messages.model import CoAuthor
from patchstack.series.model import Applicability, Change, Requirement, Series, UpstreamMarker
from patchstack.source.native_functions import FUNCTIONS_PATH

FORMAT = "1"
_ID = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
_COMMAND = re.compile(r"\S(?:[^\n\r`]*\S)?\Z")
_LABEL = re.compile(r"[^\s,](?:[^,\n\r]*[^\s,])?\Z")  # ghstack splits its --label at commas
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[A-Za-z0-9_.-]+)?\Z")


def data_root() -> Path:
    """The folder that holds ``patches`` and ``aten_overlay``: inside an installed package, else the checkout."""
    packaged = Path(__file__).resolve().parent.parent / "_data"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3]


def series_names() -> list[str]:
    """Names of the series that come with the distribution."""
    return sorted(file.parent.name for file in (data_root() / "patches").glob("*/series.yaml"))


def find_series(name: str | None) -> Path:
    """The folder of a series: a name that comes with the distribution, or the path of a folder with ``series.yaml``.

    Args:
        name: ``None`` picks the only series there is.

    Raises:
        UsageError: there is no such series, or no name was given and there are several.
    """
    known = series_names()
    if name is None:
        if len(known) == 1:
            return data_root() / "patches" / known[0]
        raise UsageError("which series?", expected=f"--series with one of {', '.join(known)}")
    if name in known:
        return data_root() / "patches" / name
    folder = Path(name)
    if os.path.lexists(folder / "series.yaml"):  # unlike Path.exists(), this takes a name of any length
        return folder
    raise UsageError(
        f"no series '{name}'",
        expected=f"one of {', '.join(known)}, or a folder with series.yaml",
        next_command="--series",
    )


def load_series(name: str | None = None) -> Series:
    """Load and check a series.

    The overlay is the folder ``overlay`` beside the manifest where there is one, else the distribution's
    ``aten_overlay``.

    Raises:
        UsageError: there is no such series.
        ManifestError: the manifest, a message or the overlay is not right; names the file and line.
    """
    folder = find_series(name)
    root = read_manifest(folder / "series.yaml")
    own = folder / "overlay"
    overlay = Overlay(own if own.is_dir() else data_root() / "aten_overlay")
    version = root.text("format")
    if version != FORMAT:
        raise root.error(
            "a manifest format this version does not read", line=root.line_of("format"), expected=FORMAT, found=version
        )
    bases = _bases(root)
    changes = _with_written(_load_change(item, folder, overlay, bases) for item in root.sections("changes", "a change"))
    root.finish()
    unused = sorted(set(bases) - {edit.path for change in changes for edit in change.edits})
    if unused:
        raise root.error(f"'bases' names {unused[0]}, which no edit is made to", line=root.line_of("bases"))
    _check_unique(root, changes)
    return Series(folder.resolve().name, folder / "series.yaml", overlay, changes)


def _with_written(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes, each with what the ones below it wrote as text that it knows.

    Raises:
        ManifestError: a change replaces a definition and knows no text of it.
    """
    done: list[Change] = []
    for change in changes:
        edits = with_written(change.edits, (edit for earlier in done for edit in earlier.edits))
        for edit in edits:
            if isinstance(edit, ReplaceDefinition) and not (edit.replaces or edit.written):
                raise ManifestError(
                    "a replacement names what it replaces",
                    where=edit.where,
                    expected="'replaces' with at least one digest, or an earlier change that brings the definition",
                )
        done.append(dataclasses.replace(change, edits=edits))
    return tuple(done)


def _bases(root: Section) -> dict[str, tuple[str, ...]]:
    """Path to the ids of blobs that the whole series was written against, for three-way merges."""
    found: dict[str, tuple[str, ...]] = {}
    for item in root.sections("bases", "a base", required=False):
        path = item.path("path")
        found[path] = (*found.get(path, ()), *blob_ids(item, "blobs"))
        item.finish()
    return found


def _load_change(section: Section, folder: Path, overlay: Overlay, bases: Mapping[str, tuple[str, ...]]) -> Change:
    identity = section.text("id")
    if not _ID.match(identity):
        raise section.error(
            f"'{identity}' cannot be an id", line=section.line_of("id"), expected="a-z, 0-9, '_', '.', '-'"
        )
    title = section.text("title")
    if "\n" in title or title != title.strip():
        raise section.error("a title is one line without blanks at its ends", line=section.line_of("title"))
    layer = section.text("overlay", default="")
    if layer:
        overlay = overlay.layered(layer, section.at("overlay"))
    change = Change(
        id=identity,
        title=title,
        body=_message(section, folder),
        ops=section.texts("ops"),
        needs=section.texts("needs"),
        requires=tuple(_requirements(section)),
        upstream=tuple(_upstream(section)),
        edits=tuple(load_edit(item, overlay, bases) for item in section.sections("edits", "an edit")),
        line=section.line,
        co_authors=tuple(CoAuthor.parse(text, where=section.at("co_authors")) for text in section.texts("co_authors")),
        test_plan=_lines(section, "test_plan", _COMMAND, "a command on one line"),
        labels=_lines(section, "labels", _LABEL, "a label without a comma"),
        cc=_lines(section, "cc", _ACCOUNT, "an account or organization/team, without @"),
        only_where=tuple(_only_where(section)),
    )
    section.finish()
    return change


def _lines(section: Section, key: str, form: re.Pattern[str], what: str) -> tuple[str, ...]:
    values = section.texts(key)
    for value in values:
        if not form.match(value):
            raise section.error(
                f"'{key}' has an entry that cannot be used", line=section.line_of(key), expected=what, found=repr(value)
            )
    return values


def _message(section: Section, folder: Path) -> str:
    name = section.path("message")
    file = folder / name
    if any(os.path.islink(path) for path in (file, *_between(folder, file))):
        raise section.error(f"the message '{name}' is a symbolic link", line=section.line_of("message"))
    text = read_text(file, f"the message '{name}'", asked_at=section.at("message"))
    if not text.strip():
        raise ManifestError("the message is empty", where=f"{file}:1", expected="the body of the commit message")
    return text


def _between(folder: Path, file: Path) -> Iterable[Path]:
    return (folder / part for part in file.relative_to(folder).parents if str(part) != ".")


def _requirements(section: Section) -> Iterable[Requirement]:
    for item in section.sections("requires", "a requirement", required=False):
        yield Requirement(item.path("path"), item.text("defines", default=""), item.text("reason"))
        item.finish()


def _upstream(section: Section) -> Iterable[UpstreamMarker]:
    for item in section.sections("upstream", "an upstream marker"):
        yield _marker(item)
        item.finish()


def _only_where(section: Section) -> Iterable[Applicability]:
    for item in section.sections("only_where", "a condition", required=section.has("only_where")):
        yield Applicability(_marker(item), item.text("reason"))
        item.finish()


def _marker(item: Section) -> UpstreamMarker:
    kind = item.one_of(("dispatch", "declares", "defines"))
    name = item.text(kind)
    path = item.path("path") if item.has("path") or kind != "dispatch" else FUNCTIONS_PATH
    return UpstreamMarker(kind, path, name, item.text("key") if kind == "dispatch" else "")


def _check_unique(root: Section, changes: tuple[Change, ...]) -> None:
    ids: dict[str, Change] = {}
    titles: dict[str, Change] = {}
    for change in changes:
        for value, seen, what in ((change.id, ids, "id"), (change.title, titles, "title")):
            if value in seen:
                raise root.error(
                    f"two changes have the {what} '{value}'", line=change.line, found=f"also line {seen[value].line}"
                )
            seen[value] = change
        for needed in change.needs:
            if needed not in ids or needed == change.id:
                raise root.error(
                    f"change '{change.id}' needs '{needed}', which is not an earlier change of the series",
                    line=change.line,
                )
