"""The candidate kernels on the host: right in every mode, and the checks that say so find what is seeded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from candidates import GROUP, Case, Libraries, backward, change_one
from instances import (
    OVERLAY,
    OVERLAY_SOURCE,
    Instance,
    Spread,
    backward_instance,
    turn_for,
    turn_instances,
    write_source,
)
from loading import load_libraries
from matrix import check
from measure import Result, markdown, necessary_bytes
from rows import LAYOUTS, other_rows, pr_rows
from selection import choose_spread
from timing import Timing
from variants import checked_instances, selected_instances

from metal_kernels import cache
from overlay_kernels import TORCH_HEADERS
from stackproof.metal import MetalLibrary, RunMode, compile_library


def compiled(
    folder: Path, instances: list[Instance], old: str = "", new: str = "", mode: RunMode = RunMode.PLAIN
) -> MetalLibrary:
    """The candidates for the host, with one text replaced."""
    source = write_source(folder / "source.metal", instances)
    text = source.read_text()
    assert old in text, f"the seeded fault no longer fits the kernels: {old!r}"
    source.write_text(text.replace(old, new) if old else text)
    return compile_library(source, [OVERLAY, TORCH_HEADERS], cache=cache(), root=folder, mode=mode)


@pytest.fixture(scope="module")
def overlay() -> MetalLibrary:
    """The overlay's own kernels."""
    return compile_library(OVERLAY_SOURCE, [OVERLAY, TORCH_HEADERS], cache=cache())


def test_candidates_agree_with_float64_and_with_change_1_in_every_mode(overlay: MetalLibrary, tmp_path: Path) -> None:
    library = compiled(tmp_path, checked_instances()["matrix_float"])
    findings, worst = check(Libraries([library, overlay]), "cpu", every=3, dtypes=(torch.float32,))
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
def test_a_seeded_fault_is_found(old: str, new: str, overlay: MetalLibrary, tmp_path: Path) -> None:
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


def test_a_walk_adds_to_two_pixels_a_step_where_change_1_adds_to_four(tmp_path: Path) -> None:
    """Exact counts: an identity grid, whose samples each move on by one pixel, away from the right and lower edge."""
    spread, rows, columns, channels = Spread(32, 2, 32, True), 3, 32, 64
    instance = backward_instance("bilinear", "zeros", torch.float32, spread)
    turns = turn_instances(torch.float32, turn_for(channels))
    lanes = compiled(tmp_path, [instance, *turns], mode=RunMode.TRAFFIC)
    own = compile_library(OVERLAY_SOURCE, [OVERLAY, TORCH_HEADERS], cache=cache(), mode=RunMode.TRAFFIC)
    grid = torch.nn.functional.affine_grid(torch.eye(2, 3)[None], [1, 1, rows + 1, columns + 1], align_corners=True)
    shape = (1, channels, rows, columns)
    case = Case(torch.randn(shape), torch.randn(1, channels, rows + 1, columns + 1), grid[:, :-1, :-1].contiguous())
    work, walked = backward(lanes, case, spread, turn_for(channels)), 0
    for step in work.steps:
        step()
        walked += lanes.traffic["atomics"]
    change_one(own, case)()
    positions, run = rows * columns, spread.tile * spread.lanes // GROUP
    assert own.traffic["atomics"] == 4 * positions * channels
    assert walked == (2 * (run - 1) + 4) * (positions // run) * channels


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


def test_a_folder_without_kernels_is_named_with_the_command_that_fills_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no compiled kernels there \(python build.py"):
        load_libraries(tmp_path)
