"""The backward's cases that are not "random values of some shape": collisions, index widths, launches, extremes."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stackproof.engines.kernels import Kernels
from stackproof.ops.grid_sampler.checks import BOTH, ExpectedGradients, dtype_name, same_bits
from stackproof.ops.grid_sampler.extremes import unresolved, weights_problems, with_extremes
from stackproof.ops.grid_sampler.host import HostBackward
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.special import HostCases, special_tensors, spread
from stackproof.ops.grid_sampler.table import Special
from stackproof.ops.grid_sampler.tensors import SamplerTensors
from stackproof.ops.model import CaseResult

# 4096 samples, as many as fit evenly into each number of dimensions.
_COLLIDING = {2: (64, 64), 3: (16, 16, 16)}


def non_finite_coordinates(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """The rule for extreme coordinates: right values where there are any, finite samples unaffected.

    A reflected coordinate that float32 does not resolve can end on any pixel; such samples come apart from the others,
    and only have to end on some pixel or nowhere.
    """
    host = HostBackward(kernels)
    plain = special_tensors(sampler, dtype, mode)
    mixed, is_extreme = with_extremes(plain, mode)
    outputs, alone = host.run(mixed, mode, mask=BOTH), host.run(plain, mode, mask=BOTH)
    kept = same_bits(outputs.grad_grid[~is_extreme], alone.grad_grid[~is_extreme])
    more = () if kept else ("grad_grid of a finite sample changed because another sample is not finite",)
    expected = ExpectedGradients.of(mixed, mode)
    yield expected.judge(outputs, "extreme among finite coordinates", more=more)
    yield expected.check(host, "extreme among finite coordinates, no grad_input", mask=(False, True))
    yield _anywhere_or_nowhere(host, plain, mode)


def _anywhere_or_nowhere(host: HostBackward, plain: SamplerTensors, mode: Mode) -> CaseResult:
    """A sample's weights sum up to one, or it is outside and adds nothing."""
    tensors = unresolved(plain, mode)
    case = f"{len(tensors.grid) if tensors else 0} reflected coordinates that float32 does not resolve"
    problems: tuple[str, ...] = ()
    if tensors is not None:
        outputs = host.run(tensors, mode, mask=BOTH)
        assert outputs.grad_input is not None
        totals = outputs.grad_input.double().flatten(1).sum(1)
        problems = weights_problems(totals.to(outputs.grad_input.dtype))
        if not outputs.grad_grid.isfinite().all():
            problems += ("grad_grid is not finite",)
    return CaseResult(str(mode), dtype_name(plain.input.dtype), case, problems=problems)


def collisions(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """4096 samples that fall on the same pixel add up to 4096, which sums in half or bfloat16 would not."""
    sizes = _COLLIDING[sampler.dims]
    tensors = SamplerTensors(
        torch.ones(1, 1, *sizes, dtype=dtype),
        torch.ones(1, 1, *[3] * sampler.dims, dtype=dtype),
        torch.zeros(1, *sizes, sampler.dims, dtype=dtype),
    )
    count = tensors.positions
    outputs = HostBackward(kernels).run(tensors, mode, mask=BOTH)
    assert outputs.grad_input is not None
    total = outputs.grad_input[0, 0].flatten()[3**sampler.dims // 2].item()
    more = () if total == count else (f"{count} colliding samples of 1 sum up to {total:g}",)
    yield ExpectedGradients.of(tensors, mode).judge(outputs, f"{count} collisions", more=more)


def strides_beyond_int32(kernels: Kernels, sampler: Sampler, mode: Mode, dtype: torch.dtype) -> Iterator[CaseResult]:
    """Each tensor in turn spans more than 2**31 elements: the index width follows, the values stay right."""
    tensors = special_tensors(sampler, dtype, mode)
    expected = ExpectedGradients.of(tensors, mode)
    grad_output, values, grid = tensors.grad_output, tensors.input, tensors.grid
    for case, far in (
        ("grad_output", SamplerTensors(spread(grad_output), values, grid)),
        ("input", SamplerTensors(grad_output, spread(values), grid)),
        ("grid", SamplerTensors(grad_output, values, spread(grid, rows=1))),
    ):
        yield _wide_case(HostBackward(kernels), expected.arranged(far), f"{case} beyond 2**31")
    host = HostBackward(kernels, zeros=lambda shape: spread(torch.zeros(*shape)))
    yield _wide_case(host, expected, "grad_input beyond 2**31")


def _wide_case(host: HostBackward, expected: ExpectedGradients, case: str) -> CaseResult:
    outputs = host.run(expected.tensors, expected.mode, mask=BOTH)
    more = () if outputs.used_wide else ("the kernel with 32-bit offsets was chosen",)
    return expected.judge(outputs, case, more=more)


_LAUNCHING = HostCases(HostBackward, ExpectedGradients.of)

# Address space far larger than memory tells the detectors nothing that small tensors do not, nor do many collisions.
SPECIAL: dict[str, Special] = {
    "non-finite coordinates": Special(3, non_finite_coordinates),
    "collisions": Special(1, collisions, watched=False),
    "int64 kernels": Special(2, _LAUNCHING.int64_kernels),
    "several launches": Special(3, _LAUNCHING.several_launches),
    "strides beyond 2**31": Special(4, strides_beyond_int32, watched=False),
}
