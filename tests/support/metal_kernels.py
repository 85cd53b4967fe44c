"""What the tests of the Metal host share: where kernels lie, a cache, and libraries compiled once per session."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from patchstack.cache import cache_dir
from stackproof.engines.metal import MetalLibrary, RunMode, compile_library

KERNELS = Path(__file__).parents[1] / "validate/engines/metal/kernels"
_MARK = re.compile(r"// (fault: (?P<kind>[a-z-]+)(?: (?P<kernel>\w+))?|(?P<other>other))$")
_KERNEL = re.compile(r"^kernel void (\w+)\(|^static void ")


def cache() -> Path:
    """The cache that tests compile into."""
    named = os.environ.get("STACKPROOF_TEST_CACHE")
    return Path(named) if named else cache_dir() / "tests"


@lru_cache
def library(name: str, mode: RunMode = RunMode.PLAIN) -> MetalLibrary:
    """The library of one of the kernel files of these tests."""
    return compile_library(KERNELS / name, cache=cache(), mode=mode)


@lru_cache
def marked_lines(name: str) -> dict[str, tuple[str, int, int]]:
    """Kernel name to the kind of its fault, its line and the line of the other access (0 for none)."""
    found: dict[str, tuple[str, int, int]] = {}
    others: dict[str, int] = {}
    kernel = ""
    for number, line in enumerate((KERNELS / name).read_text().splitlines(), 1):
        if match := _KERNEL.match(line):
            kernel = match[1] or ""
        if mark := _MARK.search(line):
            if mark["other"]:
                others[kernel] = number
            else:
                found[mark["kernel"] or kernel] = (mark["kind"], number, 0)
    return {name: (kind, line, others.get(name, 0)) for name, (kind, line, _other) in found.items()}
