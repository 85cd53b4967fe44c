"""How upstream's compiled kernels are called to be measured: on the host, where the wheel they come from is cached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from loading import load_libraries
from upstream import ALLOWED, RELEASE, build, errors, kernel_names, needed_kernels, upstream_pass

from apple_release import require_release
from metal_kernels import cache
from stackproof.engines.apple.build import library_kernels
from stackproof.engines.metal import RunMode
from stackproof.ops.grid_sampler.bench.rows import PR_SHAPES, pr_rows
from stackproof.ops.grid_sampler.fast.passes import Case

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "grid_sampler_backward" / "results"


def test_every_row_needs_kernels_that_the_release_has() -> None:
    release = require_release(RELEASE)
    names = needed_kernels(pr_rows())
    assert len(names) == 8
    assert set(names) <= {entry.name for entry in release.entries}


@pytest.mark.parametrize("dtype", ALLOWED, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_the_pass_that_is_measured_gives_the_gradients(dtype: torch.dtype, layout: torch.memory_format) -> None:
    release = require_release(RELEASE)
    torch.manual_seed(0)
    for interpolation in ("bilinear", "bicubic"):
        shape, output = (2, 5, 7, 9), (8, 11)
        case = Case(
            torch.randn(*shape[:2], *output).to(dtype),
            torch.randn(shape).to(dtype).contiguous(memory_format=layout),
            torch.randn(shape[0], *output, 2).to(dtype),
            interpolation,
        )
        names = kernel_names(interpolation, "zeros", dtype)
        library = library_kernels(release, names, RunMode.PLAIN, cache())
        work = upstream_pass(library, case)
        for _ in range(2):  # nothing of the first run stays behind
            found = errors(work, case)
            assert found.keys() == {"grad_input", "grad_grid"}
            assert max(found.values()) <= ALLOWED[dtype]


def test_the_recorded_times_and_errors_are_of_the_rows() -> None:
    recorded = json.loads((RESULTS / "upstream.json").read_text())
    rows = {row.label: row for row in pr_rows()}
    assert recorded["milliseconds"].keys() == recorded["spread"].keys() == rows.keys()
    assert recorded["errors"].keys() == {label for label, row in rows.items() if row.shape == PR_SHAPES[0]}
    assert all(max(one.values()) <= ALLOWED[rows[label].dtype] for label, one in recorded["errors"].items())


def test_the_build_is_a_library_that_the_gpu_can_load(tmp_path: Path) -> None:
    require_release(RELEASE)
    assert build(tmp_path) == 0
    content = json.loads((tmp_path / "upstream" / "build.json").read_text())
    assert [one["kernel"] for one in content["signatures"]] == needed_kernels(pr_rows())
    assert "__metal_entry_7" in (tmp_path / "upstream" / "library.ptx").read_text()


def test_a_folder_without_them_is_named_with_the_command_that_fills_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no compiled kernels there \(python upstream.py build "):
        load_libraries(tmp_path, "upstream", command="upstream.py build")
