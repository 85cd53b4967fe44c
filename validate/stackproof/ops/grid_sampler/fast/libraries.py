"""Opens compiled kernels for a GPU, folder by folder, or says in one sentence why that cannot be."""

from __future__ import annotations

from pathlib import Path

from patchstack.errors import PatchstackError
from stackproof.engines.gpu import GpuLibrary, load_ptx
from stackproof.ops.grid_sampler.fast.passes import Libraries


def open_libraries(build: Path, *patterns: str) -> Libraries:
    """The libraries in the folders of ``build`` whose names match one of ``patterns``, all of them without any.

    Args:
        build: holds a folder for each library, as :func:`stackproof.engines.gpu.compile_ptx` makes them.
        patterns: of the folders' names.

    Raises:
        PatchstackError: there are none, or no GPU to load them on.
    """
    found = (path.parent for pattern in patterns or ("*",) for path in build.glob(f"{pattern}/build.json"))
    folders = sorted(set(found))
    if not folders:
        raise PatchstackError("no compiled kernels there", where=str(build))
    return Libraries([GpuLibrary(load_ptx(folder)) for folder in folders])
