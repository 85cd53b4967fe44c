"""host-check with Apple's clang beside it. ``xcrun`` is a stand-in: Apple's compiler itself was not run."""

from __future__ import annotations

from pathlib import Path

import pytest

import fake_xcrun
from stack_lab import HOST_FILE, StackLab
from stackproof.engines.standin.apple_clang import find_apple_clang
from stackproof.engines.standin.clang import STUBS
from stackproof.gates.host_check.spec import SPEC as HOST_CHECK
from stackproof.model import GateResult, Verdict

pytestmark = [pytest.mark.usefixtures("compiler"), pytest.mark.slow]

INCLUDE = "#include <ATen/ops/grid_sampler_2d_backward_native.h>\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("stackproof.gates.host_check.gate.find_apple_clang", find_apple_clang.__wrapped__)
    return fake_xcrun.install(tmp_path, monkeypatch)


def failing(result: GateResult) -> list[tuple[str, str, int]]:
    return [(one.rule, one.path, one.line) for one in result.findings if one.fails]


def test_each_host_file_goes_to_apples_clang_without_the_stubs(stack: StackLab, log: Path) -> None:
    result = stack.judge(HOST_CHECK)
    assert (result.verdict, list(result.limits)) == (Verdict.PASSED, [])
    assert result.details["apple_compiler"]["version"].startswith("Apple clang")
    checked = [call for call in fake_xcrun.calls(log) if "-fsyntax-only" in call]
    assert sorted(call[-1].rpartition("/")[2] for call in checked) == ["GridSampler.mm", "GridSamplerLanes.mm"]
    assert all(str(STUBS) not in call and call[:3] == ["-sdk", "macosx", "clang++"] for call in checked)


def test_what_only_apples_clang_refuses_fails_at_its_line(stack: StackLab, log: Path) -> None:
    """The seeded fault that the portable compiler takes."""
    commit = stack.replaced(INCLUDE, f"{INCLUDE.strip()}  // apple: error no such framework\n")
    line = stack.text(HOST_FILE).partition(INCLUDE)[0].count("\n") + 1
    assert failing(stack.judge(HOST_CHECK, commit)) == [("syntax", HOST_FILE, line)]


def test_what_only_the_portable_compiler_refuses_is_a_note(stack: StackLab, log: Path) -> None:
    result = stack.judge(HOST_CHECK, stack.replaced(INCLUDE, ""))
    assert failing(result) == []
    notes = [one for one in result.findings if one.rule == "syntax"]
    assert notes
    assert "beside Apple's compiler" in notes[0].message
    assert any("symbols and structs were not compared" in text for text in result.details["not_checked"])
