"""The 2.13 tree's stand-in, and what mends it, beside upstream's kernels: the same, and alike where those are right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import patchstack.reference
from apple_release import require_release
from metal_kernels import cache
from stack_lab import StackLab, sampler_kernels
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.container import Metallib
from stackproof.engines.metal import MetalLibrary, RunMode, compile_library
from stackproof.ops.grid_sampler.apple.sampler import (
    FLOAT32,
    judge,
    largest_error,
    random_inputs,
    reference,
    run_sampler,
)
from stackproof.ops.grid_sampler.families.upstream import SamplerKernel

KERNELS = "ATen/native/mps/kernels/GridSampler.metal"
STAND_IN = Path(patchstack.reference.__file__).parent / "standins/2.13/aten/src" / KERNELS


@pytest.fixture(scope="module")
def release() -> Metallib:
    return require_release("2.13")


@pytest.fixture(scope="module")
def standin() -> MetalLibrary:
    return compile_library(STAND_IN, [Path(torch.__file__).parent / "include"], cache=cache())


def samplers(library: Metallib) -> dict[str, SamplerKernel]:
    found = (SamplerKernel.of(entry.name) for entry in library.entries)
    return {kernel.name: kernel for kernel in found if kernel}


def test_the_stand_in_has_upstreams_kernels_with_upstreams_buffers(release: Metallib, standin: MetalLibrary) -> None:
    names = samplers(release)
    assert set(standin.kernel_names) == set(names)
    assert len(names) == 150
    for name in names:
        own = standin.kernel(name).signature.buffers
        theirs = [one for one in AirSource.of(release, name).kernel().parameters if not one.attribute]
        assert [(one.index, one.name) for one in own] == [(one.location, one.name) for one in theirs]


@pytest.mark.parametrize("dtype", ["float", "bfloat"])
def test_the_stand_in_is_right_on_ordinary_coordinates(release: Metallib, standin: MetalLibrary, dtype: str) -> None:
    for name, kernel in samplers(release).items():
        if not name.endswith(f"_i32_{dtype}"):
            continue
        layout = AirSource.of(release, name).kernel().struct("params")
        for mode in kernel.modes():
            inputs = random_inputs(kernel.axes, kernel.dtype, mode, f"{name} {mode}")
            exact = reference(mode, inputs, backward=kernel.backward)
            found = run_sampler(standin, kernel, layout, mode, inputs)
            result = judge(name, mode, found, exact, {})
            assert all(error <= largest_error(kernel, output) for output, error in result.epsilons.items()), result


def test_what_mends_upstreams_kernels_changes_ordinary_results_by_rounding_only(
    release: Metallib, stack_of_after: StackLab
) -> None:
    changed = sampler_kernels(stack_of_after.tree()).library
    assert isinstance(changed, MetalLibrary)
    kernels = [kernel for name, kernel in samplers(release).items() if name.endswith("_i32_float")]
    sources = {kernel.name: AirSource.of(release, kernel.name) for kernel in kernels}
    upstream = compile_kernels(list(sources.values()), RunMode.PLAIN, cache())
    for kernel in kernels:
        layout = sources[kernel.name].kernel().struct("params")
        for mode in kernel.modes():
            inputs = random_inputs(kernel.axes, kernel.dtype, mode, f"mended {kernel.name} {mode}")
            before = run_sampler(upstream, kernel, layout, mode, inputs)
            after = run_sampler(changed, kernel, layout, mode, inputs)
            result = judge(kernel.name, mode, after, {name: value.double() for name, value in before.items()}, {})
            assert all(error <= FLOAT32 for error in result.epsilons.values()), result
