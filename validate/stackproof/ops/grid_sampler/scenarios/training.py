"""A small spatial transformer trained on both devices: the same loss after the same steps.

The network has no convolution: the CPU stands in for every op but the sampler, and convolutions on an MPS tensor look
for a kernel that exists on macOS only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from stackproof.engines.standin.device import StandinDevice
from stackproof.ops.grid_sampler.modes import Sampler
from stackproof.ops.scenarios import HostCase

_STEPS, _RATE, _TOLERANCE = 12, 0.05, 1e-3


@dataclass(frozen=True)
class _Parameters:
    """Weights of the localisation head and of the classifier."""

    locate: Tensor
    locate_bias: Tensor
    classify: Tensor

    @classmethod
    def fresh(cls, device: str) -> _Parameters:
        source = torch.Generator().manual_seed(11)
        # Not the identity: samples right on pixels are where the gradient jumps, and rounding decides which way.
        nearly = torch.tensor([0.91, 0.06, 0.03, -0.04, 0.87, -0.02])
        made = (torch.randn(64, 6, generator=source) * 0.02, nearly, torch.randn(64, 3, generator=source) * 0.1)
        return cls(*(tensor.to(device).requires_grad_() for tensor in made))

    @property
    def all(self) -> list[Tensor]:
        return [self.locate, self.locate_bias, self.classify]


def spatial_transformer(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """Train on the CPU and on the device, compare the losses of all steps."""
    for mode in ("bilinear", "bicubic"):
        losses, expected = _train("mps", mode), _train("cpu", mode)
        off = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        problems = []
        if not off <= _TOLERANCE:
            problems.append(f"a loss differs from the CPU's by {off:.3g}")
        if not losses[-1] < losses[0]:
            problems.append(f"the loss did not fall: {losses[0]:.3g} to {losses[-1]:.3g}")
        yield HostCase(f"{mode}, {_STEPS} steps, loss {losses[0]:.4f} to {losses[-1]:.4f}", None, tuple(problems))


def _train(device: str, mode: str) -> list[float]:
    """The losses of all steps."""
    source = torch.Generator().manual_seed(5)
    images = torch.randn(6, 1, 8, 8, generator=source).to(device)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    targets = functional.one_hot(labels, 3).float().to(device)
    parameters = _Parameters.fresh(device)
    losses = []
    for _ in range(_STEPS):
        loss = _loss(parameters, images, targets, mode)
        gradients = torch.autograd.grad(loss, parameters.all)
        losses.append(loss.item())
        with torch.no_grad():
            for parameter, gradient in zip(parameters.all, gradients, strict=True):
                parameter.sub_(gradient, alpha=_RATE)
    return losses


def _loss(parameters: _Parameters, images: Tensor, targets: Tensor, mode: str) -> Tensor:
    theta = images.flatten(1).matmul(parameters.locate).add(parameters.locate_bias).view(-1, 2, 3)
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, mode=mode, align_corners=False)
    scores = moved.flatten(1).matmul(parameters.classify)
    return (scores - targets).square().mean()
