"""ghstack's settings are found where ghstack finds them; its own code is asked for comparison."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from ghstack_hub import SETTINGS
from patchstack.pulls.settings import read_settings
from skips import require_packages

PLACES = ("home", "checkout", "above", "environment")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Every file that could hold the settings, the current folder being a checkout."""
    checkout = tmp_path / "work" / "checkout"
    checkout.mkdir(parents=True)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GHSTACKRC_PATH", raising=False)
    monkeypatch.chdir(checkout)
    return {
        "home": tmp_path / "home" / ".ghstackrc",
        "checkout": checkout / ".ghstackrc",
        "above": tmp_path / "work" / ".ghstackrc",
        "environment": tmp_path / "named",
    }


@pytest.mark.parametrize("there", [PLACES[:1], PLACES[:2], ("home", "above"), ("home", "environment"), PLACES])
def test_the_file_is_the_one_that_ghstack_takes(
    places: dict[str, Path], there: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_packages("ghstack")
    config = importlib.import_module("ghstack.config")
    for name in there:
        places[name].write_text(SETTINGS.replace("github_username = me", f"github_username = {name}"))
    if "environment" in there:
        monkeypatch.setenv("GHSTACKRC_PATH", str(places["environment"]))
    monkeypatch.setattr(config, "DEFAULT_GHSTACKRC_PATH", places["home"])
    found, _ = config.find_config_path()
    settings = read_settings(Path.cwd())
    assert settings.file == Path(found)
    assert settings.username == config.read_config(request_github_token=False).github_username


def test_without_a_file_the_remote_is_origin(places: dict[str, Path]) -> None:
    settings = read_settings(Path.cwd())
    assert (settings.file, settings.username, settings.remote, settings.github) == (None, "", "origin", "github.com")


def test_the_token_is_not_kept(places: dict[str, Path]) -> None:
    places["home"].write_text(SETTINGS + "github_oauth = a-secret\n")
    assert "a-secret" not in repr(read_settings(Path.cwd()))
    assert os.environ["HOME"]


@pytest.mark.parametrize("named", ["~nobody-of-this-name/rc", "a" * 5000])
def test_a_file_that_cannot_be_looked_for_is_not_there(
    places: dict[str, Path], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GHSTACKRC_PATH", named)
    assert read_settings(places["checkout"].parent).file is None


def test_a_user_without_a_home_has_no_settings(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert read_settings(places["checkout"].parent).file is None
