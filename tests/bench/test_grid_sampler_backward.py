"""The candidate kernels on the host: right in every mode, and the checks that say so find what is seeded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from candidates import Case, Libraries, backward
from instances import OVERLAY, OVERLAY_SOURCE, Instance, Spread, backward_instance, turn_for, write_source
from matrix import check
from measure import Result, markdown, necessary_bytes
from rows import LAYOUTS, other_rows, pr_rows
from selection import choose_spread
from timing import Timing
from variants import checked_instances, selected_instances

from metal_kernels import cache
from overlay_kernels import TORCH_HEADERS
from stackproof.metal import MetalLibrary, compile_library


def compiled(folder: Path, instances: list[Instance], old: str = "", new: str = "") -> MetalLibrary:
    """The candidates for the host, with one text replaced."""
    source = write_source(folder / "source.metal", instances)
    text = source.read_text()
    assert old in text, f"the seeded fault no longer fits the kernels: {old!r}"
    source.write_text(text.replace(old, new) if old else text)
    return compile_library(source, [OVERLAY, TORCH_HEADERS], cache=cache(), root=folder)


@pytest.fixture(scope="module")
def change_one() -> MetalLibrary:
    """The overlay's own kernels."""
    return compile_library(OVERLAY_SOURCE, [OVERLAY, TORCH_HEADERS], cache=cache())


def test_candidates_agree_with_float64_and_with_change_1_in_every_mode(
    change_one: MetalLibrary, tmp_path: Path
) -> None:
    library = compiled(tmp_path, checked_instances()["matrix_float"])
    findings, worst = check(Libraries([library, change_one]), "cpu", every=3, dtypes=(torch.float32,))
    assert findings == []
    assert {row.compared_with for row in worst} == {"change 1", "float64"}
    assert sum(r.comparisons for r in worst) > 300


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum[0][k] = keeps_right ? before[1]", "sum[0][k] = keeps_right ? before[0]"),
        ("kept += simd_shuffle_xor(given, LANES / 2);", ""),
        ("cell.weight_y[i] * cell.weight_x[j] * grad[k]", "cell.weight_y[j] * cell.weight_x[j] * grad[k]"),
        ("if (is_inside && has(k))", "if (is_inside)"),
    ],
    ids=[
        "a pixel's sum is lost on the way",
        "half of the lanes are not summed",
        "a weight is mixed up",
        "channels beyond the last",
    ],
)
def test_a_seeded_fault_is_found(old: str, new: str, change_one: MetalLibrary, tmp_path: Path) -> None:
    spread = Spread(16, 2, 16, True)
    names = ("bilinear", "bicubic")
    instances = [backward_instance(name, "zeros", torch.float32, spread) for name in names]
    library = compiled(tmp_path, [*instances, *checked_instances()["matrix_float"][:12]], old, new)
    torch.manual_seed(0)
    wrong = 0.0
    for name in names:
        grid = torch.nn.functional.affine_grid(torch.eye(2, 3)[None], [1, 1, 9, 20], align_corners=True)
        case = Case(torch.randn(1, 37, 9, 20), torch.randn(1, 37, 9, 20) + 3, grid + 0.01, name)
        found, right = backward(library, case, spread, turn_for(37))(), case.reference(torch.float64)
        wrong = max([wrong, *(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, right, strict=True))])
    assert wrong > 1e-3


def test_every_row_gets_a_kernel_that_the_build_makes() -> None:
    names = {instance.name for group in selected_instances().values() for instance in group}
    for row in pr_rows() + other_rows():
        case = row.case("meta")
        spread = choose_spread(case)
        assert backward_instance(row.interpolation, "zeros", row.dtype, spread, case.dimensions).name in names


def test_the_table_has_the_rows_of_the_pull_request() -> None:
    rows = pr_rows()
    assert len(rows) == 32
    assert {row.layout for row in rows} == set(LAYOUTS[:2])
    assert all(row.grid == "random" and row.output == row.shape[2:] for row in rows)


def test_the_bytes_that_must_move_are_each_tensor_once_and_grad_input_twice() -> None:
    case = Case(torch.zeros(1, 8, 4, 4), torch.zeros(1, 8, 4, 4), torch.zeros(1, 4, 4, 2))
    assert necessary_bytes(case) == 4 * (128 + 3 * 128 + 2 * 32)


def test_the_report_names_the_device_and_says_that_no_apple_gpu_was_measured() -> None:
    fast, slow = Timing(1.0, 0.9, 1.1), Timing(4.0, 3.9, 4.1)
    result = Result("PR 179756", "some row", slow, Timing(2.0, 2.0, 2.0), fast, "32x2x32", (0.4, 0.6), 8.0, 0.5)
    text = markdown("Some GPU", 4.0, [result])
    assert "Some GPU" in text
    assert "no Apple" in text
    assert "Over PyTorch CUDA: geometric mean 4.00" in text
    assert "Over upstream MPS: geometric mean 8.00" in text
