"""Ways in which autograd, transforms and users call ``grid_sample``'s backward, besides the plain one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from stackproof.engines.standin.device import StandinDevice
from stackproof.ops.grid_sampler.modes import Interpolation, Sampler
from stackproof.ops.grid_sampler.scenarios.tensors import raised, small_tensors
from stackproof.ops.scenarios import HostCase

_STEP, _TOLERANCE = 2.0**-9, 2e-2


def _sample(image: Tensor, grid: Tensor) -> Tensor:
    """Bilinear, zeros, no align_corners."""
    return functional.grid_sample(image, grid, align_corners=False)


def _problems(**wrong: bool) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name, is_wrong in wrong.items() if is_wrong)


@dataclass(frozen=True)
class _Loss:
    """A weighted sum over the output, summed in float64.

    Attributes:
        mode: of ``grid_sample``.
        padding: of ``grid_sample``.
        weights: the shape of the output.
    """

    mode: str
    padding: str
    weights: Tensor

    def __call__(self, image: Tensor, grid: Tensor) -> Tensor:
        output = functional.grid_sample(image, grid, mode=self.mode, padding_mode=self.padding, align_corners=False)
        return (output.cpu().double() * self.weights.double()).sum()


def finite_differences(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The gradients predict how a sum over the output changes along random directions, in float32.

    The step is short beside a pixel, and the grid keeps away from where the interpolation has kinks.
    """
    source = torch.Generator().manual_seed(3)
    grad_output, image, like = small_tensors(sampler, "mps")
    coordinates = []
    for axis, size in enumerate(reversed(image.shape[2:])):
        # Pixel positions k + 0.75 and k + 0.25.
        positions = torch.randint(0, size - 1, like.shape[:-1], generator=source) + (0.25 if axis % 2 else 0.75)
        coordinates.append((2 * positions + 1) / size - 1)
    leaves = [image.requires_grad_(), torch.stack(coordinates, -1).to("mps").requires_grad_()]
    for mode in (mode.name.lower() for mode in sampler.interpolations if mode is not Interpolation.NEAREST):
        for padding in ("zeros", "border", "reflection"):
            loss = _Loss(mode, padding, torch.randn(grad_output.shape, generator=source))
            for number, name in enumerate(("input", "grid")):
                off = _difference(loss, leaves, number, source)
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


def vmap_over_grad_output(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """A batch of output gradients in one call, as Jacobians are computed, equals one call each."""
    grad_output, image, grid = small_tensors(sampler, "mps")
    leaves = [image.requires_grad_(), grid.requires_grad_()]
    output = _sample(leaves[0], leaves[1])
    batch = torch.stack([grad_output, 2 * grad_output, torch.ones_like(grad_output)])
    together = torch.autograd.grad(output, leaves, batch, is_grads_batched=True, retain_graph=True)
    for number, name in enumerate(("grad_input", "grad_grid")):
        alone = [torch.autograd.grad(output, leaves, one, retain_graph=True)[number].cpu() for one in batch]
        close = torch.allclose(together[number].cpu(), torch.stack(alone), atol=1e-5, rtol=1e-5)
        yield HostCase(name, None, _problems(a_batch_differs_from_single_calls=not close))


def autocast(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """Under autocast mixed input types arrive as one, and the gradients have the types of their leaves."""
    for dtype in (torch.float16, torch.bfloat16):
        _grad, image, grid = small_tensors(sampler, "mps")
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


def deterministic_algorithms(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The documented alert for the atomic sum of ``grad_input``, and none where there is no such sum."""
    grad_output, image, grid = small_tensors(sampler, "mps")
    call, alert = getattr(torch.ops.aten, sampler.backward), f"{sampler.backward}_mps"
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        message = raised(lambda: call(grad_output, image, grid, 0, 0, False, [True, True]))[1]
        yield HostCase("with grad_input", None, _problems(the_alert_is_missing=alert not in message))
        message = raised(lambda: call(grad_output, image, grid, 0, 0, False, [False, True]))[1]
        yield HostCase("without grad_input", None, (message,) if message else ())
    finally:
        torch.use_deterministic_algorithms(before)
