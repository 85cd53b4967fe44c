"""A reference tree belongs to the tool: it works on a machine where git has no identity yet, and says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from references import require_reference


@pytest.mark.needs_reference
def test_a_reference_tree_takes_a_placeholder_where_git_has_no_identity(tmp_path: Path) -> None:
    require_reference("2.11")
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    env.setdefault("PATCHSTACK_CACHE", str(Path.home() / ".cache" / "patchstack"))
    command = [sys.executable, "-m", "patchstack.cli", "--onto", "main", "--reference", "2.11", "--json"]
    branch = f"test/identity-{os.getpid()}"
    done = subprocess.run([*command, "--branch", branch], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    git = ["git", "-C", report["repository"]]
    author = subprocess.run(
        [*git, "log", "-1", "--format=%an <%ae>", report["tip"]], check=True, capture_output=True, text=True
    ).stdout
    subprocess.run([*git, "branch", "-q", "-D", branch], check=True)
    assert author.strip() == "patchstack <patchstack@example.invalid>"
    assert any("no identity" in warning for warning in report["warnings"])
