"""What each state of a tree leads to, without a word and with ``--replace``: exit code, commits, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sampler_trees as trees
from edit_bench import blob_id, commit_of, write_series
from patchstack.cli import Request, run
from patchstack.cli.report import as_json, lines
from patchstack.errors import UsageError
from patchstack.planning import parts, planner
from patchstack.tree.git import Repository, Tree
from sampler_trees import BEFORE, HEADER, HOST, LISTS, METAL, NATIVE, TESTS, after_april, replaced

Files = dict[str, bytes]
CHANGE = "backward"


@dataclass(frozen=True)
class Ran:
    """One run of apply-stack in this process.

    Attributes:
        code: exit code.
        facts: the JSON report.
        text: the report for a person.
        files: the files of the tip, or of the tree where nothing was written.
    """

    code: int
    facts: dict[str, Any]
    text: str
    files: Files

    @property
    def change(self) -> dict[str, Any]:
        (change,) = self.facts["changes"]
        return dict(change)

    @property
    def state(self) -> str:
        return str(self.change["upstream_state"])

    @property
    def replaced_names(self) -> list[str]:
        return sorted(part["tree_name"] for part in self.change["replaced"])


Apply = Callable[..., Ran]


@pytest.fixture
def apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apply:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    for variable in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(variable, "Paint Er")
    for variable in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(variable, "paint.er@example.com")
    series = tmp_path / "sampler"

    def once(
        files: Mapping[str, bytes],
        *earlier: Mapping[str, bytes],
        manifest: str = trees.MANIFEST,
        overlay: Mapping[str, bytes] = trees.OVERLAY,
        **options: Any,
    ) -> Ran:
        write_series(series, manifest, overlay)
        folder = tmp_path / f"tree{len(list(tmp_path.glob('tree*')))}"
        repository, commit = commit_of(folder, files, *earlier)
        repository.close()
        report = run(Request(onto="main", repo=folder, series=str(series), **options))
        with Repository.open(folder) as after:
            tip = after.resolve_ref("refs/heads/stack/sampler") or commit
            tree = Tree.at(after, tip)
            result = {path: tree.read(path) or b"" for path in files}
        return Ran(int(report.exit_code), as_json(report), "\n".join(lines(report)), result)

    return once


def ours(apply: Apply) -> Files:
    """The tree with the change as the series has it."""
    ran = apply(BEFORE)
    assert (ran.code, ran.state) == (0, "absent")
    return ran.files


def reviewed(tree: Files) -> Files:
    """Our change as a reviewer's edits leave it: another message, a move, a cast, a size more, a comment gone."""
    tree = replaced(tree, HOST, '"one batch for all"', '"grid_sampler_2d_backward: batch sizes differ"')
    tree = replaced(
        tree, HOST, "return {grad_input, grad_grid}", "return {std::move(grad_input), std::move(grad_grid)}"
    )
    tree = replaced(tree, METAL, "// The distance between two pixels, and what it is worth.\n", "")
    tree = replaced(tree, METAL, "grad_grid[2 * tid] = x.y;", "grad_grid[2 * tid] = static_cast<T>(x.y);")
    return replaced(tree, TESTS, "(1, 1, 1, 4)]", "(1, 1, 1, 4), (2, 0, 3, 3)]")


def other_dispatch(tree: Files) -> Files:
    return replaced(tree, NATIVE, "backward_cuda\n", "backward_cuda\n    MPS: grid_sampler_backward_metal\n")


@dataclass(frozen=True)
class Case:
    """A constructed tree and what is documented for it.

    Attributes:
        make: the tree, from the one that has our change.
        state: the state.
        code: exit code without ``--replace``.
        replaces: names that go with ``--replace``; ``None`` where a commit is made without it or nothing is left to do.
    """

    make: Callable[[Files], Files]
    state: str
    code: int
    replaces: tuple[str, ...] | None


END = "} // namespace at::native"
REVIEWED = (
    "REGISTER_GRID_SAMPLER_2D_BACKWARD",
    "REGISTER_GRID_SAMPLER_2D_BACKWARD",
    "grid_sampler_2d_backward",
    "grid_sampler_2d_backward_mps",
    "position_and_slope",
    "test_grid_sampler_2d_backward",
)
UPSTREAMS = (
    "BackwardPreamble",
    "GridSamplerBackwardParams",
    "REGISTER_GRID_SAMPLER_2D_BACKWARD",
    "REGISTER_GRID_SAMPLER_2D_BACKWARD",
    "REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID",
    "REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID",
    "grid_sampler_2d_backward_bilinear_grid",
    "grid_sampler_2d_backward_bilinear_input",
    "grid_sampler_2d_backward_mps",
)
CASES = {
    "before April 2026": Case(lambda ours: dict(BEFORE), "absent", 0, None),
    "an include line that something else needed": Case(
        lambda ours: replaced(BEFORE, HOST, "d_native.h>\n", "d_native.h>\n#include <ATen/ops/zeros.h>\n"),
        "absent",
        0,
        None,
    ),
    "our change": Case(lambda ours: ours, "identical", 0, None),
    "our change after review": Case(reviewed, "landed with edits", 0, REVIEWED),
    "our change, a helper renamed": Case(
        lambda ours: replaced(ours, METAL, "position_and_slope", "unnormalize_with_slope"),
        "landed with edits",
        0,
        ("REGISTER_GRID_SAMPLER_2D_BACKWARD", "REGISTER_GRID_SAMPLER_2D_BACKWARD", "grid_sampler_2d_backward"),
    ),
    "our change behind a function of another name": Case(
        lambda ours: replaced(ours, NATIVE, "MPS: grid_sampler_2d_backward_mps", "MPS: grid_sampler_backward_metal"),
        "landed with edits",
        0,
        ("grid_sampler_2d_backward MPS",),
    ),
    "upstream's own": Case(lambda ours: after_april(), "present upstream", 0, UPSTREAMS),
    "another function behind the key": Case(
        lambda ours: other_dispatch(BEFORE), "present but different", 3, ("grid_sampler_2d_backward MPS",)
    ),
    "a struct of that name": Case(
        lambda ours: {**BEFORE, HEADER: BEFORE[HEADER] + trees.UPSTREAM_PARAMS.encode()},
        "present but different",
        3,
        ("GridSamplerBackwardParams",),
    ),
    "the kernels without the dispatch key": Case(lambda ours: {**BEFORE, METAL: ours[METAL]}, "partial", 3, ()),
    "the dispatch key without the kernels": Case(lambda ours: {**BEFORE, NATIVE: ours[NATIVE]}, "partial", 3, ()),
    "only the tests": Case(lambda ours: {**BEFORE, TESTS: ours[TESTS]}, "partial", 3, ()),
    "the tests, and a host function of another kind": Case(
        lambda ours: replaced(
            {**BEFORE, TESTS: ours[TESTS]},
            HOST,
            "} // namespace at::native",
            trees.UPSTREAM_HOST + "} // namespace at::native",
        ),
        "partial",
        3,
        ("grid_sampler_2d_backward_mps",),
    ),
    "all but the shorter list": Case(lambda ours: {**ours, LISTS: BEFORE[LISTS]}, "landed with edits", 0, ()),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_state_has_one_behaviour(apply: Apply, case: Case) -> None:
    tree = case.make(ours(apply))
    ran = apply(tree)
    assert (ran.state, ran.code) == (case.state, case.code)
    writes = case.state == "absent"
    assert (ran.change["commit"] is not None) == writes
    assert ran.files == (ours(apply) if writes and case.replaces is None and tree == BEFORE else ran.files)
    if not writes:
        assert ran.files == tree
    assert ran.facts["next"] == (["--replace backward replaces the tree's text with the series'"] if ran.code else [])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_with_replace_the_tree_has_our_change_and_the_report_has_what_went(apply: Apply, case: Case) -> None:
    wanted = ours(apply)
    ran = apply(case.make(wanted), replace=(CHANGE,))
    assert (ran.code, ran.state) == (0, case.state), ran.text
    assert ran.change["replaces"] == (case.replaces is not None)
    assert ran.replaced_names == sorted(case.replaces or ())
    for part in ran.change["replaced"]:
        assert part["tree_line"] > 0
        assert part["diff"] or part["verdict"] == "same"
        assert f"{part['kind']} {part['name']}" in ran.text
    again = apply(ran.files)
    assert (again.code, again.state) == (0, "identical")


def test_the_replaced_tree_of_after_april_has_nothing_of_upstreams_backward_left(apply: Apply) -> None:
    ran = apply(after_april(), replace=(CHANGE,))
    for word in (b"bilinear_input", b"bilinear_grid", b"BackwardPreamble", b"make_tuple"):
        assert not [path for path, data in ran.files.items() if word in data]
    assert ran.files[METAL] == ours(apply)[METAL].replace(
        b"\n\n// The distance", b"\n\n// ---- gradients ----\n\n// The distance"
    )
    assert ran.files[HOST].count(b"grid_sampler_2d_backward_mps(") == 1


def test_a_change_after_review_is_reported_part_by_part(apply: Apply) -> None:
    ran = apply(reviewed(ours(apply)))
    verdicts = {part["name"]: (part["verdict"], part["similarity"]) for part in ran.change["parts"]}
    assert verdicts["GridSamplerBackwardParams"] == ("same", 1.0)
    assert verdicts["position_and_slope"] == ("same", 1.0), "comments are not code"
    verdict, similarity = verdicts["grid_sampler_2d_backward_mps"]
    assert verdict == "differs"
    assert 0.8 < similarity < 1
    assert parts.LANDED < ran.change["likeness"] < 1
    (host,) = (part for part in ran.change["parts"] if part["name"] == "grid_sampler_2d_backward_mps")
    assert '-  TORCH_CHECK(grad_output.size(0) == input.size(0), "grid_sampler_2d_backward: batch' in host["diff"]
    assert '+  TORCH_CHECK(grad_output.size(0) == input.size(0), "one batch for all");' in host["diff"]
    assert "our change landed with edits" in ran.text
    assert '+  TORCH_CHECK(grad_output.size(0) == input.size(0), "one batch for all");' in ran.text


def test_a_renamed_helper_is_found_under_its_new_name(apply: Apply) -> None:
    ran = apply(replaced(ours(apply), METAL, "position_and_slope", "unnormalize_with_slope"))
    (helper,) = (part for part in ran.change["parts"] if part["name"] == "position_and_slope")
    assert (helper["verdict"], helper["tree_name"]) == ("renamed", "unnormalize_with_slope")


def test_upstreams_own_is_nowhere_near_the_threshold(apply: Apply) -> None:
    assert apply(after_april()).change["likeness"] < parts.LANDED / 2


def test_with_a_threshold_that_lets_everything_pass_upstreams_own_is_taken_for_ours(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "LANDED", 0.0)
    assert apply(after_april()).state == "landed with edits"


class TestReplacingIsRefused:
    def test_where_code_that_stays_uses_a_struct_that_would_have_other_members(self, apply: Apply) -> None:
        user = "\nkernel void grid_sampler_3d_backward(constant GridSamplerBackwardParams<5>& p, uint id) {\n}\n"
        tree = after_april()
        tree = {**tree, METAL: tree[METAL] + user.encode()}
        ran = apply(tree, replace=(CHANGE,))
        assert ran.code == 3
        assert ran.files == tree
        (conflict,) = ran.facts["conflicts"]
        assert conflict["path"] == HEADER
        assert "code that stays uses what would be replaced: GridSamplerBackwardParams at " in conflict["problem"]

    def test_where_a_file_beside_the_header_uses_a_struct_of_it(self, apply: Apply) -> None:
        path = "aten/src/ATen/native/mps/operations/Other.mm"
        tree = {**after_april(), path: b"// GridSamplerBackwardParams\n"}
        assert apply(tree, replace=(CHANGE,)).code == 0, "a comment uses nothing"
        tree[path] += b"static GridSamplerBackwardParams<5> params;\n"
        ran = apply(tree, replace=(CHANGE,))
        assert (ran.code, ran.files) == (3, tree)
        assert f"GridSamplerBackwardParams at {path}:2" in ran.facts["conflicts"][0]["problem"]

    def test_where_a_helper_that_goes_is_called_by_code_that_stays(self, apply: Apply) -> None:
        tree = replaced(after_april(), METAL, "output[tid] = 0;", "BackwardPreamble<T> where;\n  output[tid] = 0;")
        ran = apply(tree, replace=(CHANGE,))
        assert (ran.code, ran.files) == (3, tree)
        assert "BackwardPreamble" in ran.facts["conflicts"][0]["problem"]

    def test_where_our_place_is_gone(self, apply: Apply) -> None:
        tree = replaced(after_april(), HOST, "Tensor grid_sampler_2d_mps(", "Tensor grid_sample_2d_metal(")
        ran = apply(tree, replace=(CHANGE,))
        assert (ran.code, ran.files) == (3, tree)
        assert "0 places match 'after function grid_sampler_2d_mps" in ran.facts["conflicts"][0]["problem"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"replace": ("nothing",)}, "has no change 'nothing'"),
            ({"replace": ("nothing",), "only": (CHANGE,)}, "has no change 'nothing'"),
        ],
    )
    def test_where_the_series_has_no_such_change(self, apply: Apply, options: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            apply(BEFORE, **options)

    def test_where_the_change_is_left_out_at_once(self, apply: Apply) -> None:
        second = trees.MANIFEST[trees.MANIFEST.index("  - id") :].replace("backward\n", "other\n", 1)
        manifest = trees.MANIFEST + second.replace('title: "[MPS] Add', 'title: "[MPS] Add again')
        with pytest.raises(UsageError, match="to be replaced and left out at once"):
            apply(BEFORE, manifest=manifest, only=("other",), replace=(CHANGE,))


def test_the_next_change_is_merged_over_a_change_that_landed_with_edits(apply: Apply) -> None:
    second = f"""\
  - id: further
    title: Further
    message: message.md
    needs: [backward]
    upstream: [{{defines: further, path: {METAL}}}]
    edits:
      - {{kind: place-fragment, path: {METAL}, fragment: further, after: {{function: position_and_slope, in: global}}}}
"""
    bases = f"bases:\n  - {{path: {METAL}, blobs: [{blob_id(BEFORE[METAL])}]}}\n"
    manifest = trees.MANIFEST.replace("changes:\n", f"{bases}changes:\n") + second
    fragment = b"// fragment: further\nstatic int further() {\n  return 1;\n}\n// end fragment\n"
    landed = replaced(ours(apply), METAL, "position_and_slope", "unnormalize_with_slope")
    overlay = {**trees.OVERLAY, METAL: trees.OVERLAY[METAL] + fragment}
    ran = apply(landed, BEFORE, manifest=manifest, overlay=overlay)
    assert [change["upstream_state"] for change in ran.facts["changes"]] == ["landed with edits", "absent"]
    assert ran.facts["changes"][1]["edits"][0]["rung"] == "three-way merge", ran.text
    assert b"return {position, slope};\n}\n\nstatic int further() {" in ran.files[METAL]


class TestADispatchEntry:
    def test_that_shares_its_line_with_another_key_leaves_that_alone(self, apply: Apply) -> None:
        tree = replaced(
            BEFORE, NATIVE, "    CUDA: grid_sampler_2d_backward_cuda", "    CUDA, MPS: grid_sampler_2d_backward_gpu"
        )
        ran = apply(tree, replace=(CHANGE,))
        assert ran.code == 0
        wanted = b"    CUDA: grid_sampler_2d_backward_gpu\n    MPS: grid_sampler_2d_backward_mps\n"
        assert wanted in ran.files[NATIVE]
        assert ran.replaced_names == ["grid_sampler_2d_backward MPS"]

    def test_in_a_map_on_one_line_is_replaced_there(self, apply: Apply) -> None:
        old = "dispatch:\n    CPU: grid_sampler_2d_backward_cpu\n    CUDA: grid_sampler_2d_backward_cuda\n"
        tree = replaced(BEFORE, NATIVE, old, "dispatch: {CPU: f, MPS: g}\n")
        ran = apply(tree, replace=(CHANGE,))
        assert b"dispatch: {CPU: f, MPS: grid_sampler_2d_backward_mps}\n" in ran.files[NATIVE]


def test_an_entry_of_another_value_goes_too_and_is_reported(apply: Apply) -> None:
    tree = replaced(
        after_april(), LISTS, "XFAILLIST_GRAD = {\n", 'XFAILLIST_GRAD = {\n    "grid_sampler_2d": [torch.half],\n'
    )
    ran = apply(tree, replace=(CHANGE,))
    assert b"grid_sampler_2d" not in ran.files[LISTS]
    assert '"grid_sampler_2d"' in ran.replaced_names


def test_an_entry_that_is_not_there_to_be_removed_is_told_with_what_is_nearest(apply: Apply) -> None:
    tree = replaced(after_april(), LISTS, '"masked.scatter"', '"grid_sampler_2d_"')
    ran = apply(tree, replace=(CHANGE,))
    (edit,) = (edit for edit in ran.change["edits"] if edit["path"] == LISTS)
    assert (edit["status"], ran.code) == ("already there", 0)
    assert 'nearest: "grid_sampler_2d_": None at line 2' in edit["note"]
