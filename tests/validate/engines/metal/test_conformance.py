"""What the front end accepts and refuses: each rule on both sides of its border, and the shared cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from metal_conformance import BORDERS, Border, body, complete
from patchstack.cache import cache_dir
from patchstack.errors import PatchstackError
from shared_inputs import require_shared, shared_folder
from skips import cannot
from stackproof.engines.metal import ALL_DETECTORS, CallError, CompileError, MetalKernel, RunMode, compile_library
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.rules import MISSING_DTYPE, apply_rules
from stackproof.engines.metal.typecheck import check_source

CASES = shared_folder() / "cases/metal"


def problems(path: Path, version: str) -> list[str]:
    """What metal-check would say about a file."""
    try:
        checked = check_source(Source(path, metal_version=version))
    except PatchstackError as error:
        return [str(error)]
    broken = [one.message for one in apply_rules(checked) if one.rule != MISSING_DTYPE]
    return [*(one.message for one in checked.errors), *broken]


def border(one: Border) -> str:
    return f"{one.feature} ({one.version})"


@pytest.mark.parametrize("one", BORDERS, ids=border)
def test_the_near_side_of_a_border_is_accepted(one: Border, tmp_path: Path) -> None:
    source = tmp_path / "accepted.metal"
    source.write_text(complete(one.accepted))
    assert problems(source, one.version) == []


@pytest.mark.parametrize("one", [one for one in BORDERS if one.refused], ids=border)
def test_the_far_side_of_a_border_is_refused(one: Border, tmp_path: Path) -> None:
    source = tmp_path / "refused.metal"
    source.write_text(complete(one.refused))
    assert problems(source, one.refused_version or one.version)


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("reject/*.metal")) or ["none"])
def test_a_shared_kernel_that_apple_refuses_is_refused(name: str) -> None:
    path = require_shared("cases/metal") / "reject" / name
    assert problems(path, version_of(path))


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("accept/*.metal")) or ["none"])
def test_a_shared_kernel_that_apple_accepts_is_accepted(name: str) -> None:
    path = require_shared("cases/metal") / "accept" / name
    assert problems(path, version_of(path)) == []


def version_of(path: Path) -> str:
    found = re.search(r"^// VERSION (\S+)", path.read_text(), re.MULTILINE)
    return found[1] if found else "3.1"


def test_a_threadgroup_larger_than_the_kernel_says_is_not_launched(tmp_path: Path) -> None:
    kernel = kernel_of(tmp_path, "[[max_total_threads_per_threadgroup(256)]] " + body("o[i] = 1;").strip())
    out = torch.zeros(512)
    with pytest.raises(CallError, match="512 threads, the kernel says 1 to 256"):
        kernel(out, threads=512, group_size=512)
    kernel(out, threads=512, group_size=256)
    assert out.sum() == 512
    kernel(out, threads=512)


@pytest.mark.parametrize(("length", "found"), [(140, "a multiple of 16"), (40000, "40,000 bytes"), (32784, "32,784")])
def test_a_length_of_threadgroup_memory_that_metal_refuses_is_refused(length: int, found: str, tmp_path: Path) -> None:
    kernel = kernel_of(tmp_path, "kernel void k(device float* o, threadgroup float* s) { s[0] = 1; o[0] = s[0]; }")
    out = torch.zeros(1)
    with pytest.raises(CallError, match=found):
        kernel(out, threads=1, threadgroup_memory={0: length})
    kernel(out, threads=1, threadgroup_memory={0: 32768})
    assert out == 1


@pytest.mark.parametrize(("length", "fits"), [(16384, True), (16400, False)])
def test_threadgroup_memory_that_is_declared_and_passed_has_one_limit(length: int, fits: bool, tmp_path: Path) -> None:
    text = "threadgroup float t[4096]; t[0] = 1; s[0] = t[0]; o[0] = s[0];"
    source = tmp_path / "kernel.metal"
    source.write_text(complete(f"kernel void k(device float* o, threadgroup float* s) {{ {text} }}"))
    library = compile_library(source, cache=tmp_path)
    out = torch.zeros(1)
    library.k(out, threads=1, threadgroup_memory={0: length})
    assert [one.kind.value for one in library.reports()] == ([] if fits else ["limit"])
    assert bool(out) is fits


def test_too_much_static_threadgroup_memory_does_not_compile(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="32,768 bytes"):
        kernel_of(tmp_path, body("threadgroup float t[9216]; t[i] = i; o[i] = t[i];"))


@pytest.mark.parametrize(
    ("kind", "offset", "misaligned"),
    [
        ("device float4*", 4, True),
        ("device float4*", 16, False),
        ("device packed_float4*", 4, False),
        ("device half4*", 2, True),
        ("device uint2*", 4, True),
        ("device uint*", 2, True),
    ],
)
def test_a_misaligned_access_of_a_vector_is_reported(kind: str, offset: int, misaligned: bool, tmp_path: Path) -> None:
    text = f"auto p = ({kind})((device uchar*)o + {offset}); p[0] = p[0] + p[1];"
    kernel = kernel_of(tmp_path, body(text), ALL_DETECTORS)
    kernel(torch.zeros(64), threads=1)
    found = {one.message for one in kernel._library.reports()}
    assert any("misaligned" in message for message in found) == misaligned


def test_an_atomic_at_an_odd_half_is_reported(tmp_path: Path) -> None:
    text = "atomic_fetch_add_explicit((device atomic_float*)((device half*)o + 1), 1.0f, memory_order_relaxed);"
    kernel = kernel_of(tmp_path, body(text), ALL_DETECTORS)
    kernel(torch.zeros(8), threads=1)
    assert "misaligned use of a pointer to an atomic" in kernel._library.reports()[0].message


def test_function_constants_take_the_values_that_the_host_gives(tmp_path: Path) -> None:
    text = "constant int c [[function_constant(7)]];\nconstant bool b [[function_constant(8)]];\n" + body(
        "o[i] = b ? c : is_function_constant_defined(c) ? 1 : 2;"
    )
    seen = []
    for constants in ({}, {7: 5}, {7: 5, 8: True}):
        out = torch.zeros(1)
        kernel_of(tmp_path, text, constants=constants)(out, threads=1)
        seen.append(int(out))
    assert seen == [2, 1, 5]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "one", [one for one in BORDERS if one.runs and "k(device float* o" in one.accepted], ids=border
)
def test_the_near_side_of_a_border_compiles_for_a_host(one: Border, tmp_path: Path) -> None:
    source = tmp_path / "accepted.metal"
    source.write_text(complete(one.accepted))
    assert "k" in compile_library(source, cache=tmp_path, metal_version=one.version).kernel_names


def test_a_kernel_with_a_texture_is_checked_and_not_run(tmp_path: Path) -> None:
    source = tmp_path / "texture.metal"
    text = "kernel void t(texture2d<float> a [[texture(0)]], device float* o) { o[0] = a.read(uint2(0)).x; }\n"
    source.write_text(complete(text + body("o[i] = 3;")))
    assert problems(source, "3.1") == []
    library = compile_library(source, cache=tmp_path)
    assert library.kernel_names == ["k"]
    out = torch.zeros(1)
    library.kernel("k")(out, threads=1)
    assert out == 3


def kernel_of(
    folder: Path, text: str, mode: RunMode = RunMode.PLAIN, constants: Mapping[int, bool | int | float] | None = None
) -> MetalKernel:
    source = folder / "kernel.metal"
    source.write_text(complete(text))
    return compile_library(source, cache=folder, mode=mode, constants=constants).kernel("k")


def test_the_conformance_table_is_up_to_date() -> None:
    root = Path(__file__).resolve().parents[4]
    script = root / "bench" / "metal_table.py"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root / "tests" / "support"), os.environ.get("PYTHONPATH", "")]),
    }
    made = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    assert made.stdout == (root / "docs/reference/metal.md").read_text()


@pytest.mark.parametrize(("corpus", "least", "of"), [("spirv-cross", 395, 405), ("mlx", 41, 42), ("llama.cpp", 34, 34)])
def test_of_a_public_corpus_so_many_files_are_accepted(corpus: str, least: int, of: int) -> None:
    folder = cache_dir() / "corpora"
    if "PATCHSTACK_CORPORA" not in os.environ or not (folder / corpus).exists():
        pytest.skip(cannot(f"no PATCHSTACK_CORPORA in the environment, or no {corpus} in {folder} (minutes of work)"))
    command = [sys.executable, "bench/metal_corpora.py", "--corpus", corpus, "--from", str(folder)]
    root = Path(__file__).resolve().parents[4]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    found = re.search(r"(\d+) of (\d+) accepted", done.stdout)
    assert found is not None
    assert int(found[1]) >= least
    assert int(found[2]) <= of
