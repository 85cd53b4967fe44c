"""Turns Python arguments into what a kernel's buffers hold."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stackproof.engines.errors import CallError
from stackproof.engines.metal.model import ElementType, Parameter, ParameterKind, Signature
from stackproof.engines.metal.native import RawOptions

_ALIGNMENT = 256
_FORMATS = {
    ("f", 4): "f",
    ("f", 2): "e",
    ("i", 1): "b",
    ("i", 2): "h",
    ("i", 4): "i",
    ("i", 8): "q",
    ("u", 1): "B",
    ("u", 2): "H",
    ("u", 4): "I",
    ("u", 8): "Q",
    ("?", 1): "?",
}
_CASTS = {
    "fp32": ("f", 4),
    "fp16": ("f", 2),
    "bf16": ("b", 2),
    "int8": ("i", 1),
    "int16": ("i", 2),
    "int32": ("i", 4),
    "int64": ("i", 8),
    "uint8": ("u", 1),
    "uint16": ("u", 2),
    "uint32": ("u", 4),
    "uint64": ("u", 8),
    "bool": ("?", 1),
}


@dataclass(frozen=True)
class Argument:
    """One buffer as the kernel gets it.

    Attributes:
        parameter: the parameter it is bound to.
        address: of its first byte.
        tensor: the tensor behind it, if it is one.
        constant: the packed bytes, if it is not; kept alive here.
        size: bytes of ``constant``.
    """

    parameter: Parameter
    address: int
    tensor: torch.Tensor | None = None
    constant: Any = None
    size: int = 0


@dataclass(frozen=True)
class PackedArguments:
    """All arguments of one call.

    Attributes:
        arguments: buffers and threadgroup memory in declaration order; threadgroup memory has address 0.
        threadgroup_sizes: bytes for each of ``arguments``, 0 for buffers.
        default_threads: elements of the first tensor.
    """

    arguments: tuple[Argument, ...]
    threadgroup_sizes: tuple[int, ...]
    default_threads: int
    _keep: list[Any] = field(default_factory=list, repr=False, compare=False)

    def addresses(self) -> list[int]:
        """The addresses, in declaration order."""
        return [argument.address for argument in self.arguments]

    def options(self) -> RawOptions:
        """Fresh options with the threadgroup sizes filled in."""
        sizes = (ctypes.c_uint64 * (len(self.threadgroup_sizes) + 1))(*self.threadgroup_sizes)
        self._keep.append(sizes)
        options = RawOptions()
        options.threadgroup_sizes = sizes
        options.argument_count = len(self.threadgroup_sizes)
        return options


def pack(
    signature: Signature,
    args: Sequence[Any],
    casts: str | Sequence[str | None] | Mapping[int, str] | None,
    threadgroup_memory: Mapping[int, int],
    device: str = "cpu",
) -> PackedArguments:
    """Bind ``args`` to the buffers of a kernel by index; tensors must be on ``device``, constants are packed in host
    memory whatever it is.

    Raises:
        CallError: a number of arguments or a type that does not fit.
    """
    buffers = signature.buffers
    if len(args) != len(buffers):
        raise CallError(
            "wrong number of arguments",
            where=signature.kernel,
            expected=f"{len(buffers)} ({', '.join(p.name or p.declaration for p in buffers)})",
            found=str(len(args)),
        )
    bound = {
        p.position: _bind(p, value, _cast_of(casts, i), device)
        for i, (p, value) in enumerate(zip(buffers, args, strict=True))
    }
    arguments, sizes = [], []
    for parameter in signature.parameters:
        if parameter.kind is ParameterKind.THREADGROUP:
            arguments.append(Argument(parameter, 0))
            sizes.append(_threadgroup_size(signature, parameter, threadgroup_memory))
        elif parameter.kind is not ParameterKind.ATTRIBUTE:
            arguments.append(bound[parameter.position])
            sizes.append(0)
    first = next((a.numel() for a in args if isinstance(a, torch.Tensor)), 1)
    return PackedArguments(tuple(arguments), tuple(sizes), first)


def _threadgroup_size(signature: Signature, parameter: Parameter, sizes: Mapping[int, int]) -> int:
    if parameter.index not in sizes:
        raise CallError(
            f"no size for threadgroup memory {parameter.index}",
            where=signature.kernel,
            expected=f"threadgroup_memory={{{parameter.index}: bytes}}",
        )
    return sizes[parameter.index]


def _cast_of(casts: str | Sequence[str | None] | Mapping[int, str] | None, index: int) -> str | None:
    if casts is None or isinstance(casts, str):
        return casts
    if isinstance(casts, Mapping):
        return casts.get(index)
    return casts[index] if index < len(casts) else None


def _bind(parameter: Parameter, value: Any, cast: str | None, device: str) -> Argument:
    if isinstance(value, torch.Tensor):
        if value.device.type != device:
            raise CallError(
                "the tensor is on another device", where=parameter.name, expected=device, found=value.device.type
            )
        if value.is_complex() and value.is_conj():
            raise CallError(
                "a lazily conjugated tensor has no memory of its own",
                where=parameter.name,
                next_command="resolve_conj()",
            )
        if value.numel() or value.untyped_storage().nbytes():
            return Argument(parameter, value.data_ptr(), tensor=value)
        return _constant(parameter, bytes(16))  # an empty tensor: never to be touched, but not null
    element = parameter.element
    assert element is not None
    if isinstance(value, (bytes, bytearray, memoryview, ctypes.Structure)):
        return _constant(parameter, bytes(value))
    numbers = list(_flat(value))
    return _constant(parameter, _numbers(parameter, numbers, element, cast))


def _flat(value: Any) -> list[bool | int | float]:
    if isinstance(value, (bool, int, float)):
        return [value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [number for item in value for number in _flat(item)]
    raise CallError(
        "cannot pass this to a kernel", expected="a tensor, number, list or bytes", found=type(value).__name__
    )


def _numbers(
    parameter: Parameter, numbers: Sequence[bool | int | float], element: ElementType, cast: str | None
) -> bytes:
    number, size, name = element.number, element.part, parameter.name or parameter.declaration
    if cast is not None:
        if cast not in _CASTS:
            raise CallError("unknown cast", where=name, expected=", ".join(_CASTS), found=cast)
        number, size = _CASTS[cast]
    elif "void" in parameter.declaration.split():
        number, size = ("f", 4) if any(isinstance(n, float) for n in numbers) else ("i", 8)
    if not number:
        raise CallError("numbers cannot fill a struct", where=name, expected="bytes, for example of struct.pack")
    if len(numbers) % element.lanes:
        raise CallError(
            "wrong number of components", where=name, expected=f"a multiple of {element.lanes}", found=str(len(numbers))
        )
    if element.whole > element.lanes * element.part:
        lanes = element.lanes
        numbers = [one for i in range(0, len(numbers), lanes) for one in (*numbers[i : i + lanes], 0)]
    if number == "b":
        return torch.tensor(numbers, dtype=torch.bfloat16).view(torch.uint8).numpy().tobytes()
    values = [float(n) for n in numbers] if number == "f" else [int(n) for n in numbers]
    try:
        return struct.pack(f"={len(values)}{_FORMATS[number, size]}", *values)
    except (struct.error, OverflowError) as error:
        raise CallError("number out of range", where=name, found=f"{numbers} ({error})") from error


def _constant(parameter: Parameter, data: bytes) -> Argument:
    """Bytes in memory of their own, aligned as the GPU's buffers are."""
    assert parameter.element is not None
    size = max(len(data), parameter.element.size if parameter.reference else 1)
    if parameter.reference and len(data) < parameter.element.size:
        raise CallError(
            "too few bytes",
            where=parameter.name or parameter.declaration,
            expected=str(parameter.element.size),
            found=str(len(data)),
        )
    room = ctypes.create_string_buffer(size + 2 * _ALIGNMENT)
    address = (ctypes.addressof(room) + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    ctypes.memmove(address, data, len(data))
    return Argument(parameter, address, constant=room, size=size)
