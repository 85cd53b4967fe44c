"""A reference tree belongs to the tool: it needs no identity of git's, and a damaged one may be thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchstack.cli.apply import as_reference
from patchstack.errors import PatchstackError, TreeError
from patchstack.tree.git.process import GitCommandError
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


DAMAGED = TreeError("the tree object is damaged", next_command="git -C /cache/tree fsck")


@pytest.mark.parametrize("error", [DAMAGED, GitCommandError(("cat-file",), 128, "fatal: packed object is corrupt")])
def test_a_damaged_reference_tree_is_to_be_removed_and_a_users_repository_is_not(error: Exception) -> None:
    with pytest.raises(TreeError, match=r"rm -rf '/cache/a tree': .* --reference 2\.11 builds it again"):
        raises(error, "2.11")
    with pytest.raises((PatchstackError, GitCommandError)) as kept:
        raises(TreeError("the tree object is damaged", next_command="git fsck"), None)
    assert "rm -rf" not in str(kept.value)


def test_an_error_that_is_not_about_damage_keeps_its_advice() -> None:
    with pytest.raises(TreeError, match="apply it elsewhere"):
        raises(TreeError("something is missing", next_command="apply it elsewhere"), "2.11")


def raises(error: Exception, reference: str | None) -> None:
    with as_reference(Path("/cache/a tree"), reference):
        raise error
