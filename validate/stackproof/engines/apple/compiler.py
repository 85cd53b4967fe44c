"""Apple's own Metal compiler, where ``xcrun`` finds one: what it says of a source, and the kernels that it makes of it.

The flags are those of the tree's own build. Names of kernels come from the linked metallib, read by this package, since
that format is checked here on the libraries of Apple's wheels; no output of ``metal-nm`` is parsed. All of this was
tried with a stand-in for ``xcrun`` only: no Mac was at hand.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchstack.errors import PatchstackError
from stackproof.engines.apple.container import read_metallib
from stackproof.engines.errors import Diagnostic
from stackproof.engines.mac_build.xcrun import available, main_line, run_tool, without_place
from stackproof.engines.metal.toolchain import parse_diagnostics

# What the compiler says of itself and not of the source: another Xcode may take the same file.
_OF_THE_MACHINE = re.compile(
    r"unknown argument|invalid value|unable to find utility|cannot execute tool|missing Metal Toolchain|SDK", re.I
)


@dataclass(frozen=True)
class AppleCompiled:
    """What came of one source at one version.

    Attributes:
        diagnostics: errors and warnings, files named as the source's own.
        kernels: host names in the linked library; ``None`` where there is none.
        not_run: why the compiler could not judge the source; empty where it did.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    kernels: frozenset[str] | None = None
    not_run: str = ""

    def of_severity(self, severity: str) -> tuple[Diagnostic, ...]:
        """The diagnostics of one severity: ``error`` or ``warning``."""
        return tuple(one for one in self.diagnostics if one.severity == severity)


@dataclass(frozen=True)
class AppleCompiler:
    """One installed compiler.

    Attributes:
        version: first line of its ``--version``.
    """

    version: str

    def compile(self, source: Path, include: Sequence[Path], flags: Sequence[str], version: str) -> AppleCompiled:
        """Compile and link one source.

        Args:
            source: the ``.metal`` file.
            include: folders to search.
            flags: of the tree's build.
            version: of Metal, such as ``3.1``.
        """
        with tempfile.TemporaryDirectory(prefix="stackproof-apple-") as scratch:
            air, library = Path(scratch) / "kernels.air", Path(scratch) / "kernels.metallib"
            folders = [f"-I{folder}" for folder in include]
            done = run_tool("metal", "-c", str(source), *folders, *flags, standard_flag(version), "-o", str(air))
            diagnostics = tuple(one for one in parse_diagnostics(done.stderr) if one.severity != "note")
            if done.returncode:
                return _refused(source, done.stderr, diagnostics)
            linked = run_tool("metallib", str(air), "-o", str(library))
            if linked.returncode or not library.is_file():
                return AppleCompiled((*diagnostics, without_place("linking", linked.stderr, str(source))))
            try:
                made = read_metallib(library.read_bytes(), str(source))
            except PatchstackError as error:
                return AppleCompiled((*diagnostics, without_place("reading the library", str(error), str(source))))
            return AppleCompiled(diagnostics, frozenset(one.name for one in made.entries))


def find_compiler() -> tuple[AppleCompiler | None, str]:
    """The compiler of the selected Xcode, or why there is none."""
    if not available():
        return None, "no xcrun on this machine"
    done = run_tool("metal", "--version")
    if done.returncode:
        said = main_line(done.stderr)
        return None, f"xcrun finds no Metal compiler: {said} (next: xcodebuild -downloadComponent MetalToolchain)"
    return AppleCompiler(done.stdout.strip().partition("\n")[0]), ""


def standard_flag(version: str) -> str:
    """The flag that selects a version of Metal; before 3.0 each system had its own."""
    return f"-std={'metal' if version >= '3' else 'macos-metal'}{version}"


def _refused(source: Path, stderr: str, diagnostics: tuple[Diagnostic, ...]) -> AppleCompiled:
    """The compiler failed: a refusal, unless nothing that it says is about a source."""
    if any(one.severity == "error" for one in diagnostics):
        return AppleCompiled(diagnostics)
    if _OF_THE_MACHINE.search(stderr):
        return AppleCompiled(not_run=main_line(stderr))
    return AppleCompiled((*diagnostics, without_place("the compiler", stderr, str(source))))


def within(compiled: AppleCompiled, root: Path) -> AppleCompiled:
    """The same with files below ``root`` named from there."""
    prefix = f"{root}/"
    return replace(
        compiled, diagnostics=tuple(replace(one, file=one.file.removeprefix(prefix)) for one in compiled.diagnostics)
    )
