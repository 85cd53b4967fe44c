"""Print the conformance table of the Metal front end, from the pairs of kernels that the tests check.

PYTHONPATH=tests/support python bench/metal_table.py > docs/reference/metal.md
"""

from __future__ import annotations

import sys

from metal_conformance import (
    ACCEPTED,
    BORDERS,
    LIBRARY,
    LIMITS,
    OFFSETS,
    SIGNATURES,
    SPACES,
    STORAGE,
    VERSIONS,
    WORDING,
    Border,
)

_PARTS = (
    ("What Metal accepts and Clang has no word for", ACCEPTED),
    ("Wording that Clang reads otherwise", WORDING),
    ("The library", LIBRARY),
    ("Versions", VERSIONS),
    ("Limits", LIMITS),
    ("Address spaces", SPACES),
    ("Where variables may be", STORAGE),
    ("Signatures of kernels", SIGNATURES),
    ("Offsets of 32 bits (a rule of review: Apple's compiler takes them)", OFFSETS),
)
_HEAD = """# What the Metal front end accepts and refuses

This file is made by `bench/metal_table.py` from `tests/support/metal_conformance.py`.
The tests check both sides of each row.
The front end is Clang's C++ for OpenCL with headers and rules of this project.
Nothing here was run by Apple's compiler.

- accepted: the kernel on the near side of the rule's border type-checks.
- refused: the kernel on the far side is an error; `-` where the feature has no far side.
- executed: the near side is compiled for a host; `not run` where only a GPU has what it takes.
- sections are those of the Metal Shading Language specification, version 3.2; the numbers are from memory, no copy was
  at hand to check them.
"""


def table() -> str:
    """The whole document."""
    lines = [_HEAD]
    for title, rows in _PARTS:
        lines.append(f"## {title}\n\n| feature | accepted | refused | executed | source |\n|---|---|---|---|---|")
        lines += [_row(one) for one in rows]
        lines.append("")
    assert sum(len(rows) for _, rows in _PARTS) == len(BORDERS)
    return "\n".join(lines)


def _row(one: Border) -> str:
    refused = f"Metal {one.refused_version or one.version}" if one.refused else "-"
    executed = "compiled for a host" if one.runs and "k(device float* o" in one.accepted else "not run"
    return f"| {one.feature} | Metal {one.version} | {refused} | {executed} | {one.source} |"


if __name__ == "__main__":
    sys.stdout.write(table())
