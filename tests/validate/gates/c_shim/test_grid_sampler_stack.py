"""The series on the 2.11 tree, commit by commit: dispatch only, and the C shim that torch 2.13 ships for its ops."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from gate_contexts import run_gate
from patchstack.cache import cache_dir
from patchstack.cli import Request, run
from patchstack.tree.c_shim import header_path, parse_declarations
from patchstack.tree.git import GitCommitHash, Repository, Tree
from references import clone_of, require_reference
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.gates.fc_window.spec import SPEC as FC_WINDOW
from stackproof.model import GateContext, Verdict

pytestmark = pytest.mark.needs_reference

DEVICES = ("aten", "cpu", "cuda", "mps", "xpu")
OPS_OF_COMMITS = (["grid_sampler_2d_backward"], ["grid_sampler_3d_backward"])


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repository, list[GitCommitHash]]]:
    """A clone of the 2.11 tree with the stack, and its commits, the one below the stack first."""
    clone = clone_of("2.11", tmp_path_factory.mktemp("stack") / "clone.git")
    with Repository.open(clone) as repository:
        for key in ("user.name", "user.email"):
            repository.text("config", key, "stack@example.org")
        assert not run(Request(onto="main", repo=clone, series=None)).plan.blocked
        names = repository.text("rev-list", "--reverse", "main..stack/grid_sampler").split()
        yield repository, [repository.commit(name).hash for name in ("main", *names)]


def declared(tree: Tree) -> set[tuple[str, str]]:
    """Header and text of each declaration of a grid sampler."""
    found = set()
    for device in DEVICES:
        for declaration in parse_declarations(tree.read(header_path(device)) or b""):
            if re.search(r"_grid_sampler_[23]d", declaration.name):
                found.add((device, declaration.text))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(len(OPS_OF_COMMITS)))
def test_every_commit_is_a_dispatch_only_change(number: int, commits: tuple[Repository, list[GitCommitHash]]) -> None:
    repository, chain = commits
    result = run_gate(FC_WINDOW, GateContext(repository, chain[number], chain[number + 1], cache_dir()))
    assert result.verdict is Verdict.PASSED
    assert str(result.details["summary"]).startswith("dispatch-only change: no schema changed")
    named = [
        match[1] for finding in result.findings if (match := re.match(r"aten::(\w+): dispatch-only", finding.message))
    ]
    assert named == OPS_OF_COMMITS[number]


def test_the_stack_declares_what_torch_2_13_ships_for_its_ops_and_nothing_else(
    commits: tuple[Repository, list[GitCommitHash]],
) -> None:
    repository, (base, *_, head) = commits
    before, after = (declared(Tree.at(repository, commit)) for commit in (base, head))
    with Repository.open(require_reference("2.13").path) as newer:
        assert after == declared(Tree.at(newer, "main"))
    assert before < after
    result = run_gate(C_SHIM, GateContext(repository, base, head, cache_dir()))
    assert result.verdict is Verdict.PASSED
    assert result.details["summary"] == f"{len(after - before)} declarations added, none changed"


@pytest.mark.parametrize("number", range(len(OPS_OF_COMMITS)))
def test_the_headers_of_every_commit_are_what_its_own_torchgen_makes(
    number: int, commits: tuple[Repository, list[GitCommitHash]]
) -> None:
    repository, chain = commits
    result = run_gate(C_SHIM, GateContext(repository, chain[number], chain[number + 1], cache_dir()))
    assert result.verdict is Verdict.PASSED
    assert len(result.details["compared_with_torchgen"]) == len(DEVICES)
