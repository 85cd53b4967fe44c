"""Whether a dispatch fits the kernel it launches: what Metal's validation layer would say, and what it would not.

Everything here is decided from the kernel's own signature, as the compiler of the kernels sees it, and the argument
table of the encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from stackproof.engines.metal.launches import launch_problems
from stackproof.engines.metal.model import ElementType, Parameter, ParameterKind, Signature
from stackproof.engines.standin.interface import NO_DTYPE, Dispatch, Slot, SlotKind

_LAUNCH = "threadgroup-size"
_MAX_GRID = 2**32 - 1
_CONSTANT_ALIGNMENT = 4

# Numbers of c10::ScalarType; torch has no function that gives them.
DTYPES: dict[int, torch.dtype] = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
    8: torch.complex32, 9: torch.complex64, 11: torch.bool, 15: torch.bfloat16,
}  # fmt: skip
_NUMBERS: dict[torch.dtype, tuple[str, int]] = {
    torch.uint8: ("u", 1), torch.int8: ("i", 1), torch.int16: ("i", 2), torch.int32: ("i", 4), torch.int64: ("i", 8),
    torch.float16: ("f", 2), torch.float32: ("f", 4), torch.bfloat16: ("b", 2), torch.bool: ("?", 1),
    torch.complex32: ("f", 2), torch.complex64: ("f", 4),
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What is wrong with a dispatch.

    Attributes:
        rule: short stable name.
        message: one sentence without the kernel's name.
        refused: the kernel must not be run like this.
    """

    rule: str
    message: str
    refused: bool = False


def check_dispatch(signature: Signature, dispatch: Dispatch) -> list[Problem]:
    """Everything that is wrong, the worst not first."""
    problems = [*_extent_problems(dispatch)]
    lengths = {p.index: dispatch.threadgroup_memory[p.index] for p in signature.threadgroup_memory}
    if 0 not in dispatch.grid:  # of a grid without threads, the group follows
        problems += [Problem(_LAUNCH, one, refused=True) for one in launch_problems(signature, dispatch.group, lengths)]
    for parameter in signature.buffers:
        problems += _argument_problems(parameter, dispatch)
    problems += _surplus(signature, dispatch)
    for parameter in signature.threadgroup_memory:
        if not dispatch.threadgroup_memory[parameter.index]:
            what = f"threadgroup memory {parameter.index} ({_name(parameter)}) has no length"
            problems.append(Problem("argument-missing", what, refused=True))
    return problems


def _extent_problems(dispatch: Dispatch) -> Iterator[Problem]:
    if 0 in dispatch.grid:
        yield Problem("empty-grid", f"the grid {dispatch.grid} has no threads, which Metal refuses", refused=True)
    if max(dispatch.grid) > _MAX_GRID:
        yield Problem("grid-size", f"the grid {dispatch.grid} does not fit into 32 bits", refused=True)


def _name(parameter: Parameter) -> str:
    return parameter.name or parameter.declaration


def _argument_problems(parameter: Parameter, dispatch: Dispatch) -> Iterator[Problem]:
    slot = dispatch.slots[parameter.index]
    what = f"argument {parameter.index} ({_name(parameter)})"
    if slot.kind is SlotKind.UNSET:
        yield Problem("argument-missing", f"{what} was never bound", refused=True)
        return
    if slot.stale:
        yield Problem("stale-binding", f"{what} was bound for an earlier kernel and not for this one")
    if slot.kind is SlotKind.NIL:
        if parameter.reference:
            yield Problem("argument-missing", f"{what} is bound to nil, but the kernel reads it", refused=True)
        return
    element = parameter.element
    assert element is not None
    yield from _size_problems(parameter, slot, element, what)
    yield from _type_problems(parameter, dispatch, element, what)
    written = parameter.kind is ParameterKind.DEVICE and not parameter.read_only
    if written and slot.kind is SlotKind.BYTES:
        yield Problem("argument-type", f"{what} is written by the kernel, but was bound by value")


def _size_problems(parameter: Parameter, slot: Slot, element: ElementType, what: str) -> Iterator[Problem]:
    if parameter.reference and slot.available < element.size:
        found = f"{what} has {slot.available} bytes, the kernel reads {element.size}"
        yield Problem("argument-size", found, refused=True)
    elif slot.kind is SlotKind.BYTES and parameter.reference and slot.available != element.size:
        yield Problem("argument-size", f"{what} was bound with {slot.available} bytes, the kernel has {element.size}")
    elif slot.kind is SlotKind.BYTES and slot.available % element.size:
        found = f"{what} was bound with {slot.available} bytes, no multiple of the kernel's {element.size}"
        yield Problem("argument-size", found)
    alignment = element.alignment
    if parameter.kind is ParameterKind.CONSTANT:
        alignment = max(alignment, _CONSTANT_ALIGNMENT)
    if slot.kind is SlotKind.BUFFER and slot.offset % alignment:
        found = f"{what} begins at byte {slot.offset}, Metal wants a multiple of {alignment} there"
        yield Problem("argument-alignment", found)


def _type_problems(parameter: Parameter, dispatch: Dispatch, element: ElementType, what: str) -> Iterator[Problem]:
    slot = dispatch.slots[parameter.index]
    if slot.kind is not SlotKind.BUFFER or _fits(slot, element):
        return
    # Metal wants a buffer in every slot. One that is an argument of its own type already is a filler, not a mistake.
    others = (*dispatch.slots[: parameter.index], *dispatch.slots[parameter.index + 1 :])
    if any(other.buffer == slot.buffer for other in others if other.kind is slot.kind):
        return
    yield Problem("argument-type", f"{what} is a tensor of {DTYPES[slot.dtype]}, the kernel takes {_shown(element)}")


def _fits(slot: Slot, element: ElementType) -> bool:
    dtype = DTYPES.get(slot.dtype)
    if slot.dtype == NO_DTYPE or dtype is None or not element.number:
        return True
    number, size = _NUMBERS[dtype]
    same_kind = number == element.number or {number, element.number} <= {"?", "u", "i"}
    return same_kind and element.part == size and (not dtype.is_complex or element.lanes == 2)


_SHOWN = {"f": "float", "b": "bfloat", "i": "int", "u": "uint", "?": "bool"}


def _shown(element: ElementType) -> str:
    return f"{_SHOWN[element.number]}{element.part * 8}" + (f" x {element.lanes}" if element.lanes > 1 else "")


def _surplus(signature: Signature, dispatch: Dispatch) -> Iterator[Problem]:
    taken = {parameter.index for parameter in signature.buffers}
    for index, slot in enumerate(dispatch.slots):
        if slot.kind is not SlotKind.UNSET and not slot.stale and index not in taken:
            yield Problem("argument-surplus", f"something was bound at index {index}, where the kernel takes nothing")
