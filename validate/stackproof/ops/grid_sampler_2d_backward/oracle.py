"""The 2D grid sampler's gradients from their definition, in float64.

PyTorch's own float64 CPU kernel is the judge wherever it is defined. It is not defined for non-finite and huge
coordinates (it reads outside its tensors), and it cannot say how large the terms were that a gradient was summed
from. This module can do both: the sampler is separable, so each axis is a short list of taps (index, weight and the
weight's slope), and both gradients are products of two such lists.

The rule for coordinates that are not finite, once un-normalised to pixels in float32, is the overlay's: with zeros and
reflection padding the sample is outside and contributes nothing; with border padding +inf is the last pixel, -inf and
NaN are the first one, and the gradient of the coordinate is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from stackproof.ops.grid_sampler_2d_backward.modes import Interpolation, Mode, Padding

# Cubic convolution with the free parameter that torch's forward has, -0.75: |x| <= 1, and 1 < |x| < 2.
_CUBIC_NEAR = (1.25, -2.25, 0.0, 1.0)
_CUBIC_FAR = (-0.75, 3.75, -6.0, 3.0)

# Beyond this many pixels a float32 coordinate no longer resolves single pixels, so a reflection can end on any of them.
RESOLVED_PIXELS = 2.0**22

# float64 coordinates are cut here before they become integers; still far outside every axis.
_LARGEST_PIXEL = 2.0**50


@dataclass(frozen=True)
class _Weights:
    """Weights of an axis' taps, all (N, Ho, Wo, T) float64.

    Attributes:
        weight: weight of each tap; zero outside.
        slope: derivative of ``weight`` with respect to the pixel coordinate.
        curvature: derivative of ``slope``.
        weight_terms: sum of the absolute values of the terms that ``weight`` is computed from.
        slope_terms: the same for ``slope``.
    """

    weight: Tensor
    slope: Tensor
    curvature: Tensor
    weight_terms: Tensor
    slope_terms: Tensor


@dataclass(frozen=True)
class AxisTaps(_Weights):
    """What one axis contributes to every sample; all tensors float64 unless said otherwise.

    Attributes:
        pixel: (N, Ho, Wo) coordinate in pixels before padding.
        index: (N, Ho, Wo, T) int64 pixel of each tap, inside the axis where ``weight`` counts.
        scale: (N, Ho, Wo) derivative of the pixel coordinate after padding with respect to the grid value.
        finite: (N, Ho, Wo) bool: the pixel coordinate is finite in float32.
    """

    pixel: Tensor
    index: Tensor
    scale: Tensor
    finite: Tensor


@dataclass(frozen=True)
class Gradients:
    """Expected gradients, and how large an error of float32 arithmetic in them is.

    Attributes:
        grad_input: (N, C, H, W) float64.
        grad_grid: (N, Ho, Wo, 2) float64, last axis x then y.
        grad_input_terms: (N, C, H, W): what an error of one epsilon in every coordinate and every product moves.
        grad_grid_terms: the same for ``grad_grid``.
    """

    grad_input: Tensor
    grad_grid: Tensor
    grad_input_terms: Tensor
    grad_grid_terms: Tensor


def to_pixels(coordinate: Tensor, size: int, align_corners: bool) -> tuple[Tensor, float]:
    """Pixel coordinates of normalised ones, and the factor between the two."""
    factor = (size - 1) / 2 if align_corners else size / 2
    return coordinate * factor + (size - 1) / 2, factor


def _clip(pixel: Tensor, size: int) -> tuple[Tensor, Tensor]:
    # Borders count as outside for the gradient; written so that NaN lands on pixel 0.
    inside = (pixel > 0) & (pixel < size - 1)
    clipped = torch.where(pixel > 0, pixel.clamp(max=size - 1), torch.zeros_like(pixel))
    return clipped, inside.double()


def _reflect(pixel: Tensor, size: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return torch.zeros_like(pixel), torch.zeros_like(pixel)
    sign = torch.where(pixel < low, -1.0, 1.0).double()
    distance = (pixel - low).abs()
    extra = torch.fmod(distance, span)
    odd = torch.fmod(torch.floor(distance / span), 2) != 0
    reflected = torch.where(odd, span - extra, extra) + low
    clipped, inside = _clip(reflected, size)
    return clipped, torch.where(odd, -sign, sign) * inside


def _pad(pixel: Tensor, size: int, mode: Mode) -> tuple[Tensor, Tensor]:
    if mode.padding is Padding.BORDER:
        return _clip(pixel, size)
    if mode.padding is Padding.REFLECTION:
        return _reflect(pixel, size, mode.align_corners)
    return pixel, torch.ones_like(pixel)


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """Value at ``x`` (not negative) of the polynomial whose highest coefficient comes first."""
    value = torch.zeros_like(x)
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    degree = len(coefficients) - 1
    return tuple(coefficient * (degree - at) for at, coefficient in enumerate(coefficients[:-1]))


def _cubic_taps(t: Tensor) -> _Weights:
    """Weights of the pixels at -1, 0, 1, 2 for a fraction ``t`` between pixels 0 and 1."""
    columns = []
    for position in (-1, 0, 1, 2):
        x, sign = (t - position).abs(), (1.0 if position <= 0 else -1.0)
        weight = _CUBIC_NEAR if position in (0, 1) else _CUBIC_FAR
        slope = _derivative(weight)
        columns.append(
            (
                _polynomial(weight, x),
                sign * _polynomial(slope, x),
                _polynomial(_derivative(slope), x),
                _polynomial(tuple(map(abs, weight)), x),
                _polynomial(tuple(map(abs, slope)), x),
            )
        )
    return _Weights(*(torch.stack(column, -1) for column in zip(*columns, strict=True)))


def _linear_taps(t: Tensor) -> _Weights:
    """Weights of the pixels at 0 and 1."""
    weight = torch.stack([1 - t, t], -1)
    slope = torch.stack([-torch.ones_like(t), torch.ones_like(t)], -1)
    return _Weights(weight, slope, torch.zeros_like(weight), weight, slope.abs())


def _single_tap(t: Tensor) -> _Weights:
    one, zero = torch.ones_like(t).unsqueeze(-1), torch.zeros_like(t).unsqueeze(-1)
    return _Weights(one, zero, zero, one, zero)


_WEIGHTS = {
    Interpolation.BILINEAR: _linear_taps,
    Interpolation.NEAREST: _single_tap,
    Interpolation.BICUBIC: _cubic_taps,
}
_OFFSETS = {
    Interpolation.BILINEAR: torch.tensor([0.0, 1.0], dtype=torch.float64),
    Interpolation.NEAREST: torch.tensor([0.0], dtype=torch.float64),
    Interpolation.BICUBIC: torch.tensor([-1.0, 0.0, 1.0, 2.0], dtype=torch.float64),
}


def axis_taps(coordinate: Tensor, size: int, mode: Mode) -> AxisTaps:
    """The taps of one axis.

    Args:
        coordinate: (N, Ho, Wo) float64 grid values of this axis.
        size: pixels of the axis, at least 1.
        mode: how to sample.
    """
    pixel, factor = to_pixels(coordinate, size, mode.align_corners)
    finite = pixel.float().isfinite()
    # Where the coordinate is not finite every tap lands on one pixel, and the coordinate has no gradient.
    settled = torch.where(finite, pixel, _clip(pixel, size)[0])
    if mode.interpolation is Interpolation.BICUBIC:
        at, clip = settled, torch.ones_like(settled)  # the taps are padded, not the coordinate
    else:
        at, clip = _pad(settled, size, mode)
    at = at.clamp(-_LARGEST_PIXEL, _LARGEST_PIXEL)
    base = at.round() if mode.interpolation is Interpolation.NEAREST else at.floor()
    weights = _WEIGHTS[mode.interpolation](at - base)
    taps = base.unsqueeze(-1) + _OFFSETS[mode.interpolation]
    if mode.interpolation is Interpolation.BICUBIC:
        taps, _ = _pad(taps, size, mode)

    inside = (taps >= 0) & (taps <= size - 1)
    if mode.padding is not Padding.BORDER:
        inside &= finite.unsqueeze(-1)
    scale = torch.where(finite, clip * factor, torch.zeros_like(clip))
    index = torch.where(inside, taps, torch.zeros_like(taps)).long()
    kept = {part.name: getattr(weights, part.name) * inside for part in fields(weights)}
    return AxisTaps(**kept, pixel=pixel, index=index, scale=scale, finite=finite)


def gradients(grad_output: Tensor, input: Tensor, grid: Tensor, mode: Mode) -> Gradients:  # noqa: A002
    """Both gradients, from inputs of any dtype.

    Args:
        grad_output: (N, C, Ho, Wo).
        input: (N, C, H, W), H and W at least 1.
        grid: (N, Ho, Wo, 2).
        mode: how to sample.
    """
    go, values, coordinates = grad_output.double(), input.double(), grid.double()
    height, width = input.shape[2:]
    x, y = axis_taps(coordinates[..., 0], width, mode), axis_taps(coordinates[..., 1], height, mode)
    shift_x, shift_y = _uncertainty(x, width, mode.padding), _uncertainty(y, height, mode.padding)

    weight = _product(y.weight, x.weight)
    moved = (
        _product(y.weight_terms, x.weight_terms)
        + shift_x * _product(y.weight, x.slope).abs()
        + shift_y * _product(y.slope, x.weight).abs()
    )
    flat = (y.index.unsqueeze(-1) * width + x.index.unsqueeze(-2)).flatten(-2)
    grad_input = _scatter(go, weight, flat, input.shape)
    grad_input_terms = _scatter(go.abs(), moved, flat, input.shape)

    taps = _gather(values, flat)
    by_x = _product(y.weight, x.slope), _product(y.weight_terms, x.slope_terms), _product(y.weight, x.curvature).abs()
    by_y = _product(y.slope, x.weight), _product(y.slope_terms, x.weight_terms), _product(y.curvature, x.weight).abs()
    cross = _product(y.slope, x.slope).abs()
    moved_x = by_x[1] + shift_y * cross + shift_x * by_x[2]
    moved_y = by_y[1] + shift_x * cross + shift_y * by_y[2]
    sums = [_contract(go, taps, by_x[0]), _contract(go, taps, by_y[0])]
    terms = [_contract(go.abs(), taps.abs(), moved_x), _contract(go.abs(), taps.abs(), moved_y)]
    scale = torch.stack([x.scale, y.scale], -1)
    return Gradients(grad_input, scale * torch.stack(sums, -1), grad_input_terms, scale.abs() * torch.stack(terms, -1))


def _uncertainty(taps: AxisTaps, size: int, padding: Padding) -> Tensor:
    """(N, Ho, Wo, 1): how many epsilons of a pixel the float32 coordinate is off, to first order."""
    pixel = torch.where(taps.finite, taps.pixel.abs(), torch.zeros_like(taps.pixel))
    if padding is not Padding.REFLECTION:
        pixel = pixel.clamp(max=size + 4.0)  # further out nothing depends on where exactly
    return (pixel + size).unsqueeze(-1)


def _product(by_row: Tensor, by_column: Tensor) -> Tensor:
    """(N, Ho, Wo, T*T) products of two axes' taps, rows first."""
    return (by_row.unsqueeze(-1) * by_column.unsqueeze(-2)).flatten(-2)


def _scatter(go: Tensor, weight: Tensor, flat: Tensor, shape: torch.Size) -> Tensor:
    batch, channels, height, width = shape
    terms = (go.unsqueeze(-1) * weight.unsqueeze(1)).flatten(2)
    index = flat.flatten(1).unsqueeze(1).expand_as(terms)
    empty = torch.zeros(batch, channels, height * width, dtype=torch.float64)
    return empty.scatter_add_(2, index, terms).view(batch, channels, height, width)


def _gather(values: Tensor, flat: Tensor) -> Tensor:
    """(N, C, Ho, Wo, T*T) input values under the taps."""
    batch, channels = values.shape[:2]
    index = flat.flatten(1).unsqueeze(1).expand(batch, channels, -1)
    return values.flatten(2).gather(2, index).view(batch, channels, *flat.shape[1:])


def _contract(go: Tensor, taps: Tensor, weight: Tensor) -> Tensor:
    """Sum over channels and taps: (N, Ho, Wo)."""
    return torch.einsum("nchw,nchwt,nhwt->nhw", go, taps, weight)
