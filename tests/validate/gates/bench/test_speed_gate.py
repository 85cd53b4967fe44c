"""The gate on a GPU, with the CPU in its place: what is measured, what is found, and what the table says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bench_trees import OP, context_of, texts
from host_device import StandInDevice
from kernel_trees import commit_kernels
from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from stackproof.engines.gpu import PtxBuild
from stackproof.gates.bench import device_kernels
from stackproof.gates.bench.device_kernels import COMPILERS, ShaderLibrary, with_shader
from stackproof.gates.bench.sources import sources_of
from stackproof.gates.bench.speed_gate import measure_on
from stackproof.gates.bench.speed_report import AFTER, BEFORE
from stackproof.gates.bench.timing import Clock, Timing
from stackproof.model import GateResult, Verdict
from stackproof.ops.grid_sampler.bench.passes import Kernels
from stackproof.ops.grid_sampler.bench.rows import quick_rows
from stackproof.ops.sources import OpSource

ROW = quick_rows()[0]
OWN = "PyTorch CPU"


def compiled(source: OpSource, cache: Path) -> Kernels:
    """As on a Mac, by something else with the call shape of ``torch.mps.compile_shader``."""
    return with_shader(StandInDevice(cache).compile, "cpu", source, cache)


class FakeClock(Clock):
    """Runs the work once and answers with the next of some times."""

    def __init__(self, *milliseconds: float) -> None:
        super().__init__("cpu")
        self._next = iter([1.0, *milliseconds])  # the first is of the copy

    def measure(self, work: Callable[[], object], repeats: int = 11) -> Timing:
        work()
        median = next(self._next)
        return Timing(median, 0.99 * median, 1.01 * median)


def measured(root: Path, *trees: dict[str, str], clock: Clock) -> GateResult:
    """The gate's result on a repository with a commit for each tree, from the first to the last."""
    commits = [commit_kernels(root, tree) for tree in trees]
    with Repository.open(root) as repository:
        return measure_on("cpu", context_of(repository, commits[0], commits[-1]), [ROW], compiler=compiled, clock=clock)


def test_both_commits_are_measured_beside_pytorchs_own(tmp_path: Path) -> None:
    result = measured(tmp_path, texts("const bool compute", "const  bool compute"), texts(), clock=FakeClock(8, 4, 2))
    assert [finding.message for finding in result.findings] == []
    assert result.verdict is Verdict.PASSED
    (row,) = result.details["rows"]
    assert [row[f"{name}, median"] for name in (OWN, BEFORE, AFTER)] == [8, 4, 2]
    assert f"{AFTER} over {OWN}: geometric mean 4.00" in result.details["markdown"]
    assert f"{AFTER} over {BEFORE}: geometric mean 2.00" in result.details["markdown"]
    assert "| 2.000 (1.980-2.020) | 4.00 | 2.00 |" in result.details["markdown"]
    assert "times faster than" in result.details["plot"]
    assert "Objective-C++ host function was not run" in result.limits[-1]


def test_kernels_that_are_slower_than_the_base_commits_are_a_finding(tmp_path: Path) -> None:
    result = measured(tmp_path, texts("const bool compute", "const  bool compute"), texts(), clock=FakeClock(8, 2, 4))
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["slower"]
    assert "4.000 (3.960-4.040) ms, the base commit's kernels take 2.000" in result.findings[0].message


def test_a_wrong_gradient_is_not_taken_for_a_fast_one(tmp_path: Path) -> None:
    wrong = texts("window.weight(pixel) * grad);", "grad);")
    result = measured(tmp_path, wrong, clock=FakeClock(8, 2))
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["wrong-value"]
    assert "grad_input is off by" in result.findings[0].message


def test_an_op_that_the_build_of_pytorch_does_not_have_leaves_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stackproof.ops.grid_sampler.fast.passes import Case

    real = Case.reference

    def only_in_double(case: Case, dtype: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        if dtype is None:
            raise NotImplementedError("no kernel for this device")
        return real(case, dtype)

    monkeypatch.setattr(Case, "reference", only_in_double)
    result = measured(tmp_path, texts(), clock=FakeClock(2))
    assert result.verdict is Verdict.PASSED
    assert OWN not in result.details["markdown"]


def test_the_clock_of_a_device_times_work_on_it() -> None:
    calls: list[int] = []
    timing = Clock("cpu").measure(lambda: calls.append(1), repeats=3)
    assert len(calls) == 2 + 3
    assert 0 <= timing.low <= timing.median <= timing.high


def test_on_cuda_the_kernels_go_through_ptx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[PtxBuild] = []
    monkeypatch.setattr(device_kernels, "GpuLibrary", loaded.append)
    head = commit_kernels(tmp_path, texts())
    with Repository.open(tmp_path) as repository:
        source = sources_of(context_of(repository, head, head), [ROW])["head"]
    COMPILERS["cuda"](source, cache_dir())
    (build,) = loaded
    assert f"{OP}_bilinear_zeros_float" in {signature.kernel for signature in build.signatures}
    assert "atom.global.add.f32" in build.path.read_text()


def test_a_shader_library_gives_kernels_structs_as_tensors_of_bytes_and_signatures_when_asked() -> None:
    seen: list[object] = []

    class Library:
        def some_kernel(self, *args: object, threads: object, group_size: object) -> None:
            seen.extend([*args, threads, group_size])

    library = ShaderLibrary(Library(), "cpu", list)
    assert library.kernel_names == ["some_kernel"]
    library.kernel("some_kernel").prepare(b"\1\2", threads=(4,), group_size=(2,))()
    assert isinstance(seen[0], torch.Tensor)
    assert (seen[0].tolist(), seen[1:]) == ([1, 2], [(4,), (2,)])
