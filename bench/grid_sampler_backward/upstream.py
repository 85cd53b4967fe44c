"""Upstream's own MPS kernels, as Apple compiled them for the macOS wheel, on the rows of pull request 179756.

    python upstream.py build FOLDER                         # any machine: the wheel's kernels to PTX
    python upstream.py measure FOLDER --out upstream.json   # the machine with the GPU

Upstream's host function fills grad_input with zeros, adds to it with one kernel and writes grad_grid with another. On
the smallest shape both gradients are compared with float64 on the CPU. FOLDER holds what Apple's compiler made of
upstream's source and of Apple's headers: it stays on the user's machines, and only times and errors are kept.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from loading import load_libraries
from matrix import difference

from stackproof.gates.bench.timing import Timing, clock_for
from stackproof.ops.grid_sampler.bench.passes import case_of
from stackproof.ops.grid_sampler.bench.rows import PR_SHAPES, Row, pr_rows
from stackproof.ops.grid_sampler.families.model import METAL_NAMES
from stackproof.ops.grid_sampler.fast.passes import Case, Library, Pass, bind

RELEASE = "2.13"
# Threads of a threadgroup: what change 1's kernel, of the same division of work, is measured with.
GROUP = 256
# Relative to the largest value. Upstream adds up 16-bit gradients in 16 bits.
ALLOWED = {torch.float32: 5e-5, torch.float16: 5e-3}
_LIBRARY = "upstream"
_GRADIENTS = ("grad_input", "grad_grid")


class ForwardParams(ctypes.Structure):
    """``GridSamplerParams<4>`` of the release."""

    _fields_ = (
        ("sampler_dims", ctypes.c_int32),
        ("output_sizes", ctypes.c_int32 * 4),
        ("output_strides", ctypes.c_int32 * 4),
        ("input_sizes", ctypes.c_int32 * 4),
        ("input_strides", ctypes.c_int32 * 4),
        ("grid_sizes", ctypes.c_int32 * 4),
        ("grid_strides", ctypes.c_int32 * 4),
        ("align_corners", ctypes.c_bool),
    )


class UpstreamParams(ctypes.Structure):
    """``GridSamplerBackwardParams<4>`` of the release."""

    _fields_ = (
        ("forward", ForwardParams),
        ("grad_output_strides", ctypes.c_int32 * 4),
        ("grad_input_strides", ctypes.c_int32 * 4),
        ("grad_grid_strides", ctypes.c_int32 * 4),
        ("padding_mode", ctypes.c_int32),
        ("interpolation_mode", ctypes.c_int32),
        ("compute_grad_input", ctypes.c_bool),
        ("compute_grad_grid", ctypes.c_bool),
    )


def places(kind: type[ctypes.Structure], prefix: str = "", base: int = 0) -> dict[str, tuple[int, int]]:
    """Offset and bytes of every field, those of inner structs included, by path."""
    found = {}
    for name, inner, *_ in kind._fields_:
        at = base + getattr(kind, name).offset
        if issubclass(inner, ctypes.Structure):
            found.update(places(inner, f"{prefix}{name}.", at))
        else:
            found[prefix + name] = (at, ctypes.sizeof(inner))
    return found


def kernel_names(interpolation: str, padding: str, dtype: torch.dtype) -> tuple[str, str]:
    """The kernels that add to grad_input and that write grad_grid; only those of bicubic are compiled by padding."""
    suffix = f"{f'_{padding}' if interpolation == 'bicubic' else ''}_i32_{METAL_NAMES[dtype]}"
    kinds = ("input", "grid")
    first, second = (f"grid_sampler_2d_backward_{interpolation}_{kind}{suffix}" for kind in kinds)
    return first, second


def needed_kernels(rows: Iterable[Row]) -> list[str]:
    """Every kernel that the rows need, in their order."""
    return list(dict.fromkeys(name for row in rows for name in kernel_names(row.interpolation, "zeros", row.dtype)))


def upstream_pass(library: Library, case: Case) -> Pass:
    """Prepare what upstream's host function runs; the buffers are made here, once.

    Both gradients are contiguous, whatever the layout of the input is.
    """
    device, dtype = case.input.device, case.input.dtype
    grad_input = torch.full(case.input.shape, torch.nan, dtype=dtype, device=device)
    grad_grid = torch.full(case.grid.shape, torch.nan, dtype=dtype, device=device)
    add_up, write = kernel_names(case.interpolation, case.padding, dtype)
    params = _params(case, grad_input, grad_grid)
    threads = {"threads": (case.grid.numel() // 2,), "group_size": (GROUP,)}
    steps = (
        lambda: grad_input.zero_(),
        bind(library, add_up, grad_input, case.grad_output, case.grid, params, **threads),
        bind(library, write, grad_grid, case.grad_output, case.input, case.grid, params, **threads),
    )
    return Pass(steps, grad_input, grad_grid)


def _params(case: Case, grad_input: torch.Tensor, grad_grid: torch.Tensor) -> UpstreamParams:
    params = UpstreamParams(
        padding_mode=int(case.mode.padding),
        interpolation_mode=int(case.mode.interpolation),
        compute_grad_input=True,
        compute_grad_grid=True,
    )
    params.forward.sampler_dims = case.dimensions
    params.forward.align_corners = case.align_corners
    for name, tensor in (("output", case.grad_output), ("input", case.input), ("grid", case.grid)):
        getattr(params.forward, f"{name}_sizes")[:] = tensor.shape
        getattr(params.forward, f"{name}_strides")[:] = tensor.stride()
    params.grad_output_strides[:] = case.grad_output.stride()
    params.grad_input_strides[:] = grad_input.stride()
    params.grad_grid_strides[:] = grad_grid.stride()
    return params


def errors(work: Pass, case: Case) -> dict[str, float]:
    """By gradient, the largest difference from float64 on the CPU, relative to the largest value."""
    on_cpu = replace(case, grad_output=case.grad_output.cpu(), input=case.input.cpu(), grid=case.grid.cpu())
    pairs = zip(_GRADIENTS, work(), on_cpu.reference(torch.float64), strict=True)
    return {name: difference(found.cpu(), right) for name, found, right in pairs}


def build(folder: Path) -> int:
    """Translate the kernels of the release's wheel into ``folder``, the library's folder inside of it.

    Raises:
        SystemExit: the wheel is not to be had, or its kernels take other parameters.
    """
    # Not on the machine with the GPU, which has nothing but PyTorch.
    from patchstack.cache import cache_dir
    from patchstack.errors import PatchstackError
    from patchstack.reference.progress import on_standard_error
    from stackproof.engines.apple.build import AirSource
    from stackproof.engines.apple.ptx import compile_ptx_kernels
    from stackproof.engines.apple.release import release_library

    names = needed_kernels(pr_rows())
    try:
        release = release_library(RELEASE, progress=on_standard_error)
        sources = [AirSource.of(release, name) for name in names]
        layouts = [one.kernel().struct("params") for one in sources]
        made = compile_ptx_kernels(sources, cache_dir())
    except PatchstackError as error:
        raise SystemExit(str(error)) from None
    for name, layout in zip(names, layouts, strict=True):
        theirs = {one.path: (one.offset, struct.calcsize(f"={one.count}{one.code}")) for one in layout.fields}
        if (layout.size, theirs) != (ctypes.sizeof(UpstreamParams), places(UpstreamParams)):
            raise SystemExit(f"{name}: {layout.name} is not what UpstreamParams fills: {layout.size} bytes, {theirs}")
    target = folder / _LIBRARY
    target.mkdir(parents=True, exist_ok=True)
    for file in ("library.ptx", "build.json"):
        shutil.copyfile(made / file, target / file)
    print(f"{len(names)} kernels of {RELEASE} compiled into {target}")
    return 0


@dataclass(frozen=True)
class Measured:
    """One row: its time, and its errors by gradient where they were looked at."""

    row: Row
    timing: Timing
    errors: dict[str, float]

    @property
    def is_right(self) -> bool:
        """Its errors are within what is allowed."""
        return all(error <= ALLOWED[self.row.dtype] for error in self.errors.values())


def run(library: Library, row: Row) -> Measured:
    """Measure one row, and compare its gradients if it is small."""
    case = case_of(row, "cuda")
    work = upstream_pass(library, case)
    found = errors(work, case) if row.shape == PR_SHAPES[0] else {}
    return Measured(row, clock_for("cuda").measure(work), found)


def measure_rows(folder: Path, out: Path) -> int:
    """Measure every row; 0 if all gradients that were compared are right."""
    library = load_libraries(folder, _LIBRARY, command="upstream.py build")
    measured = []
    for row in pr_rows():
        one = run(library, row)
        measured.append(one)
        shown = "".join(f", {name} {error:.1e}" for name, error in one.errors.items())
        print(f"{'' if one.is_right else 'WRONG '}{row.label}: {one.timing.median:.3f} ms{shown}", flush=True)
        torch.cuda.empty_cache()
    content = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "release": RELEASE,
        "milliseconds": {one.row.label: one.timing.median for one in measured},
        "spread": {one.row.label: (one.timing.low, one.timing.high) for one in measured},
        "errors": {one.row.label: one.errors for one in measured if one.errors},
    }
    out.write_text(json.dumps(content, indent=1) + "\n")
    return 0 if all(one.is_right for one in measured) else 1


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("folder", type=Path)
    measuring = commands.add_parser("measure")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.command == "build":
        return build(arguments.folder)
    return measure_rows(arguments.folder, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
