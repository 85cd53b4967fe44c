"""The scripts that check and measure the fast backward: what they compare, and what they do without a GPU."""

from __future__ import annotations

from pathlib import Path

import gpu
import pytest
import torch
from matrix import BELOW, FLOAT64, check

import fast_kernels
from stackproof.engines.metal import MetalLibrary
from stackproof.ops.grid_sampler.bench.passes import Kernels
from stackproof.ops.grid_sampler.bench.rows import LAYOUTS, pr_rows


def kernels_of(change: str, folder: Path, **fault: str) -> Kernels:
    """The kernels of a change, as passes want them."""
    made = fast_kernels.kernels_of(change, folder, **fault)
    assert isinstance(made.library, MetalLibrary)
    return Kernels(made.library, made.headers)


@pytest.mark.exhaustive
def test_every_division_of_the_work_agrees_with_float64_and_with_the_change_below(tmp_path: Path) -> None:
    stack = kernels_of(fast_kernels.FAST, tmp_path)
    below = kernels_of(fast_kernels.BELOW, tmp_path)
    checked = check(stack, below, "cpu", every=31, dtypes=(torch.float32,))
    assert checked.findings == []
    assert set(checked.worst) == {f"float32 against {BELOW}", f"float32 against {FLOAT64}"}
    assert checked.comparisons > 100


def test_a_wrong_kernel_is_found_by_the_matrix(tmp_path: Path) -> None:
    old, new = "kept += simd_shuffle_xor(is_upper ? x : y, LANES / 2);", ""
    stack = kernels_of(fast_kernels.FAST, tmp_path, old=old, new=new)
    findings = check(stack, None, "cpu", every=61, dtypes=(torch.float32,)).findings
    assert findings
    assert all("lanes per position" in finding for finding in findings)


def test_the_table_has_the_rows_of_the_pull_request() -> None:
    rows = pr_rows()
    assert len(rows) == 32
    assert {row.layout for row in rows} == set(LAYOUTS[:2])
    assert all(row.grid == "random" and row.output == row.shape[2:] for row in rows)


def test_crossovers_are_measured_on_both_sides_of_every_threshold() -> None:
    channels = {(row.interpolation, row.dimensions, row.shape[1]) for row in gpu.crossover_rows()}
    assert {("bilinear", 2, 12), ("bilinear", 2, 16), ("bicubic", 2, 4), ("bicubic", 2, 8)} <= channels
    assert {("bilinear", 3, 12), ("bilinear", 3, 16), ("nearest", 2, 32), ("nearest", 2, 48)} <= channels


def test_a_folder_without_kernels_is_named_with_the_command_that_fills_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no compiled kernels there \(python build.py"):
        gpu.open_kernels(tmp_path)
