"""Headers that many files begin with, compiled once: they are nine tenths of the time that a host file takes.

The compiler refuses what was precompiled once a header behind it has another time stamp: an environment was installed
again, or the project was cloned again, at the same place. It is compiled again then, though the text may be the same.
To compare texts instead is not enough: the compiler knows a header with `#pragma once` by its time stamp and its size,
and would read one with another time stamp a second time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from patchstack.cache import alone, replacing
from stackproof.engines.standin.clang import Compiled

# Without it the compiler looks at the time stamps of headers below `-I` only, and those of torch are below `-isystem`.
_CHECKED = ("-Xclang", "-fmodules-validate-system-headers")
# Templates that the headers themselves use are instantiated in there, not in each file that begins with them.
_MAKE = (*_CHECKED, "-Xclang", "-fpch-instantiate-templates")

Compile = Callable[[Sequence[str]], Compiled]


def beginning_with(prefix: Path) -> tuple[str, ...]:
    """Flags of a file that begins with what :func:`precompile` made."""
    return (*_CHECKED, "-include-pch", str(prefix))


def precompile(make: Compile, use: Compile, flags: Sequence[str], source: Path, output: Path) -> Compiled | None:
    """Compile the headers that ``source`` includes, unless ``output`` still is that; several processes do it once.

    Args:
        make: compiles a header.
        use: compiles a file of the same language.
        flags: of both, the same for every file that will begin with it.
        source: the header.
        output: where the result lies.

    Returns:
        What the compiler said, if it failed.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with alone(output.with_suffix(".lock")):
        if output.exists() and _is_current(use, flags, output):
            return None
        with replacing(output) as partial:
            done = make([*flags, *_MAKE, str(source), "-o", str(partial)])
            if not done.succeeded:
                partial.unlink(missing_ok=True)
        return None if done.succeeded else done


def _is_current(use: Compile, flags: Sequence[str], output: Path) -> bool:
    trial = output.with_suffix(f".{os.getpid()}.o")
    try:
        return use([*flags, *beginning_with(output), "-c", os.devnull, "-o", str(trial)]).succeeded
    finally:
        trial.unlink(missing_ok=True)
