"""The folder of a series: written beside the old one as a whole, and put in its place in one step.

A run that is killed leaves the folder as it was, or as it is to be, and at worst a folder ``.NAME.new-...`` beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from patchstack.errors import ManifestError, UsageError
from patchstack.series.load import data_root

MANIFEST = "series.yaml"
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_AT_FDCWD = -100


def require_own(folder: Path) -> None:
    """Refuse a folder that is no series of the user's, or would not become one.

    Raises:
        UsageError: it belongs to the distribution, has no overlay of its own, or holds something else.
    """
    if folder.resolve().parent == data_root() / "patches":
        raise UsageError("this series belongs to the distribution", where=str(folder), expected="a folder of your own")
    if folder.is_symlink():
        raise UsageError("the series is a symbolic link", where=str(folder), found=os.readlink(folder))
    if not folder.parent.is_dir():
        raise UsageError("no such folder", where=str(folder.parent), next_command=f"mkdir -p {folder.parent}")
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError("not a folder", where=str(folder), expected="a folder with series.yaml, or none")
    if not folder.is_dir() or not os.listdir(folder):
        return
    if not (folder / MANIFEST).is_file():
        raise UsageError("the folder holds something that is no series", where=str(folder), expected=MANIFEST)
    if not (folder / "overlay").is_dir():
        problem = "the series has no overlay of its own, so its text cannot be told from that of others"
        raise UsageError(problem, where=str(folder), expected="a folder 'overlay' beside series.yaml")


@contextlib.contextmanager
def draft(folder: Path) -> Iterator[Path]:
    """A copy of a series' folder (an empty folder where there is none) that goes away unless it was published.

    Raises:
        UsageError: nothing can be written beside the folder.
    """
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
    except OSError as error:
        problem = "nothing can be written beside the series"
        raise UsageError(problem, where=str(folder.parent), found=error.strerror or str(error)) from None
    copy = made / folder.name
    try:
        if folder.is_dir():
            shutil.copytree(folder, copy, symlinks=True)
        (copy / "overlay").mkdir(parents=True, exist_ok=True)
        yield copy
    finally:
        shutil.rmtree(made, ignore_errors=True)


def difference(folder: Path, copy: Path) -> str:
    """What a draft changes, as ``git diff`` writes it."""
    old, new = str(folder.resolve()), str(copy.resolve())
    command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--", old, new]
    text = subprocess.run(command, capture_output=True, check=False).stdout.decode(errors="replace")
    return text.replace(new, "").replace(old, "")


def publish(copy: Path, folder: Path) -> None:
    """Swap a draft with the series' folder; what was there goes away with the draft."""
    if not os.path.lexists(folder):
        os.rename(copy, folder)
    elif not _exchange(copy, folder):  # a file system without it: two steps, and the old one stays beside the new one
        aside = copy.with_name("before")
        os.rename(folder, aside)
        os.rename(copy, folder)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, where the system can."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(one), os.fsencode(other)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*names, _EXCHANGE) == 0)
        return bool(library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0)
    except (OSError, AttributeError):
        return False


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    return yaml


def read_yaml(file: Path) -> Any:
    """A manifest with its comments and layout.

    Raises:
        ManifestError: it is no YAML.
    """
    try:
        return _yaml().load(file.read_bytes())
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        problem = "the manifest cannot be read"
        raise ManifestError(problem, where=str(file), found=str(error).splitlines()[0]) from None


def write_yaml(file: Path, data: Any) -> None:
    """Write a manifest as it was read, with what changed in it."""
    out = io.BytesIO()
    _yaml().dump(data, out)
    file.write_bytes(out.getvalue())
