"""A series for other ops, on real trees: nothing in the tools knows about the grid sampler."""

from __future__ import annotations

import ast
import difflib
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
import yaml

from patchstack.applying.execute import check_messages
from patchstack.errors import TreeError
from patchstack.messages.model import Message
from patchstack.planning import ChangeState, StackPlan, plan_stack
from patchstack.series import load_series
from patchstack.tree.cxx import CxxFile
from patchstack.tree.git import Repository, Tree
from patchstack.tree.torchgen_run import lay_out
from references import require_reference

pytestmark = pytest.mark.needs_reference

SERIES = load_series(str(Path(__file__).parents[2] / "series" / "small_ops"))
NATIVE = "aten/src/ATen/native/native_functions.yaml"
RANGES = "aten/src/ATen/native/mps/operations/RangeFactories.mm"
LISTS = "test/test_mps.py"
SHIM = "torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h"


def planned(version: str, *only: str) -> StackPlan:
    reference = require_reference(version)
    repository = Repository.open(reference.path)
    commit = repository.resolve_commit(reference.commit)
    assert commit is not None
    return plan_stack(repository, SERIES, commit, only=only)


@lru_cache(maxsize=1)
def stack_on_2_6() -> StackPlan:
    """The whole series on 2.6; its torchgen takes some twenty seconds the first time and is cached then."""
    return planned("2.6")


def before_and_after(path: str) -> tuple[bytes, bytes]:
    plan = stack_on_2_6()
    last = plan.changes[-1].tree
    old = Tree(last.repository, last.base).read(path)
    new = last.read(path)
    assert new is not None
    return old or b"", new


def lines_that_differ(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Lines removed and added, by a diff that knows nothing of the edits."""
    rows = list(difflib.ndiff(before.decode().splitlines(), after.decode().splitlines()))
    return [row[2:] for row in rows if row.startswith("- ")], [row[2:] for row in rows if row.startswith("+ ")]


@pytest.mark.slow
class TestOn26:
    def test_both_changes_become_commits_with_good_messages(self) -> None:
        plan = stack_on_2_6()
        assert [change.state for change in plan.changes] == [ChangeState.ABSENT, ChangeState.ABSENT]
        assert [change.change.id for change in plan.commits] == ["fused_lstm_cell_cpu", "logspace_mps"]
        check_messages(SERIES, tuple(Message(c.change.title, c.change.body) for c in plan.commits))

    def test_the_dispatch_entries_gain_one_key_each(self) -> None:
        before, after = (yaml.load(data, Loader=yaml.CSafeLoader) for data in before_and_after(NATIVE))
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        added = {}
        for old, new in changed:
            (key,) = set(new["dispatch"]) - set(old["dispatch"])
            added[new["func"].split("(")[0]] = (key, new["dispatch"].pop(key))
            assert new == old
        assert added == {
            "_thnn_fused_lstm_cell": ("CPU", "_thnn_fused_lstm_cell_cpu"),
            "logspace.out": ("MPS", "logspace_out_mps"),
        }

    def test_the_host_file_gains_the_fragments_in_their_places(self) -> None:
        before, after = before_and_after(RANGES)
        old, new = CxxFile(before), CxxFile(after)
        assert not new.broken
        added = [d for d in new.definitions if (d.kind, d.name) not in {(o.kind, o.name) for o in old.definitions}]
        library = ("variable", "logspace_library", "at::native")  # once in each branch of an #ifndef
        function = ("function", "logspace_out_mps", "at::native")
        assert [(d.kind, d.name, d.scope) for d in added] == [library, library, function]
        removed, _ = lines_that_differ(before, after)
        assert removed == []
        assert [i.path for i in new.includes if i.path not in {o.path for o in old.includes}] == [
            "ATen/mps/MPSProfiler.h",
            "ATen/ops/logspace_native.h",
            "ATen/native/mps/Logspace_metallib.h",
        ]

    def test_the_list_of_failing_ops_changes_in_its_two_entries(self) -> None:
        before, after = before_and_after(LISTS)
        assert ops_expected_to_fail(after) == {
            **{op: value for op, value in ops_expected_to_fail(before).items() if "logspace" not in op},
            "logspace": "[torch.int64]",
        }
        removed, added = lines_that_differ(before, after)
        assert sorted(row.strip() for row in removed) == ["'logspace': None,", "'logspacetensor_overload': None,"]
        assert added[0].strip() == "'logspace': [torch.int64],  # powers are computed in float"
        assert "    def test_logspace_ends_and_middle(self):" in added

    def test_the_header_gains_one_declaration(self) -> None:
        removed, added = lines_that_differ(*before_and_after(SHIM))
        assert removed == []
        assert len(added) == 1
        assert " aoti_torch_cpu__thnn_fused_lstm_cell(AtenTensorHandle input_gates," in added[0]

    def test_a_second_run_on_top_has_nothing_left_to_do(self) -> None:
        tree = stack_on_2_6().changes[-1].tree
        for change in SERIES.changes:
            for edit in change.edits:
                assert edit.plan(tree).after is None, edit.describe()

    def test_the_trees_own_torchgen_accepts_the_stack_and_refuses_it_without_the_header(self, tmp_path: Path) -> None:
        tree = stack_on_2_6().changes[-1].tree
        assert torchgen_check(tree, tmp_path / "with") == 0
        stale = tree.with_files({SHIM: before_and_after(SHIM)[0]})
        assert torchgen_check(stale, tmp_path / "without") != 0


def ops_expected_to_fail(source: bytes) -> dict[str, str]:
    (function,) = (n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == "mps_ops_modifier")
    for node in function.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "UNIMPLEMENTED_XFAILLIST":
            assert isinstance(node.value, ast.Dict)
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {ast.literal_eval(key): ast.unparse(value) for key, value in pairs if key is not None}
    raise AssertionError("no such list")


def torchgen_check(tree: Tree, folder: Path) -> int:
    """The status of the tree's own torchgen in check mode, which compares the stored headers."""
    lay_out(tree, folder, ["torchgen", "aten/src/ATen/native", "aten/src/ATen/templates", str(Path(SHIM).parent)])
    (folder / "out").mkdir()
    command = [sys.executable, "-m", "torchgen.gen", "--dry-run", "--generate", "sources", "--install-dir", "out"]
    command += ["--backend-whitelist", "CPU"]  # the headers of the other backends did not change
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


def test_on_2_11_the_first_change_applies_alone() -> None:
    (change,) = planned("2.11", "fused_lstm_cell_cpu").commits
    assert set(change.files) == {NATIVE, "aten/src/ATen/native/FusedLstmCell.cpp", SHIM}
    tree = Tree(change.tree.repository, change.tree.base)
    removed, added = lines_that_differ(tree.read(SHIM) or b"", change.files[SHIM])
    assert (removed, len(added)) == ([], 1)


def test_on_2_11_the_whole_series_is_refused_with_all_that_the_tree_lacks() -> None:
    with pytest.raises(TreeError, match=r"RangeFactories\.mm .*; mps_ops_modifier in test/test_mps\.py"):
        planned("2.11")
