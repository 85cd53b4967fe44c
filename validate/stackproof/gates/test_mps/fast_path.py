"""Runs the fast path: every op's proof with its kernels on a device, then the op through autograd."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from patchstack.confine import Confined, note
from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.engines.gpu.device import Device, MpsDevice
from stackproof.engines.gpu.device_library import DeviceLibrary, StorageTooLargeError
from stackproof.engines.gpu.embed import embed
from stackproof.engines.kernels import Kernels
from stackproof.gates.common.error_table import Table
from stackproof.gates.common.results import judged, not_run
from stackproof.gates.test_mps.spec import SPEC, Options
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops import CaseResult, OpProof, WorkUnit, proof_for
from stackproof.ops.fast_path import fast_path_for, has_mps_kernel, registered
from stackproof.ops.sources import collect_op

_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


class DeviceCompileError(PatchstackError):
    """A kernel source that the device's compiler refuses."""


@dataclass
class _Seen:
    """What has come in so far."""

    table: Table = field(default_factory=Table)
    findings: list[Finding] = field(default_factory=list)
    cases: int = 0
    failed: int = 0
    left_out: list[str] = field(default_factory=list)


def run_on_mps(context: GateContext, options: Options) -> GateResult:
    """The fast path on this Mac's GPU; "not run" where there is none."""
    if not torch.backends.mps.is_available():
        return not_run(SPEC, "needs a Mac with an Apple GPU and a torch that has MPS", ())
    if os.environ.get(_FALLBACK, "0") != "0":
        return not_run(SPEC, f"{_FALLBACK} is set, results would be the CPU's (next: unset {_FALLBACK})", ())
    note(Confined("the stack's kernels, on the GPU,", {}))
    return run_on(MpsDevice(), context, options)


def run_on(device: Device, context: GateContext, options: Options) -> GateResult:
    """The fast path on a device, which compiles and runs the kernels."""
    ops = options.named_ops
    proofs = [proof for op in ops if (proof := proof_for(op)) is not None]
    if not proofs:
        return not_run(SPEC, f"no proof exists for {', '.join(ops) or 'any op'}", ())
    seen = _Seen()
    replaced = [proof.op for proof in proofs if has_mps_kernel(proof.op)]
    for proof in proofs:
        try:
            _prove(proof, device, context, seen, full=not options.small)
        except PatchstackError as error:
            seen.findings.append(Finding(str(error), error.where, rule="not-run"))
    return _result(device, seen, replaced)


def _prove(proof: OpProof, device: Device, context: GateContext, seen: _Seen, *, full: bool) -> None:
    context.progress(0, 0, f"compiling {proof.source}")
    try:
        kernels = kernels_of(proof, device, context)
    except DeviceCompileError as error:
        seen.findings.append(Finding(f"does not compile: {error.problem}", proof.source, rule="compile"))
        return
    results = list(_run_units(proof, kernels, context, seen, full=full))
    results += _through_autograd(proof, kernels, device, seen)
    seen.left_out += sorted({f"{proof.op}: {result.skipped}" for result in results if result.skipped})
    results = [result for result in results if not result.skipped]
    for result in results:
        seen.cases += 1
        seen.failed += bool(result.problems)
        if result.problems:
            seen.findings.append(_problem(proof, result))
    seen.table.add(proof.op, device.run_mode, results)
    seen.findings += proof.judge(results)


def kernels_of(proof: OpProof, device: Device, context: GateContext) -> Kernels:
    """The op's kernels of the head commit, and those of the base where the proof compares with them.

    Raises:
        DeviceCompileError: the head's kernels do not compile.
        PatchstackError: the head does not have the source.
    """
    kernels = _compiled(Tree.at(context.repository, context.head), proof, device)
    return replace(kernels, before=_before(proof, device, context))


def _compiled(tree: Tree, proof: OpProof, device: Device) -> Kernels:
    found = collect_op(tree, proof)
    source = embed(found.files, found.source)
    try:
        library = device.compile(source)
    except Exception as error:  # whatever Apple's compiler makes torch raise
        raise DeviceCompileError(str(error), where=proof.source) from error
    return Kernels(DeviceLibrary(library, device.name), found.headers)


def _before(proof: OpProof, device: Device, context: GateContext) -> Kernels | None:
    """The kernels of the commit below the stack; ``None`` where the proof does not ask, or they cannot be had."""
    tree = Tree.at(context.repository, context.base)
    if not (proof.compares_with_base and tree.exists(proof.source)):
        return None
    try:
        return _compiled(tree, proof, device)
    except PatchstackError:  # that they compile was for their own commit to show; the cases say that they were not run
        return None


def _run_units(
    proof: OpProof, kernels: Kernels, context: GateContext, seen: _Seen, *, full: bool
) -> Iterator[CaseResult]:
    units = proof.units(full=full)
    for number, unit in enumerate(units, 1):
        context.progress(number, len(units), unit.label)
        try:
            yield from proof.run(unit, kernels)
        except StorageTooLargeError:
            seen.left_out.append(unit.label)
        except Exception as error:  # one unit's failure must not hide the others' results
            seen.cases += unit.cases
            seen.failed += unit.cases
            seen.findings.append(_raised(proof, unit, error))


def _through_autograd(proof: OpProof, kernels: Kernels, device: Device, seen: _Seen) -> Iterator[CaseResult]:
    known = fast_path_for(proof.op)
    if known is None:
        seen.findings.append(Finding(f"{proof.op}: not run through autograd", rule="no-autograd", fails=False))
        return
    try:
        with registered(proof.op, known.function(kernels)):
            yield from known.through_autograd(device)
    except Exception as error:  # what a kernel call raises ends this part only
        message = f"{proof.op} through autograd: {type(error).__name__}: {error}"
        seen.findings.append(Finding(message, proof.source, rule="autograd"))


def _problem(proof: OpProof, result: CaseResult) -> Finding:
    message = f"{proof.op}, {result.mode}, {result.dtype}: {result.problems[0]} ({result.case})"
    return Finding(message, proof.source, rule="wrong-value", details={"problems": list(result.problems)})


def _raised(proof: OpProof, unit: WorkUnit, error: Exception) -> Finding:
    return Finding(f"{unit.label}: {type(error).__name__}: {error}", proof.source, rule="not-run")


def _result(device: Device, seen: _Seen, replaced: Sequence[str]) -> GateResult:
    notes = [
        Finding(f"{op}: the installed torch's own MPS kernel was replaced", rule="replaced", fails=False)
        for op in replaced
    ]
    return judged(
        SPEC,
        cases=seen.cases,
        failed=seen.failed,
        worst_error=seen.table.worst_error,
        findings=[*seen.findings, *notes],
        details={**seen.table.details, "torch": torch.__version__, "left_out": seen.left_out},
        limits=device.limits,
    )
