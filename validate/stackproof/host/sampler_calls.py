"""Ways in which autograd, transforms and users call ``grid_sample``'s backward, besides the plain one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from stackproof.host.device import StandinDevice
from stackproof.host.scenarios import HostCase

_ALERT = "grid_sampler_2d_backward_mps"
_STEP, _TOLERANCE = 2.0**-9, 2e-2


def _sample(image: Tensor, grid: Tensor) -> Tensor:
    """Bilinear, zeros, no align_corners."""
    return functional.grid_sample(image, grid, align_corners=False)


def _tensors(device: str, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """grad_output (2, 3, 4, 6), input (2, 3, 5, 7), grid (2, 4, 6, 2)."""
    source = torch.Generator().manual_seed(7)
    grid = torch.rand(2, 4, 6, 2, generator=source) * 2.6 - 1.3
    made = [torch.randn(2, 3, 4, 6, generator=source), torch.randn(2, 3, 5, 7, generator=source), grid]
    return [tensor.to(dtype).to(device) for tensor in made]


def _problems(**wrong: bool) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name, is_wrong in wrong.items() if is_wrong)


@dataclass(frozen=True)
class _Loss:
    """A weighted sum over the output, summed in float64.

    Attributes:
        mode: of ``grid_sample``.
        padding: of ``grid_sample``.
        weights: (2, 3, 4, 6).
    """

    mode: str
    padding: str
    weights: Tensor

    def __call__(self, image: Tensor, grid: Tensor) -> Tensor:
        output = functional.grid_sample(image, grid, mode=self.mode, padding_mode=self.padding, align_corners=False)
        return (output.cpu().double() * self.weights.double()).sum()


def finite_differences(device: StandinDevice) -> Iterator[HostCase]:
    """The gradients predict how a sum over the output changes along random directions, in float32.

    The step is short beside a pixel, and the grid keeps away from where the interpolation has kinks.
    """
    source = torch.Generator().manual_seed(3)
    # Pixel positions k + 0.25 and k + 0.75 of a 5 x 7 image.
    rows = torch.randint(0, 4, (2, 4, 6), generator=source) + 0.25
    columns = torch.randint(0, 6, (2, 4, 6), generator=source) + 0.75
    grid = torch.stack([(2 * columns + 1) / 7 - 1, (2 * rows + 1) / 5 - 1], -1).to("mps").requires_grad_()
    image = _tensors("mps")[1].requires_grad_()
    for mode in ("bilinear", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            loss = _Loss(mode, padding, torch.randn(2, 3, 4, 6, generator=source))
            for number, name in enumerate(("input", "grid")):
                off = _difference(loss, [image, grid], number, source)
                wrong = (f"off by {off:.2g} of its size",) if not off < _TOLERANCE else ()
                yield HostCase(f"{mode}, {padding}, along {name}", None, wrong)


def _difference(loss: _Loss, leaves: list[Tensor], number: int, source: torch.Generator) -> float:
    """How far the slope along a random direction is from the gradient's, relative to the gradient's size."""
    gradient = torch.autograd.grad(loss(*leaves), leaves)[number].cpu().double()
    direction = torch.randn(leaves[number].shape, generator=source)
    values = []
    for sign in (1, -1):
        moved = [leaf.detach().clone() for leaf in leaves]
        moved[number] += (sign * _STEP * direction).to("mps")
        values.append(loss(*moved).item())
    numeric = (values[0] - values[1]) / (2 * _STEP)
    analytic = (gradient * direction.double()).sum().item()
    return float(abs(numeric - analytic) / max(abs(numeric), gradient.norm().item()))


def vmap_over_grad_output(device: StandinDevice) -> Iterator[HostCase]:
    """A batch of output gradients in one call, as Jacobians are computed, equals one call each."""
    grad_output, image, grid = _tensors("mps")
    leaves = [image.requires_grad_(), grid.requires_grad_()]
    output = _sample(leaves[0], leaves[1])
    batch = torch.stack([grad_output, 2 * grad_output, torch.ones_like(grad_output)])
    together = torch.autograd.grad(output, leaves, batch, is_grads_batched=True, retain_graph=True)
    for number, name in enumerate(("grad_input", "grad_grid")):
        alone = [torch.autograd.grad(output, leaves, one, retain_graph=True)[number].cpu() for one in batch]
        close = torch.allclose(together[number].cpu(), torch.stack(alone), atol=1e-5, rtol=1e-5)
        yield HostCase(name, None, _problems(a_batch_differs_from_single_calls=not close))


def autocast(device: StandinDevice) -> Iterator[HostCase]:
    """Under autocast mixed input types arrive as one, and the gradients have the types of their leaves."""
    for dtype in (torch.float16, torch.bfloat16):
        _grad, image, grid = _tensors("mps")
        leaves = [image.to(dtype).requires_grad_(), grid.requires_grad_()]
        with torch.autocast("mps", dtype=dtype):
            output = _sample(leaves[0], leaves[1])
        grads = torch.autograd.grad(output.float().sum(), leaves)
        reference = [leaf.detach().cpu().double().requires_grad_() for leaf in leaves]
        expected = torch.autograd.grad(_sample(reference[0], reference[1]).sum(), reference)
        tolerance = 4 * torch.finfo(dtype).eps
        problems = _problems(
            a_gradient_has_another_dtype=any(g.dtype != leaf.dtype for g, leaf in zip(grads, leaves, strict=True)),
            a_gradient_is_wrong=not all(
                torch.allclose(g.cpu().double(), e, atol=tolerance, rtol=tolerance)
                for g, e in zip(grads, expected, strict=True)
            ),
        )
        yield HostCase(f"{dtype} image, float32 grid", None, problems)


def deterministic_algorithms(device: StandinDevice) -> Iterator[HostCase]:
    """The documented alert for the atomic sum of ``grad_input``, and none where there is no such sum."""
    grad_output, image, grid = _tensors("mps")
    call = torch.ops.aten.grid_sampler_2d_backward
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        message = _raised(lambda: call(grad_output, image, grid, 0, 0, False, [True, True]))[1]
        yield HostCase("with grad_input", None, _problems(the_alert_is_missing=_ALERT not in message))
        message = _raised(lambda: call(grad_output, image, grid, 0, 0, False, [False, True]))[1]
        yield HostCase("without grad_input", None, (message,) if message else ())
    finally:
        torch.use_deterministic_algorithms(before)


def _raised(call: Callable[[], object]) -> tuple[type[BaseException] | None, str]:
    """Type and message of what the call raises."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None, ""


@dataclass(frozen=True)
class _BadCall:
    """A call that must be refused before anything is launched.

    Attributes:
        name: what is wrong.
        raises: the exception's type.
        message: regular expression that its text must match.
        change: makes grad_output, input, grid, interpolation and padding of good ones.
    """

    name: str
    raises: type[BaseException]
    message: str
    change: Callable[[list[Any]], list[Any]]


def _with(**at: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    order = ("grad_output", "input", "grid", "interpolation", "padding")
    return lambda given: [at[name](value) if name in at else value for name, value in zip(order, given, strict=True)]


_BAD_CALLS = (
    _BadCall("interpolation -1", RuntimeError, "interpolation mode", _with(interpolation=lambda _: -1)),
    _BadCall("interpolation 3", RuntimeError, "interpolation mode", _with(interpolation=lambda _: 3)),
    _BadCall("padding -1", RuntimeError, "padding mode", _with(padding=lambda _: -1)),
    _BadCall("padding 3", RuntimeError, "padding mode", _with(padding=lambda _: 3)),
    _BadCall("grad_output too small", RuntimeError, "sizes", _with(grad_output=lambda t: t[:, :, :-1])),
    _BadCall("grad_output of rank 3", RuntimeError, "sizes", _with(grad_output=lambda t: t[0])),
    _BadCall("grad_output with other channels", RuntimeError, "sizes", _with(grad_output=lambda t: t[:, :2])),
    _BadCall("grid in half", RuntimeError, "same (type|dtype)", _with(grid=lambda t: t.half())),
    _BadCall("grad_output in half", RuntimeError, "same (type|dtype)", _with(grad_output=lambda t: t.half())),
    _BadCall("int tensors", NotImplementedError, "not supported",
             _with(grad_output=lambda t: t.int(), input=lambda t: t.int(), grid=lambda t: t.int())),
    _BadCall("grid on the CPU", RuntimeError, "device", _with(grid=lambda t: t.cpu())),
    _BadCall("input on the CPU", RuntimeError, "device", _with(input=lambda t: t.cpu())),
    _BadCall("grad_output on the CPU", RuntimeError, "to be on|device", _with(grad_output=lambda t: t.cpu())),
    _BadCall("input of rank 3", RuntimeError, "4D|dimensions|batch size", _with(input=lambda t: t[0])),
    _BadCall("input of rank 5", RuntimeError, "4D|dimensions|size",
             _with(input=lambda t: t.unsqueeze(2), grid=lambda t: torch.cat([t, t[..., :1]], -1))),
    _BadCall("other batch size", RuntimeError, "batch size", _with(grid=lambda t: t[:1])),
    _BadCall("grid with three coordinates", RuntimeError, "grid to have size",
             _with(grid=lambda t: torch.cat([t, t[..., :1]], -1))),
    _BadCall("input without rows", RuntimeError, "non-empty spatial", _with(input=lambda t: t[:, :, :0])),
    _BadCall("input without columns", RuntimeError, "non-empty spatial", _with(input=lambda t: t[..., :0])),
)  # fmt: skip


def bad_arguments(device: StandinDevice) -> Iterator[HostCase]:
    """Each is refused with the right exception, and no kernel is launched."""
    for bad in _BAD_CALLS:
        arguments = bad.change([*_tensors("mps"), 0, 0])
        launched = len(device.launches)
        kind, message = _raised(
            lambda given=arguments: torch.ops.aten.grid_sampler_2d_backward(*given, False, [True, True])  # type: ignore[misc]
        )
        shown = kind.__name__ if kind else "nothing"
        problems = []
        if kind is not bad.raises:
            problems.append(f"raised {shown} instead of {bad.raises.__name__}: {message[:120]}")
        elif not re.search(bad.message, message):
            problems.append(f"the message does not say what is wrong: {message[:120]}")
        if len(device.launches) != launched:
            problems.append("a kernel was launched before the arguments were refused")
        yield HostCase(bad.name, None, tuple(problems))
