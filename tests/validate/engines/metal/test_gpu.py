"""Metal to PTX: what is made here. Running it needs an NVIDIA GPU, and is not part of these tests."""

from __future__ import annotations

import ctypes
import math
import random
import re
import struct
from pathlib import Path

import pytest
import torch

from metal_kernels import KERNELS, cache
from overlay_kernels import KERNELS as OVERLAY_KERNELS
from overlay_kernels import OVERLAY, TORCH_HEADERS
from patchstack.cache import cache_dir
from skips import cannot
from stackproof.engines.gpu import GpuLibrary, PtxBuild, compile_ptx, load_ptx
from stackproof.engines.gpu.build import GPU_INCLUDE
from stackproof.engines.gpu.library import require_full_simdgroups
from stackproof.engines.metal import CallError, CompileError
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.toolchain import find_toolchain


def entries(build: PtxBuild) -> dict[str, str]:
    """The PTX of each kernel, by host name."""
    parts = re.split(r"^\.visible \.entry __metal_entry_(\d+)", build.path.read_text(), flags=re.MULTILINE)
    names = [signature.kernel for signature in build.signatures]
    return {names[int(number)]: text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.fixture(scope="module")
def clean() -> PtxBuild:
    """The kernels that the host's own tests run."""
    return compile_ptx(Source(KERNELS / "clean.metal"), cache())


@pytest.mark.exhaustive
def test_every_kernel_of_the_overlay_becomes_ptx_with_one_entry_point_and_nothing_left_to_link() -> None:
    source = OVERLAY / OVERLAY_KERNELS / "GridSampler.metal"
    build = compile_ptx(Source(source, (OVERLAY / "aten/src", TORCH_HEADERS)), cache_dir())
    made = entries(build)
    backward = {name: one for name, one in made.items() if "backward" in name}
    # 3 interpolations in 2D and 2 in 3D, and the 3D forward's 2; paddings, dtypes and widths of offsets.
    assert (len(made), len(backward)) == ((5 + 2) * 3 * 3 * 2, 5 * 3 * 3 * 2)
    assert "grid_sampler_2d_backward_bicubic_reflection_bfloat_int64" in made
    text = build.path.read_text()
    assert ".target sm_90" in text
    assert ".extern" not in text
    assert not re.search(r"^\.func", text, re.MULTILINE)
    assert all(("atom.global.add.f32" in one) == (name in backward) for name, one in made.items())


def test_constant_memory_is_read_as_global_memory(clean: PtxBuild) -> None:
    text = clean.path.read_text()
    assert "ld.global" in text
    assert "ld.const" not in text


def test_threadgroup_variables_are_in_shared_memory_of_the_kernels_that_declare_them(clean: PtxBuild) -> None:
    made = entries(clean)
    declaring = {name for name, text in made.items() if re.search(r"^\s*\.shared .*shared_storage", text, re.MULTILINE)}
    assert declaring
    assert declaring < set(made)


def test_barriers_and_simdgroup_functions_are_the_gpu_s_own(clean: PtxBuild) -> None:
    text = clean.path.read_text()
    assert "barrier.sync" in text
    assert "shfl.sync" in text
    assert "__metal_host_" not in text


def test_a_folder_is_all_that_the_machine_with_the_gpu_needs(clean: PtxBuild, tmp_path: Path) -> None:
    for file in ("library.ptx", "build.json"):
        (tmp_path / file).write_bytes(clean.path.with_name(file).read_bytes())
    loaded = load_ptx(tmp_path)
    assert loaded.signatures == clean.signatures
    assert loaded.path == tmp_path / "library.ptx"


def test_a_function_without_an_instruction_is_named_with_its_kernel(tmp_path: Path) -> None:
    source = tmp_path / "wave.metal"
    source.write_text(
        "#include <metal_stdlib>\nkernel void wave(device float* out [[buffer(0)]],"
        " uint i [[thread_position_in_grid]]) { out[i] = metal::sin(out[i]); }\n"
    )
    with pytest.raises(CompileError) as caught:
        compile_ptx(Source(source), cache())
    assert "wave" in str(caught.value)
    assert "fsin" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_simdgroup_functions_are_refused_where_the_last_simdgroup_is_not_full() -> None:
    require_full_simdgroups("sum", (256, 2, 1), (64, 1, 1))
    for grid, group in (((100, 1, 1), (64, 1, 1)), ((96, 1, 1), (48, 1, 1))):
        with pytest.raises(CallError, match="full simdgroups"):
            require_full_simdgroups("sum", grid, group)


@pytest.mark.skipif(torch.cuda.is_available(), reason=cannot("there is a GPU"))
def test_without_a_gpu_loading_says_so_in_one_sentence(clean: PtxBuild) -> None:
    with pytest.raises(CallError, match="no NVIDIA GPU"):
        GpuLibrary(clean)


def test_the_remainder_for_the_gpu_is_exact_for_any_two_floats(tmp_path: Path) -> None:
    source = tmp_path / "remainder.cpp"
    source.write_text(
        f'#include "{GPU_INCLUDE}/__metal_gpu_fmod"\n'
        'extern "C" float rest(float x, float y) { return __metal_gpu::fmod(x, y); }'
    )
    toolchain = find_toolchain()
    library, built = tmp_path / "rest.so", tmp_path / "rest.o"
    flags = ["-x", "c++", "-O2", "-fPIC", "-ffp-contract=off", *toolchain.target_flags]
    done = toolchain.run([*flags, "-c", str(source), "-o", str(built)])
    assert done.returncode == 0, done.stderr
    toolchain.link(library, [built])
    rest = ctypes.CDLL(str(library)).rest
    rest.restype, rest.argtypes = ctypes.c_float, (ctypes.c_float, ctypes.c_float)
    chosen = random.Random(5)
    bits = [chosen.getrandbits(31) for _ in range(20_000)]
    floats = struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits))
    numbers = [one for one in floats if math.isfinite(one)]
    for x, y in zip(numbers[::2], numbers[1::2], strict=False):
        if y > 0:
            assert rest(x, y) == math.fmod(x, y)
            assert rest(-x, y) == -math.fmod(x, y)
    assert math.isnan(rest(1.0, 0.0))
    assert math.isnan(rest(math.inf, 1.0))
    assert rest(1.5, math.inf) == 1.5
