"""Apple's compiler beside this project's: where both judged a file, Apple's errors count and ours are notes.

What the two see differently is listed, because each entry is a fault of this project's front end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patchstack.tree.git import Tree
from stackproof.engines.apple.compiler import AppleCompiled
from stackproof.engines.metal import rules
from stackproof.engines.metal.typecheck import CheckedSource
from stackproof.model import Finding

COMPILE = "apple-compile"
DISAGREEMENT = "disagreement"

_FLAGS_FILE = "cmake/Metal.cmake"
_FLAGS = re.compile(rb"^\s*set\(\s*METAL_CFLAGS\s+([^)]*)\)", re.MULTILINE)
# What a reviewer would say, and Apple's compiler does not.
_FOR_REVIEWERS = frozenset(
    {
        rules.CONSTANT_DATA,
        rules.DIVERGENT_SIMDGROUP,
        rules.DUPLICATE_HOST_NAME,
        rules.MISSING_DTYPE,
        rules.MISSING_HOST_NAME,
        rules.NARROW_OFFSET,
    }
)
# Of PyTorch's build since 2.6, for trees that do not hold the file.
_USUAL = ("-Wall", "-Wextra", "-fno-fast-math")


def tree_flags(tree: Tree) -> tuple[str, ...]:
    """The flags that the tree's build gives the Metal compiler, without the version."""
    found = _FLAGS.search(tree.read(_FLAGS_FILE) or b"")
    words = found[1].decode(errors="replace").replace('"', " ").split() if found else []
    return tuple(word for word in words if word.startswith("-") and "$" not in word) or _USUAL


@dataclass(frozen=True)
class Judged:
    """One file at one version as both compilers see it.

    Attributes:
        findings: in the order of the report.
        disagreements: one sentence each.
    """

    findings: tuple[Finding, ...]
    disagreements: tuple[str, ...]


def judged_with(
    path: str, version: str, ours: Sequence[Finding], checked: CheckedSource | None, apple: AppleCompiled
) -> Judged:
    """Merge what both compilers say of a file; Apple's has judged it.

    Args:
        path: of the file.
        version: of Metal.
        ours: findings of this project.
        checked: what they were made from; ``None`` where not even preprocessing worked.
        apple: what Apple's compiler says.
    """
    details = {"metal_version": version, "compiler": "apple"}
    errors = apple.of_severity("error")
    findings = [Finding(one.message, one.file, one.line, COMPILE, True, details) for one in errors]
    warnings = apple.of_severity("warning")
    findings += [Finding(one.message, one.file, one.line, one.flag or COMPILE, False, details) for one in warnings]
    refused = [one for one in ours if one.fails and one.rule not in _FOR_REVIEWERS]
    findings += [_beside(one, accepted=not errors) if one in refused else one for one in ours]
    told = tuple(_disagreements(path, version, refused, checked, apple))
    findings += [Finding(text, path, rule=DISAGREEMENT, fails=False, details=details) for text in told]
    return Judged(tuple(findings), told)


def _beside(finding: Finding, *, accepted: bool) -> Finding:
    said = "Apple's compiler takes the file" if accepted else "Apple's compiler refuses the file, see there"
    return replace(finding, message=f"{finding.message} (this project's front end; {said})", fails=False)


def _disagreements(
    path: str, version: str, refused: Sequence[Finding], checked: CheckedSource | None, apple: AppleCompiled
) -> Iterator[str]:
    errors = apple.of_severity("error")
    if errors and not refused:
        yield f"{path} at Metal {version}: only Apple's compiler refuses it: {errors[0].message}"
    if refused and not errors:
        first = refused[0]
        yield f"{path} at Metal {version}: only this project refuses it, at line {first.line}: {first.message}"
    if checked is None or apple.kernels is None:
        return
    ours = {one.host_name for one in checked.kernels}
    for names, who in ((ours - apple.kernels, "only this project"), (apple.kernels - ours, "only Apple's compiler")):
        if names:
            few = ", ".join(sorted(names)[:3])
            yield f"{path} at Metal {version}: {who} finds {len(names)} of the kernels: {few}"
