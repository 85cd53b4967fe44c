"""Gates that can do without code of the tree come to a result, or are not run; they never fail for want of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchstack.confine import take
from patchstack.confine.policy import OPTION, tree_code
from skips import cannot
from stack_lab import applied
from stackproof.engines.errors import ToolchainError
from stackproof.engines.standin.clang import find_clang
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.gates.host_check.spec import SPEC as HOST_CHECK
from stackproof.gates.spec import Spec
from stackproof.model import Verdict


@pytest.mark.needs_reference
@pytest.mark.parametrize("gate", [C_SHIM, HOST_CHECK], ids=lambda gate: gate.name)
def test_a_gate_that_needs_torchgen_is_not_run_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Spec
) -> None:
    try:
        find_clang()
    except ToolchainError as error:
        pytest.skip(cannot(f"{error}"))
    with applied("2.11", tmp_path / "tree") as lab:
        monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
        take()
        with tree_code(allowed=False):
            result = lab.judge(gate)
    assert result.verdict is Verdict.NOT_RUN
    assert f"the tree's torchgen would have to be run, and {OPTION} forbids it" in result.reason
    assert take() == ()
