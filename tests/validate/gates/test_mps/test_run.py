"""The fast path's code, run on the host library: same registration, same calls, no Apple GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from host_device import StandInDevice
from overlay_kernels import OPS, instantiated, sampler_proof
from patchstack.cache import cache_dir
from skips import cannot
from stack_lab import StackLab
from stackproof.engines.kernels import KernelLibrary
from stackproof.gates.test_mps.fast_path import _FALLBACK, kernels_of, run_on, run_on_mps
from stackproof.gates.test_mps.spec import Options
from stackproof.model import GateContext, Verdict
from stackproof.ops.fast_path import fast_path_for, has_mps_kernel, registered
from stackproof.report.error_rows import error_rows

OP = "grid_sampler_2d_backward"


@pytest.mark.skipif(torch.backends.mps.is_available(), reason=cannot("there is an Apple GPU"))
def test_without_an_apple_gpu_it_is_not_run_and_never_passed(context: GateContext) -> None:
    result = run_on_mps(context, Options())
    assert result.verdict is Verdict.NOT_RUN
    assert "needs a Mac" in result.reason


def test_the_fallback_to_the_cpu_is_refused(context: GateContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv(_FALLBACK, "1")
    result = run_on_mps(context, Options())
    assert result.verdict is Verdict.NOT_RUN
    assert _FALLBACK in result.reason


@pytest.mark.exhaustive
def test_the_kernels_pass_their_proof_and_autograd_on_the_stand_in(context: GateContext) -> None:
    result = run_on(StandInDevice(cache_dir()), context, Options(ops=OPS, small=True))
    assert result.verdict is Verdict.PASSED, [finding.message for finding in result.findings]
    assert result.name == "test-mps"
    assert "Apple half was not run" in result.limits[0]
    rows = error_rows(result)
    assert {row["op"] for row in result.details["table"]} == set(OPS)
    assert len({row.mode for row in rows}) == 18
    assert {row.dtype for row in rows} == {"float32", "float16", "bfloat16"}
    # 20 cases of each mode and dtype without autograd, 13 of the forward
    assert result.cases == 3 * 882


def test_on_the_whole_matrix_the_forward_is_compared_with_the_kernels_below_the_stack(context: GateContext) -> None:
    device = StandInDevice(cache_dir())
    proof = sampler_proof("grid_sampler_3d")
    kernels = kernels_of(proof, device, context)
    (unit, *_) = (one for one in proof.units(full=True) if one.key.kind.startswith("as before the stack"))
    results = proof.run(unit, kernels)
    assert [result for result in results if result.skipped or result.problems] == []
    assert len(results) == unit.cases


ONE_OP = Options(ops=(OP,), small=True)  # to save time


class Faulty(StandInDevice):
    """Compiles kernels in which one text was replaced; only float32 ones, to save time."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(cache_dir())
        self.old, self.new = old, new

    def compile(self, source: str) -> KernelLibrary:
        assert self.old in source, f"the seeded fault no longer fits the overlay: {self.old!r}"
        return super().compile(instantiated(source, dtype="float", op=OP).replace(self.old, self.new))


DERIVATIVE = "static_cast<T>(window.axes[axis].derivative"


def test_a_kernel_that_computes_the_wrong_gradient_fails(context: GateContext) -> None:
    result = run_on(Faulty(DERIVATIVE, DERIVATIVE.replace("window", "-window")), context, ONE_OP)
    assert result.verdict is Verdict.FAILED
    wrong = [finding.message for finding in result.findings if finding.rule == "wrong-value"]
    assert any("float32: grad_grid is off" in message and "(two samples, sliced" in message for message in wrong)
    assert any("float32: grad_grid is off" in message and "(through autograd)" in message for message in wrong)


def test_a_dtype_without_kernels_is_a_finding_and_hides_no_other_result(context: GateContext) -> None:
    result = run_on(Faulty(DERIVATIVE, DERIVATIVE.replace("window", "-window")), context, ONE_OP)
    raised = {finding.rule for finding in result.findings if "AttributeError" in finding.message}
    assert raised == {"not-run", "autograd"}
    assert "grid_sampler_2d_backward_bilinear_zeros_half" in str([finding.message for finding in result.findings])


def test_a_kernel_that_does_not_compile_is_a_finding(context: GateContext) -> None:
    result = run_on(Faulty("kernel void grid_sampler_backward(", "kernel void oops(nonsense,"), context, ONE_OP)
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["compile"]


def test_an_op_that_nobody_can_prove_is_not_run(context: GateContext) -> None:
    result = run_on(StandInDevice(cache_dir()), context, Options(ops=("nonsense",)))
    assert result.verdict is Verdict.NOT_RUN
    assert "nonsense" in result.reason


def test_the_registration_is_taken_back() -> None:
    op = torch.ops.aten.grid_sampler_2d_backward.default
    before = has_mps_kernel(OP)
    tensors = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 2)
    with registered(OP, lambda *arguments: (None, arguments[2] + 5)):
        assert has_mps_kernel(OP)
        _, grad_grid = op._op_dk(torch._C.DispatchKey.MPS, *tensors, 0, 0, False, [False, True])
    assert grad_grid.tolist() == [[[[5.0, 5.0]]]]
    assert has_mps_kernel(OP) is before


def test_compiled_sources_are_kept_in_the_cache_under_their_content(tmp_path: Path) -> None:
    device = StandInDevice(tmp_path)
    source = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 3; }\n"
    tensor = torch.zeros(2)
    device.compile(source).k(tensor, threads=2)
    device.compile(source)
    assert tensor.tolist() == [3, 3]
    assert len(list((tmp_path / "fastpath").iterdir())) == 1


@pytest.mark.parametrize("op", ["grid_sampler_2d", *OPS])
def test_kernels_of_upstreams_names_are_called_through_autograd_too(op: str, stack_of_after: StackLab) -> None:
    device = StandInDevice(cache_dir())
    context = GateContext(stack_of_after.repository, stack_of_after.base, stack_of_after.head, cache_dir())
    kernels, known = kernels_of(sampler_proof(op), device, context), fast_path_for(op)
    assert known is not None
    with registered(op, known.function(kernels)):
        results = list(known.through_autograd(device))
    assert [result for result in results if result.problems] == []
    assert len(results) == 3 * len(sampler_proof(op).sampler.modes)
