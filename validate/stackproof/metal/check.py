"""The gate "metal-check": every kernel that the stack touches compiles as Metal would have it.

Each touched ``.metal`` file of the head commit is type-checked with its address spaces, once per Metal version that the
tree is built for, and read by the static rules. Errors fail the gate wherever they are; a rule fails it only on lines
that the stack adds, and is information elsewhere.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import PatchstackError
from patchstack.git import Tree
from stackproof.metal.build import Source
from stackproof.metal.model import Diagnostic
from stackproof.metal.rules import RuleFinding, apply_rules
from stackproof.metal.toolchain import find_toolchain
from stackproof.metal.typecheck import IMPLICIT_BFLOAT, CheckedSource, check_source
from stackproof.metal_run.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.model import Finding, GateContext, GateResult, Verdict

NAME = "metal-check"
KERNELS = "aten/src/ATen/native/mps"
# Where PyTorch names the Metal versions it compiles its kernels for.
_BUILD_FILES = ("aten/src/ATen/CMakeLists.txt", "cmake/Metal.cmake", "caffe2/CMakeLists.txt")
_VERSION = re.compile(rb"-std=(?:macos-)?metal(\d\.\d)")
DEFAULT_VERSIONS = ("3.1", "4.0")
LIMITS = (
    "Clang's C++ for OpenCL stands in for Apple's compiler: what only Apple's front end rejects was not seen.",
    "The Metal library headers are this project's own: overloads that Apple adds or leaves out may differ.",
)


@dataclass(frozen=True)
class _Checked:
    """One file at one version; ``problem`` instead of a result where not even preprocessing worked."""

    path: str
    version: str
    result: CheckedSource | None
    problem: str = ""


class MetalCheckGate:
    """Implements :class:`stackproof.model.Gate`.

    Options: ``metal_versions`` (instead of those of the tree), ``all_kernels`` (every ``.metal`` of the tree, not only
    the touched ones).
    """

    name = NAME
    summary = "the kernels compile as Metal would have them (address spaces, Metal version, static rules)"

    def run(self, context: GateContext) -> GateResult:
        """Judge the ``.metal`` files of ``context.head``.

        Raises:
            ToolchainError: there is no compiler.
        """
        started = time.monotonic()
        find_toolchain()
        try:
            base, head = Tree.at(context.repository, context.base), Tree.at(context.repository, context.head)
            files = _included_files(head)
            touched = sorted(files) if context.options.get("all_kernels") else _touched(base, head, files)
            if not touched:
                reason = "the stack touches no Metal source"
                return GateResult(NAME, Verdict.NOT_RUN, reason=reason, limits=LIMITS)
            versions = tuple(context.options.get("metal_versions") or metal_versions(head))
            root = write_sources(
                {path: text for one in touched for path, text in files[one].items()}, context.cache / NAME
            )
            checked = list(_check_all(root, touched, versions, context))
            added = {path: added_lines(base.read(path), head.read(path)) for one in touched for path in files[one]}
        except PatchstackError as error:
            finding = Finding(str(error), path=error.where, rule="not-checked")
            return _result([_Checked(error.where, "", None, str(error))], [finding], started)
        return _result(checked, list(_findings(checked, added)), started)


def metal_versions(tree: Tree) -> tuple[str, ...]:
    """The Metal versions that the tree's build files name, oldest first; today's where it has none.

    Metal 3.0 has no bfloat; trees that still build for it guard it by ``__METAL_VERSION__``.
    """
    found = {match.decode() for path in _BUILD_FILES for match in _VERSION.findall(tree.read(path) or b"")}
    return tuple(sorted(found)) or DEFAULT_VERSIONS


def added_lines(before: bytes | None, after: bytes | None) -> frozenset[int]:
    """1-based numbers of the lines of ``after`` that ``before`` does not have."""
    old, new = ((text or b"").decode(errors="replace").splitlines() for text in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    changed = (range(op[3] + 1, op[4] + 1) for op in matcher.get_opcodes() if op[0] in ("insert", "replace"))
    return frozenset(line for lines in changed for line in lines)


def _included_files(tree: Tree) -> dict[str, dict[str, bytes]]:
    """Every ``.metal`` of the MPS backend, with the files it is made of."""
    sources = [path for path in tree.walk(KERNELS) if path.endswith(".metal")]
    return {path: collect_sources(tree, path) for path in sources}


def _touched(base: Tree, head: Tree, files: Mapping[str, Mapping[str, bytes]]) -> list[str]:
    changed = {path: base.read(path) != head.read(path) for path in {p for one in files.values() for p in one}}
    return sorted(source for source, parts in files.items() if any(changed[path] for path in parts))


def _check_all(root: Path, touched: Sequence[str], versions: Sequence[str], context: GateContext) -> Iterator[_Checked]:
    pairs = [(path, version) for path in touched for version in versions]
    with ThreadPoolExecutor(max_workers=max(1, context.jobs)) as pool:
        futures = [pool.submit(_check_one, root, path, version) for path, version in pairs]
        for done, ((path, version), future) in enumerate(zip(pairs, futures, strict=True), 1):
            yield future.result()
            context.progress(done, len(pairs), f"{path}, Metal {version}")


def _check_one(root: Path, path: str, version: str) -> _Checked:
    include_dirs = tuple(root / folder for folder in INCLUDE_FOLDERS)
    source = Source(root / path, include_dirs, version, root=root)
    try:
        return _Checked(path, version, check_source(source))
    except PatchstackError as error:
        return _Checked(path, version, None, str(error).replace(f"{root}/", ""))


def _findings(checked: Sequence[_Checked], added: Mapping[str, frozenset[int]]) -> Iterator[Finding]:
    """One finding per place, whatever the number of versions that have it."""
    seen: dict[tuple[str, int, str, str], Finding] = {}
    for one in checked:
        for finding in _findings_of(one, added):
            key = (finding.path, finding.line, finding.rule, finding.message if finding.rule == "compile" else "")
            seen.setdefault(key, finding)
    yield from sorted(seen.values(), key=lambda finding: (finding.path, finding.line, finding.rule))


def _findings_of(one: _Checked, added: Mapping[str, frozenset[int]]) -> Iterator[Finding]:
    details = {"metal_version": one.version}
    if one.result is None:
        yield Finding(one.problem, path=one.path, rule="compile", details=details)
        return
    for error in one.result.errors:
        yield _from_compiler(error, True, details)
    for warning in one.result.warnings:
        yield _from_compiler(warning, False, details)
    for broken in apply_rules(one.result):
        yield _from_rule(broken, added, details)


def _from_compiler(diagnostic: Diagnostic, fails: bool, details: Mapping[str, str]) -> Finding:
    rule = IMPLICIT_BFLOAT if diagnostic.flag == IMPLICIT_BFLOAT else diagnostic.flag or "compile"
    return Finding(diagnostic.message, diagnostic.file, diagnostic.line, rule, fails, details)


def _from_rule(broken: RuleFinding, added: Mapping[str, frozenset[int]], details: Mapping[str, str]) -> Finding:
    fails = broken.line in added.get(broken.file, frozenset())
    return Finding(broken.message, broken.file, broken.line, broken.rule, fails, details)


def _result(checked: Sequence[_Checked], findings: Sequence[Finding], started: float) -> GateResult:
    rows = [
        {
            "file": one.path,
            "metal_version": one.version,
            "kernels": len(one.result.kernels) if one.result else 0,
            "errors": len(one.result.errors) if one.result else 1,
        }
        for one in checked
    ]
    # A file with an error has no checked kernel at all: the compiler stopped somewhere in it.
    cases = sum(max(1, int(str(row["kernels"]))) for row in rows)
    failed = sum(max(1, int(str(row["kernels"]))) for row in rows if row["errors"])
    fails = any(finding.fails for finding in findings)
    return GateResult(
        NAME,
        Verdict.FAILED if fails or failed or not cases else Verdict.PASSED,
        cases=cases,
        failed=failed,
        seconds=time.monotonic() - started,
        findings=findings,
        details={"files": rows},
        limits=LIMITS,
    )
