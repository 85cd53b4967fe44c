"""The series applied to a clone of a reference tree: its kernels, its host functions, and commits that break them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate_contexts import run_gate
from patchstack.cache import cache_dir
from patchstack.cli import Request, run
from patchstack.tree.git import GitCommitHash, Repository, Tree
from references import require_reference
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import RunMode, compile_library
from stackproof.gates.spec import Spec
from stackproof.model import GateContext, GateResult
from stackproof.ops import proof_for
from stackproof.ops.sources import OpSource, written_source

METAL_FILE = "aten/src/ATen/native/mps/kernels/GridSampler.metal"
HEADER_FILE = "aten/src/ATen/native/mps/kernels/GridSampler.h"
HOST_FILE = "aten/src/ATen/native/mps/operations/GridSampler.mm"
SERIES = Path(__file__).parents[1] / "series"
OP = "grid_sampler_2d_backward"
_IDENTITY = {f"GIT_{who}_{what}": "stack@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass(frozen=True)
class StackLab:
    """A repository with the stack of the reference tree.

    Attributes:
        path: its folder.
        repository: the same, opened.
        base: the commit below the stack.
        head: the stack's tip.
    """

    path: Path
    repository: Repository
    base: GitCommitHash
    head: GitCommitHash

    def tree(self, commit: str | None = None) -> Tree:
        """The tree of a commit, of the stack's tip by default."""
        return Tree.at(self.repository, commit or self.head)

    def text(self, path: str) -> str:
        """A file of the stack's tip."""
        content = self.tree().read(path)
        assert content is not None
        return content.decode()

    def changed(self, files: Mapping[str, str]) -> GitCommitHash:
        """A commit on the stack's tip with other texts in some files."""
        index = self.path / "index-of-a-fault"
        index.unlink(missing_ok=True)
        environment = {**os.environ, **_IDENTITY, "GIT_INDEX_FILE": str(index)}

        def git(*arguments: str, text: str = "") -> str:
            command = ["git", "-C", str(self.path), *arguments]
            done = subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=True)
            return done.stdout.strip()

        git("read-tree", self.head)
        for path, text in files.items():
            blob = git("hash-object", "-w", "--stdin", text=text)
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = git("write-tree")
        return GitCommitHash(git("commit-tree", tree, "-p", self.head, "-m", "a fault"))

    def replaced(self, old: str, new: str, path: str = HOST_FILE) -> GitCommitHash:
        """A commit on the stack's tip with one text in one file replaced; the text must be there once."""
        text = self.text(path)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        return self.changed({path: text.replace(old, new)})

    def judge(self, spec: Spec, head: GitCommitHash | None = None, **options: Any) -> GateResult:
        """Run a gate on a commit, the stack's tip by default."""
        settings = {"ops": [OP], **options}
        return run_gate(spec, GateContext(self.repository, self.base, head or self.head, cache_dir()), **settings)


@contextlib.contextmanager
def applied(reference: str, path: Path, *only: str, series: str = "") -> Iterator[StackLab]:
    """A series, or some changes of it, on a reference tree, in a repository of the caller's own at ``path``.

    ``series`` is the name of one below ``tests/series``; the grid sampler's by default.
    """
    tree = require_reference(reference)
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(tree.path), str(path)], check=True)
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(path), "config", key, "stack@example.org"], check=True)
    folder = str(SERIES / series) if series else None
    report = run(Request(onto="main", repo=path, series=folder, force=True, only=only))
    assert not report.plan.blocked
    with Repository.open(path) as repository:
        head = repository.resolve_ref(f"refs/heads/stack/{series or 'grid_sampler'}")
        assert head is not None
        yield StackLab(path, repository, repository.commit("main").hash, head)


def sampler_source(tree: Tree) -> OpSource:
    """A tree's grid samplers, written out with what they include."""
    proof = proof_for(OP)
    assert proof is not None
    return written_source(tree, proof, cache_dir() / "tests")


def sampler_kernels(tree: Tree, mode: RunMode = RunMode.PLAIN) -> Kernels:
    """The same, compiled."""
    source = sampler_source(tree)
    library = compile_library(source.root / source.source, source.include_dirs, cache=cache_dir(), mode=mode)
    return Kernels(library, source.headers, library.mark_undefined)
