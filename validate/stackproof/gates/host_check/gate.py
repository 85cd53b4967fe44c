"""The gate "host-check": every host function that the stack touches compiles and fits what is around it.

Each file is judged in four ways: it compiles for Apple's target against its own tree's headers, the macOS release
exports what the object asks for, the structs that it shares with its kernels have one layout on both sides, and
nothing stands inside or outside a queue block that does not belong there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from patchstack.confine.policy import TreeCodeForbiddenError
from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.base_commit.findings import AS_BEFORE, failing, noted
from stackproof.base_commit.places import uses
from stackproof.engines.errors import ToolchainError
from stackproof.engines.standin.apple_clang import find_apple_clang
from stackproof.engines.standin.clang import find_clang
from stackproof.engines.standin.headers import prepare_headers
from stackproof.engines.standin.host_file import FileChecker, FileVerdict, release_of
from stackproof.engines.standin.stack import HostStack
from stackproof.engines.standin.symbols import release_exports
from stackproof.gates.common.options import NoOptions
from stackproof.gates.common.results import failed_early, judged, not_run
from stackproof.gates.common.sources import stack_of
from stackproof.gates.common.touched import Touched
from stackproof.gates.host_check.spec import SPEC
from stackproof.model import Finding, GateContext, GateResult

# Parts of a symbol that no statement need name.
_NAMESPACES = {"at", "c10", "torch", "native", "mps", "_ops", "call", "redispatch", "detail"}
_DEFAULT_RELEASE = "2.11"


def run(context: GateContext, _options: NoOptions) -> GateResult:
    """Judge the host files of ``context.head``."""
    stack = stack_of(context)
    if not stack.files:
        return not_run(SPEC, "the stack touches no operations/*.mm")
    try:
        checker = _checker(context, stack)
    except (ToolchainError, TreeCodeForbiddenError) as error:
        return not_run(SPEC, str(error))
    except PatchstackError as error:
        return failed_early(SPEC, Finding(str(error), path=error.where, rule="headers"))
    verdicts = []
    with ThreadPoolExecutor(max_workers=max(context.jobs, 1)) as pool:
        if checker.exports is not None:  # a file may use what another file of the stack brings
            brought = (name for made in pool.map(checker.compiled, stack.files) for name in made.defined)
            checker.exports |= frozenset(brought)
        for done, verdict in enumerate(pool.map(checker.check, stack.files), 1):
            verdicts.append(verdict)
            context.progress(done, len(stack.files), verdict.path)
    return _result(_as_below(context, stack, checker, verdicts), checker.apple.version if checker.apple else "")


def _checker(context: GateContext, stack: HostStack) -> FileChecker:
    cache = context.cache / SPEC.name
    context.progress(0, len(stack.files), "headers of the tree")
    checker = FileChecker(stack.tree, find_clang(), prepare_headers(stack.tree, cache), cache)
    checker.apple = find_apple_clang()
    try:
        checker.exports = release_exports(_release_wheel(stack.tree), cache)
    except PatchstackError as error:
        checker.no_exports = str(error)
    return checker


def _as_below(
    context: GateContext, stack: HostStack, checker: FileChecker, verdicts: Sequence[FileVerdict]
) -> list[FileVerdict]:
    """The verdicts, with what the base has too as notes."""
    failed = [verdict.path for verdict in verdicts if failing(verdict.findings)]
    if not failed or stack.base is None:
        return list(verdicts)
    base = stack.base
    try:
        below = replace(checker, tree=base, headers=prepare_headers(base, checker.cache))
    except PatchstackError:
        return list(verdicts)  # there is nothing to compare with: the findings count
    theirs = [finding for file in HostStack.of(base, failed).files for finding in below.check(file).findings]
    touched = Touched.by(context)
    return [_noted(verdict, theirs, touched) for verdict in verdicts]


def _noted(verdict: FileVerdict, theirs: Sequence[Finding], touched: Touched) -> FileVerdict:
    """One verdict; a file that does not compile below the stack either is not checked."""
    head, base = touched.head, touched.base
    findings = noted(verdict.findings, theirs, head=head, base=base, touched=lambda one: _touches(touched, one))
    verdict = replace(verdict, findings=tuple(findings))
    if failing(findings) or not any(one.rule == "syntax" for one in findings):
        return verdict
    return replace(verdict, cases=0, skipped=(f"{verdict.path} does not compile, {AS_BEFORE}",))


def _touches(touched: Touched, finding: Finding) -> bool:
    """Whether the stack touches what a finding without a line is about: the statements, or the types, that it names."""
    words = set(re.findall(r"\w+", finding.message))
    if finding.rule == "missing-symbol":
        named = set(finding.message.split()[-2].split("::")) - _NAMESPACES
        return bool(uses(touched.head, finding.path, named) - uses(touched.base, finding.path, named))
    return not finding.line and touched.definition(words)


def _release_wheel(tree: Tree) -> Path:
    """The macOS wheel nearest to the tree: the reference of its own release where there is one."""
    from patchstack.reference import is_known, reference_wheel

    name = release_of(tree)
    return reference_wheel(name if is_known(name) else _DEFAULT_RELEASE)


def _result(verdicts: Sequence[FileVerdict], apple: str) -> GateResult:
    findings = [finding for verdict in verdicts for finding in verdict.findings]
    skipped = [text for verdict in verdicts for text in verdict.skipped]
    findings += [Finding(text, rule="not-checked", fails=False) for text in skipped]
    return judged(
        SPEC,
        cases=sum(verdict.cases for verdict in verdicts),
        failed=len({(f.path, f.rule) for f in findings if f.fails}),
        findings=findings,
        undecided="" if any(verdict.cases for verdict in verdicts) else skipped[0],
        limits=() if apple else None,
        details={
            "files": [verdict.path for verdict in verdicts],
            "not_checked": skipped,
            "apple_compiler": {"version": apple, "not_run": [] if apple else ["no xcrun on this machine"]},
        },
    )
