"""Upstream's own grid samplers, as Apple's compiler left them, on CPU tensors: how each is called, and how exact it is.

A release since April 2026 has 150 of them: forward and backward in 2D and 3D, each for three dtypes and two widths
of offsets. The reference is PyTorch's float64 CPU kernel on the same rounded inputs. Samples keep a distance from the
places where a gradient jumps, since a coordinate rounded to the other side of one is not an error. Names and
arguments are described once for these kernels and for those of a tree, in
:mod:`stackproof.ops.grid_sampler.families.upstream`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from stackproof.engines.apple.errors import AppleKernelError
from stackproof.engines.metal import MetalLibrary
from stackproof.engines.metal.struct_layout import StructLayout
from stackproof.ops.grid_sampler.families.parameters import parameter_values
from stackproof.ops.grid_sampler.families.upstream import SamplerKernel
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Sampler
from stackproof.ops.grid_sampler.reference import mode_arguments
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# In pixels; bfloat16 resolves a coordinate of these sizes to a thirtieth.
_DISTANCE_FROM_JUMP = 0.06
_SIZES = {2: ((2, 3, 7, 9), (8, 11)), 3: ((2, 3, 5, 6, 7), (4, 5, 6))}
_BEYOND = 2.5  # pixels outside the input that samples reach


@dataclass(frozen=True)
class SamplerResult:
    """What a case showed.

    Attributes:
        kernel: its name.
        mode: how it was called, in words.
        errors: by output, the largest absolute difference from float64, relative to the largest value where that
            exceeds one.
        epsilons: the same in units of the dtype's epsilon.
        traffic: loads, stores and atomics, where they were counted.
    """

    kernel: str
    mode: str
    errors: dict[str, float] = field(default_factory=dict)
    epsilons: dict[str, float] = field(default_factory=dict)
    traffic: dict[str, int] = field(default_factory=dict)


def random_inputs(axes: int, dtype: torch.dtype, mode: Mode, label: str) -> SamplerTensors:
    """Inputs that depend on the arguments only; ``label`` chooses the values."""
    shape, output = _SIZES[axes]
    source = torch.Generator().manual_seed(zlib.crc32(label.encode()))
    pixels = []
    for size in reversed(shape[2:]):
        # A place between two jumps, which lie half a pixel apart.
        cells = torch.rand(shape[0], *output, generator=source) * (size + 2 * _BEYOND) - _BEYOND
        within = torch.rand(shape[0], *output, generator=source) * (0.5 - 2 * _DISTANCE_FROM_JUMP) + _DISTANCE_FROM_JUMP
        pixels.append(_to_grid((cells * 2).floor() / 2 + within, size, mode.align_corners))
    tensors = SamplerTensors(
        torch.randn(*shape[:2], *output, generator=source),
        torch.randn(shape, generator=source),
        torch.stack(pixels, -1),
    )
    return tensors.each(lambda tensor: tensor.to(dtype))


def _to_grid(pixels: Tensor, size: int, align_corners: bool) -> Tensor:
    return 2 * pixels / (size - 1) - 1 if align_corners else (2 * pixels + 1) / size - 1


def reference(mode: Mode, inputs: SamplerTensors, *, backward: bool) -> dict[str, Tensor]:
    """The right values of the output, or of both gradients, float64."""
    exact = inputs.each(Tensor.double)
    sampler = Sampler(inputs.dims)
    call = getattr(torch.ops.aten, sampler.backward if backward else sampler.forward)
    if not backward:
        return {"output": call(exact.input, exact.grid, *mode_arguments(mode))}
    gradients = call(exact.grad_output, exact.input, exact.grid, *mode_arguments(mode), [True, True])
    return dict(zip(("grad_input", "grad_grid"), gradients, strict=True))


def run_sampler(
    library: MetalLibrary, kernel: SamplerKernel, layout: StructLayout, mode: Mode, inputs: SamplerTensors
) -> dict[str, Tensor]:
    """Call a kernel as upstream's host function does; returns what it wrote, by name.

    Args:
        library: that holds it.
        kernel: which.
        layout: of its ``params``.
        mode: how to sample.
        inputs: of the kernel's dtype.

    Raises:
        AppleKernelError: the kernel's metadata has other buffers than its family.
    """
    outputs = _empty_outputs(kernel, mode, inputs)
    # What a kernel does not write still has sizes and strides, which its parameters may have a place for.
    tensors = {
        "input": inputs.input,
        "grid": inputs.grid,
        "grad_output": inputs.grad_output,
        "output": inputs.grad_output,
        "grad_input": inputs.input,
        "grad_grid": inputs.grid,
    } | outputs
    call = library.kernel(kernel.name)
    named = tuple(one.name for one in call.signature.buffers)
    if named != (*kernel.buffers, "params"):
        raise AppleKernelError(
            "the kernel takes other buffers", kernel.name, expected=", ".join(kernel.buffers), found=", ".join(named)
        )
    kernel.launch(call, tensors, layout.pack(parameter_values(layout, mode, tensors)))
    return outputs


def _empty_outputs(kernel: SamplerKernel, mode: Mode, inputs: SamplerTensors) -> dict[str, Tensor]:
    """What the kernel adds to is zero, as is the grid's gradient of nearest; what it has to write is NaN."""
    made = {}
    for name in kernel.outputs:
        if name == "grad_input":
            made[name] = torch.zeros_like(inputs.input)
        elif name == "grad_grid" and mode.interpolation is Interpolation.NEAREST:
            made[name] = torch.zeros_like(inputs.grid)
        else:
            made[name] = torch.full_like(inputs.grid if name == "grad_grid" else inputs.grad_output, torch.nan)
    return made


# The largest explained error, in epsilons: what float32 arithmetic loses, what one rounding does, and what adding up
# gradients in 16 bits loses, which is upstream's way with grad_input.
FLOAT32, ROUNDED_ONCE, ADDED_IN_16_BITS = 16.0, 0.51, 8.0


def largest_error(kernel: SamplerKernel, output: str) -> float:
    """How far this output may be from float64, in epsilons of its dtype."""
    if kernel.dtype is torch.float32:
        return FLOAT32
    return ADDED_IN_16_BITS if output == "grad_input" else ROUNDED_ONCE


def judge(
    kernel: str,
    mode: Mode,
    found: Mapping[str, Tensor],
    exact: Mapping[str, Tensor],
    traffic: Mapping[str, int],
) -> SamplerResult:
    """Errors and memory traffic of one call."""
    result = SamplerResult(kernel, str(mode), traffic=dict(traffic))
    for name, values in found.items():
        scale = max(1.0, float(exact[name].abs().max()))
        error = float((values.double() - exact[name]).abs().max()) / scale
        result.errors[name] = error if error == error else float("inf")
        result.epsilons[name] = result.errors[name] / torch.finfo(values.dtype).eps
    return result
