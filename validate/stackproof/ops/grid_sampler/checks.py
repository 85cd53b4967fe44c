"""One case: run it, measure it, say what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.families.model import Outputs
from stackproof.ops.grid_sampler.host import HostBackward, HostForward
from stackproof.ops.grid_sampler.modes import Mode
from stackproof.ops.grid_sampler.reference import (
    cpu_gradients,
    cpu_samples,
    expected_gradients,
    expected_samples,
    is_defined_on_cpu,
)
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.measure import LARGEST_ERROR, largest_error
from stackproof.ops.model import CaseResult, LeftToTreeError

BOTH = (True, True)

_Expected = TypeVar("_Expected", bound="Expected")


@dataclass(frozen=True)
class Wanted:
    """What one output has to be.

    Attributes:
        values: float64.
        terms: float64, the unit of an error; the same shape.
        cpu_error: largest error of the CPU kernel in the same dtype; ``None`` where it was not asked.
    """

    values: Tensor
    terms: Tensor
    cpu_error: float | None = None

    def measured_by(self, cpu: Tensor) -> Wanted:
        """The same with the CPU kernel's error."""
        return replace(self, cpu_error=largest_error(cpu, self.values, self.terms))


@dataclass(frozen=True)
class Expected:
    """The right answer for one set of tensors.

    Attributes:
        tensors: what the kernel is called with.
        mode: how to sample.
        wanted: by name of the output.
    """

    tensors: SamplerTensors
    mode: Mode
    wanted: Mapping[str, Wanted]

    def arranged(self: _Expected, tensors: SamplerTensors) -> _Expected:
        """The same answer for tensors of the same values in other memory."""
        return replace(self, tensors=tensors)

    def compare(self, actual: Mapping[str, Tensor], case: str, problems: tuple[str, ...] = ()) -> CaseResult:
        """Measure the outputs that are there; ``problems`` were seen elsewhere."""
        dtype = self.tensors.input.dtype
        wanted = {name: self.wanted[name] for name in actual}
        errors = {name: largest_error(actual[name], want.values, want.terms) for name, want in wanted.items()}
        off = [
            f"{name} is off by {error:.3g} units of {dtype_name(dtype)}'s epsilon, at most {LARGEST_ERROR[dtype]:g}"
            for name, error in errors.items()
            if not error <= LARGEST_ERROR[dtype]
        ]
        cpu = {name: want.cpu_error for name, want in wanted.items() if want.cpu_error is not None}
        return CaseResult(str(self.mode), dtype_name(dtype), case, errors, cpu, (*problems, *off))


class ExpectedGradients(Expected):
    """What the backward has to give."""

    @classmethod
    def of(cls, tensors: SamplerTensors, mode: Mode) -> ExpectedGradients:
        """Compute it."""
        want = expected_gradients(tensors, mode)
        grad_input = Wanted(want.grad_input, want.grad_input_terms)
        grad_grid = Wanted(want.grad_grid, want.grad_grid_terms)
        if _is_cpu_a_measure(tensors):
            by_cpu = cpu_gradients(tensors, mode, tensors.input.dtype)
            grad_input, grad_grid = grad_input.measured_by(by_cpu[0]), grad_grid.measured_by(by_cpu[1])
        return cls(tensors, mode, {"grad_input": grad_input, "grad_grid": grad_grid})

    def check(self, host: HostBackward, case: str, *, mask: tuple[bool, bool] = BOTH) -> CaseResult:
        """Run the kernel on the tensors and compare; a call that is left to unknown kernels is skipped."""
        try:
            outputs = host.run(self.tensors, self.mode, mask=mask)
        except LeftToTreeError as error:
            return CaseResult(str(self.mode), dtype_name(self.tensors.input.dtype), case, skipped=str(error))
        return self.judge(outputs, case, mask=mask)

    def judge(
        self, outputs: Outputs, case: str, *, mask: tuple[bool, bool] = BOTH, more: tuple[str, ...] = ()
    ) -> CaseResult:
        """Compare what came out; ``more`` are problems that were seen elsewhere."""
        problems = list(more)
        if (outputs.grad_input is not None) != mask[0]:
            problems.append("grad_input is there or not against the mask")
        if not outputs.mask_kept:
            problems.append("the kernel wrote to grad_input although the mask leaves it out")
        there = {} if outputs.grad_input is None else {"grad_input": outputs.grad_input}
        return self.compare({**there, "grad_grid": outputs.grad_grid}, case, tuple(problems))


class ExpectedSamples(Expected):
    """What the forward has to give."""

    @classmethod
    def of(cls, tensors: SamplerTensors, mode: Mode) -> ExpectedSamples:
        """Compute it."""
        want = expected_samples(tensors, mode)
        output = Wanted(want.output, want.output_terms)
        if _is_cpu_a_measure(tensors):
            output = output.measured_by(cpu_samples(tensors, mode, tensors.input.dtype))
        return cls(tensors, mode, {"output": output})

    def check(self, host: HostForward, case: str) -> CaseResult:
        """Run the kernel on the tensors and compare."""
        return self.judge(host.run(self.tensors, self.mode), case)

    def judge(self, output: Tensor, case: str, *, more: tuple[str, ...] = ()) -> CaseResult:
        """Compare what came out; ``more`` are problems that were seen elsewhere."""
        return self.compare({"output": output}, case, more)


def _is_cpu_a_measure(tensors: SamplerTensors) -> bool:
    """The CPU is asked in float32 only, its 16-bit kernels are no measure, and where it is defined."""
    is_float32 = tensors.input.dtype is torch.float32
    return is_float32 and tensors.grad_output.numel() > 0 and is_defined_on_cpu(tensors)


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors are equal bit by bit where neither is NaN; a NaN anywhere is a difference."""
    return bool((left == right).all())
