from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchstack.errors import TreeError
from patchstack.reference import debian
from patchstack.reference.model import DebianOrigin
from patchstack.reference.progress import quiet

ORIGIN = DebianOrigin("trixie", "pytorch", "2.6.0+dfsg-7")

APT = """#!/bin/sh
if [ "${0##*/}" = apt-config ]; then
    echo 'Acquire::http::Proxy "http://proxy.example:3128";'
    echo 'APT::Update::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb";'
    exit 0
fi
echo "$@" >> "$APT_LOG"
cat "$APT_CONFIG" > "$APT_LOG.conf"
cat "$(sed -n 's/^Dir::Etc::SourceList "\\(.*\\)";/\\1/p' "$APT_CONFIG")" > "$APT_LOG.sources"
[ -z "$APT_FAILS" ] || { echo "E: $APT_FAILS" >&2; exit 100; }
"""


@pytest.fixture
def apt_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in apt-get that records what it is given."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("apt-get", "apt-config"):
        (programs / name).write_text(APT)
        (programs / name).chmod(0o755)
    log = tmp_path / "apt.log"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("APT_LOG", str(log))
    monkeypatch.setenv("APT_FAILS", "")
    monkeypatch.setenv(debian.MIRROR, "http://archive.example/debian")
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(b"")
    monkeypatch.setattr(debian, "_KEYRING", keyring)
    return log


def test_apt_get_is_given_folders_of_its_own_and_none_of_the_systems_hooks(apt_log: Path, tmp_path: Path) -> None:
    debian.fetch_source(ORIGIN, tmp_path, quiet)
    assert apt_log.read_text().splitlines() == [
        "-q update",
        "-q source --download-only pytorch=2.6.0+dfsg-7",
    ]
    settings = apt_log.with_name("apt.log.conf").read_text()
    written = [line for line in settings.splitlines() if line.startswith(("Dir::State", "Dir::Cache"))]
    assert len(written) == 2
    assert all("patchstack-apt-" in line for line in written)
    assert 'Dir::Etc::Main "/dev/null";' in settings
    assert "Post-Invoke" not in settings
    assert "proxy.example" in settings
    sources = apt_log.with_name("apt.log.sources").read_text()
    assert sources.endswith("http://archive.example/debian trixie main\n")


def test_a_failing_apt_get_is_quoted(apt_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APT_FAILS", "Unable to find a source package for pytorch")
    with pytest.raises(TreeError, match="found E: Unable to find a source package") as caught:
        debian.fetch_source(ORIGIN, tmp_path, quiet)
    assert "PATCHSTACK_DEBIAN_DIR" in caught.value.next_command


def test_without_apt_get_the_tree_is_not_available_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(TreeError, match="not available on this machine") as caught:
        debian.fetch_source(ORIGIN, tmp_path, quiet)
    assert "apt-get source --download-only pytorch=2.6.0+dfsg-7" in caught.value.next_command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Types: deb\n# http://old.example/debian\nURIs: http://a.example/debian\n", "http://a.example/debian"),
        ("deb [arch=amd64] https://b.example/debian/ trixie main\n", "https://b.example/debian/"),
        ("URIs: http://a.example/debian-security\nURIs: http://c.example/debian\n", "http://c.example/debian"),
    ],
)
def test_the_archive_is_the_one_the_system_uses(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(debian.MIRROR, raising=False)
    place = tmp_path / "debian.sources"
    place.write_text(text)
    assert debian.mirror([tmp_path / "missing", place]) == expected


def test_no_configured_archive_is_an_error_that_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(debian.MIRROR, raising=False)
    with pytest.raises(TreeError, match=r"export PATCHSTACK_DEBIAN_MIRROR=URL"):
        debian.mirror([tmp_path / "missing"])
