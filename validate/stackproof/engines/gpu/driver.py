"""The CUDA driver through ctypes: load PTX, look a kernel up, launch it on PyTorch's stream.

Nothing is installed for it: the library comes with NVIDIA's driver, the context and the stream are PyTorch's.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch

from stackproof.engines.errors import CallError, CompileError

_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 5, 6
_LOG_BYTES = 8192

Extent3 = tuple[int, int, int]


@lru_cache(maxsize=1)
def driver() -> ctypes.CDLL:
    """The driver's library, with a current context.

    Raises:
        CallError: there is no NVIDIA GPU, or PyTorch was built without CUDA.
    """
    if not torch.cuda.is_available():
        raise CallError("no NVIDIA GPU", expected="a PyTorch with CUDA and a GPU", next_command="nvidia-smi")
    torch.zeros(1, device="cuda")  # makes the context current
    return ctypes.CDLL("libcuda.so.1")


def _check(result: int, what: str) -> None:
    if result:
        name = ctypes.c_char_p()
        driver().cuGetErrorName(result, ctypes.byref(name))
        raise CallError(f"the CUDA driver refused to {what}", found=(name.value or b"?").decode())


class Module:
    """One loaded PTX file."""

    def __init__(self, path: Path) -> None:
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        self._handle = ctypes.c_void_p()
        result = driver().cuModuleLoadDataEx(ctypes.byref(self._handle), path.read_bytes() + b"\0", 2, options, values)
        if result:
            raise CompileError("the CUDA driver refused the PTX", where=str(path), found=log.value.decode().strip())

    def function(self, name: str) -> Function:
        """The entry point with this name.

        Raises:
            CallError: there is none.
        """
        handle = ctypes.c_void_p()
        _check(driver().cuModuleGetFunction(ctypes.byref(handle), self._handle, name.encode()), f"find {name}")
        return Function(handle)


class Function:
    """One entry point."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle

    def launch(self, blocks: Extent3, threads: Extent3, frame: ctypes.Structure) -> None:
        """Put one dispatch on the current stream.

        Args:
            blocks: per grid, at least 1 in each direction.
            threads: per block.
            frame: the one parameter, by value.
        """
        packed = (ctypes.c_void_p * 1)(ctypes.addressof(frame))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        result = driver().cuLaunchKernel(self._handle, *blocks, *threads, 0, stream, packed, None)
        _check(result, "launch a kernel")
