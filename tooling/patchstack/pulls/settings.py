"""The few settings of ghstack that decide which refs and which remote it works with.

Read where ghstack 0.18 looks for them: ``.ghstackrc`` in the folder or one above, else the file that ``GHSTACKRC_PATH``
names, else the one in the home folder. The token in that file is not looked at.
"""

from __future__ import annotations

import configparser
import os
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import UsageError

_FILE = ".ghstackrc"
_SECTION = "ghstack"


@dataclass(frozen=True)
class GhstackSettings:
    """What ghstack would use.

    Attributes:
        file: the file they come from, ``None`` where there is none.
        username: name in ``gh/<username>/...``; empty where the file does not say.
        remote: name of the remote.
        github: host of GitHub.
    """

    file: Path | None = None
    username: str = ""
    remote: str = "origin"
    github: str = "github.com"


def read_settings(folder: Path) -> GhstackSettings:
    """The settings that ghstack would find in ``folder``.

    Raises:
        UsageError: the file is there and cannot be read.
    """
    file = _find(folder)
    if file is None:
        return GhstackSettings()
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        found = str(error).splitlines()[0]
        raise UsageError("ghstack's settings cannot be read", where=str(file), found=found) from None
    values = parser[_SECTION] if parser.has_section(_SECTION) else {}
    return GhstackSettings(
        file,
        values.get("github_username", ""),
        values.get("remote_name", "origin"),
        values.get("github_url", "github.com"),
    )


def _find(folder: Path) -> Path | None:
    named = os.environ.get("GHSTACKRC_PATH") or f"~/{_FILE}"
    above = [parent / _FILE for parent in (folder, *folder.parents)]
    # Unlike their namesakes of Path, these two raise nothing: no home folder and no way into a folder are no settings.
    for file in (*above, Path(os.path.expanduser(named))):
        if os.path.isfile(file):
            return file
    return None
