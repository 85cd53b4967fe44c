"""The kernels of the series' fast backward: several lanes per position, between transposes to channels last.

They are no family that a tree has instead of another one: the host functions of the tree's own family call a hook
first, and it leaves calls to them. Which kernels a call gets, over which grids, is planned in
:mod:`stackproof.ops.grid_sampler.fast`, for this proof and for the benchmark alike.
"""

from __future__ import annotations

from collections.abc import Collection

from stackproof.engines.kernels import KernelFunction, Kernels
from stackproof.ops.grid_sampler.families.model import BackwardCall, Outputs, params_layout
from stackproof.ops.grid_sampler.fast.division import choose
from stackproof.ops.grid_sampler.fast.launches import Launch, Plan, Planner
from stackproof.ops.grid_sampler.modes import Mode, Sampler
from stackproof.ops.grid_sampler.tensors import SamplerTensors


def has_lanes(names: Collection[str], sampler: Sampler) -> bool:
    """Whether a library with kernels of these names has those of the hook for a sampler."""
    return any(name.startswith(f"{sampler.backward}_lanes_") for name in names)


def fits_lanes(tensors: SamplerTensors, mode: Mode, *, compute_grad_input: bool = True) -> bool:
    """Whether the hook takes a call, in a tree that has it."""
    return choose(tensors, mode, compute_grad_input=compute_grad_input) is not None


def run_lanes(call: BackwardCall) -> Outputs:
    """Both gradients of a call that the hook takes, as ``grid_sampler_backward_lanes`` of the overlay."""
    plan = _planned(call)
    for step in plan.steps:
        if isinstance(step, Launch):
            _launch(call.kernels, step, plan)
        else:
            step.tensor.zero_()
    mask_kept = call.compute_grad_input or bool((plan.sums == 0).all())
    # Offsets within an image are in 32 bits, as the hook only takes images that they fit; those of images in 64.
    return Outputs(plan.grad_input, plan.grad_grid, mask_kept, used_wide=True)


def _planned(call: BackwardCall) -> Plan:
    headers = call.kernels.headers
    planner = Planner(
        lambda name, *arguments: params_layout(headers, name, *arguments), threads_per_launch=call.positions_per_launch
    )
    compute, grad_grid = call.compute_grad_input, call.grad_grid
    division = choose(call.tensors, call.mode, compute_grad_input=compute)
    assert division is not None
    return planner.plan(call.tensors, call.mode, division, compute_grad_input=compute, grad_grid=grad_grid)


def _launch(kernels: Kernels, launch: Launch, plan: Plan) -> None:
    # A launch of several leaves the others' part of the output alone, which the detectors would take for a fault.
    if sum(one.kernel == launch.kernel for one in plan.launches) == 1:
        kernels.mark_undefined(launch.arguments[0 if "channels_last" in launch.kernel else 1])
    kernel: KernelFunction = getattr(kernels.library, launch.kernel)
    kernel(*launch.arguments, threads=launch.threads, group_size=launch.group_size)
