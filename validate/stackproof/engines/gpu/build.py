"""Compiles a Metal source to PTX, on any machine: no CUDA toolkit, no GPU.

The front end is the host's, with three headers replaced (``include/``). Clang's intermediate code is edited before it
is optimised: NVIDIA's constant memory is not what Metal means by ``constant``, and C++ for OpenCL cannot declare
shared memory outside of a kernel. Signatures, with the sizes of what is behind each pointer, come from the host build
and lie beside the PTX, so that a folder is all that the machine with the GPU needs.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from patchstack.cache import write_whole
from stackproof.engines.errors import CompileError
from stackproof.engines.metal.build import LANGUAGE, Source, compile_source, preprocess, rewrite
from stackproof.engines.metal.model import ElementType, Parameter, ParameterKind, RunMode, Signature
from stackproof.engines.metal.native import load
from stackproof.engines.metal.toolchain import INCLUDE, digest, failure, find_toolchain, headers_digest

GPU_INCLUDE = Path(__file__).resolve().parent / "include"
_QUIET = "-Wno-everything"
_FRONT = (
    *LANGUAGE,
    "-Xclang",
    "-cl-ext=+__opencl_c_program_scope_global_variables",
    "-fno-math-errno",
    "-ffp-contract=on",
    "-O3",
    "-Xclang",
    "-disable-llvm-passes",
    "-S",
    "-emit-llvm",
)
# As GPU compilers do, everything is inlined: a call would pass structs through local memory.
_BACK = ("-x", "ir", "-O3", "-S", "-fno-crash-diagnostics", "-mllvm", "-inline-threshold=1000000")
_NOT_SELECTED = re.compile(r"Cannot select: \S+: \S+ = (\w+)")
_IN_ENTRY = re.compile(r"In function: \w*__metal_entry_(\d+)")
_SHARED = re.compile(
    r"^(@\w*shared_storage\w*) = .*?addrspace\(1\) global (\[\d+ x i8\]) zeroinitializer.*$", re.MULTILINE
)
_UNDEFINED = re.compile(r"^\.extern \.func\s+(?:\([^)]*\)\s*)?(\w+)", re.MULTILINE)
_DEFINED = re.compile(
    r"^define (?:(?:linkonce_odr|weak_odr|dso_local|protected|hidden) )+(?!.*ptx_kernel)", re.MULTILINE
)


@dataclass(frozen=True)
class PtxBuild:
    """PTX on disk.

    Attributes:
        path: the text, to be compiled by the driver.
        architecture: the least the GPU must be: ``sm_90``.
        signatures: of every kernel; the entry point of the n-th is ``__metal_entry_n``.
    """

    path: Path
    architecture: str
    signatures: tuple[Signature, ...]


def compile_ptx(source: Source, cache: Path, architecture: str = "sm_90") -> PtxBuild:
    """Compile ``source``, or find it in ``cache``.

    Args:
        source: what to compile.
        cache: folder for compiled libraries; the host build is made there too.
        architecture: NVIDIA's name of the least GPU that shall run it.

    Raises:
        CompileError: it does not compile, or calls a function that a GPU does not have.
        ToolchainError: no compiler.
    """
    toolchain = find_toolchain()
    text = preprocess(source, toolchain)
    flags = [*_target(architecture), *_FRONT, *source.macros]
    own = [path.read_bytes() for path in (*sorted(GPU_INCLUDE.iterdir()), Path(__file__))]
    folder = (
        cache
        / "metal"
        / f"ptx-{digest(source.places.shared_text(text), headers_digest(), toolchain.version, *flags, *own)}"
    )
    if (folder / "build.json").exists():
        return load_ptx(folder)
    signatures = host_signatures(source, cache)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        unit = Path(scratch) / "source.cl"
        unit.write_text(rewrite(text).text)
        ptx = _translate(unit, flags, architecture, [one.kernel for one in signatures])
        ptx.replace(folder / "library.ptx")
    content = {"architecture": architecture, "signatures": [asdict(one) for one in signatures]}
    write_whole(folder / "build.json", json.dumps(content, default=lambda kind: kind.value))
    return load_ptx(folder)


def _target(architecture: str) -> tuple[str, ...]:
    return ("--target=nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", architecture)


def _translate(unit: Path, flags: Sequence[str], architecture: str, kernels: Sequence[str]) -> Path:
    """PTX beside ``unit``, by way of intermediate code."""
    toolchain = find_toolchain()
    ir, ptx = unit.with_suffix(".ll"), unit.with_suffix(".ptx")
    include = ("-isystem", str(GPU_INCLUDE), "-isystem", str(INCLUDE))
    done = toolchain.run([*flags, *include, _QUIET, str(unit), "-o", str(ir)])
    if done.returncode:
        raise failure(unit.name, done.stderr)
    ir.write_text(for_gpu(ir.read_text()))
    done = toolchain.run([*_target(architecture), *_BACK, _QUIET, str(ir), "-o", str(ptx)])
    if done.returncode:
        raise _no_instruction(done.stderr, kernels) or failure(unit.name, done.stderr)
    if missing := sorted(set(_UNDEFINED.findall(ptx.read_text()))):
        raise CompileError("functions that the GPU does not have", where=kernels[0], found=", ".join(missing))
    return ptx


def _no_instruction(stderr: str, kernels: Sequence[str]) -> CompileError | None:
    """The error of a kernel that calls, say, a sine: the compiler stops at the first."""
    operation, entry = _NOT_SELECTED.search(stderr), _IN_ENTRY.search(stderr)
    if operation is None:
        return None
    where = kernels[int(entry[1])] if entry else ""
    message = "the GPU has no instruction for a function that the kernel calls"
    return CompileError(message, where=where, found=operation[1])


def host_signatures(source: Source, cache: Path) -> Sequence[Signature]:
    """What every kernel takes, as the host build describes it."""
    build = compile_source(source, RunMode.PLAIN, cache)
    native = load(build.path, build)
    return [native.kernel(number).signature for number in range(len(build.kernels))]


def load_ptx(folder: Path) -> PtxBuild:
    """A folder that :func:`compile_ptx` made, here or elsewhere.

    Raises:
        OSError: it is not there.
    """
    content = json.loads((folder / "build.json").read_text())
    signatures = tuple(_signature(one) for one in content["signatures"])
    return PtxBuild(folder / "library.ptx", content["architecture"], signatures)


def for_gpu(ir: str) -> str:
    """Edit Clang's unoptimised code: constant memory is global, some global memory is shared, functions are private.

    Args:
        ir: LLVM's text form, as Clang writes it.
    """
    ir = ir.replace("addrspace(4)", "addrspace(1)")
    for name, kind in _SHARED.findall(ir):
        ir = re.sub(
            rf"^{name} = .*$", f"{name} = internal addrspace(3) global {kind} undef, align 16", ir, flags=re.MULTILINE
        )
        ir = re.sub(rf"addrspacecast \(ptr addrspace\(1\) {name} to ptr addrspace\(3\)\)", name, ir)
    # Private and inlined, so that each ends up inside of its kernel: shared memory is then counted where it is used.
    # Clang itself calls the kernel's body as a function that must not be.
    ir = re.sub(r"^(attributes #\d+ = .*?) noinline\b", r"\1", ir, flags=re.MULTILINE)
    ir = _DEFINED.sub("define internal ", ir)
    ir = re.sub(r"^\$\S+ = comdat any$", "", ir, flags=re.MULTILINE)
    return re.sub(r",? comdat(?:\(\$\w+\))?(?= |,|$)", "", ir, flags=re.MULTILINE)


def _signature(stored: Mapping[str, Any]) -> Signature:
    parameters = tuple(_parameter(one) for one in stored["parameters"])
    return Signature(stored["kernel"], stored["file"], stored["line"], parameters)


def _parameter(stored: Mapping[str, Any]) -> Parameter:
    element = ElementType(**stored["element"]) if stored["element"] else None
    return Parameter(**{**stored, "kind": ParameterKind(stored["kind"]), "element": element})
