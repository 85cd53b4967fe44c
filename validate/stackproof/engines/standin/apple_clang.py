"""Apple's clang with Apple's SDK, where ``xcrun`` finds them: what they say of a host file.

The headers are the tree's, as for the portable compiler, but for the stubs: the SDK has the frameworks themselves, and
so MPSGraph too. Tried with a stand-in for ``xcrun`` only: no Mac was at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache as remembered
from pathlib import Path

from stackproof.engines.errors import Diagnostic
from stackproof.engines.mac_build.xcrun import available, run_tool, without_place
from stackproof.engines.metal.toolchain import parse_diagnostics
from stackproof.engines.standin.clang import LANGUAGE, STRICT


@dataclass(frozen=True)
class AppleClang:
    """One installed compiler.

    Attributes:
        version: first line of its ``--version``.
    """

    version: str

    def errors(self, source: Path, folders: Sequence[str], path: str) -> tuple[Diagnostic, ...]:
        """What it refuses in a host file; nothing is compiled.

        Args:
            source: the file.
            folders: flags with the include folders.
            path: what the file is called in the result.
        """
        done = run_tool("clang++", "-fsyntax-only", *LANGUAGE, *STRICT, *folders, str(source))
        found = tuple(one for one in parse_diagnostics(done.stderr) if one.severity == "error")
        if done.returncode and not found:
            return (without_place("Apple's clang", done.stderr, path),)
        return tuple(replace(one, file=path) if one.file == str(source) else one for one in found)


@remembered
def find_apple_clang() -> AppleClang | None:
    """The compiler of the selected Xcode; ``None`` where there is none."""
    done = run_tool("clang++", "--version") if available() else None
    return AppleClang(done.stdout.partition("\n")[0]) if done and not done.returncode else None
