"""The 3D forward that PyTorch had until April 2026: one thread per output element, bilinear only, 32-bit offsets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from stackproof.ops.grid_sampler.families.model import METAL_NAMES, ForwardCall, params_layout
from stackproof.ops.grid_sampler.families.parameters import parameter_values
from stackproof.ops.grid_sampler.modes import Interpolation, Padding, Sampler


class Index32Forward:
    """Implements :class:`stackproof.ops.grid_sampler.families.model.ForwardFamily`."""

    splits_launches: Final = False

    def is_among(self, names: Collection[str], sampler: Sampler) -> bool:
        return any(_name(sampler, Padding.ZEROS, metal) in names for metal in METAL_NAMES.values())

    def run(self, call: ForwardCall) -> bool:
        """Write the output.

        Raises:
            LookupError: there is no such kernel, since other interpolations came later.
        """
        tensors, output = call.tensors, call.output
        name = _name(call.sampler, call.mode.padding, METAL_NAMES[tensors.input.dtype])
        if call.mode.interpolation is not Interpolation.BILINEAR or name not in dir(call.kernels.library):
            raise LookupError(f"no kernel {name} for {call.mode.interpolation.name.lower()}")
        layout = params_layout(call.kernels.headers, "GridSamplerParams", tensors.dims + 2, "int32_t")
        shapes = {"output": output, "input": tensors.input, "grid": tensors.grid}
        kernel = getattr(call.kernels.library, name)
        params = layout.pack(parameter_values(layout, call.mode, shapes))
        kernel(output, tensors.input, tensors.grid, params, threads=output.numel())
        return False


def _name(sampler: Sampler, padding: Padding, metal: str) -> str:
    return f"{sampler.forward}_{padding.name.lower()}_{metal}"
