"""The gate ``apple-kernels``: our Metal headers, struct layouts and executor beside what Apple's compiler made.

Four parts, all on this host. *Fidelity*: functions and operators compiled by both. *Layouts*: the structs of the
release's kernel headers. *Samplers*: upstream's own grid samplers in every mode beside float64, watched by the
detectors, which shows that the translation and the executor are right. *Peer*: the stack's backward beside upstream's.
The wheel is used where it is in the cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from patchstack.cache import cache_dir
from patchstack.errors import PatchstackError
from patchstack.reference import build_reference
from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.base_commit.findings import failing, noted
from stackproof.engines.apple.fidelity import Fidelity
from stackproof.engines.apple.ir import llvm
from stackproof.engines.apple.release import DEFAULT_RELEASE, DEFAULT_SECTION
from stackproof.engines.apple.struct_check import StructComparison
from stackproof.engines.apple.structs import release_structs
from stackproof.engines.metal import ALL_DETECTORS, RunMode
from stackproof.engines.metal.build import Source, preprocess, rewrite
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.engines.metal.toolchain import find_toolchain
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.apple_kernels.cases import (
    Answer,
    PeerTask,
    Release,
    SamplerTask,
    StructTask,
    Task,
    Work,
    sampler_kernels,
    tasks_of,
)
from stackproof.gates.apple_kernels.spec import SPEC
from stackproof.gates.common.options import MatchOptions
from stackproof.gates.common.results import judged, not_run
from stackproof.gates.common.touched import Touched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops import proof_for
from stackproof.ops.grid_sampler.apple.peer import PeerRow, peer_table
from stackproof.ops.grid_sampler.apple.sampler import SamplerResult, largest_error
from stackproof.ops.grid_sampler.families.registry import BACKWARD
from stackproof.ops.grid_sampler.families.upstream import SamplerKernel
from stackproof.ops.grid_sampler.modes import Sampler
from stackproof.ops.sources import OpSource, written_source

_KERNEL_HEADERS, _LIBRARY_HEADERS = "aten/src/ATen/native/mps/kernels", "c10/metal"
_TIMEOUT = 600.0


@dataclass
class _Collected:
    """What has come in so far."""

    operators: list[Fidelity] = field(default_factory=list)
    structs: list[StructComparison] = field(default_factory=list)
    samplers: list[SamplerResult] = field(default_factory=list)
    peers: list[PeerRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many were judged."""
        return len(self.operators) + len(self.structs) + len(self.samplers) + len(self.peers)

    def fail(self, message: str, rule: str, path: str = "") -> None:
        """Note a failed case."""
        self.findings.append(Finding(message, path=path, rule=rule))


def run(context: GateContext, options: MatchOptions) -> GateResult:
    """Compare; the stack itself is not judged, but everything that judges its kernels is."""
    try:
        llvm()
        work, tasks = _prepare(context)
    except PatchstackError as error:
        return not_run(SPEC, str(error))
    tasks = [task for task in tasks if options.match in task.label]
    collected = _Collected()
    release = work.release
    if release.stack is None:
        text = "the head commit has no backward grid samplers of the series: nothing to put beside upstream's"
        collected.findings.append(Finding(text, rule="not-run", fails=False))
    for done, (task, answer) in enumerate(run_tasks(tasks, work, jobs=context.jobs, timeout=_TIMEOUT), 1):
        _collect(collected, task, answer)
        context.progress(done, len(tasks), task.label)
    if release.stack and failing(collected.findings):
        collected.findings = _as_below(context, work, tasks, collected.findings)
    return _result(release, collected)


def _as_below(context: GateContext, work: Work, tasks: Sequence[Task], findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with those as notes that the structs and the backward of the base give too."""
    below = _stack(context, context.base)
    if below is None:
        return list(findings)
    touched = Touched.by(context)
    asked: list[Task] = [replace(one, stack=below) for one in tasks if isinstance(one, StructTask) and one.stack]
    asked += [one for one in tasks if isinstance(one, PeerTask)]
    theirs = _Collected()
    work = replace(work, release=replace(work.release, stack=below))
    for task, answer in run_tasks(asked, work, jobs=context.jobs, timeout=_TIMEOUT):
        _collect(theirs, task, answer)

    def is_touched(finding: Finding) -> bool:
        if finding.rule == "layout":
            return touched.definition(re.findall(r"\w+", finding.message))
        return any(touched.launches(Sampler(dims).backward) for dims in (2, 3))

    return noted(findings, theirs.findings, head=touched.head, base=touched.base, touched=is_touched)


def _prepare(context: GateContext) -> tuple[Work, list[Task]]:
    """The release with its headers on disk, its structs, and what is to be done."""
    name, section = DEFAULT_RELEASE, DEFAULT_SECTION
    watched = ALL_DETECTORS | RunMode.TRAFFIC
    kernels = sampler_kernels(Release(name, section, cache_dir(), watched))
    headers = _headers(name)
    root = write_sources(headers, context.cache / SPEC.name)
    dirs = tuple(root / folder for folder in INCLUDE_FOLDERS)
    stack = _stack(context, context.head)
    names = _kernel_names(stack) if stack else frozenset()
    peer_dims = tuple(one for one in (2, 3) if any(family.is_among(names, Sampler(one)) for family in BACKWARD))
    release = Release(name, section, cache_dir(), watched, root, dirs, stack if peer_dims else None)
    structs = release_structs(name, section, release.cache, jobs=context.jobs, progress=context.progress)
    with_structs = [one for one in headers.items() if one[0].startswith(_KERNEL_HEADERS)]
    tasks = tasks_of(kernels, with_structs, peer_dims)
    if stack and names & {kernel.name for kernel in kernels}:
        # Kernels of upstream's names take upstream's structs, which the stack's own header must not have moved.
        tasks += _struct_tasks(stack)
    return Work(release, structs), tasks


def _stack(context: GateContext, commit: GitCommitHash) -> OpSource | None:
    """The source of the grid samplers in a commit; ``None`` where it is not there as a whole."""
    tree = Tree.at(context.repository, commit)
    proof = proof_for(Sampler(2).backward)
    assert proof
    if not all(tree.exists(path) for path in (proof.source, *proof.headers)):
        return None
    return written_source(tree, proof, context.cache)


def _struct_tasks(stack: OpSource) -> list[Task]:
    proof = proof_for(Sampler(2).backward)
    assert proof
    return [StructTask(path, text, stack) for path, text in zip(proof.headers, stack.headers, strict=False)]


def _kernel_names(source: OpSource) -> frozenset[str]:
    """Host names of a source's kernels; none where it cannot be read, which is for metal-check to say."""
    try:
        text = preprocess(Source(source.root / source.source, source.include_dirs, root=source.root), find_toolchain())
        return frozenset(kernel.host_name for kernel in rewrite(text, entry_points=False).kernels)
    except PatchstackError:
        return frozenset()


def _headers(release: str) -> dict[str, bytes]:
    """The Metal headers of a release and what they include, by path."""
    reference = build_reference(release, offline=True)
    with Repository.open(reference.path) as repository:
        tree = Tree.at(repository, reference.commit)
        folders = (_KERNEL_HEADERS, _LIBRARY_HEADERS)
        paths = [path for folder in folders for path in tree.walk(folder) if path.endswith(".h")]
        return {path: text for one in paths for path, text in collect_sources(tree, one).items()}


def _collect(collected: _Collected, task: Task, answer: Answer | Died) -> None:
    if isinstance(answer, Died) or answer.failure:
        why = answer.reason if isinstance(answer, Died) else answer.failure
        collected.fail(f"{task.label}: {why}", "crash" if isinstance(answer, Died) else "call-failed")
        return
    collected.operators += answer.operators
    collected.structs += answer.structs
    collected.samplers += answer.samplers
    collected.peers += answer.peers
    for row in answer.operators:
        if row.fails:
            what = row.problem or f"{row.distance:g} units in the last place, {row.allowed:g} allowed: {row.example}"
            collected.fail(f"{row.operator} of {row.operand} to {row.result}: {what}", "fidelity")
    for struct in answer.structs:
        for text in struct.differences:
            collected.fail(f"{struct.spelling} is not as Apple's compiler has it: {text}", "layout", struct.header)
    for peer in answer.peers:
        for text in peer.problems():
            collected.fail(f"{peer.label}: {text}", "peer")
    if isinstance(task, SamplerTask):
        _judge_sampler(collected, task.kernel, answer)


def _judge_sampler(collected: _Collected, kernel: SamplerKernel, answer: Answer) -> None:
    for row in answer.samplers:
        for output, error in row.epsilons.items():
            if not error <= largest_error(kernel, output):
                collected.fail(f"{kernel.name}, {row.mode}: {output} is {error:g} epsilons off", "values")
    for report in answer.reports:
        collected.fail(report, "detector")


def _result(release: Release, collected: _Collected) -> GateResult:
    return judged(
        SPEC,
        cases=collected.cases,
        failed=sum(finding.fails for finding in collected.findings),
        worst_error=max((error for row in collected.samplers for error in row.epsilons.values()), default=None),
        findings=sorted(collected.findings, key=lambda one: (one.path, one.message)),
        details=_details(release, collected),
    )


def _details(release: Release, collected: _Collected) -> Mapping[str, Any]:
    return {
        "release": release.name,
        "error_unit": "epsilons of the samplers' dtype",
        "fidelity_table": fidelity_table(collected.operators),
        "fidelity": [asdict(row) for row in collected.operators],
        "structs": [asdict(row) for row in collected.structs],
        "samplers": [asdict(row) for row in collected.samplers],
        "peer_table": peer_table(collected.peers),
        "peers": [asdict(row) for row in collected.peers],
    }


def fidelity_table(rows: Sequence[Fidelity]) -> list[str]:
    """Lines of a Markdown table: each operator with its types and its largest distance."""
    by_name: dict[str, list[Fidelity]] = {}
    for row in rows:
        by_name.setdefault(row.operator, []).append(row)
    lines = ["| operator | types | largest distance | explained by |", "|---|---|---|---|"]
    for name, group in by_name.items():
        reason = next((row.reason for row in group if row.reason), "")
        lines.append(f"| {name} | {len(group)} | {max(row.distance for row in group):g} | {reason} |")
    return lines
