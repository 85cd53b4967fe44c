"""A repository whose one commit has the overlay's kernels and the headers that they include."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from overlay_kernels import KERNELS, OVERLAY, TORCH_HEADERS
from patchstack.cache import cache_dir
from patchstack.git import Repository
from stackproof.model import GateContext

OP = "grid_sampler_2d_backward"


@pytest.fixture(scope="session")
def kernels_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    for name in ("GridSampler.h", "GridSampler.metal"):
        target = folder / KERNELS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(OVERLAY / KERNELS / name, target)
    shutil.copytree(TORCH_HEADERS / "c10" / "metal", folder / "c10" / "metal")
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "kernels"], check=True)
    return folder


@pytest.fixture
def context(kernels_repository: Path) -> GateContext:
    repository = Repository.open(kernels_repository)
    head = repository.resolve_commit("main")
    assert head is not None
    return GateContext(repository, head, head, cache_dir(), options={"ops": [OP], "small": True})
