"""The forward's cases that are not "random values of some shape": index widths, extremes, the base's kernels."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.before import SAME_AS_BEFORE
from stackproof.ops.grid_sampler.checks import ExpectedSamples, dtype_name, same_bits
from stackproof.ops.grid_sampler.extremes import unresolved, weights_problems, with_extremes
from stackproof.ops.grid_sampler.host import HostForward
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.special import HostCases, special_tensors, spread
from stackproof.ops.grid_sampler.table import Special
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.layouts import channels_last, sliced
from stackproof.ops.model import CaseResult


def non_finite_coordinates(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """The rule for extreme coordinates: right values where there are any, finite samples unaffected.

    A reflected coordinate that float32 does not resolve only has to end on some pixel or nowhere.
    """
    host = HostForward(kernels)
    plain = special_tensors(sampler, dtype, mode)
    mixed, is_extreme = with_extremes(plain, mode)
    output, alone = host.run(mixed, mode), host.run(plain, mode)
    kept = same_bits(output.movedim(1, -1)[~is_extreme], alone.movedim(1, -1)[~is_extreme])
    more = () if kept else ("a finite sample changed because another sample is not finite",)
    yield ExpectedSamples.of(mixed, mode).judge(output, "extreme among finite coordinates", more=more)
    ones = unresolved(plain, mode)
    case = f"{len(ones.grid) if ones else 0} reflected coordinates that float32 does not resolve"
    problems = () if ones is None else weights_problems(host.run(ones, mode).flatten())
    yield CaseResult(str(mode), dtype_name(dtype), case, problems=problems)


def output_layouts(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """The output is written by its strides, and nothing is written between its elements."""
    tensors = special_tensors(sampler, dtype, mode)
    expected = ExpectedSamples.of(tensors, mode)
    nowhere = torch.full_like(tensors.grad_output, torch.nan)
    for name, output in (("channels_last", channels_last(nowhere)), ("sliced", sliced(nowhere))):
        result = HostForward(kernels).run(tensors, mode, output)
        storage = output.new_empty(0).set_(output.untyped_storage())
        written = int((~storage.isnan()).sum())
        more = () if written == output.numel() else ("something was written outside of the output",)
        yield expected.judge(result, f"{name} output", more=more)


def strides_beyond_int32(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """Each tensor in turn spans more than 2**31 elements: the index width follows, the values stay right."""
    tensors = special_tensors(sampler, dtype, mode)
    expected = ExpectedSamples.of(tensors, mode)
    output = torch.zeros_like(tensors.grad_output)
    for case, far, target in (
        ("input", SamplerTensors(tensors.grad_output, spread(tensors.input), tensors.grid), None),
        ("grid", SamplerTensors(tensors.grad_output, tensors.input, spread(tensors.grid, rows=1)), None),
        ("output", tensors, spread(output)),
    ):
        host = HostForward(kernels)
        result = host.run(far, mode, target)
        more = () if host.used_wide else ("the kernel with 32-bit offsets was chosen",)
        yield expected.judge(result, f"{case} beyond 2**31", more=more)


_LAUNCHING = HostCases(HostForward, ExpectedSamples.of)

# Address space far larger than memory tells the detectors nothing that small tensors do not.
SPECIAL: dict[str, Special] = {
    "non-finite coordinates": Special(2, non_finite_coordinates),
    "int64 kernels": Special(2, _LAUNCHING.int64_kernels),
    "several launches": Special(3, _LAUNCHING.several_launches),
    "output layouts": Special(2, output_layouts, watched=False),
    "strides beyond 2**31": Special(3, strides_beyond_int32, watched=False),
    **SAME_AS_BEFORE,
}
