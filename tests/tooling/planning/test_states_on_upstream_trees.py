"""What the series makes of upstream's own grid sampler files of 2026, and of somebody's change on top of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from edit_bench import edited
from patchstack.edits.create_file import CreateFile
from patchstack.planning import ChangeState, StackPlan, plan_stack
from patchstack.series import load_series
from patchstack.tree.git import GitCommitHash, Repository, Tree
from shared_inputs import upstream_tree

pytestmark = pytest.mark.needs_reference

HOST = "aten/src/ATen/native/mps/operations/GridSampler.mm"
LANES = "aten/src/ATen/native/mps/operations/GridSamplerLanes.mm"
HEADER = "aten/src/ATen/native/mps/kernels/GridSampler.h"
METAL = "aten/src/ATen/native/mps/kernels/GridSampler.metal"
SERIES = load_series("grid_sampler")
CHANGES = [change.id for change in SERIES.changes]
TWO, THREE, COORDINATES, FAST = CHANGES
ABSENT, PRESENT, OTHER = ChangeState.ABSENT, ChangeState.PRESENT, ChangeState.NOT_APPLICABLE
STATES = {
    "2026-04-before": (ABSENT, ABSENT, OTHER, ABSENT),
    "2026-04-3d-only": (ABSENT, PRESENT, OTHER, ABSENT),
    "2026-05-both": (PRESENT, PRESENT, OTHER, ABSENT),
    "2026-06-wide-index": (PRESENT, PRESENT, ABSENT, ABSENT),
    "2026-08-checked": (PRESENT, PRESENT, ABSENT, ABSENT),
}
"""State of each change on the trees that the series applies to."""
AFTER = ("2026-05-both", "2026-06-wide-index", "2026-08-checked")
"""Trees with upstream's backward of both ops."""
every_tree = pytest.mark.parametrize("name", STATES)


class Planned:
    """Plans on the trees, each made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: list[Repository] = []
        self.on = lru_cache(maxsize=None)(self._on)

    def repository(self, name: str) -> Repository:
        folder = self._folder / name
        found = Repository.open(folder if folder.exists() else upstream_tree(name, folder))
        self._open.append(found)
        return found

    def _on(self, name: str) -> StackPlan:
        repository = self.repository(name)
        return plan_stack(repository, SERIES, main_of(repository))

    def with_host(self, name: str, text: str) -> StackPlan:
        """The plan on the tree with another host file."""
        return plan_stack(self.repository(name), SERIES, edited(self._folder / name, HOST, text.encode()))

    def before(self, name: str, path: str) -> str:
        return (Tree.at(self.repository(name), main_of(self.repository(name))).read(path) or b"").decode()

    def after(self, name: str, path: str) -> str:
        return (self.on(name).changes[-1].tree.read(path) or b"").decode()

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planned]:
    made = Planned(tmp_path_factory.mktemp("trees"))
    yield made
    made.close()


def main_of(repository: Repository) -> GitCommitHash:
    commit = repository.resolve_commit("main")
    assert commit is not None
    return commit


def body_of(function: str, text: str) -> str:
    """The last function of that name, with its parameters."""
    start = text.rindex(f"{function}(const Tensor& grad_output,")
    return text[start : text.index("\n}\n", start)]


@every_tree
def test_the_series_applies_with_the_commits_that_the_tree_lacks(planned: Planned, name: str) -> None:
    plan = planned.on(name)
    assert [str(conflict) for _, conflict in plan.conflicts()] == []
    assert tuple(change.state for change in plan.changes) == STATES[name]
    assert len(plan.commits) == STATES[name].count(ABSENT)


def test_a_tree_with_a_draft_of_the_2d_backward_is_refused_for_what_the_3d_change_needs(planned: Planned) -> None:
    plan = planned.on("2026-04-2d-only")
    assert plan.changes[0].state is PRESENT
    conflicts = [(change.change.id, conflict.problem) for change, conflict in plan.conflicts()]
    assert conflicts
    assert {change for change, _ in conflicts} == {THREE}
    assert any("GridSamplerGradientParams" in problem for _, problem in conflicts)


@every_tree
def test_each_backward_asks_the_lanes_after_its_checks_and_keeps_its_own_kernels(planned: Planned, name: str) -> None:
    before, after = planned.before(name, HOST), planned.after(name, HOST)
    for number, change in ((2, TWO), (3, THREE)):
        function = f"grid_sampler_{number}d_backward_mps"
        body = body_of(function, after)
        assert body.count("mps::grid_sampler_backward_lanes(") == 1
        asked = body.index("if (auto gradients")
        assert "check_grid_sampler" in body[:asked] or "grid_sampler_backward_mps<" in body[asked:]
        own = STATES[name][CHANGES.index(change)] is PRESENT
        if own and STATES[name][CHANGES.index(COORDINATES)] is not ABSENT:
            hook = body[asked : body.index("\n  }\n", asked) + 5].lstrip()
            assert body.replace(hook, "").split() == body_of(function, before).split()


@pytest.mark.parametrize("name", AFTER)
def test_no_alert_is_added_where_upstream_has_none(planned: Planned, name: str) -> None:
    for path in (HOST, LANES):
        assert planned.after(name, path).count("alertNotDeterministic") == planned.before(name, path).count(
            "alertNotDeterministic"
        )


@every_tree
def test_each_struct_of_the_header_is_used_by_host_and_kernels(planned: Planned, name: str) -> None:
    structs = re.findall(r"^struct (\w+)", planned.after(name, HEADER), re.MULTILINE)
    assert any(struct.endswith(("BackwardParams", "GradientParams")) for struct in structs)
    for struct in structs:
        users = planned.after(name, HOST), planned.after(name, METAL)
        inside = planned.after(name, HEADER).count(struct) > 1  # a member of another
        assert inside or all(re.search(rf"\b{struct}\b", text) for text in users), struct


@pytest.mark.parametrize("number", [2, 3])
def test_upstreams_shared_check_stays(planned: Planned, number: int) -> None:
    body = body_of(f"grid_sampler_{number}d_backward_mps", planned.after("2026-08-checked", HOST))
    check = f"check_grid_sampler_{number}d_backward(input, grid, grad_output"
    assert body.index(check) < body.index("mps::grid_sampler_backward_lanes(")


@pytest.mark.parametrize("name", AFTER)
def test_somebodys_padding_mode_and_argument_are_kept_or_a_conflict(planned: Planned, name: str) -> None:
    text = planned.before(name, HOST)
    for number in (2, 3):
        body = body_of(f"grid_sampler_{number}d_backward_mps", text)
        theirs = body.replace("bool align_corners,", "bool align_corners,\n    double value,", 1)
        at = theirs.index("{") + 1
        text = text.replace(body, f'{theirs[:at]}\n  TORCH_CHECK(std::isfinite(value), "theirs");{theirs[at:]}')
    case = 'case GridSamplerPadding::Constant:\n      return "constant";\n    '
    text = text.replace("case GridSamplerPadding::Reflection:", f"{case}case GridSamplerPadding::Reflection:", 1)
    assert (text.count('"theirs"'), text.count("Padding::Constant")) == (2, 1)
    plan = planned.with_host(name, text)
    if name == "2026-05-both":
        assert [str(conflict) for _, conflict in plan.conflicts()] == []
        after = (plan.changes[-1].tree.read(HOST) or b"").decode()
        for number in (2, 3):
            body = body_of(f"grid_sampler_{number}d_backward_mps", after)
            assert body.index('"theirs"') < body.index("mps::grid_sampler_backward_lanes(")
            assert "double value" in body
        assert "Padding::Constant" in after
    else:  # the change of the coordinates would replace their functions
        refused = {change.change.id for change, _ in plan.conflicts()}
        assert COORDINATES in refused


def test_a_padding_mode_that_the_lanes_do_not_know_is_left_to_the_tree() -> None:
    (text,) = (edit.content for edit in SERIES.changes[-1].edits if isinstance(edit, CreateFile) and edit.path == LANES)
    decides = text.decode().partition("std::optional<std::tuple<Tensor, Tensor>> grid_sampler_backward_lanes(")[2]
    assert "padding_mode > static_cast<int64_t>(GridSamplerPadding::Reflection)" in decides
    assert decides.index("GridSamplerPadding::Reflection") < decides.index("return std::nullopt;")
