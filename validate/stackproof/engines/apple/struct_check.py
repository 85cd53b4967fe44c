"""Whether a header's structs have here the layout that Apple's compiler gave them.

Two readers of the header are compared with Apple's: our Metal front end, which compiles the kernels, and the parser
that fills the structs from Python. A probe kernel asks the front end for the offset and size of every field that
Apple's metadata names, so that a field too many, too few, moved or of another size shows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from patchstack.errors import PatchstackError
from stackproof.engines.apple.structs import KernelStruct, named
from stackproof.engines.metal.library import compile_written
from stackproof.engines.metal.struct_layout import StructLayout, StructTable


@dataclass(frozen=True)
class StructComparison:
    """One struct beside Apple's.

    Attributes:
        header: file in the tree that declares it.
        spelling: with template arguments.
        kernel: an Apple-compiled kernel that takes it.
        fields: how many were compared.
        readers: which of ours were compared: ``metal`` and ``python``.
        differences: one sentence each; empty when all are equal.
        not_compared: why a reader was left out, or the struct as a whole; empty when none was.
    """

    header: str
    spelling: str
    kernel: str
    fields: int
    readers: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    not_compared: str = ""


def compare_structs(
    headers: Mapping[str, bytes], root: Path, include_dirs: Sequence[Path], apple: Sequence[KernelStruct], cache: Path
) -> list[StructComparison]:
    """Compare every struct that both a header and Apple's kernels have.

    Args:
        headers: text of each header, by its path in the tree.
        root: folder that holds the tree's files at their paths.
        include_dirs: where its includes are found.
        apple: what the release has.
        cache: for compiled probes.
    """
    found = []
    for path, text in headers.items():
        table = StructTable(text)
        for one in named(apple, table.names()):
            found.append(_compare(one, path, table, root, include_dirs, cache))
    return found


def _compare(
    one: KernelStruct, path: str, table: StructTable, root: Path, include_dirs: Sequence[Path], cache: Path
) -> StructComparison:
    readers, differences, reasons = [], [], []
    try:
        differences += _python_differences(one, table)
        readers.append("python")
    except PatchstackError as error:
        reasons.append(f"python: {error}")
    try:
        differences += _metal_differences(one, root / path, include_dirs, cache)
        readers.append("metal")
    except PatchstackError as error:
        # The header has the struct, and Apple's has a field that this one has not: that is a difference.
        (differences if "no member" in str(error) else reasons).append(f"metal: {error.problem}")
    return StructComparison(
        path, one.spelling, one.kernel, len(one.layout.fields), tuple(readers), tuple(differences), "; ".join(reasons)
    )


def _python_differences(one: KernelStruct, table: StructTable) -> list[str]:
    arguments = [int(text) if text.isdigit() else text for text in one.arguments]
    return differences(one.layout, table.layout(one.name, *arguments), "python")


def differences(apple: StructLayout, ours: StructLayout, reader: str) -> list[str]:
    """How two layouts differ, a sentence for each field; the kind of a number counts only where Apple tells it."""
    expected = {field.path: field for field in apple.fields}
    found = {field.path: field for field in ours.fields}
    texts = [f"{reader}: {path} is not in Apple's" for path in found if path not in expected]
    for path, field in expected.items():
        own = found.get(path)
        if own is None:
            texts.append(f"{reader}: no field {path}")
        elif (own.offset, own.count) != (field.offset, field.count):
            texts.append(
                f"{reader}: {path} at byte {own.offset} x{own.count}, Apple's at {field.offset} x{field.count}"
            )
    if apple.size != ours.size:
        texts.append(f"{reader}: {ours.size} bytes, Apple's has {apple.size}")
    return texts


def _metal_differences(one: KernelStruct, header: Path, include_dirs: Sequence[Path], cache: Path) -> list[str]:
    fields = one.layout.fields
    library = compile_written(_probe(one, header), "layout.metal", include_dirs, cache=cache)
    out = torch.zeros(2 * len(fields) + 1, dtype=torch.int64)
    library.layout(out, threads=len(out))
    numbers = out.tolist()
    texts = []
    for i, field in enumerate(fields):
        offset, size = numbers[2 * i], numbers[2 * i + 1]
        wanted = field.count * struct.calcsize(f"<{field.code}")
        if (offset, size) != (field.offset, wanted):
            texts.append(f"metal: {field.path} at byte {offset} of {size}, Apple's at {field.offset} of {wanted}")
    if numbers[-1] != one.layout.size:
        texts.append(f"metal: {numbers[-1]} bytes, Apple's has {one.layout.size}")
    return texts


def _probe(one: KernelStruct, header: Path) -> str:
    """A kernel that writes offset and size of each field, and the size of the whole."""
    values = [
        value
        for field in one.layout.fields
        for value in (f"__builtin_offsetof(probed, {field.path})", f"sizeof(declval_probed().{field.path})")
    ]
    return f"""#include <metal_stdlib>
using namespace metal;
#include "{header}"
typedef {one.spelling} probed;
thread probed& declval_probed();
constant ulong numbers[] = {{{", ".join([*values, "sizeof(probed)"])}}};
kernel void layout(device ulong* out, uint i [[thread_position_in_grid]]) {{
  out[i] = numbers[i];
}}
"""
