"""Opens what build.py or upstream.py made, or ends the script with one sentence that says why it cannot be."""

from __future__ import annotations

from pathlib import Path

from patchstack.errors import PatchstackError
from stackproof.ops.grid_sampler.fast.libraries import open_libraries
from stackproof.ops.grid_sampler.fast.passes import Libraries


def load_libraries(build: Path, *patterns: str, command: str = "build.py") -> Libraries:
    """The libraries in the folders of ``build`` whose names match one of ``patterns``.

    Args:
        build: holds a folder for each library.
        patterns: of the folders' names; all without any.
        command: the script that fills ``build``.

    Raises:
        SystemExit: there are none, or no GPU to load them on.
    """
    try:
        return open_libraries(build, *patterns)
    except PatchstackError as error:
        raise SystemExit(f"{error} (python {command} {build})") from None
