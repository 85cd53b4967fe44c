"""The states and the merge rung on the releases: 2.11 (before the op landed), 2.13 (after), 2.6 (much older)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchstack.cli import Request, run
from patchstack.cli.report import RunReport, as_json
from patchstack.edits import Rung, Status
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.errors import TreeError
from patchstack.planning import ChangeState, StackPlan, plan_stack
from patchstack.planning.parts import LANDED
from patchstack.series import load_series
from patchstack.tree.git import Repository, Tree
from references import clone_of, require_reference

pytestmark = pytest.mark.needs_reference

SHIM = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
HEADER = "aten/src/ATen/native/mps/kernels/GridSampler.h"
METAL = "aten/src/ATen/native/mps/kernels/GridSampler.metal"
HOST = "aten/src/ATen/native/mps/operations/GridSampler.mm"
LISTS = "torch/testing/_internal/common_mps.py"
TESTS = "test/test_mps.py"
RANGE_FACTORIES = "aten/src/ATen/native/mps/operations/RangeFactories.mm"
SERIES = load_series("grid_sampler")
FIRST = SERIES.changes[0].id
SMALL_OPS = load_series(str(Path(__file__).parents[2] / "series" / "small_ops"))


@dataclass(frozen=True)
class Clone:
    """A bare clone of a reference tree.

    Attributes:
        path: the clone.
    """

    path: Path

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout.decode().strip()

    def read(self, commit: str, path: str) -> bytes:
        with Repository.open(self.path) as repository:
            return Tree.at(repository, commit).read(path) or b""

    def commit(self, parent: str, files: Mapping[str, bytes]) -> str:
        """A commit on ``parent`` with some files changed, on the branch ``drifted``."""
        stream = b"commit refs/heads/drifted\ncommitter A <a@b.c> 1700000000 +0000\ndata 5\nDrift\nfrom %s\n" % (
            self.git("rev-parse", parent).encode()
        )
        for path, data in files.items():
            stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data)
        self.git("fast-import", "--quiet", "--force", stdin=stream)
        return self.git("rev-parse", "drifted")

    def apply(self, onto: str, **options: Any) -> RunReport:
        return run(Request(onto=onto, repo=self.path, series="grid_sampler", only=(FIRST,), **options))

    def tree(self, commit: str) -> str:
        return self.git("rev-parse", f"{commit}^{{tree}}")


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Paint Er")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "paint.er@example.com")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """2.11 with the first change of the series on the branch ``done``."""
    clone = Clone(clone_of("2.11", tmp_path_factory.mktemp("2.11") / "clone.git"))
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Paint Er")
            patch.setenv(f"GIT_{role}_EMAIL", "paint.er@example.com")
        report = clone.apply("main", branch="done")
    assert report.written is not None
    return clone


def state(report: RunReport) -> ChangeState:
    (change,) = report.plan.changes
    return change.state


class TestOn211:
    def test_files_that_did_not_drift_are_found_by_their_exact_blob(self, before: Clone) -> None:
        report = before.apply("main", dry_run=True)
        assert state(report) is ChangeState.ABSENT
        rungs = {plan.edit.path: plan.outcome.rung for plan in report.plan.changes[0].edits}
        assert rungs[LISTS] is Rung.EXACT
        assert Rung.THREE_WAY not in rungs.values()

    def test_a_stale_header_is_partial_and_replace_adds_its_one_line(self, before: Clone) -> None:
        onto = before.commit("done", {SHIM: before.read("main", SHIM)})
        report = before.apply(onto, dry_run=True)
        assert (state(report), int(report.exit_code)) == (ChangeState.PARTIAL, 3)
        report = before.apply(onto, branch="mended", replace=(FIRST,))
        assert (state(report), int(report.exit_code)) == (ChangeState.PARTIAL, 0)
        assert before.tree("mended") == before.tree("done")
        assert before.git("diff", "--numstat", f"{onto}..mended") == f"1\t0\t{SHIM}"

    def test_a_conflict_of_one_change_is_not_reported_again_as_a_stale_header_of_the_next(self, before: Clone) -> None:
        renamed = before.read("main", HOST).replace(b"Tensor grid_sampler_2d_mps(", b"Tensor sample_2d_on_mps(")
        report = run(Request(before.commit("main", {HOST: renamed}), before.path, series="grid_sampler", dry_run=True))
        found = [(change.change.id, conflict.path) for change, conflict in report.plan.conflicts()]
        assert found == [(FIRST, HOST), ("grid_sampler_fast_backward", HOST)]  # both need what is behind the anchor
        shims = [plan for plan in report.plan.changes[1].edits if plan.edit.path == SHIM]
        assert [plan.outcome.status for plan in shims] == [Status.NOT_APPLICABLE]

    def test_the_kernels_alone_are_partial_and_replace_brings_the_rest(self, before: Clone) -> None:
        onto = before.commit("main", {METAL: before.read("done", METAL)})
        report = before.apply(onto, dry_run=True)
        assert (state(report), int(report.exit_code)) == (ChangeState.PARTIAL, 3)
        before.apply(onto, branch="completed", replace=(FIRST,))
        assert before.tree("completed") == before.tree("done")

    def test_the_change_with_a_line_more_in_every_function_has_landed_with_edits(self, before: Clone) -> None:
        files = {}
        for edit in SERIES.changes[0].edits:
            if not isinstance(edit, CxxEdit):
                continue
            data = files.get(edit.path) or before.read("done", edit.path)
            for piece in edit.introduces():
                if piece.kind in ("function", "kernel"):
                    head, brace, body = piece.text.partition(b" {\n")
                    data = data.replace(piece.text, head + brace + b"  // Reviewed.\n  (void)0;\n" + body)
            files[edit.path] = data
        onto = before.commit("done", files)
        report = before.apply(onto, dry_run=True)
        assert (state(report), int(report.exit_code)) == (ChangeState.LANDED, 0)
        (change,) = report.plan.changes
        assert LANDED < change.likeness < 1
        assert {part.verdict for part in change.parts} == {"same", "differs"}
        assert all("-  (void)0;" in part.diff for part in change.parts if part.verdict == "differs")
        before.apply(onto, branch="ours_again", replace=(FIRST,))
        assert before.tree("ours_again") == before.tree("done")

    def test_a_neighbour_that_stands_twice_is_told_apart_by_a_merge(self, before: Clone) -> None:
        source = before.read("main", LISTS)
        anchor = b' "masked.scatter": '
        assert source.count(anchor) == 1
        head = b"        XFAILLIST_GRAD = {"
        at = source.index(b"\n", source.index(head)) + 1
        onto = before.commit("main", {LISTS: source[:at] + b'            "masked.scatter": None,\n' + source[at:]})
        report = before.apply(onto, dry_run=True)
        (added,) = [
            p for p in report.plan.changes[0].edits if (p.edit.kind, p.edit.path) == ("add-python-entry", LISTS)
        ]
        assert added.outcome.rung is Rung.THREE_WAY, added.outcome.conflict
        assert report.plan.commits
        (facts,) = [e for e in as_json(report)["changes"][0]["edits"] if e["rung"] == "three-way merge"]
        assert facts["base"] in added.edit.base


class TestOn213:
    def test_upstreams_own_is_not_taken_for_ours(self, tmp_path: Path) -> None:
        clone = Clone(clone_of("2.13", tmp_path / "clone.git"))
        report = clone.apply("main")
        assert (state(report), int(report.exit_code)) == (ChangeState.PRESENT, 0)
        assert report.plan.changes[0].likeness < LANDED / 2

    def test_replacing_is_refused_where_files_are_missing_and_nothing_is_written(self, tmp_path: Path) -> None:
        clone = Clone(clone_of("2.13", tmp_path / "clone.git"))
        refs = clone.git("for-each-ref")
        with pytest.raises(TreeError, match=r"lacks .*GridSampler\.metal"):
            clone.apply("main~1", replace=(FIRST,))  # the release, without its stand-ins
        assert clone.git("for-each-ref") == refs

    def test_with_the_files_of_before_upstreams_struct_is_left_alone(self, tmp_path: Path) -> None:
        clone = Clone(clone_of("2.13", tmp_path / "clone.git"))
        older = Clone(require_reference("2.11").path)
        onto = clone.commit("main", {path: older.read("main", path) for path in (METAL, HOST, TESTS)})
        report = clone.apply(onto, branch="replaced", replace=(FIRST,))
        (change,) = report.plan.changes
        assert int(report.exit_code) == 0, [str(conflict) for conflict in change.conflicts]
        assert change.replaced == ()
        assert b"struct GridSamplerBackwardParams" in clone.read("replaced", HEADER)
        assert state(clone.apply("replaced", dry_run=True)) is ChangeState.IDENTICAL


class TestOn26:
    def planned(self, drift: Mapping[str, tuple[bytes, bytes]], folder: Path) -> StackPlan:
        clone = Clone(clone_of("2.6", folder / "clone.git"))
        files = {}
        for path, (old, new) in drift.items():
            source = clone.read("main", path)
            assert source.count(old) == 1
            files[path] = source.replace(old, new)
        onto = clone.commit("main", files)
        with Repository.open(clone.path) as repository:
            return plan_stack(repository, SMALL_OPS, repository.commit(onto).hash, only=("logspace_mps",))

    def test_the_grid_sampler_is_refused_with_replace_too(self, tmp_path: Path) -> None:
        clone = Clone(clone_of("2.6", tmp_path / "clone.git"))
        with pytest.raises(TreeError, match="too old or too new"):
            clone.apply("main", replace=(FIRST,))

    def test_a_namespace_opened_twice_and_a_renamed_include_are_merged_from_the_release(self, tmp_path: Path) -> None:
        end = b"} // namespace at::native"
        again = end + b"\n\nnamespace at::native {\nvoid later() {}\n" + end
        plan = self.planned({RANGE_FACTORIES: (end, again)}, tmp_path)
        by_fragment = {p.edit.describe(): p.outcome for p in plan.changes[0].edits if p.edit.path == RANGE_FACTORIES}
        (library,) = (outcome for does, outcome in by_fragment.items() if "'library'" in does)
        assert library.rung is Rung.THREE_WAY, library.conflict
        assert {outcome.rung for outcome in by_fragment.values()} == {Rung.THREE_WAY, Rung.STRUCTURAL}
        assert plan.commits
