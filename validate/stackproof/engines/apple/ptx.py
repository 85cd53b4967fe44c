"""Apple-compiled kernels for an NVIDIA GPU: the same translation with another target.

Only kernels whose threads do not take part in anything together: simdgroup functions and barriers are left to a target
of their own. The entry point takes the addresses of the buffers and the size of the grid by value, 40 and 4 numbers,
and threads that the grid does not have leave at once; that is the frame of this project's PTX launcher, and the folder
that is written is what it loads. A remainder of floats is NVPTX's expansion and not exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from patchstack.cache import made_folder
from stackproof.engines.apple.build import AirSource, signature_of, translation_digest
from stackproof.engines.apple.definitions import PORTABLE, Rule
from stackproof.engines.apple.errors import AppleKernelError, TranslationError, UnmappedIntrinsicError
from stackproof.engines.apple.ir import Function, llvm
from stackproof.engines.apple.lowering import lower
from stackproof.engines.apple.model import AirKernel, AirParameter
from stackproof.engines.metal.toolchain import digest

_TRIPLE = "nvptx64-nvidia-cuda"
_FRAME = "{ [40 x i64], [4 x i32] }"
_AXES = "xyz"
_POSITION = re.compile(r"(?:<(\d) x )?i32>?")
_FUNCTION = re.compile(r"^(define internal (?!.* alwaysinline).*) \{$", re.MULTILINE)
_EXTERNAL = re.compile(r"^\.extern \.func\s+(?:\([^)]*\)\s*)?(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class PtxTarget:
    """A GPU of at least this architecture, ``sm_90`` for example."""

    architecture: str

    @property
    def header(self) -> str:
        return f'target triple = "{_TRIPLE}"'

    @property
    def rules(self) -> Mapping[str, Rule]:
        return PORTABLE

    def entry_point(self, kernel: AirKernel, function: Function, number: int) -> str:
        """``__metal_entry_N``: leaves where the grid ends, and calls the kernel otherwise."""
        lines, values, index = [], [], 0
        for axis, name in enumerate(_AXES):
            lines += _position(axis, name)
        for parameter, type_ in zip(kernel.parameters, function.parameters, strict=True):
            value = f"%p{parameter.position}"
            if parameter.attribute:
                lines += _thread_position(parameter, type_, value, kernel.name)
            else:
                lines += [
                    f"  {value}.at = getelementptr {_FRAME}, ptr %frame, i32 0, i32 0, i32 {index}",
                    f"  {value}.address = load i64, ptr {value}.at, align 8",
                    f"  {value} = inttoptr i64 {value}.address to {type_}",
                ]
                index += 1
            values.append(f"{type_} {value}")
        outside = ["  %out.xy = or i1 %out.x, %out.y", "  %out = or i1 %out.xy, %out.z"]
        return "\n".join(
            [
                *(
                    f"declare i32 @llvm.nvvm.read.ptx.sreg.{what}.{axis}()"
                    for what in ("tid", "ctaid", "ntid")
                    for axis in _AXES
                ),
                f"define ptx_kernel void @__metal_entry_{number}(ptr byval({_FRAME}) align 8 %frame) {{",
                *lines,
                *outside,
                "  br i1 %out, label %end, label %inside",
                "inside:",
                f'  call void @"{function.name}"({", ".join(values)})',
                "  br label %end",
                "end:",
                "  ret void",
                "}",
            ]
        )

    def compile(self, text: str, where: str) -> str:
        """PTX.

        Raises:
            AppleKernelError: LLVM rejects the module.
            UnmappedIntrinsicError: it calls something that a GPU does not have.
        """
        binding = llvm()
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        machine = binding.Target.from_triple(_TRIPLE).create_target_machine(cpu=self.architecture, opt=3)
        try:
            module = binding.parse_assembly(_for_gpu(text, str(machine.target_data)))
            module.verify()
        except RuntimeError as error:
            found = " ".join(str(error).split())[:300]
            raise AppleKernelError("LLVM does not accept the translation", where=where, found=found) from None
        builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
        builder.getModulePassManager().run(module, builder)
        ptx: str = machine.emit_assembly(module)
        if missing := sorted(set(_EXTERNAL.findall(ptx))):
            raise UnmappedIntrinsicError("a function that a GPU does not have", where=where, found=", ".join(missing))
        return ptx


def _for_gpu(text: str, data_layout: str) -> str:
    """Everything inside its kernel, and ``constant`` in ordinary memory; other address spaces keep their numbers."""
    inlined = _FUNCTION.sub(lambda head: f"{head[1]} alwaysinline {{", text)
    return f'target datalayout = "{data_layout}"\n' + inlined.replace("addrspace(2)", "addrspace(1)")


def _position(axis: int, name: str) -> list[str]:
    """The thread's place in the grid along one axis, and whether the grid ends before it."""
    return [
        *(f"  %{what}.{name} = call i32 @llvm.nvvm.read.ptx.sreg.{what}.{name}()" for what in ("tid", "ctaid", "ntid")),
        f"  %before.{name} = mul i32 %ctaid.{name}, %ntid.{name}",
        f"  %at.{name} = add i32 %before.{name}, %tid.{name}",
        f"  %size.{name}.at = getelementptr {_FRAME}, ptr %frame, i32 0, i32 1, i32 {axis}",
        f"  %size.{name} = load i32, ptr %size.{name}.at, align 4",
        f"  %out.{name} = icmp uge i32 %at.{name}, %size.{name}",
    ]


def _thread_position(parameter: AirParameter, type_: str, value: str, where: str) -> list[str]:
    shape = _POSITION.fullmatch(type_)
    if parameter.attribute != "thread_position_in_grid" or shape is None:
        found = f"{parameter.attribute} ({type_})"
        raise TranslationError("a parameter that this target does not provide", where=where, found=found)
    if not shape[1]:
        return [f"  {value} = add i32 %at.x, 0"]
    names = [f"{value}.{name}" for name in _AXES[: int(shape[1]) - 1]] + [value]
    before = ["poison", *names]
    return [
        f"  {name} = insertelement {type_} {before[k]}, i32 %at.{_AXES[k]}, i32 {k}" for k, name in enumerate(names)
    ]


def compile_ptx_kernels(sources: Sequence[AirSource], cache: Path, architecture: str = "sm_90") -> Path:
    """A folder with ``library.ptx`` and ``build.json`` (architecture and signatures of the kernels, in order).

    Raises:
        UnmappedIntrinsicError: a kernel calls a function that nothing here defines for a GPU.
        AppleKernelError: a module cannot be translated or compiled.
    """
    target = PtxTarget(architecture)
    digests = (item for one in sources for item in (one.name, one.sha256))
    folder = cache / "apple" / "ptx" / digest(translation_digest(), architecture, *digests)

    def make(unfinished: Path) -> None:
        modules = [
            target.compile(lower(one.text, one.name, target, number=number).text, one.name)
            for number, one in enumerate(sources)
        ]
        (unfinished / "library.ptx").write_text(_joined(modules))
        signatures = [asdict(signature_of(one.kernel())) for one in sources]
        content = {"architecture": architecture, "signatures": signatures}
        (unfinished / "build.json").write_text(json.dumps(content, default=lambda kind: kind.value))

    return made_folder(folder, make)


def _joined(modules: Sequence[str]) -> str:
    """One PTX file: the directives at the head of the first, the bodies of all."""
    bodies = [re.split(r"^\.address_size 64$", module, maxsplit=1, flags=re.MULTILINE) for module in modules]
    return f"{bodies[0][0]}.address_size 64\n" + "\n".join(body for _head, body in bodies)
