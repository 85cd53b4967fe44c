"""Opens what build.py or upstream.py made, or says in one sentence why it cannot be."""

from __future__ import annotations

from pathlib import Path

from candidates import Libraries

from stackproof.metal import MetalError
from stackproof.metal.gpu import GpuLibrary, load_ptx


def load_libraries(build: Path, *patterns: str, command: str = "build.py") -> Libraries:
    """The libraries in the folders of ``build`` whose names match one of ``patterns``, all of them without any.

    Args:
        build: holds a folder for each library.
        patterns: of the folders' names.
        command: the script that fills ``build``.

    Raises:
        SystemExit: there are none, or no GPU to load them on.
    """
    found = (path.parent for pattern in patterns or ("*",) for path in build.glob(f"{pattern}/build.json"))
    folders = sorted(set(found))
    if not folders:
        raise SystemExit(f"{build}: no compiled kernels there (python {command} {build})")
    try:
        return Libraries([GpuLibrary(load_ptx(folder)) for folder in folders])
    except MetalError as error:
        raise SystemExit(str(error)) from None
