"""A repository with the kernels of before the stack, and the overlay's in the commit on top of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from overlay_kernels import KERNELS, OVERLAY, STANDIN, TORCH_HEADERS
from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from stackproof.model import GateContext


@pytest.fixture(scope="session")
def kernels_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    (folder / KERNELS).mkdir(parents=True)
    for source in (TORCH_HEADERS / "ATen/native/mps/kernels/GridSampler.h", STANDIN / KERNELS / "GridSampler.metal"):
        shutil.copy(source, folder / KERNELS)
    shutil.copytree(TORCH_HEADERS / "c10" / "metal", folder / "c10" / "metal")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "before"], check=True)
    for name in ("GridSampler.h", "GridSamplerWindow.h", "GridSampler.metal"):
        shutil.copy(OVERLAY / KERNELS / name, folder / KERNELS / name)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "kernels"], check=True)
    return folder


@pytest.fixture
def context(kernels_repository: Path) -> GateContext:
    repository = Repository.open(kernels_repository)
    base, head = repository.commit("main~1").hash, repository.commit("main").hash
    return GateContext(repository, base, head, cache_dir())
