"""The real series, and two small changes on top of it, through the real ghstack on the 2.11 tree.

One story, told once: the tree has thousands of files, and every step leaves the state of all pull requests to compare.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from documents import document
from ghstack_hub import SETTINGS, WHERE, Hub, pull
from patchstack.series.load import data_root
from references import clone_of

pytestmark = pytest.mark.needs_reference

EXTRA = """
  - id: {name}
    title: "[MPS] Describe {name}"
    message: {name}.md
    ops: [grid_sampler_2d_backward]
    upstream:
      - path: docs/{name}.md
        declares: {name}
    edits:
      - kind: create-file
        path: docs/{name}.md
"""
SMALL = ("corners", "edges", "centers")
ME = {"NAME": "A. Author", "EMAIL": "author@example.com"}


@dataclass(frozen=True)
class Workshop:
    """A clone of the tree, GitHub behind it, and a series that can be rewritten.

    Attributes:
        clone: the contributor's.
        hub: GitHub.
        series: the folder of the series.
        env: environment of the command.
    """

    clone: Path
    hub: Hub
    series: Path
    env: dict[str, str]

    def write(self, *extra: str) -> None:
        """The real series with some small changes on top."""
        real = data_root() / "patches" / "grid_sampler"
        manifest = (real / "series.yaml").read_text()
        self.series.mkdir(exist_ok=True)
        for message in real.glob("*.md"):
            shutil.copy(message, self.series)
        overlay = self.series / "overlay"
        shutil.copytree(data_root() / "aten_overlay", overlay, dirs_exist_ok=True)
        shutil.rmtree(overlay / "docs", ignore_errors=True)
        (overlay / "docs").mkdir()
        for name in extra:
            manifest += EXTRA.format(name=name)
            (self.series / f"{name}.md").write_text(f"What a sampler does at {name}.\n")
            (overlay / "docs" / f"{name}.md").write_text(f"{name}\n")
        (self.series / "series.yaml").write_text(manifest)

    def apply(self) -> Any:
        arguments = ["--onto", "main", "--repo", str(self.clone), "--series", str(self.series), "--checkout", "--json"]
        command = [sys.executable, "-m", "patchstack.cli", *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return document(done.stdout)

    def upstream_goes_on(self) -> None:
        self.hub.git(self.clone, "switch", "-q", "main")
        (self.clone / "upstream.txt").write_text("upstream goes on\n")
        self.hub.git(self.clone, "add", "upstream.txt")
        self.hub.git(self.clone, "commit", "-q", "-m", "Upstream goes on")
        self.hub.git(self.clone, "push", "-q", "origin", "main")


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in ME.items()}
    env = {**os.environ, **who, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    env["PATCHSTACK_CACHE"] = str(tmp_path / "cache")
    (tmp_path / WHERE).parent.mkdir(parents=True)
    upstream = clone_of("2.11", tmp_path / WHERE)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    (tmp_path / ".ghstackrc").write_text(SETTINGS)
    hub = Hub(upstream, env)
    hub.git(tmp_path, "clone", "-q", f"file://{upstream}", "clone")
    return Workshop(tmp_path / "clone", hub, tmp_path / "sampler", env)


def titles(report: Any, becomes: Sequence[str] = ("new", "updated")) -> list[str]:
    return [fate["title"] for fate in report["pull_requests"] if fate["becomes"] in becomes]


@pytest.mark.exhaustive
def test_the_real_series_keeps_its_pull_requests_from_round_to_round(workshop: Workshop) -> None:
    hub, clone = workshop.hub, workshop.clone
    workshop.write("corners", "edges")
    first = titles(workshop.apply())
    assert hub.submit(clone) == dict.fromkeys(first, "Created")
    expected = [pull(500 + index, title) for index, title in enumerate(first)]
    assert hub.pulls() == expected
    assert "grid_sampler_2d_backward" in hub.pulls()[0].body
    assert "Test plan:" in hub.pulls()[0].body

    workshop.upstream_goes_on()
    assert titles(workshop.apply(), ["updated"]) == first
    assert hub.submit(clone) == dict.fromkeys(first, "Updated")
    assert hub.pulls() == expected

    workshop.write("centers", "edges", "corners")  # one inserted, two that change places
    report = workshop.apply()
    assert [fate["title"] for fate in report["pull_requests"] if fate["moved"]] == [first[-1], first[-2]]
    done = hub.submit(clone)
    assert [title for title, what in done.items() if what == "Created"] == ["[MPS] Describe centers"]
    expected.append(pull(500 + len(expected), "[MPS] Describe centers"))
    assert hub.pulls() == expected

    workshop.write("edges", "corners")  # and dropped again
    assert titles(workshop.apply(), ["left open"]) == ["[MPS] Describe centers"]
    assert "Created" not in hub.submit(clone).values()
    assert hub.pulls() == expected

    hub.unlink(clone)  # the seeded fault: without its trailers every commit gets a second pull request
    assert set(hub.submit(clone).values()) == {"Created"}
    assert len(hub.pulls()) == 2 * len(expected) - 1
