"""The kernels that PyTorch has since April 2026, and of the series' changes that keep their names.

In 2D each gradient has a kernel of its own, one thread per position; in 3D one kernel makes both, in a grid of three
dimensions, and the forward has one thread per output element. A name says dtype and width of the offsets, and the
padding and the interpolation where the kernel is compiled for one. The front end that reads Apple-compiled kernels uses
the same description.

What a name does not say is whether the kernels are upstream's own or those of a change. Upstream sums ``grad_input`` in
the type of the tensors, and its 3D backward is given contiguous copies; the change for these trees sums in float and
takes tensors as they are. Which it is can be read from what the kernels declare.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from stackproof.engines.kernels import KernelFunction, KernelLibrary
from stackproof.ops.grid_sampler.families.model import (
    METAL_NAMES,
    BackwardCall,
    ForwardCall,
    Outputs,
    params_layout,
)
from stackproof.ops.grid_sampler.families.parameters import parameter_values
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors

DTYPES = {metal: dtype for dtype, metal in METAL_NAMES.items()}
_NAME = re.compile(
    r"grid_sampler_(?P<axes>[23])d(?P<backward>_backward)?(?:_(?P<interpolation>bilinear|nearest|bicubic))?"
    r"(?:_(?P<gradient>input|grid))?(?:_(?P<padding>zeros|border|reflection))?"
    r"_(?P<index>i32|i64)_(?P<dtype>float|half|bfloat)"
)
_SUMMED_IN_FLOAT = re.compile(r"<\s*float\s*>\s*\*\s*grad_input\b")
_SIXTEEN_BITS = (torch.float16, torch.bfloat16)
# What a kernel takes by buffer index, by the gradient that it makes; the parameters come last.
_BUFFERS = {
    None: ("output", "input", "grid"),
    "input": ("grad_input", "grad_output", "grid"),
    "grid": ("grad_grid", "grad_output", "input", "grid"),
    "": ("grad_output", "input", "grid", "grad_input", "grad_grid"),
}
_GROUP_3D = (16, 16, 1)


@dataclass(frozen=True)
class SamplerKernel:
    """A kernel by what its name says.

    Attributes:
        name: of the kernel.
        axes: 2 or 3.
        backward: gradients, and not the forward.
        gradient: ``input`` or ``grid`` where one kernel makes one of them, empty for both.
        interpolation: of its samples, ``None`` where it is a run-time parameter.
        padding: likewise.
        dtype: of the tensors.
    """

    name: str
    axes: int
    backward: bool
    gradient: str
    interpolation: Interpolation | None
    padding: Padding | None
    dtype: torch.dtype

    @staticmethod
    def of(name: str) -> SamplerKernel | None:
        """The kernel of that name, or ``None`` if it is no grid sampler."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        interpolation, padding = found["interpolation"], found["padding"]
        return SamplerKernel(
            name,
            int(found["axes"]),
            bool(found["backward"]),
            found["gradient"] or "",
            Interpolation[interpolation.upper()] if interpolation else None,
            Padding[padding.upper()] if padding else None,
            DTYPES[found["dtype"]],
        )

    def modes(self) -> tuple[Mode, ...]:
        """Every way to call it."""
        return tuple(
            mode
            for mode in Sampler(self.axes).modes
            if self.interpolation in (None, mode.interpolation) and self.padding in (None, mode.padding)
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors it writes."""
        if not self.backward:
            return ("output",)
        return (f"grad_{self.gradient}",) if self.gradient else ("grad_input", "grad_grid")

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the tensors it takes, by buffer index; its parameters come after them."""
        return _BUFFERS[self.gradient if self.backward else None]

    def launch(self, kernel: KernelFunction, tensors: Mapping[str, Tensor], params: bytes) -> None:
        """Run it over the grid that upstream's host functions take.

        Args:
            kernel: the kernel of this name.
            tensors: by name, those of :attr:`buffers` at least.
            params: its parameters.
        """
        bound = [*(tensors[name] for name in self.buffers), params]
        positions = tensors["grid"].shape[:-1]
        if self.axes == 2:
            kernel(*bound, threads=positions.numel())
        elif not self.backward:
            kernel(*bound, threads=tensors["output"].numel())
        else:
            images, slices, rows, columns = positions
            kernel(*bound, threads=(columns, rows * slices, images), group_size=_GROUP_3D)


def forward_kernel(sampler: Sampler, mode: Mode, dtype: torch.dtype, *, wide: bool) -> SamplerKernel:
    """The kernel that samples; ``wide`` chooses 64-bit offsets."""
    interpolation, padding = _words(mode)
    return _known(f"{sampler.forward}_{interpolation}_{padding}_{_suffix(dtype, wide)}")


def backward_kernels(sampler: Sampler, mode: Mode, dtype: torch.dtype, *, wide: bool) -> tuple[SamplerKernel, ...]:
    """The kernels that compute the gradients, in the order of their launches; nearest has none for ``grad_grid``."""
    if sampler.dims == 3:
        return (_known(f"{sampler.backward}_{_suffix(dtype, wide)}"),)
    interpolation, padding = _words(mode)
    suffix = f"{padding}_{_suffix(dtype, wide)}" if interpolation == "bicubic" else _suffix(dtype, wide)
    gradients = ("input",) if mode.interpolation is Interpolation.NEAREST else ("input", "grid")
    return tuple(_known(f"{sampler.backward}_{interpolation}_{gradient}_{suffix}") for gradient in gradients)


def _words(mode: Mode) -> tuple[str, str]:
    return mode.interpolation.name.lower(), mode.padding.name.lower()


def _suffix(dtype: torch.dtype, wide: bool) -> str:
    return f"{'i64' if wide else 'i32'}_{METAL_NAMES[dtype]}"


def _known(name: str) -> SamplerKernel:
    kernel = SamplerKernel.of(name)
    assert kernel
    return kernel


def sums_in_float(library: KernelLibrary, sampler: Sampler) -> bool:
    """Whether a backward sums ``grad_input`` in float whatever the tensors' dtype is, as the series' changes do.

    It shows in what the 16-bit kernels declare. One without a signature (on an Apple GPU) is taken to be a change's.
    """
    names = {backward_kernels(sampler, sampler.modes[0], dtype, wide=False)[0].name for dtype in _SIXTEEN_BITS}
    for name in names & set(dir(library)):
        signature = getattr(getattr(library, name), "signature", None)
        if signature is not None:
            declared = " ".join(parameter.declaration for parameter in signature.buffers)
            return bool(_SUMMED_IN_FLOAT.search(declared))
    return True


class UpstreamBackward:
    """Implements :class:`stackproof.ops.grid_sampler.families.model.BackwardFamily`."""

    splits_launches: Final = False

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        mode = sampler.modes[0]
        return any(
            kernel.name in names
            for dtype in METAL_NAMES
            for kernel in backward_kernels(sampler, mode, dtype, wide=False)
        )

    def run(self, call: BackwardCall) -> Outputs:
        """As ``grid_sampler_2d_backward_mps`` and ``grid_sampler_3d_backward_mps`` of such trees."""
        dtype, library = call.tensors.input.dtype, call.kernels.library
        in_float = sums_in_float(library, call.sampler)
        copied = call.sampler.dims == 3 and not in_float
        tensors = call.tensors.each(Tensor.contiguous) if copied else call.tensors
        nearest = call.mode.interpolation is Interpolation.NEAREST
        grad_grid = call.grad_grid.zero_() if nearest else call.grad_grid
        kept = call.compute_grad_input
        sums = _sums(call, torch.float32 if in_float else dtype)
        wide = call.is_wide(tensors.grad_output, tensors.input, tensors.grid, grad_grid, sums)
        buffers = {**_named(tensors), "grad_input": sums, "grad_grid": grad_grid}
        shapes = buffers if kept else {**buffers, "grad_input": torch.zeros(()).expand(tensors.input.shape)}
        rank = call.sampler.dims + 2
        layout = params_layout(call.kernels.headers, "GridSamplerBackwardParams", rank, _index_type(wide))
        params = layout.pack(parameter_values(layout, call.mode, shapes, compute_grad_input=kept))
        for kernel in backward_kernels(call.sampler, call.mode, dtype, wide=wide):
            if kept or kernel.gradient != "input":
                if "grad_grid" in kernel.outputs and not nearest:
                    call.kernels.mark_undefined(grad_grid)
                kernel.launch(getattr(library, kernel.name), buffers, params)
        unasked = not kept and bool((sums != 0).any())
        return Outputs(sums.to(dtype) if kept else None, grad_grid, not unasked, wide or copied)


def _sums(call: BackwardCall, dtype: torch.dtype) -> Tensor:
    """Zeros to add up in; where the mask leaves ``grad_input`` out, a buffer that has to be bound all the same."""
    values = call.tensors.input
    if not call.compute_grad_input:
        return torch.zeros([1] * values.dim(), dtype=dtype)
    if call.zeros is not None:
        return call.zeros(values.shape).to(dtype)
    # In 3D upstream keeps the input's order of dimensions.
    layout = torch.contiguous_format if call.sampler.dims == 2 else torch.preserve_format
    return torch.zeros_like(values, dtype=dtype, memory_format=layout)


def _named(tensors: SamplerTensors) -> dict[str, Tensor]:
    # The structs call the sizes of grad_output those of the output.
    return {
        "grad_output": tensors.grad_output,
        "output": tensors.grad_output,
        "input": tensors.input,
        "grid": tensors.grid,
    }


def _index_type(wide: bool) -> str:
    return "int64_t" if wide else "int32_t"


class UpstreamForward:
    """Implements :class:`stackproof.ops.grid_sampler.families.model.ForwardFamily`."""

    splits_launches: Final = False

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        return any(forward_kernel(sampler, sampler.modes[0], dtype, wide=False).name in names for dtype in METAL_NAMES)

    def run(self, call: ForwardCall) -> bool:
        """As ``grid_sampler_2d_mps`` and ``grid_sampler_3d_mps`` of such trees."""
        tensors, kernels = call.tensors, call.kernels
        wide = call.is_wide(call.output, tensors.input, tensors.grid)
        buffers = {"output": call.output, "input": tensors.input, "grid": tensors.grid}
        layout = params_layout(kernels.headers, "GridSamplerParams", call.sampler.dims + 2, _index_type(wide))
        kernel = forward_kernel(call.sampler, call.mode, tensors.input.dtype, wide=wide)
        kernels.mark_undefined(call.output)
        kernel.launch(
            getattr(kernels.library, kernel.name), buffers, layout.pack(parameter_values(layout, call.mode, buffers))
        )
        return wide
