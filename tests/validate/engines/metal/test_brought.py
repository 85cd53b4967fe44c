"""Which kernels a stack brings: told from what they are made of, not from their names or from the file they are in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_trees import commit
from patchstack.tree.git import Repository, Tree
from skips import cannot
from stackproof.engines.errors import ToolchainError
from stackproof.engines.metal.brought import kernels_brought
from stackproof.engines.metal.toolchain import find_toolchain

FOLDER = "aten/src/ATen/native/mps/kernels"
SOURCE, HEADER = f"{FOLDER}/Tint.metal", f"{FOLDER}/Tint.h"
HEADER_TEXT = """\
#pragma once
struct TintParams { float strength; };
struct ShadeParams { float depth; };
enum class Mode : int { Plain, Strong };
template <typename T>
inline T halved(T x) { return x / 2; }
template <typename T>
inline T scaled(T x) { return halved(x) * 4; }
"""
SOURCE_TEXT = """\
#include <metal_stdlib>
#include <ATen/native/mps/kernels/Tint.h>
constant constexpr float kBias = 0.5f;
namespace colours {
struct Warm { template <typename T> T operator()(T x) { return scaled(x); } };
struct Cold { template <typename T> T operator()(T x) { return x + T(kBias); } };
} // namespace colours
template <typename T, typename F>
kernel void tint(device T* out [[buffer(0)]], constant TintParams& p [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) { out[i] = F()(out[i]) * T(p.strength); }
template [[host_name("tint_warm")]] kernel void tint<float, colours::Warm>(device float*, constant TintParams&, uint);
template [[host_name("tint_cold")]] kernel void tint<float, colours::Cold>(device float*, constant TintParams&, uint);
kernel void shade(device float* out [[buffer(0)]], constant ShadeParams& p [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) { out[i] = p.depth * float(int(Mode::Strong)); }
"""
BEFORE = {SOURCE: SOURCE_TEXT, HEADER: HEADER_TEXT}
HALF = """\
template [[host_name("tint_half")]] kernel void tint<half, colours::Cold>(device half*, constant TintParams&, uint);
"""
UNUSED = "inline float unused() { return 1; }\n#define X\n"


@pytest.fixture(autouse=True)
def compiler() -> None:
    try:
        find_toolchain()
    except ToolchainError as error:
        pytest.skip(cannot(f"{error}"))


def committed(root: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return commit(root, "tree")


@pytest.mark.parametrize(
    ("path", "old", "new", "brought"),
    [
        (SOURCE, "kernel void shade", f"{HALF}kernel void shade", {"tint_half"}),
        (SOURCE, "// namespace colours", "// another comment", set()),
        (SOURCE, "{ out[i] = F()(out[i])", "{\n  out[i] =\n      F()(out[i])", set()),
        (SOURCE, "F()(out[i]) *", "F()(out[i]) +", {"tint_warm", "tint_cold"}),
        (SOURCE, "x + T(kBias)", "x - T(kBias)", {"tint_cold"}),
        (SOURCE, "kBias = 0.5f", "kBias = 0.25f", {"tint_cold"}),
        (HEADER, "return x / 2", "return x / 3", {"tint_warm"}),
        (HEADER, "float depth", "int depth", {"shade"}),
        (HEADER, "Plain, Strong", "Strong, Plain", {"shade"}),
        (HEADER, "enum class", f"{UNUSED}enum class", set()),
        (SOURCE, '"tint_cold"', '"tint_cool"', {"tint_cool"}),
    ],
    ids=[
        "an instantiation more", "a comment", "a reflow", "the template", "a functor", "a constant",
        "a helper's helper", "a struct", "an enumeration", "a helper that nothing uses", "another name",
    ],
)  # fmt: skip
def test_a_kernel_is_the_stacks_where_something_it_is_made_of_differs(
    tmp_path: Path, path: str, old: str, new: str, brought: set[str]
) -> None:
    root = tmp_path / "tree"
    base = committed(root, BEFORE)
    assert old in BEFORE[path]
    head = committed(root, {path: BEFORE[path].replace(old, new, 1)})
    with Repository.open(root) as repository:
        trees = (Tree.at(repository, repository.commit(name).hash) for name in (base, head))
        found = kernels_brought(*trees, [SOURCE], tmp_path / "cache")
    assert found == dict.fromkeys(brought, SOURCE)


def test_every_kernel_of_a_file_that_the_base_does_not_have_is_brought(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    subprocess.run(["git", "-C", str(root), "init", "-q"], check=True)
    base = committed(root, {"README": "empty"})
    head = committed(root, BEFORE)
    with Repository.open(root) as repository:
        trees = (Tree.at(repository, repository.commit(name).hash) for name in (base, head))
        found = kernels_brought(*trees, [SOURCE], tmp_path / "cache")
    assert set(found) == {"tint_warm", "tint_cold", "shade"}
