"""A Debian source package through apt-get, without touching the system's own package state.

apt-get gets lists, cache, sources and configuration of its own in a scratch folder. Of the system's configuration only
the ``Acquire`` settings (proxies, certificates) are taken over; its hooks are not, because on container images they
delete files of the system's cache. apt-get checks the archive's signature and the package's digests itself; the pinned
digest is checked on top.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from patchstack.errors import TreeError
from patchstack.reference.model import DebianOrigin, Progress

MIRROR = "PATCHSTACK_DEBIAN_MIRROR"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# The two files that Debian itself writes; other files there are other people's archives.
_SYSTEM_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
_DEBIAN_ARCHIVE = re.compile(r"https?://[^\s\]]+/debian/?(?=\s|$)")


def fetch_source(origin: DebianOrigin, folder: Path, progress: Progress) -> None:
    """Download the files of a source package into ``folder``.

    Raises:
        TreeError: apt-get or Debian's archive key is not on this machine, or apt-get failed.
    """
    wanted = f"{origin.package}={origin.package_version}"
    _require_apt(origin, wanted)
    progress(f"downloading Debian source package {wanted}")
    with tempfile.TemporaryDirectory(prefix="patchstack-apt-") as scratch:
        configuration = _private_apt(Path(scratch), origin.suite)
        _apt_get(["update"], folder, configuration, wanted)
        _apt_get(["source", "--download-only", wanted], folder, configuration, wanted)


def _require_apt(origin: DebianOrigin, wanted: str) -> None:
    missing = "apt-get" if shutil.which("apt-get") is None else "" if _KEYRING.is_file() else str(_KEYRING)
    if missing:
        raise TreeError(
            "not available on this machine",
            where=wanted,
            expected="Debian's apt-get and archive key",
            found=f"no {missing}",
            next_command=f"on a Debian machine with deb-src of suite {origin.suite}: "
            f"apt-get source --download-only {wanted}, then PATCHSTACK_DEBIAN_DIR=FOLDER",
        )


def _private_apt(scratch: Path, suite: str) -> Path:
    """A configuration file that keeps everything apt-get writes below ``scratch``."""
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (scratch / name).mkdir(parents=True)
    sources = scratch / "sources.list"
    sources.write_text(f"deb-src [signed-by={_KEYRING}] {mirror()} {suite} main\n", encoding="utf-8")
    nothing = scratch / "parts"
    settings: dict[str, object] = {
        "Dir::Etc::Main": os.devnull,
        "Dir::Etc::Parts": nothing,
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": nothing,
        "Dir::Etc::Preferences": os.devnull,
        "Dir::Etc::PreferencesParts": nothing,
        "Dir::State::Lists": scratch / "lists",
        "Dir::Cache": scratch / "cache",
    }
    if os.geteuid() == 0:
        settings["APT::Sandbox::User"] = "root"  # the unprivileged user apt switches to cannot enter our folder
    configuration = scratch / "apt.conf"
    lines = [f'{key} "{value}";' for key, value in settings.items()]
    configuration.write_text("\n".join([*lines, *_acquire_settings(), ""]), encoding="utf-8")
    return configuration


def _acquire_settings() -> list[str]:
    """The system's settings of how to download, in the configuration file's own syntax."""
    done = subprocess.run(["apt-config", "dump"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line.startswith("Acquire::")]


def mirror(system_sources: Iterable[Path] = _SYSTEM_SOURCES) -> str:
    """The Debian archive to ask: the one the environment names, else the one this system uses.

    Raises:
        TreeError: neither is there.
    """
    named = os.environ.get(MIRROR)
    if named:
        return named
    readable = [place for place in system_sources if os.access(place, os.R_OK)]
    for place in readable:
        for line in place.read_text(encoding="utf-8", errors="replace").splitlines():
            found = None if line.lstrip().startswith("#") else _DEBIAN_ARCHIVE.search(line)
            if found:
                return found.group(0)
    raise TreeError("no Debian archive is configured on this machine", next_command=f"export {MIRROR}=URL")


def _apt_get(arguments: Sequence[str], folder: Path, configuration: Path, wanted: str) -> None:
    done = subprocess.run(
        ["apt-get", "-q", *arguments],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", "APT_CONFIG": str(configuration)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()[-1:]
        raise TreeError(
            "apt-get could not download the source package",
            where=wanted,
            found=" ".join(lines) or f"exit status {done.returncode}",
            next_command="set PATCHSTACK_DEBIAN_MIRROR to another archive, or PATCHSTACK_DEBIAN_DIR to its files",
        )
