"""The gate's half that needs a GPU: times each row, the kernels of both commits beside PyTorch's own of that device.

All are measured in one run, one after the other on the same tensors, behind a flush of the second-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from patchstack.confine import Confined, note
from patchstack.errors import PatchstackError
from stackproof.base_commit.findings import as_note, same_words
from stackproof.gates.bench.device_kernels import COMPILERS, Compiler
from stackproof.gates.bench.sources import BASE, HEAD, rows_that_fail, sources_of
from stackproof.gates.bench.spec import CUDA, SPEC
from stackproof.gates.bench.speed import Measured, speed_markdown
from stackproof.gates.bench.speed_report import AFTER, BEFORE, plot, records, text
from stackproof.gates.bench.timing import Clock, Timing
from stackproof.gates.common.results import judged, not_run
from stackproof.gates.common.touched import Touched
from stackproof.model import Finding, GateContext, GateResult
from stackproof.ops.grid_sampler.bench.passes import Kernels, case_of, scheme_of
from stackproof.ops.grid_sampler.bench.rows import PR_GROUP, Row
from stackproof.ops.grid_sampler.fast.passes import Case
from stackproof.ops.sources import OpSource

Work = Callable[[], tuple[Tensor, Tensor]]

_COLUMNS = {BASE: BEFORE, HEAD: AFTER}
_LIMITS = {
    CUDA: "An NVIDIA GPU stands in for one with 32-wide simdgroups: no Apple GPU was measured.",
}
_LAUNCHED = "The launches were made from Python: the stack's Objective-C++ host function was not run."
# Relative to the largest value, of gradients that are compared with float64; only where that is cheap.
_ALLOWED = {torch.float32: 5e-5, torch.float16: 5e-3}
_CHECKED_ELEMENTS = 1 << 18
# A median may differ from run to run without anything being slower; and the spreads must not overlap.
_SLOWER = 1.05


@dataclass
class _Seen:
    """What has come in so far."""

    measured: list[Measured] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def measure_on(
    device: str,
    context: GateContext,
    rows: Sequence[Row],
    *,
    compiler: Compiler | None = None,
    clock: Clock | None = None,
) -> GateResult:
    """Measure ``rows``.

    Args:
        device: ``cuda`` or ``mps``.
        context: the range.
        rows: what to run.
        compiler: what makes the kernels, the device's own by default.
        clock: what measures, likewise.
    """
    seen = _Seen()
    try:
        sources = sources_of(context, rows)
    except PatchstackError as error:
        return not_run(SPEC, str(error), ())
    clock, touched = clock or Clock(device), Touched.by(context)
    libraries = dict(_compiled(sources, compiler or COMPILERS[device], context, seen))
    if HEAD not in libraries:
        return judged(SPEC, cases=0, findings=seen.findings, limits=())
    note(Confined("the stack's kernels, on the GPU,", {}))
    copy = clock.copy_bandwidth()
    for done, row in enumerate(rows, 1):
        context.progress(done, len(rows), row.label)
        _measure(row, clock, libraries, seen, touched.launches)
        clock.free()
    return _result(seen, clock, copy)


def _compiled(
    sources: Mapping[str, OpSource], compiler: Compiler, context: GateContext, seen: _Seen
) -> Iterator[tuple[str, Kernels]]:
    """By commit; that the base commit's compile is its own affair."""
    for side, source in sources.items():
        context.progress(0, 0, f"compiling {source.path}, {side}")
        try:
            yield side, compiler(source, context.cache)
        except Exception as error:  # whatever a driver or Apple's compiler makes torch raise
            message = f"{side}: does not compile for this device: {error}"
            seen.findings.append(Finding(message, source.path, rule="compile", fails=side == HEAD))


def _measure(
    row: Row, clock: Clock, libraries: Mapping[str, Kernels], seen: _Seen, touched: Callable[[str], bool]
) -> None:
    """One row: PyTorch's own, then both commits' kernels, on the same tensors."""
    case = case_of(row, clock.device)
    times: dict[str, Timing] = {}
    own = f"PyTorch {clock.device.upper()}"
    found: dict[str, list[Finding]] = {}
    for name, work in _contestants(row, case, own, libraries):
        try:
            made = work()
            if made is not None:
                times[name] = clock.measure(made)
                found[name] = list(_wrong(row, case, made))
        except NotImplementedError:  # an op that this build of PyTorch does not have on the device
            continue
        except Exception as error:  # a launch that is refused ends this row only
            found[name] = [Finding(f"{row.label}: {type(error).__name__}: {error}", rule="not-measured")]
    seen.findings += [*found.get(own, []), *_as_below(found.get(AFTER, []), found.get(BEFORE, []), row, touched)]
    seen.measured.append(Measured(row, times))
    seen.findings += _slower(row, times)


def _contestants(
    row: Row, case: Case, own: str, libraries: Mapping[str, Kernels]
) -> Iterator[tuple[str, Callable[[], Work | None]]]:
    """What runs, in this order, and what prepares it."""
    yield own, lambda: case.reference
    for side, name in _COLUMNS.items():
        if side in libraries:
            yield name, partial(_pass, libraries[side], row, case)


def _pass(kernels: Kernels, row: Row, case: Case) -> Work | None:
    scheme = scheme_of(kernels.library, row)
    return scheme.prepare(kernels, row, case) if scheme else None


def _as_below(
    ours: Sequence[Finding], theirs: Sequence[Finding], row: Row, touched: Callable[[str], bool]
) -> list[Finding]:
    """What is wrong with a row, with what the base commit's kernels have too as notes."""
    had = {(one.rule, same_words(one.message)) for one in theirs}
    return [as_note(one) if (one.rule, same_words(one.message)) in had and not touched(row.op) else one for one in ours]


def _slower(row: Row, times: Mapping[str, Timing]) -> Iterator[Finding]:
    if BEFORE in times and AFTER in times:
        before, after = times[BEFORE], times[AFTER]
        if after.median > _SLOWER * before.median and after.low > before.high:
            message = f"{row.label}: {after} ms, the base commit's kernels take {before}"
            yield Finding(message, rule="slower")


def _wrong(row: Row, case: Case, work: Work) -> Iterator[Finding]:
    """What was measured must have been the gradients."""
    if case.grad_output.numel() + case.input.numel() > _CHECKED_ELEMENTS:
        return
    on_cpu = replace(case, grad_output=case.grad_output.cpu(), input=case.input.cpu(), grid=case.grid.cpu())
    for name, found, right in zip(("grad_input", "grad_grid"), work(), on_cpu.reference(torch.float64), strict=True):
        error = float((found.cpu().double() - right).abs().max()) / (float(right.abs().max()) or 1.0)
        if not error <= _ALLOWED[row.dtype]:
            yield Finding(f"{row.label}: {name} is off by {error:.2g} of its largest value", rule="wrong-value")


def _result(seen: _Seen, clock: Clock, copy: float) -> GateResult:
    measured = [one for one in seen.measured if AFTER in one.times]
    failed = rows_that_fail(seen.findings)
    if not measured and not failed:
        return not_run(SPEC, "the head commit has no backward kernels that are known", ())
    title = (
        f"Measured on {clock.name()} (PyTorch {torch.__version__}, copy {copy:.2f} TB/s); medians of 11, milliseconds, "
        "second-level cache flushed; zero-filling, layout changes and rounding included."
    )
    limit = _LIMITS.get(clock.device, "")
    return judged(
        SPEC,
        cases=len(seen.measured),
        failed=failed,
        findings=seen.findings,
        details={
            "device": clock.name(),
            "summary": title,
            "copy_tb_s": copy,
            "text": text(measured),
            "markdown": speed_markdown(f"{title} {limit}".strip(), measured, AFTER, copy, [PR_GROUP]),
            "plot": plot(measured),
            "rows": records(measured, copy),
        },
        limits=[one for one in (limit, _LAUNCHED) if one],
    )
