"""One case: run it, measure it, say what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stackproof.ops.grid_sampler_2d_backward.host import HostFunction, Outputs
from stackproof.ops.grid_sampler_2d_backward.modes import Mode
from stackproof.ops.grid_sampler_2d_backward.oracle import Gradients
from stackproof.ops.grid_sampler_2d_backward.reference import cpu_gradients, expected_gradients, is_defined_on_cpu
from stackproof.ops.layouts import SamplerTensors
from stackproof.ops.measure import LARGEST_ERROR, largest_error
from stackproof.ops.model import CaseResult

BOTH = (True, True)


@dataclass(frozen=True)
class Expected:
    """The right answer for one set of tensors.

    Attributes:
        tensors: what the kernel is called with.
        mode: how to sample.
        gradients: float64 values and units.
        cpu_errors: largest error of the CPU kernel in the same dtype, by output; empty where it was not asked.
    """

    tensors: SamplerTensors
    mode: Mode
    gradients: Gradients
    cpu_errors: dict[str, float]

    @classmethod
    def of(cls, tensors: SamplerTensors, mode: Mode) -> Expected:
        """Compute it. The CPU is asked in float32 only, its 16-bit kernels are no measure, and where it is defined."""
        gradients = expected_gradients(tensors, mode)
        errors: dict[str, float] = {}
        if tensors.input.dtype is torch.float32 and is_defined_on_cpu(tensors) and tensors.grad_output.numel():
            grad_input, grad_grid = cpu_gradients(tensors, mode, tensors.input.dtype)
            errors["grad_input"] = largest_error(grad_input, gradients.grad_input, gradients.grad_input_terms)
            errors["grad_grid"] = largest_error(grad_grid, gradients.grad_grid, gradients.grad_grid_terms)
        return cls(tensors, mode, gradients, errors)

    def check(self, host: HostFunction, case: str, *, mask: tuple[bool, bool] = BOTH) -> CaseResult:
        """Run the kernel on the tensors and compare."""
        outputs = host.backward(self.tensors, self.mode, mask=mask)
        return self.judge(outputs, case, mask=mask)

    def judge(
        self, outputs: Outputs, case: str, *, mask: tuple[bool, bool] = BOTH, more: tuple[str, ...] = ()
    ) -> CaseResult:
        """Compare what came out; ``more`` are problems that were seen elsewhere."""
        errors: dict[str, float] = {}
        problems = list(more)
        if (outputs.grad_input is not None) != mask[0]:
            problems.append("grad_input is there or not against the mask")
        if not outputs.mask_kept:
            problems.append("the kernel wrote to grad_input although the mask leaves it out")
        want = self.gradients
        if outputs.grad_input is not None:
            errors["grad_input"] = largest_error(outputs.grad_input, want.grad_input, want.grad_input_terms)
        errors["grad_grid"] = largest_error(outputs.grad_grid, want.grad_grid, want.grad_grid_terms)
        dtype = self.tensors.input.dtype
        problems += [
            f"{name} is off by {error:.3g} units of {dtype_name(dtype)}'s epsilon, at most {LARGEST_ERROR[dtype]:g}"
            for name, error in errors.items()
            if not error <= LARGEST_ERROR[dtype]
        ]
        cpu_errors = {name: self.cpu_errors[name] for name in errors if name in self.cpu_errors}
        return CaseResult(str(self.mode), dtype_name(dtype), case, errors, cpu_errors, tuple(problems))


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors are equal bit by bit where neither is NaN; a NaN anywhere is a difference."""
    return bool((left == right).all())
