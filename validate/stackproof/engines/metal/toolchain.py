"""The compiler: any Clang with C++ for OpenCL, first of all the one in the ``ziglang`` wheel.

The wheel is the default because one ``pip install`` gives the same Clang on Linux and macOS, linker included.
``STACKPROOF_CLANG`` names another one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from patchstack.cache import replacing
from patchstack.python_processes import module_command
from stackproof.engines.errors import CompileError, Diagnostic, ToolchainError
from stackproof.packages import install_command

NAMED = "STACKPROOF_CLANG"
INCLUDE = Path(__file__).resolve().parent / "include"
RUNTIME = Path(__file__).resolve().parent / "runtime"

_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<severity>fatal error|error|warning|note): (?P<message>.*)$"
)
_FLAG = re.compile(r" \[(?:-Werror,)?-W([\w+=-]+)\]$")


@dataclass(frozen=True)
class Toolchain:
    """A compiler and a linker.

    Attributes:
        compiler: command prefix of Clang.
        linker: command prefix that makes a shared library of objects; ``-o`` and the objects follow.
        version: first line of its version, part of every cache key.
        target_flags: flags for this processor.
    """

    compiler: tuple[str, ...]
    linker: tuple[str, ...]
    version: str
    target_flags: tuple[str, ...]

    @property
    def major(self) -> int:
        """Major version of Clang, 0 when it does not tell."""
        found = re.search(r"clang version (\d+)", self.version)
        return int(found[1]) if found else 0

    def run(self, arguments: Sequence[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the compiler; the caller judges the exit status."""
        command = [*self.compiler, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, errors="replace", check=False)

    def link(self, output: Path, objects: Sequence[Path]) -> None:
        """Make a shared library.

        Raises:
            ToolchainError: the linker fails.
        """
        with replacing(output) as partial:
            command = [*self.linker, "-o", str(partial), *map(str, objects)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolchainError("linking failed", where=str(output), found=done.stderr.strip()[:400])


@lru_cache(maxsize=1)
def find_toolchain() -> Toolchain:
    """The first usable compiler: ``STACKPROOF_CLANG``, the ziglang wheel, then ``clang`` of the system.

    Raises:
        ToolchainError: there is none.
    """
    for compiler, linker in _candidates():
        done = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and "clang version" in done.stdout:
            return Toolchain(compiler, linker, done.stdout.splitlines()[0], _target_flags())
    if named := os.environ.get(NAMED):
        raise ToolchainError(
            f"{NAMED} names no clang that can be run", where=named, next_command=f"unset {NAMED}, or name another one"
        )
    raise ToolchainError(
        "no compiler for Metal sources", expected="Clang 15 or newer", next_command=install_command("ziglang")
    )


def _candidates() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    names = ["clang", *(f"clang-{n}" for n in range(25, 14, -1))]
    named = os.environ.get(NAMED)
    system = [path for name in ([named] if named else names) if (path := shutil.which(name))]
    linking = ("-shared", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared", "-nostdlib")
    clangs: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((path,), (path, *linking)) for path in system]
    if named:
        return clangs
    wheel = importlib.util.find_spec("ziglang")
    if wheel and wheel.submodule_search_locations:
        zig = zig_command(wheel.submodule_search_locations[0])
        linker = (*zig, "cc", *linking) if sys.platform == "darwin" else (*zig, "ld.lld", "-shared")
        found.append(((*zig, "clang"), linker))
    return found + clangs


def zig_command(package: str) -> tuple[str, ...]:
    """What runs the compiler of the ziglang wheel: the program itself, which saves starting Python each time.

    Args:
        package: folder of the installed package.
    """
    program = shutil.which("zig", path=package)
    return (program,) if program else tuple(module_command("ziglang"))


def _target_flags() -> tuple[str, ...]:
    # Half conversions and fused multiply-add in hardware where the processor has them: ten times faster, same bits.
    if platform.machine() in ("x86_64", "AMD64"):
        try:
            text = Path("/proc/cpuinfo").read_text()
        except OSError:
            return ()
        line = next((one for one in text.splitlines() if one.startswith("flags")), "")
        features = set(line.split())
        return tuple(f"-m{name}" for name in ("avx", "f16c", "fma", "avx2") if name in features)
    return ()


# Clang's names for what the source calls otherwise.
_METAL_NAMES = {
    "__global": "device",
    "__local": "threadgroup",
    "__private": "thread",
    "__constant": "constant",
    "__metal_bfloat": "bfloat",
    "_Float16": "half",
}
_CLANG_NAME = re.compile("|".join(_METAL_NAMES))


def parse_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """The compiler's lines that name a place; carets and snippets are dropped."""
    found = []
    for line in text.splitlines():
        if match := _DIAGNOSTIC.match(line):
            message = _CLANG_NAME.sub(lambda name: _METAL_NAMES[name[0]], match["message"])
            flag = _FLAG.search(message)
            severity = "error" if "error" in match["severity"] else match["severity"]
            text_only = message[: flag.start()] if flag else message
            found.append(
                Diagnostic(
                    severity,
                    text_only,
                    match["file"],
                    int(match["line"]),
                    int(match["column"]),
                    flag[1] if flag else "",
                )
            )
    return tuple(found)


def failure(what: str, stderr: str) -> CompileError:
    """A :class:`CompileError` about the first error in the compiler's output."""
    diagnostics = parse_diagnostics(stderr)
    first = next((d for d in diagnostics if d.severity == "error"), None)
    if first is None:
        return CompileError("the compiler failed", where=what, found=stderr.strip()[-400:], diagnostics=diagnostics)
    return CompileError(first.message, where=f"{first.file}:{first.line}", diagnostics=diagnostics)


def digest(*parts: str | bytes) -> str:
    """A short content hash of the parts, for names in the cache."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:24]


@lru_cache
def headers_digest(include: Path = INCLUDE) -> str:
    """Content hash of the headers and of the runtime, part of every cache key.

    Args:
        include: folder of the headers.
    """
    files = sorted([*include.rglob("*"), *RUNTIME.iterdir()])
    return digest(*(item for path in files if path.is_file() for item in (path.name, path.read_bytes())))
