"""The kernels of the series' fast backward: a thread or several lanes per position, around which layouts change.

Which kernels a call gets, over which grids, is planned in :mod:`stackproof.ops.grid_sampler.fast`, for this proof and
for the benchmark alike.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from stackproof.ops.grid_sampler.families.model import BackwardCall, Outputs, params_layout
from stackproof.ops.grid_sampler.fast.division import POSITIONS, choose
from stackproof.ops.grid_sampler.fast.launches import Launch, Plan, Planner, Zero
from stackproof.ops.grid_sampler.modes import Sampler
from stackproof.ops.model import KernelFunction, Kernels


class FastBackward:
    """Implements :class:`stackproof.ops.grid_sampler.families.model.BackwardFamily`."""

    splits_launches: Final = True

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        return any(name.startswith(f"{sampler.backward}_lanes_") for name in names)

    def run(self, call: BackwardCall) -> Outputs:
        """As ``grid_sampler_gradients`` of the overlay's layer ``grid_sampler_fast_backward``."""
        plan = _planned(call)
        for step in plan.steps:
            if isinstance(step, Launch):
                _launch(call.kernels, step, plan)
            elif isinstance(step, Zero):
                step.tensor.zero_()
            else:
                step.target.copy_(step.source)
        mask_kept = call.compute_grad_input or bool((plan.sums == 0).all())
        wide = any(launch.kernel.endswith("_int64") for launch in plan.launches) or not plan.launches
        return Outputs(plan.grad_input, plan.grad_grid, mask_kept, wide)


def _planned(call: BackwardCall) -> Plan:
    headers = call.kernels.headers
    planner = Planner(
        lambda name, *arguments: params_layout(headers, name, *arguments),
        always_wide=call.always_wide,
        threads_per_launch=call.positions_per_launch,
        empty=call.zeros,
    )
    division = POSITIONS if call.always_wide else choose(call.tensors, call.mode)
    compute, grad_grid = call.compute_grad_input, call.grad_grid
    return planner.plan(call.tensors, call.mode, division, compute_grad_input=compute, grad_grid=grad_grid)


def _launch(kernels: Kernels, launch: Launch, plan: Plan) -> None:
    # A launch of several leaves the others' part of the output alone, which the detectors would take for a fault.
    if sum(one.kernel == launch.kernel for one in plan.launches) == 1:
        kernels.mark_undefined(launch.arguments[0 if "channels_last" in launch.kernel else 1])
    kernel: KernelFunction = getattr(kernels.library, launch.kernel)
    kernel(*launch.arguments, threads=launch.threads, group_size=launch.group_size)
