"""What is mutated: the stack of a series, and files of a reference tree as a stack would change them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.reference import build_reference
from patchstack.tree.git import GitCommitHash

_MPS = "aten/src/ATen/native/mps"
_IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
_DATE = "2026-01-01T00:00:00Z"
Stage = tuple[str, Mapping[str, Any]]
# What the series implements on the 2.11 tree; its other operator is for trees with upstream's backward.
_OPS = {"ops": ("grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward")}
Commits = tuple[GitCommitHash, GitCommitHash]


def git(folder: Path, *arguments: str, given: bytes = b"", index: Path | None = None) -> str:
    """What git prints in a folder."""
    extra = {"GIT_AUTHOR_DATE": _DATE, "GIT_COMMITTER_DATE": _DATE}
    if index is not None:
        extra["GIT_INDEX_FILE"] = str(index)
    command = ["git", "-C", str(folder), *_IDENTITY, *arguments]
    done = subprocess.run(command, input=given, check=True, capture_output=True, env=os.environ | extra)
    return done.stdout.decode().strip()


def commit_with(folder: Path, head: str, parent: str, files: Mapping[str, bytes | None]) -> GitCommitHash:
    """A commit of the tree of ``head`` with other files, or without those that are ``None``."""
    with tempfile.TemporaryDirectory() as scratch:
        index = Path(scratch) / "index"
        git(folder, "read-tree", head, index=index)
        for path, data in files.items():
            if data is None:
                git(folder, "rm", "-q", "--cached", path, index=index)
                continue
            blob = git(folder, "hash-object", "-w", "--stdin", given=data)
            git(folder, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", index=index)
        tree = git(folder, "write-tree", index=index)
    parents = ["-p", parent] if parent else []
    return GitCommitHash(git(folder, "commit-tree", tree, *parents, "-m", "a mutant"))


def added_lines(folder: Path, base: str, head: str, path: str) -> set[int]:
    """The lines of a file that a range added."""
    hunks = re.findall(
        r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", git(folder, "diff", "-U0", base, head, "--", path), re.MULTILINE
    )
    return {line for start, count in hunks for line in range(int(start), int(start) + int(count or 1))}


@dataclass(frozen=True)
class Target:
    """Files that are mutated together with the stack that they are mutated in.

    Attributes:
        name: of the target.
        reference: the release whose reference tree it stands on.
        files: what is mutated.
        series: the series whose stack brings them; empty where the tree has them.
    """

    name: str
    reference: str
    files: tuple[str, ...]
    series: str = ""

    def folder(self, out: Path) -> Path:
        """A clone of the tree, with the stack."""
        folder = out / f"tree-{self.reference}"
        if not folder.exists():
            tree = build_reference(self.reference).path
            subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", str(tree), str(folder)], check=True)
        return folder

    def stack(self, out: Path) -> Commits:
        """Base, and the head without a mutant."""
        folder = self.folder(out)
        base = GitCommitHash(git(folder, "rev-parse", "HEAD"))
        if not self.series:
            return base, base
        branch = f"stack/{self.series}"
        if not git(folder, "branch", "--list", branch):
            command = [str(Path(sys.executable).with_name("apply-stack")), "--repo", str(folder), "--onto", "HEAD"]
            subprocess.run([*command, "--series", self.series], check=True, capture_output=True)
        return base, GitCommitHash(git(folder, "rev-parse", branch))

    def whole(self, out: Path) -> Commits:
        """A range that brings the files without a mutant, every line of them."""
        base, head = self.stack(out)
        if self.series:
            return base, head
        return commit_with(self.folder(out), head, head, dict.fromkeys(self.files)), head

    def stages(self, path: str = "") -> Sequence[Stage]:
        """The gates that judge a file, the quickest first, with their options; of all files without one."""
        host = path.endswith(".mm")
        if not self.series:
            check = () if not path else ("host-check",) if host else ("metal-check",)
            return [(name, {}) for name in check or ("metal-check", "host-check")] + [("op-run", {})]
        metal: list[Stage] = [
            ("metal-check", {}),
            ("metal-run", {**_OPS, "small": True, "run_modes": ("plain",)}),
            ("metal-run", {**_OPS, "small": True, "run_modes": ("detectors",)}),
        ]
        run: list[Stage] = [("host-run", _OPS), ("metal-run", _OPS)]
        if not path:
            return [*metal, ("host-check", {}), *run]
        return [("host-check", {}), run[0]] if host else [*metal, *reversed(run)]


def _of_tree(name: str, *endings: str) -> Target:
    folders = {".mm": "operations", ".metal": "kernels"}
    return Target(name, "2.6", tuple(f"{_MPS}/{folders[ending]}/{name}{ending}" for ending in endings))


GRID_SAMPLER = Target(
    "grid_sampler",
    "2.11",
    (
        f"{_MPS}/kernels/GridSampler.metal",
        f"{_MPS}/kernels/GridSamplerWindow.h",
        f"{_MPS}/kernels/GridSamplerLanes.metal",
        f"{_MPS}/operations/GridSampler.mm",
        f"{_MPS}/operations/GridSamplerLanes.mm",
    ),
    "grid_sampler",
)
# Gamma and UnaryKernel have their kernels as text, which op-run could not compile in its confined worker when tried.
TARGETS = (
    GRID_SAMPLER,
    *(
        _of_tree(name, ".metal", ".mm")
        for name in (
            "BinaryKernel",
            "Bucketization",
            "CrossKernel",
            "HistogramKernel",
            "Im2Col",
            "RenormKernel",
            "SpecialOps",
            "UnfoldBackward",
        )
    ),
)
