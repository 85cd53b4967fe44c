"""Virtual environments as users have them: the project installed, and of the other packages only those that are named.

No network is needed: the wheel of the project is built and installed by pip, and every other package is a link to the
one that the tests run with.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:;(?P<marker>.*))?")


@dataclass(frozen=True)
class Bare:
    """One such environment.

    Attributes:
        folder: of the virtual environment.
    """

    folder: Path

    def run(
        self, program: str, *arguments: str, cwd: Path, cache: Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the project's commands, with nothing but git on the path: no clang, no formatter."""
        path = self.folder / "path"
        path.mkdir(exist_ok=True)
        if not (path / "git").exists():
            (path / "git").symlink_to(str(shutil.which("git")))
        kept = {name: value for name, value in os.environ.items() if name.startswith(("HOME", "LC_", "LANG", "TMP"))}
        identity = {
            f"GIT_{who}_{what}": "bare@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        settings = {"PATH": str(path), "PATCHSTACK_CACHE": str(cache), **environment}
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            cwd=cwd,
            env=kept | identity | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def build_wheel(folder: Path) -> Path:
    """The project's wheel, built from its sources."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def bare_environment(folder: Path, wheel: Path, *packages: str) -> Bare:
    """What ``pip install .`` gives, and the named packages with what they depend on."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for distribution in _closure([*_core(wheel, site), *packages]):
        for file in distribution.files or ():
            top = file.parts[0]
            target = site / top
            if top not in ("..", "__pycache__") and not target.exists():
                target.symlink_to(str(distribution.locate_file(top)))
    return Bare(folder)


def _core(wheel: Path, site: Path) -> list[str]:
    """Install the wheel alone, and name what it requires of every installation."""
    python = site.parents[2] / "bin/python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (own,) = importlib.metadata.distributions(name="patchstack", path=[str(site)])
    return list(_names(own.requires or ()))


def _closure(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = importlib.metadata.distribution(name)
            waiting += _names(found[name].requires or ())
    return list(found.values())


def _names(requirements: Iterable[str]) -> Iterator[str]:
    """The distributions that are required here: those of extras and of other systems are not installed beside us."""
    for text in requirements:
        match = _REQUIREMENT.fullmatch(text)
        assert match, text
        marker = match["marker"] or ""
        if "extra" not in marker and (not marker or _is_installed(match["name"])):
            yield match["name"]


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
