"""The gate "apple-kernels" on a stack whose kernels have upstream's names: its structs, and its backward as peer."""

from __future__ import annotations

import pytest

from apple_release import require_release
from gate_contexts import run_gate
from metal_kernels import cache
from patchstack.cache import cache_dir
from stack_lab import HEADER_FILE, StackLab, sampler_kernels, sampler_source
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.release import DEFAULT_SECTION
from stackproof.engines.apple.struct_check import compare_structs
from stackproof.engines.apple.structs import release_structs
from stackproof.engines.metal import ALL_DETECTORS, MetalLibrary, RunMode
from stackproof.gates.apple_kernels.spec import SPEC as APPLE_KERNELS
from stackproof.model import GateContext
from stackproof.ops.grid_sampler.apple.peer import KINDS, compare_backward, upstream_kernels


@pytest.fixture(autouse=True)
def _release() -> None:
    require_release("2.13")


def test_the_stacks_structs_are_laid_out_as_apples_compiler_has_upstreams(stack_of_after: StackLab) -> None:
    context = GateContext(stack_of_after.repository, stack_of_after.base, stack_of_after.head, cache_dir(), jobs=1)
    result = run_gate(APPLE_KERNELS, context, match="of the stack")
    assert [finding.message for finding in result.findings if finding.fails] == []
    compared = {row["spelling"] for row in result.details["structs"]}
    assert {f"GridSamplerBackwardParams<{rank}, {index}>" for rank in (4, 5) for index in ("int", "long")} <= compared


def test_a_field_that_the_stack_adds_to_a_struct_of_upstreams_kernels_is_found(stack_of_after: StackLab) -> None:
    field = "  bool compute_grad_input;\n"
    head = stack_of_after.replaced(field, "  int32_t added;\n" + field, HEADER_FILE)
    source = sampler_source(stack_of_after.tree(head))
    structs = release_structs("2.13", DEFAULT_SECTION, cache_dir())
    rows = compare_structs({HEADER_FILE: source.headers[0]}, source.root, source.include_dirs, structs, cache())
    wrong = {row.spelling: row.differences for row in rows if row.differences}
    assert {name.partition("<")[0] for name in wrong} == {"GridSamplerBackwardParams"}
    for texts in wrong.values():
        assert {text.partition(":")[0] for text in texts if "compute_grad_input at byte" in text} == {"metal", "python"}


def test_the_stacks_backward_is_no_less_exact_than_upstreams_and_adds_half_as_often_in_16_bits(
    stack_of_after: StackLab,
) -> None:
    release, mode = require_release("2.13"), ALL_DETECTORS | RunMode.TRAFFIC
    kernels = upstream_kernels(release, 3, "half")
    sources = [AirSource.of(release, kernel.name) for kernel in kernels]
    layouts = {one.name: one.kernel().struct("params") for one in sources}
    ours = sampler_kernels(stack_of_after.tree(), mode)
    assert isinstance(ours.library, MetalLibrary)
    upstream = compile_kernels(sources, mode, cache())
    rows = list(compare_backward(ours, ours.library, upstream, kernels, layouts))
    assert [text for row in rows for text in row.problems()] == []
    assert len(rows) == 2 * len(KINDS)
    for row in rows:
        assert 2 * row.ours.traffic["atomics"] == row.upstream.traffic["atomics"] > 0
        # Both gradients of 3D read grad_output: one walk over the channels each.
        assert row.ours.traffic["loads"] <= 1.25 * row.upstream.traffic["loads"]
