"""The gate "test-mps": the tests of ``test/test_mps.py`` that concern the series.

Which tests those are follows from the series' ops and from the test methods that the stack adds or changes. On a Mac
they are for the built tree and a real GPU; elsewhere the same file runs on the stand-in device, and is labelled so.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.base_commit.findings import as_note, failing, noted
from stackproof.engines.errors import CompileError, ToolchainError
from stackproof.engines.mac_build.folder import built_tree
from stackproof.engines.mac_build.plan import test_patterns
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.engines.standin.build import DeviceBuild, build_device
from stackproof.engines.standin.headers import write_files
from stackproof.engines.standin.stack import HostStack
from stackproof.engines.standin.trace import Doing, last_of
from stackproof.gates.common.results import failed_early, judged, not_run
from stackproof.gates.common.sources import stack_of
from stackproof.gates.common.standin.below import BelowHost
from stackproof.gates.common.standin.here import why_not_here
from stackproof.gates.common.standin.watched import fallback_findings
from stackproof.gates.test_mps.child import FALLBACK, STATUSES, TEST, TEST_FILE, Chunk, MpsTests, TestOutcome
from stackproof.gates.test_mps.fast_path import run_on_mps
from stackproof.gates.test_mps.loading import LISTS, TESTING
from stackproof.gates.test_mps.spec import SPEC, Options
from stackproof.launches import DETAIL, NOT_COUNTED, Launches, looked_at, never_launched
from stackproof.model import Finding, GateContext, GateResult

_MISMATCHED = re.compile(r"Mismatched elements: (\d+) / \d+ \([\d.]+%\)")
_CHUNKS = 4
_TIMEOUT_S = 300.0


def run(context: GateContext, options: Options) -> GateResult:
    """Run the head commit's tests."""
    tree = Tree.at(context.repository, context.head)
    reason = _refused(tree)
    if reason:
        return not_run(SPEC, reason, ())
    built = built_tree(context.repository, context.head, context.cache)
    if why_not_here() and built is None:
        return run_on_mps(context, options)  # a Mac without a build: the stock wheel and the stack's kernels
    base = Tree.at(context.repository, context.base)
    patterns = options.tests or select_patterns(options.named_ops, base, tree)
    try:
        tests = MpsTests(built.worktree, patterns, None) if built else _prepare(context, stack_of(context), patterns)
    except (ToolchainError, CompileError) as error:
        return not_run(SPEC, f"no stand-in device: {error}")
    except PatchstackError as error:
        return _not_loaded(str(error))
    return _judged(context, options, tests)


def _refused(tree: Tree) -> str:
    """Why the tests are not run; empty where they can be."""
    if os.environ.get(FALLBACK) == "1":
        return f"{FALLBACK}=1 makes the results meaningless (unset {FALLBACK})"
    if not tree.exists(TEST_FILE):
        return f"the tree has no {TEST_FILE}"
    return ""


def select_patterns(ops: Sequence[str], base: Tree, head: Tree) -> tuple[str, ...]:
    """Parts of the names of the tests that concern the ops, or whose text or whose OpInfo entry the stack changes.

    Args:
        ops: of the series; a backward stands for its forward too.
        base: the tree without the stack.
        head: the tree with it.
    """
    methods = _changed(TEST_FILE, base, head, _test_methods)
    entries = [name for path in LISTS for name in _changed(path, base, head, _opinfo_entries)]
    # In the name of a test, the name of an OpInfo has no dots.
    return tuple(dict.fromkeys([*test_patterns(ops), *methods, *(name.replace(".", "_") for name in entries)]))


_Parts = Callable[[ast.Module], Iterator[tuple[str, ast.AST]]]


def _changed(path: str, base: Tree, head: Tree, parts: _Parts) -> list[str]:
    """Names of the parts of a Python file that the stack adds, changes or takes away."""
    before, after = base.read(path) or b"", head.read(path) or b""
    if before == after:
        return []
    texts = []
    for source in (before, after):
        found: dict[str, list[str]] = {}
        for name, node in parts(ast.parse(source)):
            found.setdefault(name, []).append(ast.dump(node))
        texts.append(found)
    names = dict.fromkeys([*texts[1], *texts[0]])
    return [name for name in names if texts[0].get(name) != texts[1].get(name)]


def _opinfo_entries(module: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The OpInfo entries of the list of all ops, and the values that the lists of expected failures have for an op."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name):
            name = node.args[0]
            if node.func.id.endswith("Info") and isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, node
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value


def _test_methods(module: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, node


def _prepare(context: GateContext, stack: HostStack, patterns: tuple[str, ...]) -> MpsTests:
    context.progress(0, 1, "prepare the tests")
    build = build_device(stack, context.cache / "host-run", jobs=context.jobs)
    return MpsTests(_written(context, stack.tree), patterns, build)


def _written(context: GateContext, tree: Tree) -> Path:
    """A folder with the tree's test file and testing package."""
    paths = [TEST_FILE, *(path for path in tree.walk(TESTING) if path.endswith((".py", ".json")))]
    files = {path: text for path in paths if (text := tree.read(path)) is not None}
    return write_files(files, context.cache / SPEC.name)


@dataclass
class _Collected:
    """What has come in so far.

    Attributes:
        outcomes: one for each test.
        findings: what the device noticed, and tests that took their process down.
        problem: why the tests could not be loaded; empty where they could.
        counts: launches by kernel, calls by op.
    """

    outcomes: list[TestOutcome] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problem: str = ""
    counts: Launches = field(default_factory=Launches)


def _collected(context: GateContext, tests: MpsTests) -> _Collected:
    shares = _CHUNKS if len(tests.patterns) > 1 else 1  # each process loads the whole test file first
    waiting = [Chunk(number, shares) for number in range(shares)]
    seen, done = _Collected(), 0
    while waiting and not seen.problem:
        again: list[Chunk] = []
        for chunk, answer in run_tasks(waiting, tests, jobs=context.jobs, timeout=_TIMEOUT_S):
            if isinstance(answer, Died):
                again += _after_crash(seen, chunk, answer, last_of(answer))
            elif answer.problem:
                seen.problem = answer.problem
                break
            else:
                seen.outcomes += answer.outcomes
                seen.findings += answer.findings
                seen.counts.add(answer.counts)
                done += 1
            context.progress(done, shares, f"{len(seen.outcomes)} tests")
        waiting = again
    return seen


def _after_crash(seen: _Collected, chunk: Chunk, died: Died, doing: Doing) -> Iterator[Chunk]:
    """Note a test that took its process down; yields its share without it."""
    named = doing.part not in ("", *chunk.without)
    what = doing.part if named else f"a test of share {chunk.number + 1} of {chunk.of}"
    where = f" in {doing.kernel}" if doing.kernel else ""
    message = f"{what} took its process down: {died.reason}{where}"
    seen.findings.append(Finding(message, TEST_FILE, rule="crash", details={TEST: doing.part}))
    if named:
        yield replace(chunk, without=(*chunk.without, doing.part))


def _judged(context: GateContext, options: Options, tests: MpsTests) -> GateResult:
    seen = _collected(context, tests)
    if seen.problem:
        message = f"{TEST_FILE} cannot be loaded: {seen.problem}"
        if _loads_below(context, tests):
            return _not_loaded(message)
        return not_run(SPEC, f"{message} (nor without the stack)")
    outcomes = seen.outcomes
    if not outcomes and not seen.findings:
        return not_run(SPEC, f"no test is called like {', '.join(tests.patterns)}", ())
    excused, noticed = _failing_below(context, tests, seen)
    findings = [*(_finding(one, excused) for one in outcomes if one.status in ("failed", "stale")), *noticed]
    count = {status: sum(one.status == status for one in outcomes) for status in STATUSES}
    findings += _about_kernels(context, options, seen.counts, tests.build)
    crashes = sum(finding.rule == "crash" and finding.fails for finding in findings)
    failed = count["failed"] - len(excused) + count["stale"] + crashes
    return judged(
        SPEC,
        cases=len(outcomes),
        failed=failed or int(not count["passed"]),
        findings=findings,
        details={
            "device": "mps" if tests.build is None else "stand-in",
            "patterns": list(tests.patterns),
            "failing_below": sorted(excused),
            DETAIL: _looked_at(seen.counts, tests.build),
            **count,
        },
        limits=() if tests.build is None else SPEC.limits,
    )


def _about_kernels(
    context: GateContext, options: Options, counts: Launches, build: DeviceBuild | None
) -> list[Finding]:
    """Calls that ended on the CPU, and what the tests do not reach, which another gate may."""
    if build is None:
        return []
    not_reached = never_launched(counts, dict(build.brought), fails=False, gate=SPEC.name)
    return [*fallback_findings(counts, stack_of(context), build, options), *not_reached]


def _looked_at(counts: Launches, build: DeviceBuild | None) -> Mapping[str, Any]:
    return NOT_COUNTED if build is None else looked_at(counts, dict(build.brought), build.ops)


def _loads_below(context: GateContext, tests: MpsTests) -> bool:
    """Whether the test file of the tree below the stack can be loaded, or there is none: the stack broke it then."""
    base = Tree.at(context.repository, context.base)
    if tests.build is None or not base.exists(TEST_FILE):
        return True
    below = replace(tests, root=_written(context, base), patterns=(" ",))
    return not _collected(context, below).problem


def _failing_below(context: GateContext, tests: MpsTests, seen: _Collected) -> tuple[frozenset[str], list[Finding]]:
    """What the tree below the stack has too, on the stand-in device.

    A test that the base has may depend on the machine: gradients in float16 are compared with the CPU's own, whose
    positions are in half here. Where the op was on MPS before, such a test says nothing about the stack.

    Returns:
        Names of the failed tests that fail there as well, no less badly; and the findings, those of the base as notes.
    """
    stack = stack_of(context)
    if stack.base is None or tests.build is None or _refused(stack.base):
        return frozenset(), seen.findings
    below = BelowHost(context, stack)
    findings = below.told(seen.findings)
    failed = [one for one in seen.outcomes if one.status == "failed"]
    own = set(_changed(TEST_FILE, stack.base, stack.tree, _test_methods))
    names = [one.name for one in failed] + [str(one.details.get(TEST, "")) for one in failing(findings)]
    methods = {name.rpartition(".")[2] for name in names if name} - own
    if not methods or below.build is None:
        return frozenset(), findings
    try:
        base = HostStack.of(stack.base, [file.path for file in stack.files])
        theirs = _collected(context, _prepare(context, base, tuple(sorted(methods))))
    except PatchstackError:
        return frozenset(), findings  # there is nothing to compare with: the failures count
    before = {one.name: one for one in theirs.outcomes if one.status == "failed"}
    excused = frozenset(one.name for one in failed if one.name in before and no_worse(one.text, before[one.name].text))
    return excused, noted(
        findings,
        theirs.findings,
        head=stack.tree,
        base=stack.base,
        touched=lambda one: _is_touched(below, one),
        repeated=True,
    )


def _is_touched(below: BelowHost, finding: Finding) -> bool:
    """Whether the stack touches what is behind a finding; a test may also crash where no kernel was launched."""
    if finding.rule == "crash" and not below.names_kernel(finding.message):
        return False
    return below.touches(finding.message, "")


def no_worse(text: str, before: str) -> bool:
    """Whether a failure is the one that the base has: the same words, and no more elements that do not match."""
    now, then = (int(match[1]) if (match := _MISMATCHED.search(one)) else 0 for one in (text, before))
    return now <= then and _MISMATCHED.sub("", text) == _MISMATCHED.sub("", before)


def _finding(one: TestOutcome, excused: frozenset[str]) -> Finding:
    if one.status == "stale":
        return Finding(f"{one.name} is listed as failing, but passes", TEST_FILE, rule="stale-xfail")
    if one.name in excused:
        return as_note(Finding(f"{one.name}: {one.text}", TEST_FILE, rule="fails-below"))
    return Finding(f"{one.name}: {one.text}", TEST_FILE, rule="test-failed")


def _not_loaded(message: str) -> GateResult:
    return failed_early(SPEC, Finding(message, TEST_FILE, rule="not-loaded"))
