"""The series on upstream's own files: no gate fails for what the stack does not touch.

The files are upstream's text and not in the repository (:mod:`shared_inputs`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate_contexts import run_gate
from patchstack.cache import cache_dir
from patchstack.cli import Request, run
from patchstack.tree.git import Repository
from shared_inputs import upstream_tree
from stackproof.gates.host_check.spec import SPEC as HOST_CHECK
from stackproof.gates.host_run.spec import SPEC as HOST_RUN
from stackproof.gates.metal_check.spec import SPEC as METAL_CHECK
from stackproof.gates.metal_run.spec import SPEC as METAL_RUN
from stackproof.gates.spec import Spec
from stackproof.model import GateContext, GateResult, Verdict

pytestmark = [pytest.mark.exhaustive, pytest.mark.slow, pytest.mark.needs_reference]

FAST, FIRST_TWO = "grid_sampler_fast_backward", ("grid_sampler_2d_backward", "grid_sampler_3d_backward")
STACKS: dict[str, dict[str, Any]] = {
    "2026-04-before": {"only": FIRST_TWO},
    "2026-05-both": {"replace": (FAST,)},
    "2026-06-wide-index": {},
}


def stack_on(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    path = upstream_tree(name, tmp_path_factory.mktemp(name) / "tree")
    report = run(Request(onto="main", repo=path, force=True, **STACKS[name]))
    assert not report.plan.blocked
    return path


@pytest.fixture(scope="module", params=STACKS)
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stack_on(tmp_path_factory, request.param)


def judged(tree: Path, spec: Spec, **options: Any) -> GateResult:
    with Repository.open(tree) as repository:
        base, head = (repository.commit(name).hash for name in ("main", "stack/grid_sampler"))
        return run_gate(spec, GateContext(repository, base, head, cache_dir()), **options)


def failing(result: GateResult) -> list[str]:
    return [finding.message for finding in result.findings if finding.fails]


@pytest.mark.parametrize("gate", [METAL_CHECK, HOST_CHECK], ids=lambda gate: gate.name)
def test_the_static_gates_find_nothing_of_the_bases(tree: Path, gate: Any) -> None:
    result = judged(tree, gate)
    assert (failing(result), result.verdict) == ([], Verdict.PASSED)


def test_a_forward_that_replaces_upstreams_is_compared_where_upstreams_survives(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tree = stack_on(tmp_path_factory, "2026-04-before")
    options = {
        "ops": ["grid_sampler_3d"],
        "run_modes": ["plain"],
        "match": "as before the stack, one row; bilinear, re",
    }
    result = judged(tree, METAL_RUN, **options)
    assert (failing(result), result.verdict, result.failed) == ([], Verdict.PASSED, 0)
    rules = [finding.rule for finding in result.findings]
    assert rules.count("not-compared") == 3  # with align_corners upstream's divides by zero, in each of three dtypes
    assert rules.count("worse-before") == 3  # and without them gives NaN


def test_the_bases_own_forward_fails_no_scenario_of_the_stacks_backward(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tree = stack_on(tmp_path_factory, "2026-05-both")
    result = judged(tree, HOST_RUN, ops=["grid_sampler_3d_backward"], kinds=["values"])
    assert (failing(result), result.verdict) == ([], Verdict.PASSED)
    notes = {finding.rule for finding in result.findings}
    # The stack puts a hook into the host function; the kernels behind it are upstream's, and so are their sums.
    assert notes == {"argument-alignment", "empty-grid", "crash", "wrong-value"}
    assert result.cases > 800
