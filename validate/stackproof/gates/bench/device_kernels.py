"""A tree's kernels on a GPU: through PTX on NVIDIA's, through torch's own Metal compiler on Apple's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from stackproof.engines.gpu import GpuLibrary, compile_ptx, load_ptx
from stackproof.engines.gpu.build import host_signatures
from stackproof.engines.gpu.embed import embed
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.model import Signature
from stackproof.gates.bench.spec import CUDA, MPS
from stackproof.ops.grid_sampler.bench.passes import Kernels
from stackproof.ops.sources import OpSource

Compiler = Callable[[OpSource, Path], Kernels]


def on_cuda(source: OpSource, cache: Path) -> Kernels:
    """The kernels of a source as PTX, loaded on the current NVIDIA GPU.

    Raises:
        MetalError: they do not compile, or the driver refuses them.
    """
    build = compile_ptx(Source(source.root / source.source, source.include_dirs), cache)
    return Kernels(GpuLibrary(load_ptx(build.path.parent)), source.headers)


def on_mps(source: OpSource, cache: Path) -> Kernels:
    """The kernels of a source, compiled by Apple's compiler through PyTorch, which raises whatever that one says."""
    return with_shader(torch.mps.compile_shader, MPS, source, cache)


def with_shader(compile_shader: Callable[[str], Any], device: str, source: OpSource, cache: Path) -> Kernels:
    """Through something with the call shape of ``torch.mps.compile_shader``; ``device`` is where its tensors are."""
    files = {str(file.relative_to(source.root)): file.read_bytes() for file in source.root.rglob("*") if file.is_file()}
    library = compile_shader(embed(files, source.source))
    build = Source(source.root / source.source, source.include_dirs)
    return Kernels(ShaderLibrary(library, device, lambda: host_signatures(build, cache)), source.headers)


COMPILERS: dict[str, Compiler] = {CUDA: on_cuda, MPS: on_mps}


class ShaderLibrary:
    """A library of ``torch.mps.compile_shader`` in the shape that passes want.

    Args:
        library: kernels by name.
        device: of their tensors.
        signatures: of all kernels; torch does not know them, so they come from the host's compiler, if anybody asks.
    """

    def __init__(self, library: Any, device: str, signatures: Callable[[], Sequence[Signature]]) -> None:
        self._library, self._device, self._made = library, device, signatures
        self._signatures: dict[str, Signature] = {}

    @property
    def kernel_names(self) -> list[str]:
        """Host names of all kernels."""
        return [name for name in dir(self._library) if not name.startswith("_")]

    def kernel(self, name: str) -> ShaderKernel:
        """The kernel with this host name."""
        return ShaderKernel(self, name, getattr(self._library, name), self._device)

    def signature(self, name: str) -> Signature:
        """What a kernel takes."""
        if not self._signatures:
            self._signatures = {one.kernel: one for one in self._made()}
        return self._signatures[name]


class ShaderKernel:
    """One kernel; its structs become tensors of bytes, the only form that torch takes them in."""

    def __init__(self, library: ShaderLibrary, name: str, function: Any, device: str) -> None:
        self._library, self._name, self._function, self._device = library, name, function, device

    @property
    def signature(self) -> Signature:
        """Its parameters."""
        return self._library.signature(self._name)

    def prepare(self, *args: Any, threads: Sequence[int], group_size: Sequence[int]) -> Callable[[], object]:
        """Bind everything once, to be launched any number of times."""
        bound = [self._argument(one) for one in args]
        return lambda: self._function(*bound, threads=threads, group_size=group_size)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, (bytes, bytearray, ctypes.Structure)):
            return torch.frombuffer(bytearray(value), dtype=torch.uint8).to(self._device)
        return value
