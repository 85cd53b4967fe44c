"""How much of a change a tree has: absent, identical, present upstream, present but different, partial."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from edit_bench import commit_of, write_series
from patchstack.edits import Status
from patchstack.errors import TreeError, UsageError
from patchstack.planning import ChangePlan, ChangeState, StackPlan, plan_stack
from patchstack.series import Series, load_series
from patchstack.tree.git import Repository

NATIVE = "aten/src/ATen/native/native_functions.yaml"
HOST = "aten/src/ATen/native/mps/operations/Tint.mm"
KERNEL = "aten/src/ATen/native/mps/kernels/Tint.metal"
LISTS = "torch/testing/lists.py"

MANIFEST = f"""\
format: 1
changes:
  - id: tint
    title: "[MPS] Add tint"
    message: message.md
    requires:
      - {{path: {HOST}, defines: shade_mps, reason: tint is built like shade}}
      - {{path: {LISTS}, reason: the list of failing ops}}
    upstream:
      - {{dispatch: tint, key: MPS}}
      - {{defines: tint_kernel, path: {KERNEL}}}
    edits:
      - {{kind: add-dispatch-key, path: {NATIVE}, op: tint, key: MPS, function: tint_mps}}
      - {{kind: create-file, path: {KERNEL}}}
      - {{kind: place-fragment, path: {HOST}, fragment: include, into: {{include_block: ATen/a.h}}}}
      - {{kind: place-fragment, path: {HOST}, fragment: tint_mps, after: {{function: shade_mps}}}}
      - {{kind: remove-python-entry, path: {LISTS}, in: [{{assign: FAILING}}], entry: '"tint"'}}
  - id: twice
    title: "[MPS] Add tint_twice"
    message: message.md
    needs: [tint]
    requires:
      - {{path: {KERNEL}, defines: tint_kernel, reason: it runs the kernel twice}}
    upstream:
      - {{dispatch: tint_twice, key: MPS}}
    edits:
      - {{kind: add-dispatch-key, path: {NATIVE}, op: tint_twice, key: MPS, function: tint_twice_mps}}
      - {{kind: place-fragment, path: {HOST}, fragment: tint_twice_mps, after: {{function: tint_mps}}}}
"""
OVERLAY = {
    HOST: b"""\
// fragment: include
#include <ATen/b.h>
// end fragment
// fragment: tint_mps
void tint_mps() {
  run();
}
// end fragment
// fragment: tint_twice_mps
void tint_twice_mps() {
  tint_mps();
}
// end fragment
""",
    KERNEL: b"kernel void tint_kernel() {\n}\n",
}
TREE: Mapping[str, bytes] = {
    NATIVE: b"- func: tint(Tensor s) -> T\n  dispatch:\n    CPU: tint_cpu\n\n"
    b"- func: tint_twice(Tensor s) -> T\n  dispatch:\n    CPU: tint_twice_cpu\n",
    HOST: b"#include <ATen/a.h>\n\nvoid shade_mps() {\n}\n",
    LISTS: b'FAILING = ["shade", "tint"]\n',
}
Plan = Callable[..., StackPlan]


@pytest.fixture
def series(tmp_path: Path) -> Series:
    return write_series(tmp_path / "paint", MANIFEST, OVERLAY)


@pytest.fixture
def plan(series: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))

    def make(files: Mapping[str, bytes], *earlier: Mapping[str, bytes], only: tuple[str, ...] = ()) -> StackPlan:
        number = len(list(tmp_path.glob("tree*")))
        repository, commit = commit_of(tmp_path / f"tree{number}", files, *earlier)
        with repository:
            return plan_stack(repository, series, commit, only=only)

    return make


def applied(plan: StackPlan, upto: int = -1) -> dict[str, bytes]:
    """The tree with the planned changes in place."""
    return {path: plan.changes[upto].tree.read(path) or b"" for path in (NATIVE, HOST, LISTS, KERNEL)}


def states(plan: StackPlan) -> list[ChangeState]:
    return [change.state for change in plan.changes]


def test_a_tree_without_it_gets_one_commit_for_each_change(plan: Plan) -> None:
    made = plan(TREE)
    assert states(made) == [ChangeState.ABSENT, ChangeState.ABSENT]
    assert len(made.commits) == 2
    assert made.blocked == ()
    result = applied(made)
    assert result[NATIVE].count(b"MPS: ") == 2
    assert result[LISTS] == b'FAILING = ["shade"]\n'
    assert (
        result[HOST].index(b"void shade")
        < result[HOST].index(b"void tint_mps")
        < result[HOST].index(b"void tint_twice")
    )


def test_the_first_change_alone_does_not_have_the_second(plan: Plan) -> None:
    first = applied(plan(TREE), upto=0)
    assert b"tint_twice_mps" not in first[HOST] + first[NATIVE]


def test_a_tree_that_has_all_of_it_as_the_series_has_it_is_identical(plan: Plan) -> None:
    again = plan(applied(plan(TREE)))
    assert states(again) == [ChangeState.IDENTICAL, ChangeState.IDENTICAL]
    assert again.commits == again.blocked == ()
    assert list(again.conflicts()) == []


def test_a_tree_that_has_the_first_change_gets_the_second(plan: Plan) -> None:
    again = plan(applied(plan(TREE), upto=0))
    assert states(again) == [ChangeState.IDENTICAL, ChangeState.ABSENT]
    assert [change.change.id for change in again.commits] == ["twice"]


def test_markers_that_hold_in_words_of_upstreams_own_are_present_upstream(plan: Plan) -> None:
    done = applied(plan(TREE))
    own_words = {
        **done,
        KERNEL: b"// Upstream's.\nkernel void tint_kernel(device float* a, uint at) {\n  a[at] = a[at] * 2 + 1;\n}\n",
        HOST: done[HOST].replace(b"run();", b'auto stream = current_stream();\n  stream->encode(@"tint_kernel", 3);'),
    }
    made = plan(own_words)
    assert states(made) == [ChangeState.PRESENT, ChangeState.IDENTICAL]
    assert made.blocked == ()
    assert list(made.conflicts()) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (NATIVE, b"CPU: tint_cpu\n", b"CPU: tint_cpu\n    MPS: tint_other\n"),
        (HOST, b"void shade_mps() {\n}\n", b"void shade_mps() {\n}\n\nvoid tint_mps() {\n  walk();\n}\n"),
    ],
    ids=["another function behind the key", "a host function of the same name"],
)
def test_something_else_of_the_same_name_is_present_but_different(
    plan: Plan, path: str, old: bytes, new: bytes
) -> None:
    made = plan({**TREE, path: TREE[path].replace(old, new)})
    assert made.changes[0].state in (ChangeState.DIFFERENT, ChangeState.PARTIAL)
    assert made.changes[0] in made.blocked
    assert any(plan.outcome.status is Status.DIFFERENT for plan in made.changes[0].edits)


def test_another_kernel_file_of_that_name_is_partial_because_its_marker_holds(plan: Plan) -> None:
    made = plan({**TREE, KERNEL: b"kernel void tint_kernel(uint a) {\n}\n"})
    assert made.changes[0].state is ChangeState.DIFFERENT
    assert [conflict.path for _, conflict in made.conflicts() if conflict.path == KERNEL]


PARTIAL = {
    "only the dispatch key": NATIVE,
    "only the kernel": KERNEL,
    "only the host function": HOST,
    "only the shorter list": LISTS,
}


@pytest.mark.parametrize("path", PARTIAL.values(), ids=PARTIAL.keys())
def test_a_tree_that_has_some_of_it_is_partial_and_stops(plan: Plan, path: str) -> None:
    done = applied(plan(TREE), upto=0)
    made = plan({**TREE, path: done[path]})
    assert made.changes[0].state is ChangeState.PARTIAL
    assert made.changes[0] in made.blocked
    assert not made.changes[0].becomes_commit


def test_an_include_line_that_is_there_already_does_not_make_a_change_partial(plan: Plan) -> None:
    made = plan({**TREE, HOST: TREE[HOST].replace(b"a.h>\n", b"a.h>\n#include <ATen/b.h>\n")})
    assert states(made) == [ChangeState.ABSENT, ChangeState.ABSENT]


def test_a_renamed_list_entry_stops_the_run_and_is_named(plan: Plan) -> None:
    made = plan({**TREE, LISTS: b'FAILING = ["shade", "tint_"]\n'})
    assert made.changes[0].state is ChangeState.PARTIAL
    (conflict,) = [conflict for _, conflict in made.conflicts() if conflict.path == LISTS]
    assert tuple(map(str, conflict.nearest)) == ('"tint_" at line 1',)


def test_nothing_but_entries_that_are_not_there_is_not_taken_for_the_change(
    plan: Plan, series: Series, tmp_path: Path
) -> None:
    manifest = tmp_path / "paint" / "series.yaml"
    head, _, tail = MANIFEST.partition("    edits:\n")
    removal = next(line for line in tail.splitlines() if "remove-python-entry" in line)
    manifest.write_text(f"{head}    edits:\n{removal}\n")
    shutil.rmtree(manifest.parent / "overlay")
    repository, commit = commit_of(tmp_path / "tree", {**TREE, LISTS: b'FAILING = ["shade"]\n'})
    with repository:
        made = plan_stack(repository, load_series(str(manifest.parent)), commit)
    assert states(made) == [ChangeState.PARTIAL]


def test_all_conflicts_of_all_changes_are_in_one_plan(plan: Plan) -> None:
    broken = {
        NATIVE: b"- func: tints(Tensor s) -> T\n  dispatch:\n    CPU: tint_cpu\n",
        HOST: b"#include <ATen/z.h>\n\nvoid shade_mps() {\n}\nvoid shade_mps(int a) {\n}\n",
        LISTS: b'FAILING_OPS = ["shade", "tint"]\n',
    }
    found = {(change.change.id, conflict.path) for change, conflict in plan(broken).conflicts()}
    assert found == {("tint", NATIVE), ("tint", HOST), ("tint", LISTS), ("twice", NATIVE), ("twice", HOST)}
    problems = [str(conflict) for _, conflict in plan(broken).conflicts()]
    assert len(problems) == 6
    assert any("nearest: tints at line 1" in problem for problem in problems)
    assert any("lines 3, 5" in problem for problem in problems)


def test_everything_a_tree_lacks_is_said_at_once(plan: Plan) -> None:
    with pytest.raises(TreeError) as caught:
        plan({NATIVE: TREE[NATIVE], HOST: b"void other() {\n}\n"})
    text = str(caught.value)
    assert f"shade_mps in {HOST} (tint is built like shade)" in text
    assert f"{LISTS} (the list of failing ops)" in text
    assert "\n" not in text


@pytest.mark.parametrize("line", ["<ATen/native/mps/operations/Shade.h>", '"Shade.h"'])
def test_what_a_file_of_the_same_folder_has_is_not_lacking_where_it_is_included(plan: Plan, line: str) -> None:
    split = {
        **TREE,
        HOST: f"#include <ATen/a.h>\n#include {line}\n\nvoid other() {{\n}}\n".encode(),
        HOST.replace("Tint.mm", "Shade.h"): b"#pragma once\nvoid shade_mps() {\n}\n",
    }
    problems = [conflict.problem for _, conflict in plan(split).conflicts()]
    assert problems, "it is the anchor that is not there"
    with pytest.raises(TreeError, match="lacks shade_mps"):
        plan({**split, HOST: b"#include <ATen/a.h>\n\nvoid other() {\n}\n"})


def test_what_an_earlier_change_brings_is_not_lacking(plan: Plan) -> None:
    assert KERNEL not in TREE, "the second change requires it, the first creates it"
    assert states(plan(TREE))[1] is ChangeState.ABSENT


def test_a_tree_without_native_functions_is_not_pytorch(plan: Plan) -> None:
    with pytest.raises(TreeError, match="not a PyTorch tree"):
        plan({"setup.py": b""})


class TestOnly:
    def test_a_change_that_another_needs_may_be_left_out_where_the_tree_has_it(self, plan: Plan) -> None:
        made = plan(applied(plan(TREE), upto=0), only=("twice",))
        assert [change.change.id for change in made.commits] == ["twice"]

    def test_it_may_not_be_left_out_where_the_tree_lacks_it(self, plan: Plan) -> None:
        with pytest.raises(UsageError, match="--only tint --only twice"):
            plan({**TREE, KERNEL: OVERLAY[KERNEL]}, only=("twice",))

    def test_an_unknown_change_is_a_usage_error_that_lists_the_known(self, plan: Plan) -> None:
        with pytest.raises(UsageError, match="one of tint, twice"):
            plan(TREE, only=("thrice",))

    def test_order_is_that_of_the_series(self, plan: Plan) -> None:
        assert [change.change.id for change in plan(TREE, only=("twice", "tint")).changes] == ["tint", "twice"]


def test_planning_writes_nothing(plan: Plan, tmp_path: Path) -> None:
    plan(TREE)
    before = {file: file.read_bytes() for file in (tmp_path / "tree0").rglob("*") if file.is_file()}
    with Repository.open(tmp_path / "tree0") as repository:
        plan_stack(repository, load_series(str(tmp_path / "paint")), repository.commit("main").hash)
    assert {file: file.read_bytes() for file in (tmp_path / "tree0").rglob("*") if file.is_file()} == before


def test_a_plan_remembered_from_the_last_run_is_the_same_plan(plan: Plan) -> None:
    first, second = plan(TREE), plan(TREE)
    assert [outcomes(change) for change in first.changes] == [outcomes(change) for change in second.changes]


def outcomes(change: ChangePlan) -> list[tuple[str, Status, bytes | None, str]]:
    return [(p.edit.describe(), p.outcome.status, p.outcome.after, str(p.outcome.conflict)) for p in change.edits]
