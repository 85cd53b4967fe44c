"""The real wheels, where they are on this machine: everything is found, read and, for a sample, run against float64."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from click.testing import CliRunner

from apple_release import require_release
from patchstack.cache import cache_dir
from stackproof.cli import command
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.container import Metallib
from stackproof.engines.metal import RunMode
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.apple_kernels.cases import Release, SamplerTask, Work, sampler_kernels
from stackproof.ops.grid_sampler.apple.sampler import largest_error
from stackproof.ops.grid_sampler.families.upstream import SamplerKernel
from stackproof.ops.grid_sampler.modes import Padding

RELEASE = ("2.13", "metal_basic")
SAMPLE = (
    "grid_sampler_2d_bicubic_border_i32_float",
    "grid_sampler_2d_backward_bilinear_input_i32_float",
    "grid_sampler_2d_backward_bicubic_input_zeros_i32_bfloat",
    "grid_sampler_2d_backward_bilinear_grid_i64_half",
    "grid_sampler_3d_bilinear_reflection_i32_half",
    "grid_sampler_3d_backward_i64_float",
)


@pytest.fixture(scope="module")
def release() -> Metallib:
    return require_release("2.13")


@pytest.mark.parametrize(("name", "count", "samplers"), [("2.13", 12998, 150), ("2.11", 5867, 6)])
def test_every_kernel_of_a_release_is_found(name: str, count: int, samplers: int) -> None:
    library = require_release(name)
    assert len(library.entries) == count
    assert sum(entry.name.startswith("grid_sampler") for entry in library.entries) == samplers


def test_metadata_of_a_random_sample_describes_every_parameter(release: Metallib) -> None:
    for entry in random.Random(7).sample(release.entries, 60):
        kernel = AirSource.of(release, entry.name).kernel()
        assert kernel.name == entry.name
        assert all(one.attribute or one.location >= 0 for one in kernel.parameters)
        for one in kernel.parameters:
            flat = one.layout.flat() if one.layout else None
            assert flat is None or all(field.offset < max(flat.size, 1) for field in flat.fields)


def test_a_random_sample_compiles_and_links(release: Metallib) -> None:
    names = [entry.name for entry in random.Random(3).sample(release.entries, 40)]
    sources = [AirSource.of(release, name) for name in names]
    library = compile_kernels(sources, RunMode.PLAIN, cache_dir() / "tests")
    assert library.kernel_names == names


def test_every_grid_sampler_is_recognised_by_its_name(release: Metallib) -> None:
    kernels = [SamplerKernel.of(entry.name) for entry in release.entries]
    known = [kernel for kernel in kernels if kernel]
    assert len(known) == 150
    assert sum(len(kernel.modes()) for kernel in known) == 432


@pytest.mark.exhaustive
def test_upstream_samplers_agree_with_float64_in_child_processes(release: Metallib) -> None:
    del release
    of = Release(*RELEASE, cache_dir())
    tasks = [SamplerTask(kernel) for kernel in sampler_kernels(of) if kernel.name in SAMPLE]
    answers = list(run_tasks(tasks, Work(of), jobs=1))
    assert len(answers) == len(SAMPLE)
    for task, answer in answers:
        kernel = task.kernel
        assert not isinstance(answer, Died)
        assert (answer.failure, answer.reports) == ("", ())
        for result in answer.samplers:
            for output, error in result.epsilons.items():
                assert error <= largest_error(kernel, output), f"{kernel.name} {result.mode} {output}"


def test_a_kernel_of_another_mode_is_far_off(release: Metallib) -> None:
    """A seeded fault: the check must see it when the wrong kernel is called."""
    del release
    of = Release(*RELEASE, cache_dir())
    wrong = SamplerKernel.of("grid_sampler_2d_bilinear_zeros_i32_float")
    assert wrong
    answer = Work(of)(SamplerTask(replace(wrong, padding=Padding.BORDER)))
    assert answer.failure == ""
    assert all(error > 1000 for result in answer.samplers for error in result.epsilons.values())


def test_list_filters_by_name_and_by_what_is_called(release: Metallib) -> None:
    del release
    arguments = ["apple-kernels", "list", "--json", "--name", "^grid_sampler_2d_b", "--name", "i32_float$"]
    everything = json.loads(CliRunner().invoke(command, arguments).output)
    adding = json.loads(CliRunner().invoke(command, [*arguments, "--calls", "atomic.*add"]).output)
    assert everything["of"] == 12998
    assert len(everything["kernels"]) == 15
    names = {kernel["name"] for kernel in adding["kernels"]}
    assert names == {kernel["name"] for kernel in everything["kernels"] if "_input_" in kernel["name"]}


def test_show_prints_layout_and_disassembly(release: Metallib) -> None:
    del release
    name = "grid_sampler_3d_backward_i32_float"
    shown = CliRunner().invoke(command, ["apple-kernels", "show", name]).output
    assert "188  int padding_mode" in shown
    assert "[thread_position_in_grid]  uint3 thread_index" in shown
    text = CliRunner().invoke(command, ["apple-kernels", "show", name, "--ir"]).output
    assert f"@{name}(" in text
