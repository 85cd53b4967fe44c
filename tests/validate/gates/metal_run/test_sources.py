"""A source comes out of git objects with what it includes, and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchstack.errors import PatchstackError
from patchstack.tree.git import Repository, Tree
from stackproof.engines.metal.sources import collect_sources, write_sources

FILES = {
    "aten/src/ATen/native/mps/kernels/A.metal": (
        "#include <ATen/native/mps/kernels/A.h>\n#include <metal_stdlib>\n  #  include <c10/metal/common.h>\n"
    ),
    "aten/src/ATen/native/mps/kernels/A.h": '#include "Beside.h"\n#include <c10/metal/common.h>\n',
    "aten/src/ATen/native/mps/kernels/Beside.h": "#include <../../../escape.h>\n",
    "aten/src/ATen/native/mps/kernels/Unused.h": "",
    "c10/metal/common.h": "#include <ATen/native/mps/kernels/A.h>\n",
    "escape.h": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    root = tmp_path / "tree"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "tree"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    with Repository.open(root) as repository:
        yield Tree.at(repository, "HEAD")


def test_includes_are_followed_from_the_source(tree: Tree) -> None:
    found = collect_sources(tree, "aten/src/ATen/native/mps/kernels/A.metal")
    assert set(found) == {
        "aten/src/ATen/native/mps/kernels/A.metal",
        "aten/src/ATen/native/mps/kernels/A.h",
        "aten/src/ATen/native/mps/kernels/Beside.h",
        "c10/metal/common.h",
    }


def test_a_missing_source_is_said(tree: Tree) -> None:
    with pytest.raises(PatchstackError, match=r"B\.metal: the tree does not have this file"):
        collect_sources(tree, "aten/src/ATen/native/mps/kernels/B.metal")


def test_files_are_written_where_their_content_says(tree: Tree, tmp_path: Path) -> None:
    files = collect_sources(tree, "aten/src/ATen/native/mps/kernels/A.metal")
    root = write_sources(files, tmp_path)
    assert {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} == set(files)
    assert write_sources(files, tmp_path) == root
    assert write_sources({**files, "c10/metal/common.h": b"// changed\n"}, tmp_path) != root


def test_a_damaged_cache_is_written_again(tree: Tree, tmp_path: Path) -> None:
    files = collect_sources(tree, "aten/src/ATen/native/mps/kernels/A.metal")
    target = write_sources(files, tmp_path) / "c10/metal/common.h"
    target.write_text("damaged")
    write_sources(files, tmp_path)
    assert target.read_bytes() == files["c10/metal/common.h"]
