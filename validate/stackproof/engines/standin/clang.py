"""The compiler for host files: the clang of the ziglang wheel, for this machine and for Apple's target.

The same wheel that compiles the kernels brings headers for macOS, so that no SDK is needed. For this machine it uses
the system's libstdc++ headers, as torch for Linux does; those come with any g++.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache as remembered
from pathlib import Path

from stackproof.engines.errors import Diagnostic, ToolchainError
from stackproof.engines.metal.toolchain import digest, parse_diagnostics, zig_command
from stackproof.packages import install_command

STUBS = Path(__file__).resolve().parent / "include"
STANDIN = Path(__file__).resolve().parent / "standin"
APPLE_TARGET = "aarch64-macos.14.0"
TIMEOUT_S = 600.0

# `-Werror=missing-prototypes`: a function whose parameters differ from the generated declaration would otherwise be an
# overload that nobody calls.
LANGUAGE = ("-x", "objective-c++", "-std=c++20", "-fblocks", "-DUSE_MPS", "-DAT_PER_OPERATOR_HEADERS")
STRICT = (
    "-Werror=missing-prototypes",
    "-Werror=objc-method-access",
    "-Werror=undeclared-selector",
    "-Werror=incompatible-pointer-types",
    "-Wno-deprecated-objc-isa-usage",
)
_HEADER = ("-x", "objective-c++-header")
_HERE = ("-fobjc-runtime=gcc", "-DFMT_HEADER_ONLY=1")


@dataclass(frozen=True)
class Compiled:
    """What the compiler said.

    Attributes:
        succeeded: exit status 0.
        diagnostics: in its order.
        text: standard output.
        seconds: wall time.
        tail: end of its standard error, for a failure without diagnostics.
    """

    succeeded: bool
    diagnostics: tuple[Diagnostic, ...]
    text: str
    seconds: float
    tail: str

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(one for one in self.diagnostics if one.severity == "error")


@dataclass(frozen=True)
class HostClang:
    """The two compilers and the linker.

    Attributes:
        here: command prefix for this machine, target included.
        apple: command prefix for Apple's target.
        linker: command prefix that makes a shared library of objects.
        version: first line of the version, part of every cache key.
    """

    here: tuple[str, ...]
    apple: tuple[str, ...]
    linker: tuple[str, ...]
    version: str

    def for_this_machine(self, arguments: Sequence[str]) -> Compiled:
        """Compile Objective-C++ for this machine's Objective-C and blocks runtime."""
        return _run([*self.here, *LANGUAGE, *_HERE, *arguments])

    def header_for_this_machine(self, arguments: Sequence[str]) -> Compiled:
        """Precompile a header of :meth:`for_this_machine`'s language and flags."""
        return _run([*self.here, *_HEADER, *LANGUAGE[2:], *_HERE, *arguments])

    def plain(self, arguments: Sequence[str]) -> Compiled:
        """Run the compiler for this machine with nothing added."""
        return _run([*self.here, *arguments])

    def for_apple(self, arguments: Sequence[str]) -> Compiled:
        """Compile Objective-C++ to an arm64 Mach-O object."""
        return _run_uncached([*self.apple, *LANGUAGE, *arguments])

    def header_for_apple(self, arguments: Sequence[str]) -> Compiled:
        """Precompile a header of :meth:`for_apple`'s language and flags."""
        return _run_uncached([*self.apple, *_HEADER, *LANGUAGE[2:], *arguments])

    def link(self, output: Path, inputs: Sequence[str]) -> None:
        """Make a shared library.

        Raises:
            ToolchainError: the linker fails.
        """
        done = subprocess.run(
            [*self.linker, "-o", str(output), *inputs], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
        if done.returncode:
            raise ToolchainError("linking the stand-in device failed", found=done.stderr.strip()[:400])


@remembered
def find_clang() -> HostClang:
    """The compiler of the ziglang wheel.

    Raises:
        ToolchainError: the wheel is missing; says what to type.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError("no portable clang", expected="the ziglang wheel", next_command=install_command("ziglang"))
    resources = Path(spec.submodule_search_locations[0]) / "lib"
    zig = zig_command(spec.submodule_search_locations[0])
    here = (*zig, "clang", "--target=x86_64-linux-gnu", "-resource-dir", str(resources))
    apple = (*zig, "c++", "-target", APPLE_TARGET)
    version = subprocess.run([*zig, "clang", "--version"], capture_output=True, text=True, check=False).stdout
    return HostClang(here, apple, (*zig, "ld.lld", "-shared", "--eh-frame-hdr"), version.partition("\n")[0])


@remembered
def require_headers(clang: HostClang) -> None:
    """Look whether files can be compiled for this machine; Apple's target needs no headers of the system.

    Raises:
        ToolchainError: the C++ headers of the system are missing; says what to type.
    """
    probe = subprocess.run(
        [*clang.here, "-x", "c++", "-fsyntax-only", "-"],
        input="#include <vector>\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode:
        raise ToolchainError(
            "no C++ headers for this machine", expected="those of g++", next_command="apt-get install g++"
        )


@remembered
def stubs_digest() -> str:
    """Content hash of the stub system headers."""
    return folder_digest(STUBS)


def folder_digest(folder: Path) -> str:
    """Content hash of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return digest(*(item for path in files for item in (str(path.relative_to(folder)), path.read_bytes())))


def _run_uncached(command: Sequence[str]) -> Compiled:
    """Run zig's own driver, which keeps objects and prints nothing for one that it has: no struct layouts."""
    with tempfile.TemporaryDirectory(prefix="stackproof-zig-") as scratch:
        return _run(command, {"ZIG_GLOBAL_CACHE_DIR": scratch, "ZIG_LOCAL_CACHE_DIR": scratch})


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Compiled:
    started = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT_S,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    seconds = time.monotonic() - started
    found = parse_diagnostics(done.stderr)
    return Compiled(done.returncode == 0, found, done.stdout, seconds, done.stderr.strip()[-600:])
