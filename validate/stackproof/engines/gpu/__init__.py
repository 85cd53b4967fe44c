"""The same Metal source on an NVIDIA GPU: compiled to PTX anywhere, launched where there is a driver.

A GPU whose warps have the width of Apple's simdgroups says more about speed than a CPU can, though it is no Apple GPU:
what was measured there is a stand-in and has to be called one. Correctness is proved on the host first, where every
access is watched; here a fault is a wrong number.
"""

from __future__ import annotations

from stackproof.engines.gpu.build import PtxBuild, compile_ptx, load_ptx
from stackproof.engines.gpu.library import GpuKernel, GpuLibrary, Launch

__all__ = ["GpuKernel", "GpuLibrary", "Launch", "PtxBuild", "compile_ptx", "load_ptx"]
