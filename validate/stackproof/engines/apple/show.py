"""A kernel's parameters and layouts, as lines for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from stackproof.engines.apple.model import AirKernel, AirParameter

_SPACES = {1: "device", 2: "constant", 3: "threadgroup"}


def kernel_lines(kernel: AirKernel) -> Iterator[str]:
    """What ``apple-kernels show`` prints."""
    yield kernel.name
    yield f"  {kernel.language}, {kernel.compiler}, {', '.join(kernel.compile_options)}"
    if kernel.max_threads:
        yield f"  at most {kernel.max_threads} threads in a threadgroup"
    for one in kernel.parameters:
        yield f"  {_parameter(one)}"
        if one.layout is not None:
            for leaf in one.layout.leaves():
                count = f"[{leaf.count}]" if leaf.count > 1 else ""
                yield f"      {leaf.offset:>5}  {leaf.type_name}{count} {leaf.path}"
    yield f"  calls {', '.join(kernel.intrinsics) or 'no air functions'}"


def _parameter(one: AirParameter) -> str:
    if one.attribute:
        return f"[{one.attribute}]  {one.type_name} {one.name}".rstrip()
    access = "writes" if one.writable else "reads"
    extent = f"{one.buffer_size} bytes" if one.buffer_size else f"elements of {one.size} bytes"
    notes = ", ".join([access, extent, *([] if one.used else ["unused"])])
    return f"[{_SPACES.get(one.address_space, '?')} {one.location}]  {one.type_name} {one.name} ({notes})"


def kernel_as_json(kernel: AirKernel) -> dict[str, Any]:
    """The same and more, for ``--json``."""
    parameters = []
    for one in kernel.parameters:
        plain = asdict(one)
        plain["address_space"] = _SPACES.get(one.address_space, "")
        plain["layout"] = None if one.layout is None else [asdict(leaf) for leaf in one.layout.leaves()]
        parameters.append(plain)
    return {
        "name": kernel.name,
        "parameters": parameters,
        "max_threads": kernel.max_threads,
        "compile_options": list(kernel.compile_options),
        "compiler": kernel.compiler,
        "language": kernel.language,
        "intrinsics": list(kernel.intrinsics),
    }
