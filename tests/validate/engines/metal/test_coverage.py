"""PyTorch 2.6's own kernels, unmodified, agree with the CPU operators when they run on this host."""

from __future__ import annotations

import pytest
from bench.metal_coverage import KERNELS, FileCoverage, cover_file
from bench.metal_coverage_runs import RUNS

from metal_kernels import cache
from references import require_reference

# A race by the letter: lanes of one simdgroup exchange a value through memory without a simdgroup_barrier.
KNOWN_REPORTS = {"Quantized": 3}
WATCHED = ("Indexing", "UpSample", "FusedOptimizerOps")


def covered(name: str, *, watch: bool) -> FileCoverage:
    tree = require_reference("2.6").path
    return cover_file(tree / KERNELS / f"{name}.metal", [tree / "aten" / "src", tree], cache(), watch=watch)


@pytest.mark.exhaustive
@pytest.mark.needs_reference
@pytest.mark.parametrize("name", RUNS)
def test_kernels_of_pytorch_2_6_agree_with_the_cpu(name: str) -> None:
    result = covered(name, watch=name in WATCHED)
    assert result.errors == ""
    assert len(result.compared) > 0
    assert max(one.difference for one in result.compared) < 8
    assert result.reports == ()


@pytest.mark.exhaustive
@pytest.mark.needs_reference
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_kernels_of_pytorch_2_6_are_clean_when_watched(name: str) -> None:
    result = covered(name, watch=True)
    assert len(result.reports) == KNOWN_REPORTS.get(name, 0), result.reports
