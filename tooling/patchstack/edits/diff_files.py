"""The hunks of an ``apply-diff``, which stand in files of the series' folder, as its messages do."""

from __future__ import annotations

from pathlib import Path

from patchstack.errors import ManifestError
from patchstack.manifest.section import Section
from patchstack.tree.hunks import Hunk, HunkError, read_hunks


def load_hunks(section: Section) -> list[tuple[Hunk, ...]]:
    """Read the hunks of a ``diff``, or of several ``diffs`` of which a tree takes one; there is at least one.

    Raises:
        ManifestError: a file is missing, is a link, leaves the folder, or is no diff.
    """
    if section.one_of(("diff", "diffs")) == "diff":
        return [_hunks(section, section.path("diff"), "diff")]
    found = [_hunks(section, _inside(section, name), "diffs") for name in section.texts("diffs")]
    if not found:
        raise section.error("'diffs' is empty", line=section.line_of("diffs"), expected="files of hunks")
    return found


def _inside(section: Section, name: str) -> str:
    """A path that stays in the series' folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise section.error(f"'{name}' leaves the folder of the series", line=section.line_of("diffs"))
    return name


def _hunks(section: Section, name: str, key: str) -> tuple[Hunk, ...]:
    folder = Path(section.file).parent
    file = folder / name
    for place in (file, *(parent for parent in file.parents if folder in parent.parents)):
        if place.is_symlink():
            raise section.error(f"the diff '{place}' is a symbolic link", line=section.line_of(key))
    try:
        return read_hunks(file.read_bytes())
    except OSError as error:
        problem = f"the diff '{file}' cannot be read"
        raise section.error(problem, line=section.line_of(key), found=error.strerror or str(error)) from None
    except HunkError as error:
        raise ManifestError(error.problem, where=f"{file}:{error.line}", expected="a unified diff") from None
