"""Plans made ready to be run any number of times, to be timed or counted, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.fast.launches import Launch, Plan, Zero
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.tensors import SamplerTensors

Step = Callable[[], object]


class Library(Protocol):
    """What the host's and the GPU's library share."""

    @property
    def kernel_names(self) -> list[str]:
        """Host names of all kernels."""

    def kernel(self, name: str) -> Any:
        """The kernel with this host name."""


class Libraries:
    """Several libraries as one."""

    def __init__(self, libraries: Iterable[Library]) -> None:
        self._kernels = {name: one for one in libraries for name in one.kernel_names}

    @property
    def kernel_names(self) -> list[str]:
        """Of all of them."""
        return list(self._kernels)

    def kernel(self, name: str) -> Any:
        """The kernel with this host name."""
        return self._kernels[name].kernel(name)


@dataclass(frozen=True)
class Case:
    """Tensors and mode of one call.

    Attributes:
        grad_output: (N, C, Ho, Wo), or (N, C, Do, Ho, Wo).
        input: (N, C, H, W), or (N, C, D, H, W).
        grid: (N, Ho, Wo, 2), or (N, Do, Ho, Wo, 3).
        interpolation: name.
        padding: name.
        align_corners: as in PyTorch.
    """

    grad_output: Tensor
    input: Tensor
    grid: Tensor
    interpolation: str = "bilinear"
    padding: str = "zeros"
    align_corners: bool = True

    def reference(self, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
        """PyTorch's own gradients on the tensors' device, computed in ``dtype`` if one is given."""
        tensors = [self.grad_output, self.input, self.grid]
        if dtype is not None:
            tensors = [tensor.to(dtype) for tensor in tensors]
        mode = self.mode
        ops = torch.ops.aten
        operator = ops.grid_sampler_2d_backward if self.dimensions == 2 else ops.grid_sampler_3d_backward
        grads = operator(*tensors, int(mode.interpolation), int(mode.padding), self.align_corners, [True, True])
        return grads[0], grads[1]

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return self.input.dim() - 2

    @property
    def tensors(self) -> SamplerTensors:
        """All of them."""
        return SamplerTensors(self.grad_output, self.input, self.grid)

    @property
    def mode(self) -> Mode:
        """How to sample."""
        padding = Padding[self.padding.upper()]
        return Mode(Interpolation[self.interpolation.upper()], padding, self.align_corners)


@dataclass(frozen=True)
class Pass:
    """A backward pass with its buffers.

    Attributes:
        steps: run in this order.
        grad_input: the result, contiguous, in the input's dtype.
        grad_grid: the result.
    """

    steps: tuple[Step, ...]
    grad_input: Tensor
    grad_grid: Tensor

    def __call__(self) -> tuple[Tensor, Tensor]:
        for step in self.steps:
            step()
        return self.grad_input, self.grad_grid


def bind(library: Library, name: str, *args: Any, threads: Sequence[int], group_size: Sequence[int]) -> Step:
    """A launch of a kernel with its arguments, to be run any number of times."""
    kernel = library.kernel(name)
    if hasattr(kernel, "prepare"):
        launch: Step = kernel.prepare(*args, threads=threads, group_size=group_size)
        return launch
    return lambda: kernel(*args, threads=threads, group_size=group_size)


def pass_of(library: Library, plan: Plan) -> Pass:
    """A plan over a library's kernels; both gradients must be asked for."""
    assert plan.grad_input is not None
    return Pass(tuple(_bound(library, step) for step in plan.steps), plan.grad_input, plan.grad_grid)


def _bound(library: Library, step: Launch | Zero) -> Step:
    if isinstance(step, Zero):
        zeroed = step.tensor
        return lambda: zeroed.zero_()
    return bind(library, step.kernel, *step.arguments, threads=step.threads, group_size=step.group_size)
