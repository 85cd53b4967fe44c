"""The stack's 3D forward beside the kernel that it replaces: upstream's own of 2.11, as Apple compiled it.

On the 2.11 reference tree the kernel below the stack is this project's stand-in, and ``metal-run`` asks for its bits.
Upstream's own does its arithmetic in another order, and most float32 results have other last bits. What is asked for
here is that nobody loses by the change. On axes of one pixel upstream's kernel is wrong: NaN without align_corners;
with align_corners and reflection it divides an integer by zero, which would stop this process, and is not run here.
"""

from __future__ import annotations

import pytest
import torch

from apple_release import require_release
from metal_kernels import cache
from overlay_kernels import overlay_kernels
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.container import Metallib
from stackproof.engines.kernels import Kernels
from stackproof.engines.metal import RunMode
from stackproof.ops.grid_sampler.apple.sampler import random_inputs, reference, run_sampler
from stackproof.ops.grid_sampler.families.upstream import DTYPES, SamplerKernel
from stackproof.ops.grid_sampler.host import HostForward
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

MODES = [mode for mode in Sampler(3).modes if mode.interpolation is Interpolation.BILINEAR]
ROUNDS = 8
# In epsilons of the dtype, of the largest value: how far the two are apart, and ours from float64.
APART = {"float": 12.0, "half": 0.5, "bfloat": 0.5}
INEXACT = {"float": 8.0, "half": 0.51, "bfloat": 0.51}


@pytest.fixture(scope="module")
def release() -> Metallib:
    return require_release("2.11")


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return overlay_kernels()


def epsilons(values: torch.Tensor, other: torch.Tensor, dtype: torch.dtype) -> float:
    """The largest difference."""
    scale = max(1.0, float(other.abs().max()))
    return float((values.double() - other.double()).abs().max()) / scale / torch.finfo(dtype).eps


def results(
    name: str, mode: Mode, inputs: SamplerTensors, release: Metallib, kernels: Kernels
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Upstream's samples, the stack's, and those in float64."""
    kernel = SamplerKernel(f"grid_sampler_{name}", 3, False, "", Interpolation.BILINEAR, None, DTYPES[name])
    source = AirSource.of(release, kernel.name)
    library, layout = compile_kernels([source], RunMode.PLAIN, cache()), source.kernel().struct("params")
    before = run_sampler(library, kernel, layout, mode, inputs)["output"]
    return before, HostForward(kernels).run(inputs, mode), reference(mode, inputs, backward=False)["output"]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_the_forward_is_exact_and_no_further_from_upstreams_than_rounding(
    name: str, mode: Mode, release: Metallib, kernels: Kernels
) -> None:
    dtype = DTYPES[name]
    for number in range(ROUNDS):
        inputs = random_inputs(3, dtype, mode, f"before {number}")
        before, ours, exact = results(name, mode, inputs, release, kernels)
        assert epsilons(ours, before, dtype) <= APART[name]
        assert epsilons(ours, exact, dtype) <= INEXACT[name]


@pytest.mark.parametrize("size", [(1, 3, 4), (3, 1, 4), (3, 4, 1)], ids=str)
@pytest.mark.parametrize("padding", Padding, ids=lambda padding: padding.name.lower())
def test_an_axis_of_one_pixel_is_nan_in_upstreams_kernel_and_right_in_ours(
    padding: Padding, size: tuple[int, int, int], release: Metallib, kernels: Kernels
) -> None:
    source = torch.Generator().manual_seed(11)
    image, grid = torch.rand(1, 2, *size, generator=source), torch.rand(1, 2, 2, 2, 3, generator=source) * 2 - 1
    inputs = SamplerTensors(torch.zeros(1, 2, 2, 2, 2), image, grid)
    mode = Mode(Interpolation.BILINEAR, padding, align_corners=False)
    before, ours, exact = results("float", mode, inputs, release, kernels)
    assert before.isnan().all()
    assert epsilons(ours, exact, torch.float32) <= INEXACT["float"]
