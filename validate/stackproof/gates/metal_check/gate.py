"""The gate "metal-check": every kernel that the stack touches compiles as Metal would have it.

Each touched ``.metal`` file of the head commit is type-checked with its address spaces, once per Metal version that the
tree is built for, and read by the static rules. What the base commit has too, at the same statement of the same
definition, is a note. Where ``xcrun`` finds Apple's compiler, it compiles each of them too and its errors count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.base_commit.findings import AS_BEFORE, failing, noted
from stackproof.engines.apple.compiler import AppleCompiled, AppleCompiler, find_compiler, within
from stackproof.engines.errors import Diagnostic
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.rules import RuleFinding, apply_rules
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.engines.metal.toolchain import find_toolchain
from stackproof.engines.metal.typecheck import IMPLICIT_BFLOAT, CheckedSource, check_source
from stackproof.gates.common.options import NoOptions
from stackproof.gates.common.results import judged, not_run
from stackproof.gates.common.sources import included_files, touched_among
from stackproof.gates.metal_check.apple import Judged, judged_with, tree_flags
from stackproof.gates.metal_check.spec import SPEC
from stackproof.model import Finding, GateContext, GateResult

# Where PyTorch names the Metal versions it compiles its kernels for.
_BUILD_FILES = ("aten/src/ATen/CMakeLists.txt", "cmake/Metal.cmake", "caffe2/CMakeLists.txt")
_VERSION = re.compile(rb"-std=(?:macos-)?metal(\d\.\d)")
DEFAULT_VERSIONS = ("3.1", "4.0")


@dataclass(frozen=True)
class _Checked:
    """One file at one version.

    Attributes:
        result: ``None`` where not even preprocessing worked; ``problem`` says why.
        apple: what Apple's compiler says; ``None`` where there is none.
    """

    path: str
    version: str
    result: CheckedSource | None
    problem: str = ""
    apple: AppleCompiled | None = None

    @property
    def by_apple(self) -> AppleCompiled | None:
        """What counts instead of this project's errors, where Apple's compiler judged the file."""
        return None if self.apple is None or self.apple.not_run else self.apple

    @cached_property
    def judged(self) -> Judged:
        """What is found."""
        ours = list(_own_findings_of(self))
        if self.by_apple is None:
            return Judged(tuple(ours), ())
        return judged_with(self.path, self.version, ours, self.result, self.by_apple)


@dataclass(frozen=True)
class _Compilers:
    """What checks the files.

    Attributes:
        apple: ``None`` where there is none; ``reason`` says why.
        flags: of the tree's build, for Apple's.
    """

    apple: AppleCompiler | None
    reason: str
    flags: tuple[str, ...]


def run(context: GateContext, _options: NoOptions) -> GateResult:
    """Judge the ``.metal`` files of ``context.head``.

    Raises:
        ToolchainError: there is no compiler.
    """
    find_toolchain()
    try:
        base, head = Tree.at(context.repository, context.base), Tree.at(context.repository, context.head)
        files = included_files(head)
        touched = touched_among(base, head, files)
        if not touched:
            return not_run(SPEC, "the stack touches no Metal source")
        versions = metal_versions(head)
        compilers = _Compilers(*find_compiler(), tree_flags(head))
        root = write_sources(
            {path: text for one in touched for path, text in files[one].items()}, context.cache / SPEC.name
        )
        checked = list(_check_all(root, touched, versions, compilers, context))
        findings = list(_findings(checked))
        if failing(findings):
            findings = noted(findings, _below(base, touched, versions, compilers, context), head=head, base=base)
    except PatchstackError as error:
        finding = Finding(str(error), path=error.where, rule="not-checked")
        return _result([_Checked(error.where, "", None, str(error))], [finding], None)
    return _result(checked, findings, compilers)


def metal_versions(tree: Tree) -> tuple[str, ...]:
    """The Metal versions that the tree's build files name, oldest first; today's where it has none.

    Metal 3.0 has no bfloat; trees that still build for it guard it by ``__METAL_VERSION__``.
    """
    found = {match.decode() for path in _BUILD_FILES for match in _VERSION.findall(tree.read(path) or b"")}
    return tuple(sorted(found)) or DEFAULT_VERSIONS


def _check_all(
    root: Path, touched: Sequence[str], versions: Sequence[str], compilers: _Compilers, context: GateContext
) -> Iterator[_Checked]:
    pairs = [(path, version) for path in touched for version in versions]
    with ThreadPoolExecutor(max_workers=max(1, context.jobs)) as pool:
        futures = [pool.submit(_check_one, root, path, version, compilers) for path, version in pairs]
        for done, ((path, version), future) in enumerate(zip(pairs, futures, strict=True), 1):
            yield future.result()
            context.progress(done, len(pairs), f"{path}, Metal {version}")


def _check_one(root: Path, path: str, version: str, compilers: _Compilers) -> _Checked:
    include_dirs = tuple(root / folder for folder in INCLUDE_FOLDERS)
    apple = None
    if compilers.apple:
        apple = within(compilers.apple.compile(root / path, include_dirs, compilers.flags, version), root)
    source = Source(root / path, include_dirs, version, root=root)
    try:
        return _Checked(path, version, check_source(source), apple=apple)
    except PatchstackError as error:
        return _Checked(path, version, None, str(error).replace(f"{root}/", ""), apple)


def source_findings(source: Source) -> list[Finding]:
    """What the gate would say of one source at one version, outside any tree."""
    try:
        checked = _Checked(str(source.path), source.metal_version, check_source(source))
    except PatchstackError as error:
        checked = _Checked(str(source.path), source.metal_version, None, str(error))
    return list(checked.judged.findings)


def _below(
    base: Tree, touched: Sequence[str], versions: Sequence[str], compilers: _Compilers, context: GateContext
) -> list[Finding]:
    """What the gate finds in the same sources of the base."""
    there = [path for path in touched if base.exists(path)]
    files = {path: text for one in there for path, text in collect_sources(base, one).items()}
    root = write_sources(files, context.cache / SPEC.name)
    return list(_findings(list(_check_all(root, there, versions, compilers, context))))


def _findings(checked: Sequence[_Checked]) -> Iterator[Finding]:
    """One finding per place, whatever the number of versions that have it."""
    seen: dict[tuple[str, int, str, str], Finding] = {}
    for one in checked:
        for finding in one.judged.findings:
            key = (finding.path, finding.line, finding.rule, finding.message)
            seen.setdefault(key, finding)
    yield from sorted(seen.values(), key=lambda finding: (finding.path, finding.line, finding.rule))


def _own_findings_of(one: _Checked) -> Iterator[Finding]:
    details = {"metal_version": one.version}
    if one.result is None:
        yield Finding(one.problem, path=one.path, rule="compile", details=details)
        return
    for error in one.result.errors:
        yield _from_compiler(error, True, details)
    for warning in one.result.warnings:
        yield _from_compiler(warning, False, details)
    for broken in apply_rules(one.result):
        yield _from_rule(broken, details)


def _from_compiler(diagnostic: Diagnostic, fails: bool, details: Mapping[str, str]) -> Finding:
    rule = IMPLICIT_BFLOAT if diagnostic.flag == IMPLICIT_BFLOAT else diagnostic.flag or "compile"
    return Finding(diagnostic.message, diagnostic.file, diagnostic.line, rule, fails, details)


def _from_rule(broken: RuleFinding, details: Mapping[str, str]) -> Finding:
    return Finding(broken.message, broken.file, broken.line, broken.rule, details=details)


def _result(checked: Sequence[_Checked], findings: Sequence[Finding], compilers: _Compilers | None) -> GateResult:
    failed_at = {(finding.path, finding.line) for finding in findings if finding.fails}
    rows = [_row(one, failed_at) for one in checked]
    # A file with an error has no checked kernel at all: the compiler stopped somewhere in it.
    cases = sum(max(1, row["kernels"]) for row in rows if row["errors"] or not row["errors_before"])
    by_apple = bool(checked) and all(one.by_apple for one in checked)
    return judged(
        SPEC,
        cases=cases,
        failed=sum(max(1, row["kernels"]) for row in rows if row["errors"]),
        findings=findings,
        undecided=f"what the stack touches does not compile, {AS_BEFORE}" if rows and not cases else "",
        limits=() if by_apple else None,
        details={"files": rows} | ({"apple_compiler": _apple(checked, compilers)} if compilers else {}),
    )


def _row(one: _Checked, failed_at: Collection[tuple[str, int]]) -> dict[str, Any]:
    """What is known about one file at one version; errors that the base has too are counted apart."""
    errors = [(error.file, error.line) for error in one.result.errors] if one.result else [(one.path, 0)]
    if one.by_apple is not None:
        errors = [(error.file, error.line) for error in one.by_apple.of_severity("error")]
    own = sum(place in failed_at for place in errors)
    return {
        "file": one.path,
        "metal_version": one.version,
        "kernels": len(one.result.kernels) if one.result else 0,
        "errors": own,
        "errors_before": len(errors) - own,
    }


def _apple(checked: Sequence[_Checked], compilers: _Compilers) -> dict[str, Any]:
    """What Apple's compiler did, in JSON; where it was not run, why."""
    reasons = [f"Metal {one.version}: {one.apple.not_run}" for one in checked if one.apple and one.apple.not_run]
    return {
        "checks": sum(one.by_apple is not None for one in checked),
        "version": compilers.apple.version if compilers.apple else "",
        "flags": list(compilers.flags),
        "not_run": list(dict.fromkeys(reasons)) or ([compilers.reason] if compilers.reason else []),
        "disagreements": [text for one in checked for text in one.judged.disagreements],
    }
