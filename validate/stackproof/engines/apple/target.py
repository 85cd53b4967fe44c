"""What the translated kernels are compiled for. Everything that differs between targets is here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from stackproof.engines.apple.definitions import Rule
from stackproof.engines.apple.errors import AppleKernelError, TranslationError
from stackproof.engines.apple.ir import Function, llvm
from stackproof.engines.apple.model import AirKernel, AirParameter
from stackproof.engines.apple.simd_definitions import HOST
from stackproof.engines.metal.kernels import ATTRIBUTE_SLOTS

_ATTRIBUTE = re.compile(r"(?:<(\d) x )?i(\d+)>?")
_SLOT_BYTES, _WORD_BYTES = 12, 4


class Target(Protocol):
    """A machine that kernels are translated for.

    Attributes:
        header: the lines of a module that name it.
        rules: definitions of ``air.*`` functions, by family.
    """

    @property
    def header(self) -> str: ...

    @property
    def rules(self) -> Mapping[str, Rule]: ...

    def entry_point(self, kernel: AirKernel, function: Function, number: int) -> str:
        """IR of a function by which a kernel is started.

        Raises:
            TranslationError: a parameter of a kind that the target cannot provide.
        """
        ...


@dataclass(frozen=True)
class HostTarget:
    """This machine, with the executor of the Metal front end.

    Attributes:
        triple: of LLVM.
        data_layout: that LLVM uses for it.
        features: of the processor, as LLVM takes them.
    """

    triple: str
    data_layout: str
    features: str

    @property
    def header(self) -> str:
        return f'target datalayout = "{self.data_layout}"\ntarget triple = "{self.triple}"'

    @property
    def rules(self) -> Mapping[str, Rule]:
        return HOST

    def entry_point(self, kernel: AirKernel, function: Function, number: int) -> str:
        """``__metal_entry_N``, which takes the executor's ``struct frame`` in two registers."""
        lines: list[str] = []
        values, index = [], 0
        if len(kernel.parameters) != len(function.parameters):
            raise TranslationError("the metadata describes other parameters than the function has", where=kernel.name)
        for parameter, type_ in zip(kernel.parameters, function.parameters, strict=True):
            at = f"%p{parameter.position}"
            if parameter.attribute:
                value = _attribute(parameter, type_, at, lines, kernel.name)
            else:
                lines += [
                    f"  {at}.at = getelementptr i64, ptr %a, i64 {index}",
                    f"  {at} = load {type_}, ptr {at}.at",
                ]
                value, index = at, index + 1
            values.append(f"{type_} {value}")
        return "\n".join(
            [
                f"define void @__metal_entry_{number}(i64 %arguments, i64 %attributes) {{",
                "  %a = inttoptr i64 %arguments to ptr",
                "  %t = inttoptr i64 %attributes to ptr",
                *lines,
                f'  call void @"{function.name}"({", ".join(values)})',
                "  ret void",
                "}",
            ]
        )

    def machine(self) -> Any:
        """LLVM's code generator."""
        return (
            llvm()
            .Target.from_triple(self.triple)
            .create_target_machine(features=self.features, opt=2, reloc="pic", codemodel="small")
        )

    def compile(self, text: str, where: str) -> bytes:
        """An object file.

        Raises:
            AppleKernelError: LLVM rejects the module.
        """
        binding = llvm()
        try:
            module = binding.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            found = " ".join(str(error).split())[:300]
            raise AppleKernelError("LLVM does not accept the translation", where=where, found=found) from None
        machine = self.machine()
        passes = binding.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
        code: bytes = machine.emit_object(module)
        return code


def _attribute(parameter: AirParameter, type_: str, at: str, lines: list[str], where: str) -> str:
    """Load a thread attribute: one to three 32-bit numbers in the slot that the executor keeps it in."""
    shape = _ATTRIBUTE.fullmatch(type_)
    if shape is None or parameter.attribute not in ATTRIBUTE_SLOTS:
        raise TranslationError(
            "a parameter that the executor cannot provide", where=where, found=f"{parameter.attribute} ({type_})"
        )
    scalar, lanes = f"i{shape[2]}", int(shape[1] or 1)
    offset = ATTRIBUTE_SLOTS.index(parameter.attribute) * _SLOT_BYTES
    value = "poison"
    for k in range(lanes):
        lines.append(f"  {at}.{k}.at = getelementptr i8, ptr %t, i64 {offset + _WORD_BYTES * k}")
        lines.append(f"  {at}.{k} = load i32, ptr {at}.{k}.at")
        one = f"{at}.{k}"
        if scalar != "i32":
            lines.append(f"  {at}.{k}.narrow = {'trunc' if int(shape[2]) < 32 else 'zext'} i32 {one} to {scalar}")
            one = f"{at}.{k}.narrow"
        if not shape[1]:
            return one
        lines.append(f"  {at}.{k}.all = insertelement {type_} {value}, {scalar} {one}, i32 {k}")
        value = f"{at}.{k}.all"
    return value


@lru_cache(maxsize=1)
def host_target() -> HostTarget:
    """This machine, with the features of its processor that change no result: conversions and fused operations."""
    binding = llvm()
    triple = binding.get_process_triple()
    wanted = ("avx", "avx2", "f16c", "fma")
    there = binding.get_host_cpu_features()
    features = ",".join(f"+{name}" for name in wanted if there.get(name))
    machine = binding.Target.from_triple(triple).create_target_machine(features=features)
    return HostTarget(triple, str(machine.target_data), features)
