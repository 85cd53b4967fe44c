"""Compiles the series' kernels for an NVIDIA GPU, on any machine, into a folder that the machine with the GPU reads.

    python build.py FOLDER [--reference 2.11] [--ptxas FILE]

They are those of the tree that the series would leave: of the fast backward, and of the change below it for
comparison. FOLDER gets a folder for each, with PTX, what the kernels take and the headers with their parameters; with
``--ptxas``, machine code too, which saves the other machine most of a minute.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from patchstack.cache import cache_dir
from patchstack.reference import build_reference
from stackproof.engines.gpu import compile_ptx
from stackproof.engines.metal.build import Source
from stackproof.ops import proof_for
from stackproof.ops.planned import planned_source

OP = "grid_sampler_2d_backward"
CHANGES = {"stack": "grid_sampler_fast_backward", "below": "grid_sampler_3d_backward"}


def build(folder: Path, reference: str, ptxas: str) -> None:
    """Fill the folder."""
    tree, proof = build_reference(reference), proof_for(OP)
    assert proof is not None
    for name, change in CHANGES.items():
        source = planned_source(tree.path, "main", change, proof, cache_dir() / "bench")
        made = compile_ptx(Source(source.root / source.source, source.include_dirs), cache_dir())
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        for file in ("library.ptx", "build.json"):
            shutil.copyfile(made.path.with_name(file), target / file)
        for number, header in enumerate(source.headers):
            (target / f"header{number}.h").write_bytes(header)
        if ptxas:
            arguments = [ptxas, f"-arch={made.architecture}", "-O3", "library.ptx", "-o", "library.cubin"]
            subprocess.run(arguments, cwd=target, check=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reference", default="2.11", help="a tree of before April 2026")
    parser.add_argument("--ptxas", default="")
    arguments = parser.parse_args()
    build(arguments.folder, arguments.reference, arguments.ptxas)


if __name__ == "__main__":
    main()
