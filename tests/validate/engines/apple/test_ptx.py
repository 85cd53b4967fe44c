"""The same modules become PTX; whether a GPU runs it right is for a machine that has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import air_modules
from apple_release import require_release
from stackproof.engines.apple.build import AirSource
from stackproof.engines.apple.errors import TranslationError, UnmappedIntrinsicError
from stackproof.engines.apple.ptx import compile_ptx_kernels
from stackproof.ops.grid_sampler.families.upstream import SamplerKernel

air_modules.require_llvmlite()


def test_a_kernel_becomes_one_entry_that_leaves_beyond_the_grid(tmp_path: Path) -> None:
    source = air_modules.call_module("rounded", "air.floor.f32", "float", ["float"])
    folder = compile_ptx_kernels((source,), tmp_path)
    ptx = (folder / "library.ptx").read_text()
    assert ptx.count(".visible .entry __metal_entry_0") == 1
    assert ".target sm_90" in ptx
    assert "setp.ge.u32" in ptx or "setp.lt.u32" in ptx
    assert "cvt.rmi.f32.f32" in ptx
    described = json.loads((folder / "build.json").read_text())
    assert described["architecture"] == "sm_90"
    assert [one["kind"] for one in described["signatures"][0]["parameters"]] == ["device", "device", "attribute"]


def test_two_kernels_share_a_file_and_a_second_call_its_folder(tmp_path: Path) -> None:
    sources = tuple(
        air_modules.call_module(f"k{i}", f"air.{n}.f32", "float", ["float"]) for i, n in enumerate(("fabs", "rint"))
    )
    folder = compile_ptx_kernels(sources, tmp_path)
    ptx = (folder / "library.ptx").read_text()
    assert ptx.count(".version") == ptx.count(".address_size") == 1
    assert [f"__metal_entry_{n}" in ptx for n in range(3)] == [True, True, False]
    assert compile_ptx_kernels(sources, tmp_path) == folder


def test_what_a_gpu_cannot_do_here_is_named(tmp_path: Path) -> None:
    lanes = air_modules.call_module("lanes", "air.simd_sum.f32", "float", ["float"])
    with pytest.raises(UnmappedIntrinsicError, match=r"lanes: .*air\.simd_sum\.f32"):
        compile_ptx_kernels((lanes,), tmp_path)
    neighbour = air_modules.call_module("neighbour", "air.nextafter.f32", "float", ["float", "float"])
    with pytest.raises(UnmappedIntrinsicError, match="a GPU does not have; found air_host_nextafter"):
        compile_ptx_kernels((neighbour,), tmp_path)
    text = air_modules.call_module("grouped", "air.fabs.f32", "float", ["float"]).text
    grouped = AirSource.of_text("grouped", text.replace("thread_position_in_grid", "thread_index_in_simdgroup"))
    with pytest.raises(TranslationError, match="does not provide; found thread_index_in_simdgroup"):
        compile_ptx_kernels((grouped,), tmp_path)


def test_upstream_backward_kernels_become_ptx(tmp_path: Path) -> None:
    library = require_release("2.13")
    names = [
        "grid_sampler_2d_backward_bilinear_input_i32_float",
        "grid_sampler_2d_backward_bicubic_grid_zeros_i32_half",
        "grid_sampler_3d_backward_i64_bfloat",
    ]
    assert all(SamplerKernel.of(name) for name in names)
    ptx = (compile_ptx_kernels([AirSource.of(library, name) for name in names], tmp_path) / "library.ptx").read_text()
    assert ptx.count(".visible .entry") == 3
    assert ".func" not in ptx
    assert "atom.global" in ptx or "red.global" in ptx
