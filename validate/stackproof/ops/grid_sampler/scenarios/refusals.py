"""Calls of the samplers that must be refused before anything is launched, with the right exception."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from stackproof.engines.standin.device import StandinDevice
from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding, Sampler
from stackproof.ops.grid_sampler.public import public_samples
from stackproof.ops.grid_sampler.scenarios.tensors import raised, small_tensors
from stackproof.ops.scenarios import HostCase

_Changes = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True)
class _BadCall:
    """A call that must be refused before anything is launched.

    Attributes:
        name: what is wrong.
        message: regular expression that the exception's text must match.
        changes: what is done to the arguments of a good call, by name.
        raises: the exception's type.
    """

    name: str
    message: str
    changes: _Changes
    raises: type[BaseException] = RuntimeError


def _value(code: int, _good: int) -> int:
    return code


def _without(axis: int, values: Tensor) -> Tensor:
    return values.narrow(axis, 0, 0)


def _with_another_coordinate(grid: Tensor) -> Tensor:
    return torch.cat([grid, grid[..., :1]], -1)


_SPATIAL = {2: ("rows", "columns"), 3: ("slices", "rows", "columns")}
# Of the two samplers, how the checks that they share call the rank.
_RANKS = r"[45]D|dimensions|size"


def _bad_codes() -> Iterator[_BadCall]:
    for argument in ("interpolation", "padding"):
        for code in (-1, 3):
            yield _BadCall(f"{argument} {code}", f"{argument} mode", {argument: partial(_value, code)})


def _bad_tensors(sampler: Sampler) -> Iterator[_BadCall]:
    """Wrong input and grid, as both directions get them."""
    yield _BadCall("grid in half", "same (type|dtype)", {"grid": Tensor.half})
    yield _BadCall("grid on the CPU", "device", {"grid": Tensor.cpu})
    yield _BadCall("input on the CPU", "device", {"input": Tensor.cpu})
    yield _BadCall("input of lower rank", f"{_RANKS}|batch size", {"input": lambda t: t[0]})
    more = {"input": lambda t: t.unsqueeze(2), "grid": lambda t: _with_another_coordinate(t).unsqueeze(1)}
    yield _BadCall("input of higher rank", _RANKS, more)
    yield _BadCall("other batch size", "batch size", {"grid": lambda t: t[:1]})
    yield _BadCall("grid with one coordinate more", "grid to have size", {"grid": _with_another_coordinate})
    for axis, name in enumerate(_SPATIAL[sampler.dims], 2):
        yield _BadCall(f"input without {name}", "non-empty spatial", {"input": partial(_without, axis)})


def _bad_gradients() -> Iterator[_BadCall]:
    """Wrong tensors that only the backward gets."""
    yield _BadCall("grad_output too small", "sizes", {"grad_output": lambda t: t[:, :, :-1]})
    yield _BadCall("grad_output of lower rank", "sizes", {"grad_output": lambda t: t[0]})
    yield _BadCall("grad_output with other channels", "sizes", {"grad_output": lambda t: t[:, :2]})
    yield _BadCall("grad_output in half", "same (type|dtype)", {"grad_output": Tensor.half})
    yield _BadCall("grad_output on the CPU", "to be on|device", {"grad_output": Tensor.cpu})


def _integers(*names: str) -> _BadCall:
    return _BadCall(
        "int tensors", "not supported|not implemented", dict.fromkeys(names, Tensor.int), NotImplementedError
    )


def backward_refusals(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The backward's own checks; it can be reached without going through the forward."""
    call = getattr(torch.ops.aten, sampler.backward)
    good = dict(zip(("grad_output", "input", "grid"), small_tensors(sampler, "mps"), strict=True))
    calls = [*_bad_codes(), *_bad_tensors(sampler), *_bad_gradients(), _integers("grad_output", "input", "grid")]
    for bad in calls:
        arguments = _changed({**good, "interpolation": 0, "padding": 0}, bad.changes)
        yield _refused(device, bad, lambda given=arguments: call(*given, False, [True, True]))  # type: ignore[misc]
    if Interpolation.BICUBIC not in sampler.interpolations:
        tensors = list(good.values())
        yield _as_on_cpu(
            "bicubic", lambda given: call(*given, int(Interpolation.BICUBIC), 0, False, [True, True]), tensors
        )


def forward_refusals(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The forward's checks, and what the public function says about bicubic."""
    call = getattr(torch.ops.aten, sampler.forward)
    good = dict(zip(("input", "grid"), small_tensors(sampler, "mps")[1:], strict=True))
    for bad in [*_bad_codes(), *_bad_tensors(sampler), _integers("input", "grid")]:
        arguments = _changed({**good, "interpolation": 0, "padding": 0}, bad.changes)
        yield _refused(device, bad, lambda given=arguments: call(*given, False))  # type: ignore[misc]
    if Interpolation.BICUBIC not in sampler.interpolations:
        tensors = list(good.values())
        yield _as_on_cpu("bicubic", lambda given: call(*given, int(Interpolation.BICUBIC), 0, False), tensors)
        bicubic = Mode(Interpolation.BICUBIC, Padding.ZEROS, align_corners=False)
        yield _as_on_cpu("bicubic by grid_sample", lambda given: public_samples(given[0], given[1], bicubic), tensors)


def _changed(good: Mapping[str, Any], changes: _Changes) -> list[Any]:
    return [changes[name](value) if name in changes else value for name, value in good.items()]


def _refused(device: StandinDevice, bad: _BadCall, call: Callable[[], object]) -> HostCase:
    launched = len(device.launches)
    kind, message = raised(call)
    problems = []
    if kind is not bad.raises:
        shown = kind.__name__ if kind else "nothing"
        problems.append(f"raised {shown} instead of {bad.raises.__name__}: {message[:120]}")
    elif not re.search(bad.message, message):
        problems.append(f"the message does not say what is wrong: {message[:120]}")
    if len(device.launches) != launched:
        problems.append("a kernel was launched before the arguments were refused")
    return HostCase(bad.name, None, tuple(problems))


def _as_on_cpu(name: str, call: Callable[[list[Tensor]], object], tensors: list[Tensor]) -> HostCase:
    """The same exception with the same text as the CPU has for the same call."""
    there, here = raised(lambda: call([tensor.cpu() for tensor in tensors])), raised(lambda: call(tensors))
    problems = []
    if there[0] is None:
        problems.append("the CPU does not refuse it")
    if here != there:
        problems.append(f"raised {here[0]}: {here[1][:120]!r}, the CPU {there[0]}: {there[1][:120]!r}")
    return HostCase(f"{name} is refused as on the CPU", None, tuple(problems))
