"""Compiles the candidates to PTX, on any machine, into a folder that the machine with the GPU reads.

python build.py FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from instances import OVERLAY, OVERLAY_SOURCE, write_source
from variants import checked_instances, instances, selected_instances

from patchstack.cache import cache_dir
from stackproof.metal.build import Source
from stackproof.metal.gpu import compile_ptx

HEADERS = Path(torch.__file__).parent / "include"


def main(folder: Path, *, everything: bool) -> None:
    """Command line: a folder of its own for each interpolation and dtype, to be assembled in parallel."""
    measured = instances() if everything else selected_instances()
    for name, group in {**measured, **checked_instances()}.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        _compile(write_source(folder / name / "source.metal", group), folder / name)
    _compile(OVERLAY_SOURCE, folder / "change1")


def _compile(source: Path, target: Path) -> None:
    build = compile_ptx(Source(source.resolve(), (OVERLAY, HEADERS)), cache_dir())
    target.mkdir(parents=True, exist_ok=True)
    for file in ("library.ptx", "build.json"):
        shutil.copyfile(build.path.with_name(file), target / file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="--all" in sys.argv[2:])
