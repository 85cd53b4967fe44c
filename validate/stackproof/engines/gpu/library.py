"""Kernels on the GPU in the call shape of the host library, and so of ``torch.mps.compile_shader``."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from stackproof.engines.errors import CallError
from stackproof.engines.gpu.build import PtxBuild
from stackproof.engines.gpu.driver import Function, Module
from stackproof.engines.metal.arguments import PackedArguments, pack
from stackproof.engines.metal.library import Extent, dispatch_size
from stackproof.engines.metal.model import Signature

_SIMDGROUP = 32
_ARGUMENTS = 40
_LANE_INSTRUCTIONS = re.compile(r"\b(?:shfl|vote)\.sync\b")


class Frame(ctypes.Structure):
    """``__metal_host::frame`` of include/__metal_executor."""

    _fields_ = (("arguments", ctypes.c_uint64 * _ARGUMENTS), ("grid", ctypes.c_uint32 * 4))


class GpuLibrary:
    """The kernels of one source on the current CUDA device; kernels are attributes."""

    def __init__(self, build: PtxBuild) -> None:
        self._build = build
        # What ptxas made of it beforehand, if it did: the driver takes seconds for a large source.
        assembled = build.path.with_suffix(".cubin")
        self._module = Module(assembled if assembled.exists() else build.path)
        self._numbers = {signature.kernel: number for number, signature in enumerate(build.signatures)}
        self._kernels: dict[str, GpuKernel] = {}
        entries = re.split(r"^\.visible \.entry (\w+)", build.path.read_text(), flags=re.MULTILINE)
        self._uses_lanes = {
            name for name, text in zip(entries[1::2], entries[2::2], strict=True) if _LANE_INSTRUCTIONS.search(text)
        }

    @property
    def kernel_names(self) -> list[str]:
        """Host names of all kernels, in source order."""
        return list(self._numbers)

    def kernel(self, name: str) -> GpuKernel:
        """The kernel with this host name.

        Raises:
            CallError: there is none.
        """
        if name not in self._kernels:
            if name not in self._numbers:
                raise CallError(
                    "no such kernel", where=str(self._build.path), expected=", ".join(self._numbers), found=name
                )
            number = self._numbers[name]
            entry = f"__metal_entry_{number}"
            function = self._module.function(entry)
            self._kernels[name] = GpuKernel(self._build.signatures[number], function, entry in self._uses_lanes)
        return self._kernels[name]

    def __getattr__(self, name: str) -> GpuKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.kernel(name)
        except CallError as error:
            raise AttributeError(str(error)) from error


class GpuKernel:
    """One kernel, ready to be called.

    Attributes:
        signature: its parameters.
    """

    def __init__(self, signature: Signature, function: Function, uses_lanes: bool) -> None:
        self.signature = signature
        self._function = function
        self._uses_lanes = uses_lanes

    def __call__(self, *args: Any, **call: Any) -> None:
        """Run the kernel over a grid, on the current stream; does not wait. Arguments as for :meth:`prepare`."""
        self.prepare(*args, **call)()

    def prepare(
        self,
        *args: Any,
        threads: Extent | None = None,
        group_size: Extent | None = None,
        arg_casts: str | Sequence[str | None] | Mapping[int, str] | None = None,
        threadgroup_memory: Mapping[int, int] | None = None,
    ) -> Launch:
        """Bind everything once, to be launched any number of times.

        Args:
            args: CUDA tensors for pointers; numbers, lists, bytes or tensors for constants.
            threads: threads per grid; the size of the first tensor by default.
            group_size: threads per threadgroup.
            arg_casts: as on the host.
            threadgroup_memory: bytes of each ``[[threadgroup(n)]]`` parameter.

        Raises:
            CallError: the arguments do not fit the signature; or the kernel uses simdgroup functions and the last
                simdgroup would not be full, for which there is no answer here.
        """
        if threadgroup_memory or self.signature.threadgroup_memory:
            raise CallError("[[threadgroup(n)]] parameters are not supported on the GPU", where=self.signature.kernel)
        packed = pack(self.signature, args, arg_casts, {}, device="cuda")
        grid, group = dispatch_size(self.signature, packed, threads, group_size)
        if self._uses_lanes:
            require_full_simdgroups(self.signature.kernel, grid, group)
        return Launch(self._function, packed, grid, group)


def require_full_simdgroups(kernel: str, grid: tuple[int, int, int], group: tuple[int, int, int]) -> None:
    """Refuse a dispatch in which a simdgroup misses lanes: a shuffle would wait for them, or answer anything.

    Raises:
        CallError: the grid is not made of whole threadgroups, or these not of whole simdgroups.
    """
    if group[0] * group[1] * group[2] % _SIMDGROUP or any(g % b for g, b in zip(grid, group, strict=True)):
        raise CallError(
            "a kernel with simdgroup functions needs full simdgroups on the GPU",
            where=kernel,
            expected="a grid of whole threadgroups of a multiple of 32 threads",
            found=f"{grid} in {group}",
        )


class Launch:
    """One dispatch with its arguments; call it to run it.

    The tensors' addresses are kept, not the tensors' contents: what they hold when it runs is what the kernel sees.
    """

    def __init__(
        self,
        function: Function,
        packed: PackedArguments,
        grid: tuple[int, int, int],
        group: tuple[int, int, int],
    ) -> None:
        self._function = function
        self._keep: list[Any] = [packed]
        self._frame = Frame()
        self._group = group
        x, y, z = (-(-threads // size) for threads, size in zip(grid, group, strict=True))
        self._blocks = (x, y, z)
        for slot, argument in enumerate(packed.arguments):
            address = argument.address
            if argument.constant is not None:
                held = torch.frombuffer(bytearray(ctypes.string_at(address, argument.size)), dtype=torch.uint8).cuda()
                self._keep.append(held)
                address = held.data_ptr()
            self._frame.arguments[slot] = address
        self._frame.grid[:3] = grid

    def __call__(self) -> None:
        if 0 not in self._blocks:
            self._function.launch(self._blocks, self._group, self._frame)
