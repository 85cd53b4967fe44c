"""Calls in other circumstances: what each kind says of an op that is right, and of one that is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from stackproof.gates.op_run import otherwise
from stackproof.gates.op_run.recorded import Call
from stackproof.model import Finding


class Device:
    """Stands for the stand-in device: which circumstances hold."""

    def __init__(self) -> None:
        self.holds = ""
        self.findings: list[Finding] = []

    def begin(self, part: str) -> None:
        """Nothing."""

    @contextlib.contextmanager
    def _circumstance(self, name: str) -> Iterator[None]:
        self.holds = name
        yield
        self.holds = ""

    def permuted(self) -> Any:
        return self._circumstance("permuted")

    def fast_math(self) -> Any:
        return self._circumstance("fast")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(otherwise, "_moved", lambda call: call)
    monkeypatch.setattr(otherwise, "on_device", lambda arguments: arguments)
    return Device()


def problems(kind: str, device: Device, function: Callable[..., Any], *args: Any) -> list[str]:
    call = Call(function, args or (torch.arange(6.0).reshape(2, 3),), {}, "a sample")
    cases = list(otherwise.otherwise(kind, [call], device))  # type: ignore[arg-type]
    assert cases
    return [problem for case in cases for problem in case.problems]


@pytest.mark.parametrize("kind", otherwise.KINDS)
def test_an_op_that_is_right_has_no_problem(kind: str, device: Device) -> None:
    assert problems(kind, device, lambda x: x * 2) == []
    assert device.findings == []


def test_other_bits_in_another_order_of_threads_fail_unless_the_op_has_an_alert(device: Device) -> None:
    def adds(x: Tensor) -> Tensor:
        return x + 1e-6 * (device.holds == "permuted")

    def adds_and_says_so(x: Tensor) -> Tensor:
        if torch.are_deterministic_algorithms_enabled():
            raise RuntimeError("adds does not have a deterministic implementation")
        return adds(x)

    assert "other bits" in problems(otherwise.PERMUTED, device, adds)[0]
    assert problems(otherwise.PERMUTED, device, adds_and_says_so) == []
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_nan_is_the_same_as_a_nan(device: Device) -> None:
    assert problems(otherwise.PERMUTED, device, lambda x: x / 0, torch.zeros(2)) == []


def test_what_fast_math_changes_much_is_a_note(device: Device) -> None:
    assert problems(otherwise.FAST_MATH, device, lambda x: x * (1.1 if device.holds == "fast" else 1)) == []
    assert [(one.rule, one.fails) for one in device.findings] == [(otherwise.FAST_MATH_RULE, False)]


def test_a_batch_that_differs_from_single_calls_fails(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def moved(arguments: Any) -> Any:
        seen.append(arguments)
        return tuple(one + 1 if isinstance(one, Tensor) else one for one in arguments)

    monkeypatch.setattr(otherwise, "on_device", moved)
    assert "epsilons off" in problems(otherwise.VMAP, device, lambda x: x * 2)[0]
    assert seen[0][0].shape == (2, 2, 3)


def test_a_wrong_result_under_autocast_fails(device: Device) -> None:
    def half(x: Tensor) -> Tensor:
        return x * (1.5 if torch.is_autocast_enabled("mps") else 1)

    assert set(problems(otherwise.AUTOCAST, device, half)) == {"output 0 is wrong under autocast"}
