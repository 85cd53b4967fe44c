"""From a manifest file to a checked series."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from patchstack.edits.conditions import Applicability, UpstreamMarker
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.load import blob_ids, dispatch_key, load_edits
from patchstack.edits.model import Edit
from patchstack.edits.written import with_written
from patchstack.errors import ManifestError, UsageError
from patchstack.manifest.closest import closest
from patchstack.manifest.complaints import Complaints
from patchstack.manifest.overlay import Overlay
from patchstack.manifest.section import Section, read_manifest, read_text
from patchstack.messages.model import CoAuthor
from patchstack.series.model import Change, Requirement, Series
from patchstack.tree.native_functions import FUNCTIONS_PATH

FORMAT = "1"
IDENTITY = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
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
        next_command=f"--series {known[0]}" if known else "",
    )


def load_series(name: str | None = None) -> Series:
    """Load and check a series.

    The overlay is the folder ``overlay`` beside the manifest; a series in a folder ``patches`` without one takes the
    folder ``aten_overlay`` beside that, as those of the distribution do.

    Raises:
        UsageError: there is no such series.
        ManifestError: the manifest, a message or the overlay is not right; names file and line. All errors come at
            once, as :class:`patchstack.errors.ManifestErrors`.
    """
    folder = find_series(name)
    root = read_manifest(folder / "series.yaml")
    version = root.text("format")
    if version != FORMAT:
        raise root.error(
            "a manifest format this version does not read", line=root.line_of("format"), expected=FORMAT, found=version
        )
    reader = _Reader(folder, _overlay(folder))
    changes = reader.changes(root)
    return Series(folder.resolve().name, folder / "series.yaml", reader.overlay, changes)


def _overlay(folder: Path) -> Overlay:
    own, patches = folder / "overlay", folder.resolve().parent
    shared = patches.parent / "aten_overlay"
    is_shared = not own.is_dir() and patches.name == "patches" and shared.is_dir()
    return Overlay(shared if is_shared else own)


class _Reader:
    """Reads the changes of a manifest and collects what is wrong with them.

    Attributes:
        overlay: the text that lands.
    """

    def __init__(self, folder: Path, overlay: Overlay) -> None:
        self.overlay = overlay
        self._folder = folder
        self._complaints = Complaints()
        self._bases: dict[str, tuple[str, ...]] = {}
        self._in_doubt: set[str] = set()  # paths of edits that could not be read

    def changes(self, root: Section) -> tuple[Change, ...]:
        """The changes.

        Raises:
            ManifestError: all that is wrong.
        """
        part = self._complaints.part
        bases = part(root.each, "bases", "a base", _base, required=False) or ()
        for path, blobs in bases:
            self._bases[path] = (*self._bases.get(path, ()), *blobs)
        changes = part(root.each, "changes", "a change", self._change, into=self._complaints) or ()
        if not changes or len(changes) < root.length("changes"):
            self._doubt("")
        part(root.finish)
        for number, change in enumerate(changes):
            part(_check_unique, root, changes[:number], change)
            if "" not in self._in_doubt:
                part(_check_needs, root, changes[:number], change)
            part(_check_ops, root, change)
        if not self._in_doubt:
            changes = part(_with_written, changes)
            part(self._check_use, root, changes)
        self._complaints.errors += self._unused()
        self._complaints.check()
        return changes

    def _check_use(self, root: Section, changes: Iterable[Change]) -> None:
        for path in sorted(set(self._bases) - {edit.path for change in changes or () for edit in change.edits}):
            raise root.error(f"'bases' names {path}, which no edit is made to", line=root.line_of("bases"))

    def _unused(self) -> Iterable[ManifestError]:
        """What of the overlay no edit names; the overlay of several series is none that one of them could judge."""
        others = {file.parent.resolve() for file in self.overlay.root.parent.glob("patches/*/series.yaml")}
        if "" in self._in_doubt or others - {self._folder.resolve()}:
            return ()
        return self.overlay.unused(self._in_doubt)

    def _change(self, section: Section) -> Change:
        part = self._complaints.part
        identity = part(_identity, section)
        layer = section.text("overlay", default="")
        overlay = part(self.overlay.layered, layer, section.at("overlay")) if layer else self.overlay
        if not (identity and overlay):
            self._doubt("")
        edits = part(section.each, "edits", "an edit", lambda item: self._edit(item, overlay), into=self._complaints)
        return Change(
            id=identity,
            title=part(_title, section),
            body=part(_message, section, self._folder),
            ops=part(section.texts, "ops"),
            needs=part(section.texts, "needs") or (),
            requires=part(section.each, "requires", "a requirement", _requirement, required=False),
            upstream=part(_markers, section),
            edits=tuple(edit for group in edits or () for edit in group),
            line=section.line,
            co_authors=part(_co_authors, section),
            test_plan=part(_lines, section, "test_plan", _COMMAND, "a command on one line"),
            labels=part(_lines, section, "labels", _LABEL, "a label without a comma"),
            cc=part(_lines, section, "cc", _ACCOUNT, "an account or organization/team, without @"),
            only_where=part(_conditions, section),
        )

    def _doubt(self, path: str) -> None:
        """Note that an edit of a file could not be read, or (``""``) one of a file that is not known."""
        self._in_doubt.add(path)

    def _edit(self, section: Section, overlay: Overlay | None) -> tuple[Edit, ...]:
        try:
            return load_edits(section, overlay or self.overlay, self._bases, _conditions)
        except ManifestError:
            path = Complaints().part(section.path, "path")
            self._doubt(path if path and (overlay or self.overlay).has(path) else "")
            raise


def _with_written(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes, each with what the ones below it wrote as text that it knows.

    Raises:
        ManifestError: a change replaces a definition and knows no text of it.
    """
    done: list[Change] = []
    complaints = Complaints()
    for change in changes:
        edits = with_written(change.edits, (edit for earlier in done for edit in earlier.edits))
        for edit in edits:
            if isinstance(edit, ReplaceDefinition) and not (edit.replaces or edit.written):
                complaints.errors.append(
                    ManifestError(
                        "a replacement names what it replaces",
                        where=edit.where,
                        expected="'replaces' with at least one digest, or an earlier change that brings the definition",
                    )
                )
        done.append(dataclasses.replace(change, edits=edits))
    complaints.check()
    return tuple(done)


def _base(item: Section) -> tuple[str, tuple[str, ...]]:
    """A path and the ids of blobs that the whole series was written against, for three-way merges."""
    parts = Complaints()
    path, blobs = parts.part(item.path, "path"), parts.part(blob_ids, item, "blobs")
    parts.check()
    return path, blobs


def _identity(section: Section) -> str:
    identity = section.text("id")
    if not IDENTITY.match(identity):
        raise section.error(
            f"'{identity}' cannot be an id", line=section.line_of("id"), expected="a-z, 0-9, '_', '.', '-'"
        )
    return identity


def _title(section: Section) -> str:
    title = section.text("title")
    if "\n" in title or title != title.strip():
        raise section.error("a title is one line without blanks at its ends", line=section.line_of("title"))
    return title


def _co_authors(section: Section) -> tuple[CoAuthor, ...]:
    return tuple(CoAuthor.parse(text, where=section.at("co_authors")) for text in section.texts("co_authors"))


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


def _requirement(item: Section) -> Requirement:
    parts = Complaints()
    path, reason = parts.part(item.path, "path"), parts.part(item.text, "reason")
    defines = parts.part(item.text, "defines", default="")
    parts.check()
    return Requirement(path, defines, reason)


def _conditions(section: Section) -> tuple[Applicability, ...]:
    return section.each("only_where", "a condition", _condition, required=section.has("only_where"))


def _condition(item: Section) -> Applicability:
    parts = Complaints()
    marker, reason = parts.part(_marker, item), parts.part(item.text, "reason")
    parts.check()
    return Applicability(marker, reason)


def _markers(section: Section) -> tuple[UpstreamMarker, ...]:
    """The signs that upstream has the change; ``[]`` says that nothing but the edits themselves can tell."""
    says_none = section.has("upstream") and not section.length("upstream")
    return section.each("upstream", "an upstream marker", _marker, required=not says_none)


def _marker(item: Section) -> UpstreamMarker:
    kind = item.one_of(("dispatch", "declares", "defines"))
    parts = Complaints()
    name = parts.part(item.text, kind)
    path = parts.part(item.path, "path") if item.has("path") or kind != "dispatch" else FUNCTIONS_PATH
    key = parts.part(dispatch_key, item) if kind == "dispatch" else ""
    parts.check()
    return UpstreamMarker(kind, path, name, key)


def _check_unique(root: Section, earlier: Sequence[Change], change: Change) -> None:
    """Whether a change is told apart from those below it."""
    complaints = Complaints()
    for what, value in (("id", change.id), ("title", change.title)):
        same = [other for other in earlier if value in (other.id, other.title)]
        if value and same:
            problem = f"two changes have the {what} '{value}'"
            complaints.errors.append(root.error(problem, line=change.line, found=f"also line {same[0].line}"))
    complaints.check()


def _check_needs(root: Section, earlier: Sequence[Change], change: Change) -> None:
    """Whether a change needs only those below it."""
    complaints = Complaints()
    for needed in change.needs:
        if needed not in [other.id for other in earlier]:
            problem = f"change '{change.id}' needs '{needed}', which is not an earlier change of the series"
            complaints.errors.append(root.error(problem, line=change.line))
    complaints.check()


def _check_ops(root: Section, change: Change) -> None:
    """Whether the ops that a change gives a dispatch entry are among those it says it touches, if it says any."""
    dispatched = [edit.op for edit in change.edits if isinstance(edit, AddDispatchKey)]
    listed = [op.partition(".")[0] for op in change.ops or ()]
    for op in dispatched:
        if listed and op.partition(".")[0] not in listed:
            problem = f"change '{change.id}' adds a dispatch entry of {op}, and its 'ops' do not have it"
            nearest = ", ".join(closest(op, change.ops))
            raise root.error(problem, line=change.line, expected=op, found=nearest or ", ".join(change.ops))
