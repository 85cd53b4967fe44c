"""``--no-tree-code``: what needs the tree's torchgen stops, and says so; what an earlier run left is used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from patchstack.cli.apply import run
from patchstack.cli.request import Request
from patchstack.confine.policy import OPTION
from patchstack.errors import ExitCode
from patchstack.tree.git import Repository
from references import require_reference


@pytest.mark.needs_reference
def test_apply_stack_stops_where_a_header_would_have_to_be_regenerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clone = require_reference("2.11").path, tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--no-checkout", "--shared", str(source), str(clone)], check=True)
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(clone), "config", key, "a@b.c"], check=True)
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    request = Request(onto="main", repo=clone, tree_code=False)

    refused = run(request)
    conflicts = [str(one) for _, one in refused.plan.conflicts()]
    assert refused.exit_code is ExitCode.CONFLICT
    assert conflicts
    assert any(f"the tree's torchgen would have to be run, and {OPTION} forbids it" in one for one in conflicts)
    with Repository.open(clone) as repository:
        assert repository.resolve_ref("refs/heads/stack/grid_sampler") is None
    assert not any("ran confined" in note for note in refused.notes)

    allowed = run(Request(onto="main", repo=clone, dry_run=True))
    assert allowed.exit_code is ExitCode.OK
    assert [note for note in allowed.notes if note.startswith("the tree's torchgen ran confined: ")]

    from_the_cache = run(request)
    assert from_the_cache.exit_code is ExitCode.OK
    assert not any("ran confined" in note for note in from_the_cache.notes)


def test_the_command_for_another_choice_keeps_it() -> None:
    assert Request(onto="main", tree_code=False).command(only=["a"], replace=[]).endswith(OPTION)
    assert OPTION not in Request(onto="main").command(only=["a"], replace=[])
