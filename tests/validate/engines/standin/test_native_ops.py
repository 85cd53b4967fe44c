"""Ops of the real 2.6 tree that a host file implements through a stub, and helpers of other host files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from patchstack.tree.git import Tree
from stack_lab import StackLab, applied
from stackproof.engines.standin.missing import name_of, throwers
from stackproof.engines.standin.stub_ops import functions_through_stubs
from stackproof.engines.standin.tree_helpers import tree_helpers

OPERATIONS = "aten/src/ATen/native/mps/operations"
OFFSETS = "at::native::mps::generateKernelDataOffsets"


@pytest.fixture(scope="module")
def tree_of_2_6(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackLab]:
    """The 2.6 tree without a stack."""
    with applied("2.6", tmp_path_factory.mktemp("native") / "tree", series="metal_ops") as lab:
        yield StackLab(lab.path, lab.repository, lab.base, lab.base)


@pytest.fixture(scope="module")
def tree(tree_of_2_6: StackLab) -> Tree:
    return tree_of_2_6.tree()


@pytest.mark.needs_reference
def test_the_functions_that_reach_a_stub_are_found(tree: Tree) -> None:
    found = functions_through_stubs(tree, ["REGISTER_DISPATCH(fmax_stub, &fmax_mps_kernel);"])
    assert "fmax_out" in found
    assert "fmin_out" not in found
    assert functions_through_stubs(tree, ["Tensor fmax_out();"]) == frozenset()


@pytest.mark.needs_reference
def test_a_helper_is_cut_out_of_a_file_that_builds_graphs(tree: Tree) -> None:
    found = tree_helpers(tree, [OFFSETS, "at::native::no_helper"], [])
    assert found.text.count("generateKernelDataOffsets") == 1
    assert found.kernel_sources == ("aten/src/ATen/native/mps/kernels/Indexing.metal",)
    assert tree_helpers(tree, [OFFSETS], [f"{OPERATIONS}/Indexing.mm"]).text == ""


def test_what_nothing_defines_raises_its_name() -> None:
    symbol = "_ZN2at6native3mps3fooEv"
    assert name_of(symbol) == "at::native::mps::foo"
    assert f'LACKS(0, "{symbol}", "at::native::mps::foo")' in throwers([symbol])
