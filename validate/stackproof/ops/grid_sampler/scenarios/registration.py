"""Registration of two volumes by gradient descent on both devices: the same path to the same affine map.

What people differentiate the 3D sampler for. The moving volume is warped until it equals a fixed one, which was made
by a known map; the CPU does the same in float64, and every step of the device has to stay as close to it as rounding
to float32 allows.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from stackproof.engines.standin.device import StandinDevice
from stackproof.ops.grid_sampler.modes import Sampler
from stackproof.ops.scenarios import HostCase

_STEPS, _RATE, _MOMENTUM = 60, 4.0, 0.75
# Of the parameters at the end, and of every parameter in every step against float64. float32 on the CPU stays within
# 2.3e-7 of float64.
_RECOVERED, _SAME_PATH = 1e-3, 2e-6
_SIZE = 14

_TRUE = ((0.95, 0.08, -0.05, 0.06), (-0.07, 1.04, 0.06, -0.05), (0.04, -0.06, 0.97, 0.04))
# Not the identity: samples right on voxels are where the gradient jumps, and rounding decides which way.
_FIRST = ((1.013, 0.021, -0.017, 0.011), (-0.019, 0.977, 0.014, 0.017), (0.012, 0.018, 1.027, -0.016))

# Centre (x, y, z), width and height of the bumps that the volume is made of: smooth, and symmetric in nothing.
_BUMPS = (
    (-0.30, 0.20, 0.10, 0.35, 1.0),
    (0.35, -0.25, 0.30, 0.30, 0.8),
    (0.10, 0.40, -0.35, 0.25, -0.7),
    (-0.20, -0.45, -0.20, 0.30, 0.6),
    (0.50, 0.30, 0.00, 0.28, 0.5),
)


def volumetric_registration(device: StandinDevice, sampler: Sampler) -> Iterator[HostCase]:
    """The parameters after every step, on the device and on the CPU."""
    path, expected = _register("mps", torch.float32), _register("cpu", torch.float64)
    wrong = (path[-1] - _parameters(_TRUE)).abs().max().item()
    off = (path - expected).abs().max().item()
    recovered = () if wrong <= _RECOVERED else (f"a parameter is {wrong:.2g} away from the known one",)
    yield HostCase(f"{_STEPS} steps, parameters within {wrong:.1e} of the known ones", None, recovered)
    same = () if off <= _SAME_PATH else (f"a step is {off:.2g} away from the CPU's in float64",)
    yield HostCase(f"{_STEPS} steps, each within {off:.1e} of the CPU's in float64", None, same)


def _parameters(rows: tuple[tuple[float, ...], ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).unsqueeze(0)


def _volume() -> Tensor:
    """(1, 1, 14, 14, 14) float64."""
    axis = torch.linspace(-1, 1, _SIZE, dtype=torch.float64)
    z, y, x = torch.meshgrid(axis, axis, axis, indexing="ij")
    bumps = [
        height * torch.exp(-((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) / (2 * width**2))
        for cx, cy, cz, width, height in _BUMPS
    ]
    return torch.stack(bumps).sum(0).view(1, 1, _SIZE, _SIZE, _SIZE)


def _warped(volume: Tensor, parameters: Tensor) -> Tensor:
    grid = functional.affine_grid(parameters, list(volume.shape), align_corners=False)
    return functional.grid_sample(volume, grid, padding_mode="border", align_corners=False)


def _register(device: str, dtype: torch.dtype) -> Tensor:
    """(steps, 1, 3, 4) float64: the parameters after every step."""
    moving = _volume().to(dtype).to(device)
    fixed = _warped(_volume(), _parameters(_TRUE)).to(dtype).to(device)
    parameters = _parameters(_FIRST).to(dtype).to(device).requires_grad_()
    step = torch.zeros_like(parameters)
    path = []
    for _ in range(_STEPS):
        loss = (_warped(moving, parameters) - fixed).square().mean()
        (gradient,) = torch.autograd.grad(loss, parameters)
        step = step * _MOMENTUM - gradient * _RATE
        with torch.no_grad():
            parameters.add_(step)
        path.append(parameters.detach().cpu().double().clone())
    return torch.stack(path)
