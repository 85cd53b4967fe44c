"""What the comparison of launches makes of a call that the hook leaves to the tree's own function."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stackproof.ops.grid_sampler.scenarios.launches import _seen


def failing() -> object:
    raise IndexError("Dimension out of range")


def test_an_error_of_the_trees_own_function_is_not_the_hooks() -> None:
    device: Any = SimpleNamespace(before_run=None)
    assert _seen(device, failing, may_fail=True) == []
    assert device.before_run is None


def test_an_error_where_the_hook_was_to_launch_is_raised() -> None:
    with pytest.raises(IndexError):
        _seen(SimpleNamespace(before_run=None), failing, may_fail=False)  # type: ignore[arg-type]
