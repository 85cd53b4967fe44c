"""Small modules in the form that Apple's compiler leaves, written here: one kernel that calls one ``air.*`` function.

Nothing of Apple's is in them: names of functions and the form of the metadata are facts about an interface.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from metal_kernels import cache
from skips import require_packages
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.metal import MetalLibrary, RunMode

HEADER = """target datalayout = "e-p:64:64:64"
target triple = "air64_v26-apple-macosx14.0.0"
"""
_NAMES = {
    "float": "float", "half": "half", "bfloat": "bfloat", "i1": "bool", "i8": "char", "i16": "short", "i32": "int",
    "i64": "long",
}  # fmt: skip
_BYTES = {"float": 4, "half": 2, "bfloat": 2, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")


@dataclass(frozen=True)
class Buffer:
    """A buffer parameter: LLVM type of its elements, and whether the kernel writes it."""

    name: str
    type_: str
    writable: bool = False
    space: int = 1


def require_llvmlite() -> None:
    """Skip the calling test module where the extra is not installed."""
    require_packages("llvmlite")


def metadata(kernel: str, buffers: Sequence[Buffer], attributes: Sequence[tuple[str, str]]) -> str:
    """``!air.kernel`` for buffers in order, then attributes as name and Metal type."""
    nodes = [f"!1 = !{{ptr @{kernel}, !2, !3}}", "!2 = !{}"]
    references = []
    for i, one in enumerate(buffers):
        scalar, lanes = _VECTOR.sub(r"\2", one.type_), _VECTOR.sub(r"\1", one.type_)
        name = _NAMES[scalar] + (lanes if lanes != one.type_ else "")
        count = 1 if lanes == one.type_ else 4 if lanes == "3" else int(lanes)
        size = _BYTES[scalar] * count
        access = "air.read_write" if one.writable else "air.read"
        nodes.append(
            f'!{10 + i} = !{{i32 {i}, !"air.buffer", !"air.location_index", i32 {i}, i32 1, !"{access}", '
            f'!"air.address_space", i32 {one.space}, !"air.arg_type_size", i32 {size}, '
            f'!"air.arg_type_align_size", i32 {size}, !"air.arg_type_name", !"{name}", !"air.arg_name", !"{one.name}"}}'
        )
        references.append(f"!{10 + i}")
    for j, (attribute, type_) in enumerate(attributes, len(buffers)):
        nodes.append(f'!{10 + j} = !{{i32 {j}, !"air.{attribute}", !"air.arg_type_name", !"{type_}"}}')
        references.append(f"!{10 + j}")
    return "\n".join(["!air.kernel = !{!1}", *nodes, f"!3 = !{{{', '.join(references)}}}", ""])


def kernel_module(
    kernel: str,
    buffers: Sequence[Buffer],
    body: str,
    declarations: Sequence[str] = (),
    *,
    attributes: Sequence[tuple[str, str]] = (("thread_position_in_grid", "uint"),),
    globals_: str = "",
) -> AirSource:
    """A module of one kernel.

    Args:
        kernel: its name.
        buffers: become ``%0``, ``%1`` ... of the function.
        body: instructions after ``%i``, the first attribute as i64, was computed; without the final ``ret``.
        declarations: ``RESULT @NAME(TYPES)`` of what it calls.
        attributes: become the parameters after the buffers.
        globals_: lines before the function.
    """
    parameters = [f"ptr addrspace({one.space}) %{i}" for i, one in enumerate(buffers)]
    parameters += [f"i32 %{len(buffers) + i}" for i in range(len(attributes))]
    first = len(buffers)
    text = (
        f"{HEADER}{globals_}\ndefine void @{kernel}({', '.join(parameters)}) {{\nentry:\n"
        f"  %i = zext i32 %{first} to i64\n{body}  ret void\n}}\n\n"
        + "".join(f"declare {one}\n" for one in declarations)
        + "\n"
        + metadata(kernel, buffers, attributes)
    )
    return AirSource.of_text(kernel, text)


def stored_type(type_: str) -> str:
    """How a value of this type lies in a buffer: bits as bytes."""
    return re.sub(r"\bi1\b", "i8", type_)


def call_module(kernel: str, function: str, result: str, arguments: Sequence[str], constants: str = "") -> AirSource:
    """``out[i] = FUNCTION(in0[i], in1[i], ...)``; ``constants`` are further arguments, written out."""
    buffers = [Buffer("out", stored_type(result), writable=True)]
    lines, values = [], []
    for n, type_ in enumerate(arguments):
        held = stored_type(type_)
        buffers.append(Buffer(f"in{n}", held))
        lines += [
            f"  %at{n} = getelementptr {held}, ptr addrspace(1) %{n + 1}, i64 %i",
            f"  %held{n} = load {held}, ptr addrspace(1) %at{n}, align {_BYTES[_VECTOR.sub(chr(92) + '2', held)]}",
        ]
        if held != type_:
            lines.append(f"  %in{n} = trunc {held} %held{n} to {type_}")
        values.append(f"{type_} {'%in' if held != type_ else '%held'}{n}")
    held = stored_type(result)
    passed = ", ".join([*values, *([constants] if constants else [])])
    lines += [
        f"  %result = tail call {result} @{function}({passed}) #1",
        *([f"  %wide = zext {result} %result to {held}"] if held != result else []),
        f"  %to = getelementptr {held}, ptr addrspace(1) %0, i64 %i",
        f"  store {held} {'%wide' if held != result else '%result'}, ptr addrspace(1) %to, align 1",
    ]
    types = [*arguments, *(part.split()[0] for part in constants.split(",") if part)]
    return kernel_module(kernel, buffers, "\n".join(lines) + "\n", [f"{result} @{function}({', '.join(types)})"])


@lru_cache
def compiled(sources: tuple[AirSource, ...], mode: RunMode = RunMode.PLAIN) -> MetalLibrary:
    """The library of some modules, once per session."""
    return compile_kernels(sources, mode, cache())
