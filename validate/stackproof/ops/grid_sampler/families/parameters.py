"""Values for the parameters of upstream's kernels, whichever fields a release's struct has.

Upstream's fields are named after what they hold: ``input_sizes`` are the sizes of the tensor ``input``.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from patchstack.errors import PatchstackError
from stackproof.engines.metal.struct_layout import StructLayout, Value
from stackproof.ops.grid_sampler.modes import Interpolation, Mode


def parameter_values(
    layout: StructLayout, mode: Mode, shapes: Mapping[str, Tensor], *, compute_grad_input: bool = True
) -> dict[str, Value]:
    """A value for every field of a struct.

    Args:
        layout: of the struct; those of nested structs count by their own names.
        mode: how to sample.
        shapes: tensors by the name that the fields have for them.
        compute_grad_input: the mask.

    Raises:
        PatchstackError: a field that says nothing about a tensor or a mode that is known here.
    """
    plain: dict[str, Value] = {
        "sampler_dims": shapes["grid"].shape[-1],
        "align_corners": mode.align_corners,
        "padding_mode": int(mode.padding),
        "interpolation_mode": int(mode.interpolation),
        "compute_grad_input": compute_grad_input,
        "compute_grad_grid": mode.interpolation is not Interpolation.NEAREST,
    }
    values: dict[str, Value] = {}
    for one in layout.fields:
        name = one.path.rpartition(".")[2]
        tensor, _, what = name.rpartition("_")
        if name in plain:
            values[one.path] = plain[name]
        elif tensor in shapes and what in ("sizes", "strides"):
            values[one.path] = tuple(shapes[tensor].shape if what == "sizes" else shapes[tensor].stride())
        else:
            raise PatchstackError("a field of the struct is not known", where=layout.name, found=one.path)
    return values
