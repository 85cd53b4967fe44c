"""``validate-stack metal``: any Metal file, outside any series and any PyTorch tree."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from patchstack.cache import cache_dir
from patchstack.cli.sections import CommandWithExamples
from patchstack.errors import PatchstackError
from stackproof.engines.metal import ALL_DETECTORS, RunMode
from stackproof.engines.metal.build import Source
from stackproof.gates.metal_check.gate import DEFAULT_VERSIONS, source_findings
from stackproof.model import Finding


@click.command(
    "metal",
    cls=CommandWithExamples,
    examples={
        "validate-stack metal k.metal -I include": "check a file",
        "validate-stack metal k.metal --run script.py": "run its kernels under the detectors",
    },
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-I", "--include", "include", multiple=True, type=click.Path(path_type=Path), help="Folder of headers.")
@click.option("-D", "--define", "defines", multiple=True, metavar="NAME[=VALUE]", help="Macro.")
@click.option("--metal-version", "versions", multiple=True, default=DEFAULT_VERSIONS, show_default=True)
@click.option(
    "--run",
    "script",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Python script that calls kernels by name: `kernels.NAME(...)`, under all detectors.",
)
def metal(
    files: Sequence[Path], include: Sequence[Path], defines: Sequence[str], versions: Sequence[str], script: Path | None
) -> None:
    """Check Metal files as metal-check does, and run kernels of theirs under the detectors.

    Exit codes: 0 nothing was found, 1 something was, 2 usage.
    """
    found: list[Finding] = []
    for file in files:
        for version in versions:
            source = Source(file.resolve(), tuple(one.resolve() for one in include), version, tuple(defines))
            found += source_findings(source)
    if script is not None and not any(one.fails for one in found):
        found += _run(script, files, include, defines)
    lines = dict.fromkeys(f"{one.path}:{one.line}: {one.rule}: {one.message}" for one in found if one.fails)
    for line in lines:
        click.echo(line)
    click.echo(f"{len(files)} files, {len(lines)} findings")
    sys.exit(1 if lines else 0)


class _Kernels:
    """The kernels of all files, by name."""

    def __init__(self, libraries: Sequence[Any]) -> None:
        self._libraries = libraries

    def __getattr__(self, name: str) -> Any:
        for library in self._libraries:
            if name in library.kernel_names:
                return library.kernel(name)
        raise AttributeError(f"no file has a kernel {name}")


def _run(script: Path, files: Sequence[Path], include: Sequence[Path], defines: Sequence[str]) -> list[Finding]:
    """What the detectors find while a script calls kernels."""
    from stackproof.engines.metal import compile_library

    mode: RunMode = ALL_DETECTORS
    libraries = [compile_library(file, include, cache=cache_dir(), mode=mode, defines=tuple(defines)) for file in files]
    try:
        runpy.run_path(str(script), {"kernels": _Kernels(libraries)}, run_name="__main__")
    except PatchstackError:
        raise
    except Exception as error:  # the script is the user's: its error is the finding
        text = f"{type(error).__name__}: {error}"
        return [Finding(text, str(script), rule="script")]
    return [
        Finding(f"{one.kernel}: {one.message}", one.file, one.line, one.kind.value)
        for library in libraries
        for one in library.reports()
    ]
