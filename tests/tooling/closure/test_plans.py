"""What closure says of the bundled series on whole trees: PyTorch's releases, and upstream's own files of 2026."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edit_bench import edited, tree_of
from patchstack.closure import Contents, newly_missing
from patchstack.planning import StackPlan, plan_stack
from patchstack.series import load_series
from patchstack.tree.cxx import Definition, parse_cxx
from patchstack.tree.git import Repository, Tree
from references import clone_of
from shared_inputs import upstream_tree

FOLDER = "aten/src/ATen/native/mps"
HEADER, METAL, HOST = (
    f"{FOLDER}/{name}" for name in ("kernels/GridSampler.h", "kernels/GridSampler.metal", "operations/GridSampler.mm")
)
UPSTREAM = (
    "2026-04-before",
    "2026-04-2d-only",
    "2026-04-3d-only",
    "2026-05-both",
    "2026-06-wide-index",
    "2026-08-checked",
)
SERIES = load_series(None)


def said(plan: StackPlan) -> str:
    """All conflicts, a line each."""
    return "\n".join(f"{change.change.id} {conflict}" for change, conflict in plan.conflicts())


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone_of("2.11", tmp_path_factory.mktemp("release") / "tree")


Edited = Callable[[str, Callable[[bytes], bytes]], StackPlan]


@pytest.fixture
def plan_edited(release: Path) -> Iterator[Edited]:
    with Repository.open(release) as repository:

        def make(path: str, edit: Callable[[bytes], bytes]) -> StackPlan:
            data = Tree.at(repository, "main").read(path)
            assert data is not None
            return plan_stack(repository, SERIES, edited(release, path, edit(data)))

        yield make


def definition(data: bytes, name: str) -> Definition:
    (found,) = (d for d in parse_cxx(data).definitions if d.name == name)
    return found


def moved_behind(data: bytes, name: str, other: str) -> bytes:
    """The file with one definition moved behind another, further down."""
    thing, place = definition(data, name), definition(data, other)
    text = data[thing.start : thing.end]
    return data[: thing.start] + data[thing.end : place.end] + b"\n" + text + data[place.end :]


class TestAWholeRelease:
    @pytest.mark.parametrize("name", ["2.11", "2.13"])
    def test_takes_the_series_without_a_false_alarm(self, name: str, tmp_path: Path) -> None:
        with Repository.open(clone_of(name, tmp_path / "tree")) as repository:
            commit = repository.resolve_commit("main")
            assert commit is not None
            plan = plan_stack(repository, SERIES, commit)
            assert said(plan) == ""
            assert plan.commits

    @pytest.mark.parametrize("name", ["2.11", "2.13"])
    def test_has_no_file_of_shaders_or_their_headers_that_misses_a_name(self, name: str, tmp_path: Path) -> None:
        with Repository.open(clone_of(name, tmp_path / "tree")) as repository:
            tree = Tree.at(repository, "main")
            assert newly_missing(tree_of({}), tree, [METAL, HOST], [], Contents()) == []

    def test_of_2_6_has_no_shader_and_no_host_file_that_misses_a_name(self, tmp_path: Path) -> None:
        with Repository.open(clone_of("2.6", tmp_path / "tree")) as repository:
            tree = Tree.at(repository, "main")
            shaders = [path for path in tree.walk(f"{FOLDER}/kernels") if path.endswith(".metal")]
            hosts = [path for path in tree.walk(f"{FOLDER}/operations") if path.endswith(".mm")]
            assert len(shaders) > 10
            assert len(hosts) > 50
            found = newly_missing(tree_of({}), tree, [*shaders, *hosts], [], Contents())
            assert [f"{m.path}:{m.line} {m.name}, {m.problem}" for m in found] == []


class TestAnEditOfARelease:
    def test_that_moves_a_kernel_below_its_neighbour_takes_the_series(self, plan_edited: Edited) -> None:
        plan = plan_edited(METAL, lambda data: moved_behind(data, "grid_sampler_2d", "grid_sampler_3d"))
        assert said(plan) == ""
        assert plan.changes[1].becomes_commit

    def test_that_moves_a_host_function_within_its_namespace_takes_the_series(self, plan_edited: Edited) -> None:
        plan = plan_edited(
            HOST, lambda data: moved_behind(data, "grid_sampler_2d_mps_impl", "grid_sampler_3d_mps_impl")
        )
        assert said(plan) == ""
        assert plan.changes[1].becomes_commit

    def test_that_adds_a_second_caller_of_what_is_replaced(self, plan_edited: Edited) -> None:
        def with_caller(data: bytes) -> bytes:
            at = definition(data, "grid_sampler_3d_mps").end
            call = data[definition(data, "grid_sampler_3d_mps").start : at]
            return (
                data[:at] + b"\n" + call.replace(b"grid_sampler_3d_mps(", b"grid_sampler_3d_checked_mps(") + data[at:]
            )

        plan = plan_edited(HOST, with_caller)
        assert "grid_sampler_3d_checked_mps uses mps::grid_sampler_3d_mps_impl, called as before" in said(plan)

    def test_that_puts_an_if_around_a_kernel_gets_nothing_into_the_if(self, plan_edited: Edited) -> None:
        def wrapped(data: bytes) -> bytes:
            kernel = definition(data, "grid_sampler_2d")
            text = data[kernel.start : kernel.end]
            return data[: kernel.start] + b"#if GRID_SAMPLER_2D\n" + text + b"#endif\n" + data[kernel.end :]

        plan = plan_edited(METAL, wrapped)
        assert said(plan) == ""
        after = plan.changes[-1].tree.read(METAL) or b""
        inside = after.partition(b"#if GRID_SAMPLER_2D\n")[2].partition(b"#endif\n")[0]
        kernel = definition(after, "grid_sampler_2d")
        assert inside == after[kernel.start : kernel.end]

    def test_that_renames_a_helper_which_the_text_of_a_change_uses(self, plan_edited: Edited) -> None:
        plan = plan_edited(HOST, lambda data: data.replace(b"padding_to_string", b"name_of_padding"))
        assert "uses padding_to_string, defined nowhere that this file sees" in said(plan)


class TestUpstreamsOwnFiles:
    @pytest.mark.parametrize("name", UPSTREAM)
    def test_miss_no_name(self, name: str, tmp_path: Path) -> None:
        with Repository.open(upstream_tree(name, tmp_path / "tree")) as repository:
            tree = Tree.at(repository, "main")
            assert newly_missing(tree_of({}), tree, [HEADER, METAL, HOST], [], Contents()) == []

    def test_before_april_get_all_that_the_series_uses(self, tmp_path: Path) -> None:
        with Repository.open(upstream_tree("2026-04-before", tmp_path / "tree")) as repository:
            commit = repository.resolve_commit("main")
            assert commit is not None
            plan = plan_stack(repository, SERIES, commit)
            assert not plan.blocked
            assert sum(change.becomes_commit for change in plan.changes) == 3

    @pytest.mark.parametrize(
        ("name", "count"), [(UPSTREAM[2], 2), (UPSTREAM[3], 1), (UPSTREAM[4], 2), (UPSTREAM[5], 2)]
    )
    def test_from_april_on_get_the_changes_that_they_lack(self, name: str, count: int, tmp_path: Path) -> None:
        with Repository.open(upstream_tree(name, tmp_path / "tree")) as repository:
            commit = repository.resolve_commit("main")
            assert commit is not None
            plan = plan_stack(repository, SERIES, commit)
            assert said(plan) == ""
            assert len(plan.commits) == count

    def test_before_april_refuse_to_drop_what_somebody_changed_in_a_helper_of_the_old_kernel(
        self, tmp_path: Path
    ) -> None:
        folder = upstream_tree("2026-04-before", tmp_path / "tree")
        with Repository.open(folder) as repository:
            data = Tree.at(repository, "main").read(METAL) or b""
            helper = definition(data, "get_tensor_val")
            body = data.index(b"{", helper.start) + 1
            commit = edited(folder, METAL, data[:body] + b"\n  // changed\n  ;" + data[body:])
            plan = plan_stack(repository, SERIES, commit)
            assert "get_tensor_val is not a version the series knows" in said(plan)
            assert "nothing would use it any more" in said(plan)

    def test_with_a_draft_of_2d_refuse_3d_by_the_struct_that_it_extends(self, tmp_path: Path) -> None:
        with Repository.open(upstream_tree("2026-04-2d-only", tmp_path / "tree")) as repository:
            commit = repository.resolve_commit("main")
            assert commit is not None
            plan = plan_stack(repository, SERIES, commit)
            assert plan.blocked
            assert "0 places match 'after struct GridSamplerGradientParams in the global namespace'" in said(plan)
