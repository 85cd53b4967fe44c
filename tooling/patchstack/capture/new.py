"""``apply-stack new``: the smallest series that works, with comments that say what to put where."""

from __future__ import annotations

from pathlib import Path

from patchstack.capture.folder import draft, publish, require_own
from patchstack.errors import UsageError
from patchstack.series import load_series

_MANIFEST = """\
# A series: changes, bottom of the stack first. Each becomes one commit. Made from commits, it needs no YAML by hand:
#   apply-stack capture BASE..HEAD --series FOLDER
# docs/reference/manifest.md of patchstack lists the kinds of edits.
format: 1
changes:
  - id: {name}
    title: "[MPS] Describe {name}"  # first line of the commit message; unique in the series
    message: {name}.md  # the rest of the message
    # Signs that upstream has the change, such as {{dispatch: OP, key: MPS}}. With none, only equal text counts.
    upstream: []
    edits:
      - kind: create-file  # the text is in overlay/, at the path where it lands
        path: docs/{name}.md
"""


def new(folder: Path) -> None:
    """Write a series of one change that creates one file.

    Raises:
        UsageError: the folder holds something, or its name cannot be an id.
    """
    require_own(folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError("the folder is not empty", where=str(folder), expected="a new folder")
    name = folder.name.lower().replace("-", "_")
    with draft(folder) as copy:
        (copy / "series.yaml").write_text(_MANIFEST.format(name=name), encoding="utf-8")
        (copy / f"{name}.md").write_text("Why this is wanted.\n", encoding="utf-8")
        (copy / "overlay" / "docs").mkdir()
        (copy / "overlay" / "docs" / f"{name}.md").write_text(f"# {name}\n", encoding="utf-8")
        load_series(str(copy))
        publish(copy, folder)
