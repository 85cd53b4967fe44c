"""Host files of a real, complete, older PyTorch: checked against their own tree, executed with their own kernels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from patchstack.cache import cache_dir
from patchstack.tree.git import Repository, Tree
from references import require_reference
from stackproof.engines.standin.clang import find_clang
from stackproof.engines.standin.headers import prepare_headers
from stackproof.engines.standin.host_file import FileChecker
from stackproof.engines.standin.stack import OPERATIONS, HostStack

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.usefixtures("compiler"),
    pytest.mark.slow,
    pytest.mark.needs_reference,
]

CHECKED = (
    "AdaptivePooling", "BitwiseOps", "Bucketization", "CrossKernel", "FusedAdamKernel", "FusedAdamWKernel",
    "FusedAdamKernelImpl", "FusedAdamWKernelImpl", "FusedSgdKernel", "Gamma", "HistogramKernel", "Im2Col", "Scalar",
    "SpecialOps", "UnfoldBackward",
)  # fmt: skip
EXECUTED = ("Im2Col", "RenormKernel", "Bucketization")

# Runs in a process of its own: a device cannot be taken back.
SCRIPT = """
import sys
from pathlib import Path
import torch
from patchstack.tree.git import Repository, Tree
from stackproof.engines.standin.build import build_device
from stackproof.engines.standin.device import StandinDevice
from stackproof.engines.standin.stack import OPERATIONS, HostStack

repository, cache, *names = sys.argv[1:]
with Repository.open(Path(repository)) as opened:
    stack = HostStack.of(Tree.at(opened, "main"), [f"{OPERATIONS}/{name}.mm" for name in names])
    device = StandinDevice(build_device(stack, Path(cache)))
torch.manual_seed(0)
images, rows, edges = torch.randn(2, 3, 6, 7), torch.randn(4, 5), torch.randn(9).sort()[0]
def same(function, *tensors):
    expected, launched = function(*tensors), len(device.launches)
    actual = function(*(tensor.to("mps") for tensor in tensors)).cpu()
    assert len(device.launches) > launched, "no kernel was launched"
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)
with device.detectors():
    same(lambda t: torch.nn.functional.unfold(t, (2, 3), padding=1, stride=2), images)
    same(lambda t: torch.renorm(t, 2, 0, 1.0), rows)
    same(torch.bucketize, rows, edges)
print(*sorted({f"{finding.rule}: {finding.message}" for finding in device.take_findings()}), sep="\\n")
"""


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    """The 2.6 source tree."""
    with Repository.open(require_reference("2.6").path) as repository:
        yield Tree.at(repository, "main")


@pytest.fixture(scope="module")
def checker(tree: Tree) -> FileChecker:
    cache = cache_dir() / "host-check"
    return FileChecker(tree, find_clang(), prepare_headers(tree, cache), cache)


def test_fifteen_host_files_pass_against_their_own_tree(tree: Tree, checker: FileChecker) -> None:
    stack = HostStack.of(tree, [f"{OPERATIONS}/{name}.mm" for name in CHECKED])
    with ThreadPoolExecutor(max_workers=2) as pool:
        verdicts = list(pool.map(checker.check, stack.files))
    assert [str(finding) for verdict in verdicts for finding in verdict.findings] == []
    assert len(verdicts) == 15
    assert all(verdict.cases >= 2 for verdict in verdicts)


def test_an_encoder_that_a_real_host_file_takes_outside_the_block_is_found(tree: Tree, checker: FileChecker) -> None:
    stack = HostStack.of(tree, [f"{OPERATIONS}/RenormKernel.mm"])
    verdict = checker.check(stack.files[0])
    assert [finding.rule for finding in verdict.findings] == ["encoder-outside-block"]


def test_a_host_file_that_builds_graphs_is_not_checked_rather_than_failed(tree: Tree, checker: FileChecker) -> None:
    stack = HostStack.of(tree, [f"{OPERATIONS}/GridSampler.mm"])
    verdict = checker.check(stack.files[0])
    assert [finding for finding in verdict.findings if finding.fails] == []
    assert any("MPSGraph" in text for text in verdict.skipped)


def test_three_host_files_run_with_their_own_kernels_and_equal_the_cpu(tree: Tree) -> None:
    repository = require_reference("2.6").path
    command = [sys.executable, "-c", SCRIPT, str(repository), str(cache_dir() / "host-run"), *EXECUTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [line for line in done.stdout.splitlines() if line]
    assert found == ["encoder-outside-block: the stream's encoder was taken outside of its queue block"]
