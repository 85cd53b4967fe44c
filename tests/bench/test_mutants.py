"""The mutants: one of each kind from a small text, and a run whose outcomes are counted and kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutants
import pytest
from mutation import judging
from mutation.judging import CAUGHT, STILLBORN, SURVIVED, UNDECIDED, Judge, Outcome, mutants_of, read_outcome
from mutation.kinds import KINDS, sites
from mutation.table import Reasons, page
from mutation.targets import Target, commit_with

from patchstack.tree.git import GitCommitHash

KERNEL = b"""#include <metal_stdlib>
using namespace metal;

template <typename T, typename idx_t>
kernel void gather(
    device T* out [[buffer(0)]],
    const device T* in [[buffer(1)]],
    device atomic<float>* total [[buffer(2)]],
    constant long2& strides [[buffer(3)]],
    constant long2& sizes [[buffer(4)]],
    threadgroup float* shared [[threadgroup(0)]],
    uint i [[thread_position_in_grid]]) {
  if (i >= sizes.x) {
    return;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const idx_t offset = i * strides.x;
  float sum = 0.0f;
  sum += in[offset] / 3.0f;
  atomic_fetch_add_explicit(total, sum, memory_order_relaxed);
}
"""
HOST = b"""void gather_mps(const Tensor& out, const Tensor& in) {
  auto total = at::zeros({1}, in.options());
  auto pso = lib.getPipelineStateForFunc("gather_" + scalarToMetalTypeString(out));
  dispatch_sync(stream->queue(), ^() {
    @autoreleasepool {
      mtl_setArgs(encoder, out, in);
      [encoder dispatchThreads:MTLSizeMake(n, 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
    }
  });
}
"""
EXPECTED = {
    ("index off by one", "in[offset]", "in[offset + 1]"),
    ("`<` for `<=`", "i >= sizes.x", "i > sizes.x"),
    ("dropped barrier", "threadgroup_barrier(mem_flags::mem_threadgroup);", ";"),
    ("dropped bounds check", "if (i >= sizes.x)", "if (false)"),
    ("swapped operands or buffers", "mtl_setArgs(encoder, out, in)", "mtl_setArgs(encoder, in, out)"),
    ("wrong dtype", "scalarToMetalTypeString(out)", 'std::string("float")'),
    ("stride for size", "i >= sizes.x", "i >= strides.x"),
    ("64-bit to 32-bit offset", "const idx_t offset", "const int32_t offset"),
    ("wrong constant", "/ 3.0f", "/ 3.5f"),
    ("missing zero fill", "at::zeros({1}", "at::empty({1}"),
    ("wrong threadgroup size", "threadsPerThreadgroup:MTLSizeMake(64,", "threadsPerThreadgroup:MTLSizeMake((64) * 32,"),
    (
        "dropped atomic",
        "atomic_fetch_add_explicit(total, sum, memory_order_relaxed)",
        "*reinterpret_cast<device float*>(total) += (sum)",
    ),
}


@pytest.mark.parametrize(("kind", "before", "after"), sorted(EXPECTED))
def test_a_fault_of_each_kind_is_made(kind: str, before: str, after: str) -> None:
    text = KERNEL if before.encode() in KERNEL else HOST
    expected = text.replace(before.encode(), after.encode(), 1)
    assert expected in [site.made_in(text) for site in sites(text) if site.kind == kind]


def test_the_expected_faults_are_of_all_kinds() -> None:
    assert {kind for kind, _, _ in EXPECTED} == set(KINDS)


def test_nothing_outside_of_functions_is_mutated() -> None:
    assert sites(b"constant constexpr float A = 0.0f;\ntemplate <int N> struct S { float x[N < 3]; };\n") == []


@dataclass(frozen=True)
class Small(Target):
    """A repository with one kernel, of which a stack changes two lines and metal-check judges it."""

    def folder(self, out: Path) -> Path:
        return out / "repository"

    def stack(self, out: Path) -> tuple[GitCommitHash, GitCommitHash]:
        folder = self.folder(out)
        if not folder.exists():
            subprocess.run(["git", "init", "-q", str(folder)], check=True)
        empty = subprocess.run(
            ["git", "-C", str(folder), "hash-object", "-w", "-t", "tree", "/dev/null"], check=True, capture_output=True
        )
        root = commit_with(folder, empty.stdout.decode().strip(), "", {})
        return root, commit_with(folder, root, root, {self.files[0]: SMALL})

    def stages(self, path: str = "") -> Sequence[tuple[str, Mapping[str, Any]]]:
        return [("metal-check", {})]


SMALL = b"""#include <metal_stdlib>
using namespace metal;

kernel void total(device float* out, constant float* in, uint i [[thread_position_in_grid]]) {
  if (i < 64) {
    out[i] = simd_sum(in[i]) * 2.0f;
  }
}
"""


@pytest.fixture
def target(tmp_path: Path) -> Small:
    return Small("small", "", ("aten/src/ATen/native/mps/kernels/Small.metal",))


def test_a_run_keeps_what_the_gates_said_and_does_not_judge_again(target: Small, tmp_path: Path) -> None:
    order = mutants.drawn(mutants_of(target, tmp_path), seed=1)
    judge = Judge(tmp_path, jobs=1)
    mutants.sampled(order, 2, judge, "")
    kept = {place: place.read_text() for place in tmp_path.glob("*.json")}
    words = [read_outcome(place).word for place in kept if not place.name.startswith("usual-")]
    assert len([word for word in words if word != STILLBORN]) == 2
    mutants.sampled(order, 2, judge, "")
    assert {place: place.read_text() for place in tmp_path.glob("*.json")} == kept


def test_a_mutant_whose_gates_do_not_end_in_time_is_not_decided(
    target: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge(tmp_path, jobs=1)
    (tmp_path / "usual-small.json").write_text("[]")
    monkeypatch.setattr(judging, "SECONDS", 0)
    assert judge.judged(next(mutants_of(target, tmp_path))).word == UNDECIDED


def test_an_old_finding_with_other_figures_is_no_catch(target: Small, tmp_path: Path) -> None:
    place = tmp_path / "usual-small.json"
    mutant = next(one for one in mutants_of(target, tmp_path) if one.site.made_in(one.data).count(b"2.5f"))
    judge = Judge(tmp_path, jobs=1)
    place.write_text("[]")
    caught = judge.judged(mutant)
    assert (caught.word, caught.in_file) == (CAUGHT, True)
    place.write_text(json.dumps([[caught.rule, f"{caught.message} (3 more like it)"]]))
    assert judge.judged(mutant).word == SURVIVED


def outcome(kind: str, word: str, key: str, *, near: bool = False) -> Outcome:
    found = ("metal-run", "race") if word == CAUGHT else ("", "")
    return Outcome(key, kind, "small", "a/Small.metal", 5, "a | b", "b", word, *found, "", near, near, 1.0)


def test_the_page_counts_what_is_equivalent_and_what_does_not_compile_apart() -> None:
    outcomes = [
        outcome(KINDS[0], CAUGHT, "1", near=True),
        outcome(KINDS[0], SURVIVED, "2"),
        outcome(KINDS[1], SURVIVED, "3"),
        outcome(KINDS[1], STILLBORN, "4"),
        outcome(KINDS[2], UNDECIDED, "5"),
    ]
    text = page(outcomes, Reasons({"3": "no such case"}, {"2": "a larger size"}), "Today.")
    assert "Of 3 mutants that compile, 1 are put aside as equivalent. Of the other 2, 1 were caught (50.0 %)." in text
    assert "within 3 lines of the fault for 1 (100.0 %)" in text
    assert f"| {KINDS[2]} | 0 | 0 | 0 | 0 | 0 |" in text
    assert f"| {KINDS[0]} | 2 | 1 | 1 | 0 | 1 |" in text
    assert f"| {KINDS[1]} | 1 | 0 | 0 | 1 | 0 |" in text
    assert f"| Small.metal:5 | {KINDS[0]} | `a \\| b -> b` | a larger size |" in text
    assert f"| Small.metal:5 | {KINDS[1]} | `a \\| b -> b` | no such case |" in text
