"""The series on real trees: what lands on 2.11, what 2.13 already has, what 2.6 lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from documents import document
from patchstack.messages.rules import check_text
from patchstack.tree.c_shim import parse_declarations
from patchstack.tree.git import Repository, Tree
from patchstack.tree.torchgen_run import lay_out
from references import clone_of, require_reference

pytestmark = pytest.mark.needs_reference

SHIM = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
DECLARED = {
    backend: [f"aoti_torch_{backend}_grid_sampler_{name}" for name in names]
    for backend, names in {
        "cpu": ("3d", "3d_backward"),
        "cuda": ("3d", "3d_backward"),
        "mps": ("2d_backward", "3d", "3d_backward"),
    }.items()
}
"""What the C shims gain. On CPU and CUDA 2D has its line already; 2D's forward is decomposed and has none."""
BACKWARD = ("grid_sampler_2d_backward", "grid_sampler_3d_backward")
COORDINATES = "grid_sampler_coordinates"
# Names that only the kernels of before the change use.
OF_THE_OLD_KERNELS = ("SamplingHelpers", "IDX_ZERO", "PadZeros::", "Bilinear2D", "interpolate_", "BACKWARD_IDX")
YAML = "aten/src/ATen/native/native_functions.yaml"
IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@b.c",
}


def apply_stack(*arguments: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "patchstack.cli", "--json", *arguments],
        env=os.environ | IDENTITY,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, document(done.stdout), done.stderr


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A clone of the 2.11 tree with the stack, and the report."""
    clone = clone_of("2.11", tmp_path_factory.mktemp("2.11") / "clone.git")
    code, report, errors = apply_stack("--onto", "main", "--repo", str(clone))
    assert code == 0, errors
    return clone, report


def shim_of(backend: str) -> str:
    return SHIM.replace("mps", backend)


def commits_of(clone: Path) -> list[str]:
    return git(clone, "rev-list", "--reverse", "main..stack/grid_sampler").split()


def test_on_2_11_the_report_has_the_documented_keys(applied: tuple[Path, dict[str, Any]]) -> None:
    clone, report = applied
    assert Path(report["repository"]) == clone
    assert (report["series"], report["onto"], report["branch"]) == ("grid_sampler", "main", "stack/grid_sampler")
    assert report["tip"] == git(clone, "rev-parse", "stack/grid_sampler")
    states = {change["id"]: change["upstream_state"] for change in report["changes"]}
    assert states.pop("grid_sampler_coordinates") == "not applicable"
    assert set(states.values()) == {"absent"}
    for change in report["changes"]:
        assert {"id", "title", "upstream_state", "commit", "edits"} <= set(change)
        assert all(edit["rung"] or edit["status"] == "already there" for edit in change["edits"])


def test_each_commit_that_adds_an_op_adds_one_dispatch_line(applied: tuple[Path, dict[str, Any]]) -> None:
    *adding, faster = commits_of(applied[0])
    assert git(applied[0], "diff", "--numstat", f"{faster}~", faster, "--", YAML) == ""
    for commit in adding:
        assert git(applied[0], "diff", "--numstat", f"{commit}~", commit, "--", YAML).split() == ["1", "0", YAML]


def test_generated_headers_gain_the_announced_lines_and_lose_none(applied: tuple[Path, dict[str, Any]]) -> None:
    rows = git(applied[0], "diff", "--numstat", "main..stack/grid_sampler").splitlines()
    counts = {path: (added, removed) for added, removed, path in (row.split("\t") for row in rows)}
    assert {path: count for path, count in counts.items() if "/generated/" in path} == {
        shim_of(backend): (str(len(names)), "0") for backend, names in DECLARED.items()
    }


def test_on_2_11_no_schema_line_changes(applied: tuple[Path, dict[str, Any]]) -> None:
    def schemas(commit: str) -> list[str]:
        return [line for line in git(applied[0], "show", f"{commit}:{YAML}").splitlines() if line.startswith("- func:")]

    assert schemas("main") == schemas("stack/grid_sampler")


def torchgen_check(clone: Path, commit: str, folder: Path, *, without_shim_line: bool = False) -> int:
    """The status of the commit's own torchgen in check mode, which compares the stored shim headers."""
    tree = Tree.at(Repository.open(clone), commit)
    lay_out(tree, folder, ["torchgen", "aten/src/ATen/native", "aten/src/ATen/templates", str(Path(SHIM).parent)])
    if without_shim_line:
        header = folder / SHIM
        lines = header.read_text().splitlines(keepends=True)
        header.write_text("".join(line for line in lines if "grid_sampler_2d_backward" not in line))
    (folder / "out").mkdir()
    command = [sys.executable, "-m", "torchgen.gen", "--mps", "--dry-run", "--install-dir", "out"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


@pytest.mark.exhaustive
@pytest.mark.slow
def test_on_2_11_torchgen_in_check_mode_accepts_every_commit(
    applied: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    commits = commits_of(applied[0])
    assert commits
    for commit in commits:
        folder = tmp_path / commit
        folder.mkdir()
        assert torchgen_check(applied[0], commit, folder) == 0


@pytest.mark.slow
def test_torchgen_in_check_mode_refuses_the_stack_without_its_shim_line(
    applied: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    assert torchgen_check(applied[0], "stack/grid_sampler", tmp_path, without_shim_line=True) != 0


@pytest.mark.parametrize("backend", DECLARED)
def test_the_new_declarations_are_those_that_torch_2_13_ships(
    applied: tuple[Path, dict[str, Any]], backend: str
) -> None:
    def declared(repository: Path, commit: str) -> dict[str, str]:
        header = Tree.at(Repository.open(repository), commit).read(shim_of(backend))
        assert header is not None
        return {d.name: d.text for d in parse_declarations(header) if "_grid_sampler_" in d.name}

    ours, theirs = declared(applied[0], "stack/grid_sampler"), declared(require_reference("2.13").path, "main")
    assert ours == theirs
    assert set(DECLARED[backend]) <= set(ours)


def test_every_commit_message_passes_every_rule(applied: tuple[Path, dict[str, Any]]) -> None:
    for commit in commits_of(applied[0]):
        assert check_text(git(applied[0], "log", "-1", "--format=%B", commit) + "\n") == ()


def require_nothing_left(clone: Path, first: dict[str, Any]) -> None:
    """Apply again on top of what a run made; a change may have replaced parts of those below it, the last is whole."""
    code, report, errors = apply_stack("--onto", str(first["tip"] or "main"), "--repo", str(clone), "--branch", "again")
    assert code == 0, errors
    assert (report["tip"], report["conflicts"]) == (None, [])
    made = [change["id"] for change in first["changes"] if change["commit"]]
    states = {change["id"]: change["upstream_state"] for change in report["changes"]}
    assert [states[change] for change in made[-1:]] == ["identical"] * len(made[-1:])


def test_applied_again_on_top_of_itself_nothing_is_left(applied: tuple[Path, dict[str, Any]]) -> None:
    require_nothing_left(*applied)


def test_applied_again_on_top_of_itself_nothing_is_left_on_2_13(tmp_path: Path) -> None:
    clone = clone_of("2.13", tmp_path / "clone.git")
    code, report, errors = apply_stack("--onto", "main", "--repo", str(clone))
    assert code == 0, errors
    require_nothing_left(clone, report)


def test_on_2_11_every_change_that_is_applicable_becomes_a_commit(applied: tuple[Path, dict[str, Any]]) -> None:
    states = {change["id"]: (change["upstream_state"], bool(change["commit"])) for change in applied[1]["changes"]}
    assert set(states.values()) <= {("absent", True), ("not applicable", False)}
    assert states["grid_sampler_2d_backward"] == states["grid_sampler_3d_backward"] == ("absent", True)


def test_the_3d_change_alone_names_the_change_it_needs(tmp_path: Path) -> None:
    clone = clone_of("2.11", tmp_path / "clone.git")
    before = git(clone, "for-each-ref")
    code, report, _ = apply_stack("--onto", "main", "--repo", str(clone), "--only", "grid_sampler_3d_backward")
    assert code == 2
    assert "grid_sampler_2d_backward" in json.dumps(report["error"])
    assert git(clone, "for-each-ref") == before


def test_the_3d_change_alone_applies_where_the_2d_change_is(applied: tuple[Path, dict[str, Any]]) -> None:
    clone = applied[0]
    first, second, *_ = commits_of(clone)
    arguments = ["--onto", first, "--repo", str(clone), "--branch", "alone", "--only", "grid_sampler_3d_backward"]
    code, _, errors = apply_stack(*arguments)
    assert code == 0, errors
    assert git(clone, "rev-parse", "alone^{tree}") == git(clone, "rev-parse", f"{second}^{{tree}}")


@pytest.fixture(scope="module")
def applied_after(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A clone of the 2.13 tree with the change for such trees, and the report."""
    clone = clone_of("2.13", tmp_path_factory.mktemp("2.13") / "clone.git")
    arguments = ("--onto", "main", "--repo", str(clone), "--only", COORDINATES)
    code, report, errors = apply_stack(*arguments)
    assert code == 0, errors
    return clone, report


def test_on_2_13_the_backward_ops_are_present_upstream_and_what_mends_them_is_written(tmp_path: Path) -> None:
    clone = clone_of("2.13", tmp_path / "clone.git")
    code, report, errors = apply_stack("--onto", "main", "--repo", str(clone))
    assert code == 0, errors
    states = {change["id"]: change["upstream_state"] for change in report["changes"]}
    assert {states[change] for change in BACKWARD} == {"present upstream"}
    assert states[COORDINATES] == "absent"
    assert report["conflicts"] == []
    first = git(clone, "rev-list", "--reverse", "main..stack/grid_sampler").splitlines()[0]
    assert git(clone, "log", "-1", "--format=%s", first).startswith("[MPS] Keep grid_sampler within its input")


def test_the_change_for_trees_of_after_leaves_nothing_behind(applied_after: tuple[Path, dict[str, Any]]) -> None:
    clone, report = applied_after
    (change,) = report["changes"]
    assert all(edit["rung"] or edit["note"].startswith("left out, it is for") for edit in change["edits"])
    rows = git(clone, "diff", "--numstat", "main..stack/grid_sampler", "--", "aten").splitlines()
    added, removed = (sum(int(row.split()[column]) for row in rows) for column in (0, 1))
    assert added < removed
    metal = git(clone, "show", "stack/grid_sampler:aten/src/ATen/native/mps/kernels/GridSampler.metal")
    assert not {name for name in OF_THE_OLD_KERNELS if name in metal}
    for path in ("torch/csrc", "torchgen", YAML):
        assert git(clone, "diff", "--stat", "main..stack/grid_sampler", "--", path) == ""


def test_the_change_for_trees_of_after_has_a_good_message_and_is_identical_the_second_time(
    applied_after: tuple[Path, dict[str, Any]],
) -> None:
    clone, report = applied_after
    assert check_text(git(clone, "log", "-1", "--format=%B", "stack/grid_sampler") + "\n") == ()
    again = ("--onto", report["tip"], "--repo", str(clone), "--branch", "again", "--only", COORDINATES)
    code, second, errors = apply_stack(*again)
    assert code == 0, errors
    assert [change["upstream_state"] for change in second["changes"]] == ["identical"]


def test_a_kernel_that_upstream_changed_since_is_not_replaced(
    applied_after: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", "--branch", "main", str(applied_after[0]), str(work)], check=True)
    kernels = work / "aten/src/ATen/native/mps/kernels/GridSampler.metal"
    text = kernels.read_text()
    assert text.count("slope_y += value * columns[column] * row_slopes[row];") == 1
    kernels.write_text(text.replace("value * columns[column] * row_slopes", "columns[column] * value * row_slopes"))
    identity = [option for name in ("name", "email") for option in ("-c", f"user.{name}=a@b.c")]
    subprocess.run(["git", "-C", str(work), *identity, "commit", "--quiet", "-am", "Reorder"], check=True)
    code, report, _ = apply_stack("--onto", "main", "--repo", str(work), "--only", COORDINATES)
    assert code == 3
    assert [conflict["looking_for"] for conflict in report["conflicts"]] == [
        "definition kernel grid_sampler_2d_backward_bicubic_grid in the global namespace"
    ]


def test_on_2_11_the_change_for_trees_of_after_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    clone = clone_of("2.11", tmp_path / "clone.git")
    before = git(clone, "for-each-ref")
    code, report, errors = apply_stack("--onto", "main", "--repo", str(clone), "--only", COORDINATES)
    assert code == 2
    assert "grid_sampler_2d_backward has an entry for MPS (it corrects upstream's" in json.dumps(report["error"])
    assert errors.count("\n") == 1
    assert git(clone, "for-each-ref") == before


def test_on_2_6_the_refusal_names_everything_the_tree_lacks(tmp_path: Path) -> None:
    clone = clone_of("2.6", tmp_path / "clone.git")
    before = git(clone, "for-each-ref")
    code, report, errors = apply_stack("--onto", "main", "--repo", str(clone))
    assert code == 4
    for missing in ("kernels/GridSampler.metal", "kernels/GridSampler.h", "c10/metal/atomic.h", "c_shim_mps.h"):
        assert report["error"]["problem"].count(missing) == 1
    assert errors.count("\n") == 1
    assert git(clone, "for-each-ref") == before
