"""A conflict of the project's own series on the 2.11 reference tree, with headers that torchgen makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from capture_lab import run
from documents import document
from patchstack.series.load import data_root
from references import clone_of

HOST = "aten/src/ATen/native/mps/operations/GridSampler.mm"
FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
OLD, NEW = "grid_sampler_2d_mps", "grid_sampler_2d_forward_mps"


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.needs_reference
@pytest.mark.slow
def test_a_renamed_forward_function_of_the_2_11_tree_is_resolved_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, series = clone_of("2.11", tmp_path / "tree"), tmp_path / "sampler"
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))  # the worktree is made there
    shutil.copytree(data_root() / "patches" / "grid_sampler", series)
    shutil.copytree(data_root() / "aten_overlay", series / "overlay")
    for name, value in (("user.name", "A"), ("user.email", "a@example.com")):
        _git(repository, "config", name, value)
    apply = ("--onto", "main", "--series", series, "--repo", repository, "--json")

    def ran(status: int, *arguments: Any) -> Any:
        code, out, err = run(capsys, *arguments)
        assert code == status, (out, err)
        return document(out)

    ran(0, *apply)
    upstream = tmp_path / "upstream"
    _git(repository, "worktree", "add", "-q", str(upstream), "main")
    for path in (HOST, FUNCTIONS):
        text = (upstream / path).read_text()
        (upstream / path).write_text(text.replace(f"{OLD}(", f"{NEW}(").replace(f" {OLD}\n", f" {NEW}\n"))
    _git(upstream, "commit", "-q", "-a", "-m", "Rename")

    found = ran(3, *apply, "--resolve")["resolve"]
    (one,) = found["files"]
    file, fragment = (Path(found["worktree"]) / name for name in (one["path"], one["beside"]))
    head, start, rest = file.read_text().partition(f"Tensor {NEW}(")
    body, end, tail = rest.partition("\n}\n")
    file.write_text(f"{head}{start}{body}{end}\n{fragment.read_text().strip()}\n{tail}")
    done = ran(0, "resolve", "--continue", "--repo", repository, "--json")

    (learned,) = done["resolve"]["learned"]
    assert learned.endswith(f"'grid_sampler_2d_backward_mps' has one more place: after function {NEW} in at::native")
    assert len(done["resolve"]["verified"]) == 2
    shim = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
    assert "aoti_torch_mps_grid_sampler_2d_backward" in _git(repository, "show", f"stack/sampler:{shim}")
    again = ran(0, *apply)
    assert (again["moved"], again["tip"]) == (False, done["tip"])
