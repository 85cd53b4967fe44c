"""Tensors with more elements than 32 bits can count: does the arithmetic of a kernel wrap around?

Such tensors are only mapped, never filled, and a few threadgroups are run, the last among them. What a kernel computes
is not looked at. A line whose unsigned arithmetic wraps around there, and nowhere in a small call, is an offset that is
too narrow. Where the host function refuses the size, or copies the tensor first, nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from stackproof.engines.standin.device import StandinDevice
from stackproof.gates.op_run.compared import attempted, on_device
from stackproof.gates.op_run.recorded import Call
from stackproof.model import Finding
from stackproof.ops.scenarios import HostCase

LONG = 2**16 + 1
"""Length of each of two dimensions: their product needs 33 bits."""
_GROUPS, _CALLS, _PAIRS, _TRIED = 6, 2, 4, 40
_MOST_BYTES = 36 * 2**30


def large_cases(calls: Sequence[Call], device: StandinDevice) -> Iterator[HostCase]:
    """A case for each way to make some tensor of a call large; findings are left with the device."""
    done = 0
    for call in _richest(calls):
        if done == _CALLS:
            return
        launched = len(device.launches)
        usual = _wraps(call, device, groups=0)
        if len(device.launches) == launched:
            continue  # it leaves the kernels out
        done += 1
        for name, large in islice(_grown(call), _PAIRS):
            device.begin(f"{call.source}, {name}")
            found = {place: one for place, one in _wraps(large, device, groups=_GROUPS).items() if place not in usual}
            device.findings += [
                replace(one, rule="wraps", message=f"{one.message}, for a tensor of 2^32 elements and more")
                for one in found.values()
            ]
            yield HostCase(f"{call.source}, {name}")


def _richest(calls: Sequence[Call]) -> list[Call]:
    """Calls by how many sizes they have, those with most first."""
    filled = [one for one in calls if all(tensor.numel() for tensor in one.tensors)]
    return sorted(filled, key=lambda call: -len({size for one in call.tensors for size in one.shape}))[:_TRIED]


def _grown(call: Call) -> Iterator[tuple[str, Call]]:
    """The call with two dimensions of one of its tensors grown, and all that have the same size."""
    pairs: dict[tuple[int, int], None] = {}
    for tensor in call.tensors:
        sizes = [size for size in tensor.shape if size > 1]
        pairs |= {(one, two): None for at, one in enumerate(sizes) for two in sizes[at + 1 :]}
    for pair in pairs:
        shapes = [tuple(LONG if size in pair else size for size in tensor.shape) for tensor in call.tensors]
        if all(_bytes(shape, tensor) <= _MOST_BYTES for shape, tensor in zip(shapes, call.tensors, strict=True)):
            grown = _with_shapes(call, pair)
            if _is_possible(grown):
                yield f"dimensions of {pair[0]} and {pair[1]} grown to {LONG}", grown


def _bytes(shape: tuple[int, ...], tensor: Tensor) -> int:
    total = tensor.element_size()
    for size in shape:
        total *= size
    return total


def _with_shapes(call: Call, pair: tuple[int, int]) -> Call:
    def one(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return torch.empty([LONG if size in pair else size for size in value.shape], dtype=value.dtype, device="meta")

    return call.mapped(one)


def _is_possible(call: Call) -> bool:
    """Whether the shapes go together, as far as the op has a function for shapes alone."""
    found, why = attempted(call.run)
    return found is not None or why.startswith("NotImplementedError")


def _wraps(call: Call, device: StandinDevice, groups: int) -> dict[tuple[str, int], Finding]:
    """The places where unsigned arithmetic wraps around."""

    def made(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_meta:
            return value
        return torch.zeros(value.shape, dtype=value.dtype, device="mps")

    known = len(device.findings)
    device.wraps_in = groups
    try:
        args, kwargs = tree_map(made, on_device((call.args, call.kwargs)) if groups == 0 else (call.args, call.kwargs))
        attempted(replace(call, args=tuple(args), kwargs=kwargs).run)
    finally:
        device.wraps_in = None
    noticed, device.findings[known:] = device.findings[known:], []
    return {(one.path, one.line): one for one in noticed if "unsigned overflow" in one.message}
