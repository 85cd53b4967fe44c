"""What an op refuses, and how, is the tree's choice: a stack that touches the op keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from stackproof.gates.common.standin.below import BelowHost
from stackproof.ops.scenarios import BAD_ARGUMENTS, HostCase, Scenario

PROBLEM = "raised ValueError instead of RuntimeError: too small"


@pytest.mark.parametrize(
    ("kind", "base", "is_theirs"),
    [
        (BAD_ARGUMENTS, (PROBLEM,), True),
        (BAD_ARGUMENTS, ("raised nothing",), False),
        (BAD_ARGUMENTS, (), False),
        ("values", (PROBLEM,), False),
    ],
)
def test_the_same_error_as_below_is_a_note_although_the_stack_touches_the_op(
    kind: str, base: tuple[str, ...], is_theirs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touches(*_arguments: Any, **_named: Any) -> bool:
        return True

    monkeypatch.setattr(BelowHost, "touches", touches)
    below: BelowHost = object.__new__(BelowHost)
    assert below._has(Scenario("op", kind), HostCase("grad too small", problems=(PROBLEM,)), base) is is_theirs
